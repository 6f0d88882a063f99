"""``kafkacodec admin quotas``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.commands.admin.shared import assignments, dry_run_option, json_option, show, tell
from kafkacodec.cli.options.servers import Servers, server_options

if TYPE_CHECKING:
    from kafkacodec.client.admin.quotas import QuotaEntity

_DEFAULT = "<default>"


@click.group()
def quotas() -> None:
    """List and change the quotas of users, client ids and addresses."""


@quotas.command(name="list")
@server_options()
@json_option
def list_quotas(servers: Servers, as_json: bool) -> None:
    """Print all quotas."""
    with servers.admin() as admin:
        found = admin.describe_client_quotas()
    rows = ([_said(entity), name, value] for entity, values in found.items() for name, value in sorted(values.items()))
    show(["entity", "quota", "value"], rows, as_json=as_json)


@quotas.command()
@server_options()
@click.option("--user", help="A user; empty for the default of all.")
@click.option("--client-id", help="A client id; empty for the default of all.")
@click.option("--ip", help="An address; empty for the default of all.")
@click.option("--set", "settings", metavar="NAME=NUMBER", multiple=True, help="Set, as producer_byte_rate=1048576.")
@click.option("--delete", "deleted", metavar="NAME", multiple=True, help="Remove a quota.")
@dry_run_option
def alter(
    servers: Servers,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    settings: tuple[str, ...],
    deleted: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Set or remove quotas of a user, a client id, both together, or an address."""
    given: list[tuple[Any, str | None]] = [("user", user), ("client-id", client_id), ("ip", ip)]
    entity: QuotaEntity = tuple((kind, name or None) for kind, name in given if name is not None)
    values: dict[str, float | None] = dict.fromkeys(deleted)
    for name, text in assignments(settings, "--set").items():
        try:
            values[name] = float(text)
        except ValueError:
            raise click.UsageError(f"--set {name}={text}: not a number") from None
    if not entity or not values:
        raise click.UsageError("add --user, --client-id or --ip, and --set or --delete")
    with servers.admin() as admin:
        admin.alter_client_quotas({entity: values}, validate_only=dry_run)
    for name, value in values.items():
        tell(_said(entity), f"freed of {name}" if value is None else f"given {name}={value:g}", dry_run)


def _said(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {_DEFAULT if name is None else name}" for kind, name in entity)
