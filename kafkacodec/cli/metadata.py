"""``kafkacodec metadata``: a KRaft cluster's topics, configs, ACLs and brokers, from the disk of one of its servers."""

from __future__ import annotations

import click

from kafkacodec.cli.destination import Destination, destination_options
from kafkacodec.cli.output import Column, counted, json_line, print_table
from kafkacodec.log.cluster_metadata import ClusterMetadata, read_cluster_metadata

TABLES = ["topics", "partitions", "configs", "acls", "brokers", "features"]


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@click.option("--table", type=click.Choice(TABLES), help="Which table --output gets.")
@destination_options()
def metadata(directory: str, as_json: bool, table: str | None, output: Destination) -> None:
    """Show the cluster's metadata as of the end of the metadata log in a data DIRECTORY."""
    if bool(output) != (table is not None):
        raise click.UsageError(f"--output and --table go together; there are the tables {', '.join(TABLES)}")
    if output:
        output.check([directory], as_json=as_json)
    found = read_cluster_metadata(directory)
    if table is not None:
        from kafkacodec.log.tables import metadata_table

        output.write_table(metadata_table(found, table))
        return
    if as_json:
        click.echo(json_line(_plain(found)))
        return
    _print_topics(found)
    _print_configs(found)
    for acl in found.acls.values():
        click.echo("acl: " + ", ".join(f"{name} {value}" for name, value in acl.items()))
    for broker, facts in found.brokers.items():
        fenced = " (fenced)" if facts["fenced"] else ""
        click.echo(f"broker {broker}{fenced}: {', '.join(facts['endpoints'])}")
    features = ", ".join(f"{name} {level}" for name, level in found.features.items())
    click.echo(f"{counted(len(found.topics), 'topic')}; features: {features or 'none'}; end offset {found.offset}")


def _print_topics(found: ClusterMetadata) -> None:
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
    if rows:
        print_table([Column("resource", stretch=True), Column("config"), Column("value", stretch=True)], rows)


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
