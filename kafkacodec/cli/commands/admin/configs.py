"""``kafkacodec admin configs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from kafkacodec.cli.commands.admin.shared import assignments, dry_run_option, json_option, show, tell
from kafkacodec.cli.options.servers import Servers, server_options

if TYPE_CHECKING:
    from kafkacodec.protocol.terms import ConfigResourceType

_KINDS = ("topic", "broker", "broker_logger", "client_metrics", "group")
_kind = click.argument("kind", metavar="TYPE", type=click.Choice(_KINDS))
_name = click.argument("name", default="")


@click.group()
def configs() -> None:
    """Describe and change the configurations of topics, brokers, groups and others."""


@configs.command()
@_kind
@_name
@server_options()
@click.option("--all", "everything", is_flag=True, help="Defaults too.")
@json_option
def describe(kind: str, name: str, servers: Servers, everything: bool, as_json: bool) -> None:
    """Print the configurations of a resource that are not defaults: `topic NAME`, `broker ID`, `group NAME`.

    TYPE is topic, broker, broker_logger, client_metrics or group. `broker` without an ID is the default of all brokers.
    """
    resource = (cast("ConfigResourceType", kind), name)
    with servers.admin() as admin:
        found = admin.describe_configs([resource])[resource]  # type: ignore[index]
    rows = (
        [entry.name, "(sensitive)" if entry.sensitive else entry.value, entry.source]
        for entry in found.values()
        if everything or not entry.is_default
    )
    show(["name", "value", "source"], rows, as_json=as_json)


@configs.command()
@_kind
@_name
@server_options()
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Set a configuration.")
@click.option("--delete", "deleted", metavar="NAME", multiple=True, help="Restore a configuration's default.")
@click.option("--append", "appended", metavar="NAME=VALUE", multiple=True, help="Add to a list.")
@click.option("--subtract", "subtracted", metavar="NAME=VALUE", multiple=True, help="Remove from a list.")
@dry_run_option
def alter(
    kind: str,
    name: str,
    servers: Servers,
    settings: tuple[str, ...],
    deleted: tuple[str, ...],
    appended: tuple[str, ...],
    subtracted: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change some configurations of a resource, and keep the others."""
    from kafkacodec.client import Append, Subtract

    changes: dict[str, str | None] = {
        **assignments(settings, "--set"),
        **dict.fromkeys(deleted),
        **{key: Append(value) for key, value in assignments(appended, "--append").items()},
        **{key: Subtract(value) for key, value in assignments(subtracted, "--subtract").items()},
    }
    if not changes:
        raise click.UsageError("nothing to change; add --set, --delete, --append or --subtract")
    with servers.admin() as admin:
        admin.incremental_alter_configs({(cast("ConfigResourceType", kind), name): changes}, validate_only=dry_run)
    for key, value in changes.items():
        how = "given also" if isinstance(value, Append) else "freed of" if isinstance(value, Subtract) else "set to"
        what = f"the default {key}" if value is None else f"{key}={value}"
        tell(f"{kind} {name}".rstrip(), f"{how} {what}", dry_run)
