"""``kafkacodec admin acls``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.commands.admin.shared import dry_run_option, json_option, show, tell, telling
from kafkacodec.cli.options.gathering import Command
from kafkacodec.cli.options.servers import Servers, server_options
from kafkacodec.errors import ItemErrors

if TYPE_CHECKING:
    from kafkacodec.client import Acl

_NAMES = ["resource", "name", "pattern", "principal", "host", "operation", "permission"]
_OPERATIONS = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster_action", "describe_configs"),
    *("alter_configs", "idempotent_write", "create_tokens", "describe_tokens", "two_phase_commit"),
)
_RESOURCES = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")
_CLUSTER = "kafka-cluster"


def _rule_options(required: bool) -> Callable[[Command], Command]:
    """The options that describe a rule, or a filter of rules."""
    options = (
        click.option("--resource", type=click.Choice(_RESOURCES), required=required, help="Type of the resource."),
        click.option("--name", help="Name of the topic, group and so on; * means all."),
        click.option(
            "--pattern",
            type=click.Choice(["literal", "prefixed", *([] if required else ["match"])]),
            help="Whether the name is a prefix (prefixed)." if required else "match: all rules that apply to the name.",
        ),
        click.option("--principal", required=required, metavar="User:NAME", help="The principal, such as User:alice."),
        click.option("--host", help="The client's address." if not required else "The client's address; default: all."),
        click.option(
            "--operation",
            type=click.Choice(_OPERATIONS),
            multiple=True,
            required=required,
            help="Operation; repeatable.",
        ),
    )

    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


@click.group()
def acls() -> None:
    """List, add and remove access control lists."""


@acls.command(name="list")
@_rule_options(required=False)
@server_options()
@json_option
def list_acls(servers: Servers, as_json: bool, **wanted: Any) -> None:
    """Print all rules, or those that match the options."""
    with servers.admin() as admin:
        found = sorted({rule for one in _filters(**wanted) for rule in admin.describe_acls(one)})
    show(_NAMES, map(_row, found), as_json=as_json)


@acls.command()
@_rule_options(required=True)
@click.option("--deny", is_flag=True, help="Deny instead of allowing.")
@server_options()
@dry_run_option
def add(
    servers: Servers,
    resource: Any,
    name: str | None,
    pattern: Any,
    principal: str,
    host: str | None,
    operation: tuple[Any, ...],
    deny: bool,
    dry_run: bool,
) -> None:
    """Add a rule for each operation."""
    from kafkacodec.client import Acl

    if name is None and resource != "cluster":
        raise click.UsageError("add --name; * means all")
    new = [
        Acl(resource, name or _CLUSTER, principal, one, "deny" if deny else "allow", host or "*", pattern or "literal")
        for one in operation
    ]

    def told(rule: Acl, result: object = None) -> None:
        tell(_said(rule), "added", dry_run)

    with servers.admin() as admin:
        try:
            if not dry_run:
                with telling(told):
                    admin.create_acls(new)
        except ItemErrors as refused:
            raise click.ClickException("; ".join(dict.fromkeys(map(str, refused.errors.values())))) from None
    for rule in new:
        told(rule)


@acls.command()
@_rule_options(required=False)
@server_options()
@dry_run_option
def remove(servers: Servers, dry_run: bool, **wanted: Any) -> None:
    """Remove the rules that match the options; at least one option is required."""
    if not any(wanted.values()):
        raise click.UsageError("no rules selected; add --resource, --name, --principal or others")

    def told(one: object, rules: Iterable[Acl]) -> None:
        for rule in rules:
            tell(_said(rule), "removed", dry_run)

    with servers.admin() as admin, telling(told):
        filters = _filters(**wanted)
        found = [admin.describe_acls(one) for one in filters] if dry_run else list(admin.delete_acls(filters).values())
    gone = sorted({rule for rules in found for rule in rules})
    told(None, gone)
    if not gone:
        raise click.ClickException("no rule matches")


def _filters(
    resource: Any, name: str | None, pattern: Any, principal: str | None, host: str | None, operation: Iterable[Any]
) -> list[Any]:
    from kafkacodec.client import AclFilter

    kind: Any = resource or "any"
    form: Any = pattern or "any"
    return [
        AclFilter(kind, name, principal, one, host=host, pattern_type=form) for one in (tuple(operation) or ("any",))
    ]


def _row(rule: Acl) -> list[str]:
    where = [rule.resource_type, rule.resource_name, rule.pattern_type]
    return [*where, rule.principal, rule.host, rule.operation, rule.permission]


def _said(rule: Acl) -> str:
    form = " (prefix)" if rule.pattern_type == "prefixed" else ""
    where = "" if rule.host == "*" else f" from {rule.host}"
    what = f"{rule.resource_type} {rule.resource_name}{form}"
    return f"{rule.permission} {rule.principal} {rule.operation} on {what}{where}"
