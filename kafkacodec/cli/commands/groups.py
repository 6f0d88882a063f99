"""``kafkacodec groups``: list consumer groups and their members, from a broker's disk."""

from __future__ import annotations

import click

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.files.destination import Destination, destination_options
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.inputs import on_error_option, warn
from kafkacodec.cli.options.log_path import LocalPath
from kafkacodec.cli.options.servers import INSTEAD_OF_FILES, Servers, server_options
from kafkacodec.cli.output import Column, counted, full_option, print_table
from kafkacodec.errors import DecodeError
from kafkacodec.log.state.groups import Group, read_consumer_groups


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, type=LocalPath(exists=True, file_okay=False))
@server_options(INSTEAD_OF_FILES)
@click.option("--group", "-g", "names", metavar="GLOB", multiple=True, help="Only groups matching GLOB; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, with the members, instead of a table.")
@on_error_option
@full_option
@destination_options()
def groups(
    directories: tuple[str, ...],
    servers: Servers,
    names: tuple[str, ...],
    as_json: bool,
    output: Destination,
    problems: list[DecodeError] | None,
) -> None:
    """List the consumer groups in DIR: the data directories of one or more brokers, or __consumer_offsets partitions.

    Replicas of a partition in several of them are read as one log.
    Shows the state of each group as of its last record. With --bootstrap, asks the brokers.
    """
    live = servers.instead_of(directories, "DIR...")
    if output:
        output.check(directories, as_json=as_json)
    states: dict[str, str] = {}
    if live:
        from kafkacodec.cli.rows.live_groups import live_groups

        with servers.admin() as admin:
            if names:
                refuse_strangers("group", names, admin.list_groups())
            found, states = live_groups(admin, lambda name: matches(name, names))
    else:
        every = read_consumer_groups(directories, problems=problems)
        warn(problems)
        refuse_strangers("group", names, {group.group for group in every}, ", ".join(directories))
        found = [group for group in every if matches(group.group, names)]
    if output:
        from kafkacodec.log.state.tables import groups_table

        output.write_table(groups_table(found))
        return
    if as_json:
        for group in found:
            say_json(group.to_dict() | ({"state": states[group.group]} if live else {}))
        return
    columns = [
        Column("group", stretch=True),
        Column("kind"),
        *([Column("state")] if live else []),
        Column("generation", right=True),
        Column("protocol", stretch=True),
        Column("members", right=True),
        Column("topics", stretch=True),
        Column("owned partitions", stretch=True),
    ]
    rows = (
        [
            group.group,
            group.kind,
            *([states[group.group]] if live else []),
            "-" if group.generation < 0 else str(group.generation),
            group.protocol or group.protocol_type or "-",
            str(len(group.members)),
            ", ".join(sorted({topic for member in group.members for topic in member.topics})) or "-",
            _owned(group) or "-",
        ]
        for group in found
    )
    print_table(columns, rows)
    say(counted(len(found), "group"))


def _owned(group: Group) -> str:
    """The partitions of all members, as ``orders 0-2,5; returns 0``."""
    owned: dict[str, list[int]] = {}
    for member in group.members:
        for topic, partitions in member.owned:
            owned.setdefault(topic, []).extend(partitions)
    return "; ".join(f"{topic} {_spans(sorted(owned[topic]))}" for topic in sorted(owned))


def _spans(numbers: list[int]) -> str:
    """Numbers in order as spans: ``0-2,5``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number <= spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
