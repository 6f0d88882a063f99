"""``kafkacodec lag``: how far consumer groups are behind, from the disks of brokers or from brokers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import click

from kafkacodec.cli.console import note, say, say_json
from kafkacodec.cli.files.destination import Destination, destination_options
from kafkacodec.cli.options.checkpoints import warn_of_checkpoints
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.inputs import on_error_option, topics_option, warn
from kafkacodec.cli.options.log_path import LocalPath
from kafkacodec.cli.options.servers import INSTEAD_OF_FILES, Servers, server_options
from kafkacodec.cli.output import SECONDS, Column, counted, duration, full_option, print_table, timestamp
from kafkacodec.errors import DecodeError
from kafkacodec.log.state.group_lag import PartitionLag, lag_behind


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, type=LocalPath(exists=True, file_okay=False))
@server_options(INSTEAD_OF_FILES)
@click.option("--group", "-g", "groups", metavar="GLOB", multiple=True, help="Only groups matching GLOB; repeatable.")
@topics_option
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="With read_committed, a log ends at its first open transaction.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@on_error_option
@full_option
@destination_options()
def lag(
    directories: tuple[str, ...],
    servers: Servers,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    isolation_level: Literal["read_uncommitted", "read_committed"],
    as_json: bool,
    output: Destination,
    problems: list[DecodeError] | None,
) -> None:
    """Show how far consumer groups are behind, in the data directories DIR of one or more brokers.

    A log ends at the high watermark in the broker's checkpoint, or where its files end if there is none. "behind" is
    the time from the first record that is not read to the newest one. Times are in UTC. With --bootstrap, asks the
    brokers, which do not tell times.

    Where the log of a partition cannot be read wholly, its notes say so, and the exit code is 1 unless --on-error is
    skip. Records of __consumer_offsets that cannot be read end the command: they may be of any group.
    """
    live = servers.instead_of(directories, "DIR...")
    if output:
        output.check(directories, as_json=as_json)
    if live:
        from kafkacodec.cli.rows.live_groups import live_lag

        with servers.admin() as admin:
            if groups:
                refuse_strangers("group", groups, admin.list_groups())
            if topics:
                refuse_strangers("topic", topics, admin.list_topics(include_internal=True))
            found = live_lag(
                admin, lambda name: matches(name, groups), lambda name: matches(name, topics), isolation_level
            )
    else:
        warn_of_checkpoints(map(os.path.abspath, directories))
        skipped: list[DecodeError] = [] if problems is None else problems
        lines = lag_behind(directories, isolation_level, of_commits=problems, of_logs=skipped)
        refuse_strangers("group", groups, {line.group for line in lines}, ", ".join(directories))
        read = {line.topic for line in lines}
        place = ", ".join(directories)
        refuse_strangers("committed offsets of topic", topics, read, place, kinds="topics with committed offsets")
        found = [line for line in lines if matches(line.group, groups) and matches(line.topic, topics)]
        warn(problems)
    _show(found, output, as_json=as_json)
    if problems is None:
        _fail_at_problems(found)


def _show(found: Sequence[PartitionLag], output: Destination, *, as_json: bool) -> None:
    if output:
        from kafkacodec.log.state.tables import lag_table

        output.write_table(lag_table(found))
    elif as_json:
        for line in found:
            say_json(line._asdict() | {"notes": line.notes})
    else:
        _print_table(found)


def _fail_at_problems(found: Sequence[PartitionLag]) -> None:
    """Raise click.ClickException if the log of a partition could not be read, after a line for each of these."""
    logs = {(line.topic, line.partition) for line in found}
    faults = {(line.topic, line.partition): line.problem for line in found if line.problem is not None}
    for (topic, partition), problem in faults.items():
        note(f"kafkacodec: {topic}-{partition}: {problem}")
    if faults:
        raise click.ClickException(f"{len(faults)} of {counted(len(logs), 'log')} cannot be read wholly")


def _print_table(found: Sequence[PartitionLag]) -> None:
    columns = [
        Column("group", stretch=True),
        Column("topic", stretch=True),
        Column("part", right=True),
        Column("committed", right=True),
        Column("end", right=True),
        Column("lag", right=True),
        Column("behind", right=True),
        Column("client", stretch=True),
        Column("committed (UTC)", optional=True),
        Column("host", optional=True, stretch=True),
        Column("member", optional=True, stretch=True),
        Column("notes", below=True),
    ]
    print_table(columns, map(_row, found))
    say(_sum(found))


def _sum(found: Sequence[PartitionLag]) -> str:
    here = [line for line in found if line.is_there or line.problem]
    parts = [counted(len({line.group for line in found}), "group"), counted(len(found), "partition")]
    if here or not found:
        parts.append(f"lag {sum(line.lag or 0 for line in here):,}")
    uncommitted = sum(line.offset is None for line in here)
    if uncommitted:
        parts.append(f"without {counted(uncommitted, 'partition')} that nothing is committed of")
    unread = sum(line.lag is None and line.offset is not None for line in here)
    if unread:
        parts.append(f"without {counted(unread, 'partition')} of unknown end")
    if len(here) < len(found):
        parts.append(f"{counted(len(found) - len(here), 'partition')} not in the directory")
    return ", ".join(parts)


def _row(line: PartitionLag) -> list[str]:
    return [
        line.group,
        line.topic,
        str(line.partition),
        _number(line.offset),
        _number(line.end_offset),
        "-" if line.lag is None else f"{line.lag:,}",
        duration(line.lag_ms),
        line.client_id or "-",
        timestamp(line.commit_timestamp, SECONDS),
        line.client_host or "-",
        line.member_id or "-",
        ", ".join(line.notes),
    ]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
