"""``kafkacodec metadata``: show a KRaft cluster's topics, configs, ACLs and brokers, from the disk of one node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kafkacodec.cli.completion import complete_topic
from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.files.destination import Destination, destination_options
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.inputs import on_error_option, warn
from kafkacodec.cli.options.log_path import LocalPath
from kafkacodec.cli.output import Column, counted, full_option, print_table
from kafkacodec.datatypes import replace
from kafkacodec.errors import DecodeError
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.metadata_image import ClusterMetadata
from kafkacodec.protocol.terms import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES, word

TABLES = ["topics", "partitions", "configs", "acls", "brokers", "features"]


@click.command()
@click.argument("directory", type=LocalPath(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@click.option("--table", type=click.Choice(TABLES), help="Only this table; --output needs one.")
@click.option(
    "--topic",
    "globs",
    metavar="GLOB",
    multiple=True,
    shell_complete=complete_topic,
    help="Only topics matching GLOB, their configs and ACLs; repeatable.",
)
@on_error_option
@full_option
@destination_options()
def metadata(
    directory: str,
    as_json: bool,
    table: str | None,
    globs: tuple[str, ...],
    output: Destination,
    problems: list[DecodeError] | None,
) -> None:
    """Show the cluster's metadata as of the end of the metadata log in DIRECTORY, a node's data directory."""
    if table in ("brokers", "features") and globs:
        raise click.UsageError(f"--topic does not choose {table}")
    if output:
        if table is None:
            raise click.UsageError(f"--output needs --table: {', '.join(TABLES)}")
        output.check([directory], as_json=as_json)
    found = read_cluster_metadata(directory, problems=problems)
    warn(problems)
    if globs:
        refuse_strangers("topic", globs, found.topics, directory)
        found = _of_topics(found, globs)
    if output and table is not None:
        from kafkacodec.log.state.tables import metadata_table

        output.write_table(metadata_table(found, table))
    elif as_json:
        everything = _plain(found)
        part = "topics" if table == "partitions" else table
        say_json(everything if part is None else {part: everything[part]})
    elif table is not None:
        _PRINT[table](found)
    else:
        for name in ("partitions", "configs", "acls"):
            if name == "partitions" or getattr(found, name):
                _PRINT[name](found)
        _print_rest(found)


def _of_topics(found: ClusterMetadata, globs: tuple[str, ...]) -> ClusterMetadata:
    """The metadata of the topics whose names match; without configs and ACLs of anything else."""
    topics = {name: facts for name, facts in found.topics.items() if matches(name, globs)}
    configs = {name: values for name, values in found.configs.items() if name.removeprefix("topic:") in topics}
    acls = {key: acl for key, acl in found.acls.items() if any(_applies(acl, topic) for topic in topics)}
    return replace(found, topics=topics, configs=configs, acls=acls)


def _applies(acl: Mapping[str, Any], topic: str) -> bool:
    if _name(RESOURCES, acl["resource_type"]) != "TOPIC":
        return False
    if _name(PATTERNS, acl["pattern_type"]) == "PREFIXED":
        return topic.startswith(acl["resource_name"])
    return acl["resource_name"] in (topic, "*")


def _print_topics(found: ClusterMetadata) -> None:
    rows = (
        [name, str(len(topic["partitions"])), str(topic["topic_id"])] for name, topic in sorted(found.topics.items())
    )
    print_table([Column("topic", stretch=True), Column("partitions", right=True), Column("topic id")], rows)


def _print_partitions(found: ClusterMetadata) -> None:
    columns = [
        Column("topic", stretch=True),
        Column("partition", right=True),
        Column("leader", right=True),
        Column("epoch", right=True),
        Column("replicas"),
        Column("in sync"),
        Column("topic id"),
    ]
    rows = (
        [
            name,
            str(number),
            str(partition["leader"]),
            str(partition["leader_epoch"]),
            ",".join(map(str, partition["replicas"])),
            ",".join(map(str, partition["isr"])) or "-",
            str(topic["topic_id"]),
        ]
        for name, topic in sorted(found.topics.items())
        for number, partition in sorted(topic["partitions"].items())
    )
    print_table(columns, rows)


def _print_configs(found: ClusterMetadata) -> None:
    rows = [
        [resource, name, value] for resource, values in sorted(found.configs.items()) for name, value in values.items()
    ]
    print_table([Column("resource", stretch=True), Column("config"), Column("value", stretch=True)], rows)


def _print_acls(found: ClusterMetadata) -> None:
    rows = sorted(
        [
            acl["principal"],
            acl["host"],
            _name(PERMISSIONS, acl["permission_type"]),
            _name(OPERATIONS, acl["operation"]),
            _name(RESOURCES, acl["resource_type"]),
            _name(PATTERNS, acl["pattern_type"]),
            acl["resource_name"],
        ]
        for acl in found.acls.values()
    )
    titles = ["principal", "host", "permission", "operation", "resource type", "pattern", "resource"]
    print_table([Column(title, stretch=title in ("principal", "resource")) for title in titles], rows)


def _print_brokers(found: ClusterMetadata) -> None:
    rows = [
        [str(broker), "fenced" if facts["fenced"] else "active", facts["rack"] or "-", ", ".join(facts["endpoints"])]
        for broker, facts in sorted(found.brokers.items())
    ]
    print_table([Column("broker"), Column("state"), Column("rack"), Column("endpoints", stretch=True)], rows)


def _print_features(found: ClusterMetadata) -> None:
    rows = [[name, str(level)] for name, level in sorted(found.features.items())]
    print_table([Column("feature"), Column("level", right=True)], rows)


def _print_rest(found: ClusterMetadata) -> None:
    for broker, facts in found.brokers.items():
        fenced = " (fenced)" if facts["fenced"] else ""
        say(f"broker {broker}{fenced}: {', '.join(facts['endpoints'])}")
    features = ", ".join(f"{name} {level}" for name, level in found.features.items())
    say(f"{counted(len(found.topics), 'topic')}; features: {features or 'none'}; end offset {found.offset}")


_PRINT = {
    "topics": _print_topics,
    "partitions": _print_partitions,
    "configs": _print_configs,
    "acls": _print_acls,
    "brokers": _print_brokers,
    "features": _print_features,
}


def _name(table: Mapping[str, int], number: int) -> str:
    """Kafka's name of a number in an ACL; the number, if it has none."""
    return word(table, number, "{}").upper()


def _plain(found: ClusterMetadata) -> dict[str, object]:
    topics = {name: topic | {"topic_id": str(topic["topic_id"])} for name, topic in found.topics.items()}
    return {
        "offset": found.offset,
        "topics": topics,
        "configs": found.configs,
        "acls": {str(key): value for key, value in found.acls.items()},
        "brokers": found.brokers,
        "features": found.features,
    }
