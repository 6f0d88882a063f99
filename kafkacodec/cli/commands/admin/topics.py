"""``kafkacodec admin topics``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafkacodec.cli.commands.admin.shared import assignments, dry_run_option, json_option, show, tell, telling
from kafkacodec.cli.completion import complete_topic
from kafkacodec.cli.console import say
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.servers import Servers, server_options
from kafkacodec.cli.output import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkacodec.client import Admin
    from kafkacodec.client.admin.topic_terms import CreatedTopic

_names = click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=complete_topic)
_config_option = click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="A configuration, such as retention.ms=86400000."
)


@click.group(short_help="Create, delete, change, list and describe topics.")
def topics() -> None:
    """Create, delete, change, list and describe topics; `kafkacodec topics -b` shows more of them."""


@topics.command(name="list")
@server_options()
def list_topics(servers: Servers) -> None:
    """Print the names of all topics, one a line."""
    with servers.admin() as admin:
        for name in admin.list_topics():
            say(name)


@topics.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@server_options()
@click.option("--partitions", type=Number(min=1), help="Number of partitions. Default: the broker's.")
@click.option("--replicas", type=Number(min=1), help="Replicas of each partition. Default: the broker's.")
@_config_option
@click.option("--if-not-exists", is_flag=True, help="Skip topics that exist.")
@dry_run_option
def create(
    names: tuple[str, ...],
    servers: Servers,
    partitions: int | None,
    replicas: int | None,
    settings: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics."""
    from kafkacodec.client import NewTopic

    configs = assignments(settings, "--set")

    def told(name: str, topic: CreatedTopic) -> None:
        count = topic.num_partitions
        tell(name, "created" + (f", {counted(count, 'partition')}" if count > 0 else ""), dry_run)

    with servers.admin() as admin, telling(told):
        there = admin.list_topics() if if_not_exists else {}
        new = [NewTopic(name, partitions or -1, replicas or -1, configs=configs) for name in names if name not in there]
        made = admin.create_topics(new, validate_only=dry_run) if new else {}
    for name in names:
        if name not in made:
            tell(name, "left as it is", dry_run)
        else:
            told(name, made[name])


@topics.command()
@_names
@server_options()
@click.option("--if-exists", is_flag=True, help="Skip topics that do not exist.")
@dry_run_option
def delete(names: tuple[str, ...], servers: Servers, if_exists: bool, dry_run: bool) -> None:
    """Delete topics, with all their records."""

    def told(name: str, result: object = None) -> None:
        tell(name, "deleted", dry_run)

    with servers.admin() as admin, telling(told):
        there = admin.list_topics(include_internal=True) if if_exists else dict.fromkeys(names)
        chosen = [name for name in names if name in there]
        if dry_run and chosen:
            admin.describe_topics(chosen)  # raises if one is not there
        elif chosen:
            admin.delete_topics(chosen)
    for name in chosen:
        told(name)


@topics.command()
@_names
@server_options()
@click.option("--partitions", type=Number(min=1), help="The new number of partitions, which only grows.")
@_config_option
@click.option("--delete", "deleted", metavar="NAME", multiple=True, help="Restore the broker's default.")
@dry_run_option
def alter(
    names: tuple[str, ...],
    servers: Servers,
    partitions: int | None,
    settings: tuple[str, ...],
    deleted: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Add partitions to topics, or change their configurations."""
    from kafkacodec.client import ConfigResource

    changes: dict[str, str | None] = {**assignments(settings, "--set"), **dict.fromkeys(deleted)}
    if partitions is None and not changes:
        raise click.UsageError("nothing to change; add --partitions, --set or --delete")

    def grown(name: str, result: object = None) -> None:
        tell(name, f"given {counted(partitions or 0, 'partition')}", dry_run)

    def told(topic: ConfigResource, result: object = None) -> None:
        for key, value in changes.items():
            tell(topic.name, f"set to the default of {key}" if value is None else f"set to {key}={value}", dry_run)

    with servers.admin() as admin:
        if partitions is not None:
            with telling(grown):
                admin.create_partitions(dict.fromkeys(names, partitions), validate_only=dry_run)
            for name in names:
                grown(name)
        if changes:
            topics = [ConfigResource("topic", name) for name in names]
            with telling(told):
                admin.incremental_alter_configs(dict.fromkeys(topics, changes), validate_only=dry_run)
            for topic in topics:
                told(topic)


@topics.command()
@_names
@server_options()
@json_option
def describe(names: tuple[str, ...], servers: Servers, as_json: bool) -> None:
    """Print the partitions of topics, and the configurations that are not defaults."""
    with servers.admin() as admin:
        found = admin.describe_topics(names)
        configs = _changed(admin, names)
    rows = (
        [topic.name, part.partition, part.leader, part.replicas, part.isr]
        for topic in found.values()
        for part in topic.partitions
    )
    show(["topic", "partition", "leader", "replicas in order", "in sync"], rows, as_json=as_json)
    if configs:
        show(["topic", "config", "value"], configs, as_json=as_json)


def _changed(admin: Admin, names: Iterable[str]) -> list[list[str | None]]:
    described = admin.describe_configs([("topic", name) for name in names])
    return [
        [resource.name, entry.name, entry.value]
        for resource, entries in described.items()
        for entry in entries.values()
        if entry.source == "dynamic_topic"
    ]
