"""``kafkacodec offsets``: list the committed offsets of consumer groups, from a broker's disk."""

from __future__ import annotations

import click

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.files.destination import Destination, destination_options
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.inputs import on_error_option, warn
from kafkacodec.cli.options.log_path import LocalPath
from kafkacodec.cli.options.servers import INSTEAD_OF_FILES, Servers, server_options
from kafkacodec.cli.output import SECONDS, Column, counted, full_option, print_table, timestamp
from kafkacodec.errors import DecodeError
from kafkacodec.log.state.groups import read_committed_offsets


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, type=LocalPath(exists=True, file_okay=False))
@server_options(INSTEAD_OF_FILES)
@click.option("--group", "-g", "groups", metavar="GLOB", multiple=True, help="Only groups matching GLOB; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@on_error_option
@full_option
@destination_options()
def offsets(
    directories: tuple[str, ...],
    servers: Servers,
    groups: tuple[str, ...],
    as_json: bool,
    output: Destination,
    problems: list[DecodeError] | None,
) -> None:
    """List the committed offsets in DIR: the data directories of one or more brokers, or __consumer_offsets partitions.

    Replicas of a partition in several of them are read as one log.
    Excludes commits of aborted and open transactions. Times are in UTC. With --bootstrap, asks the brokers, which
    do not tell times.
    """
    live = servers.instead_of(directories, "DIR...")
    if output:
        output.check(directories, as_json=as_json)
    if live:
        from kafkacodec.cli.rows.live_groups import live_offsets

        with servers.admin() as admin:
            if groups:
                refuse_strangers("group", groups, admin.list_groups())
            found = live_offsets(admin, lambda name: matches(name, groups))
    else:
        commits = read_committed_offsets(directories, problems=problems)
        warn(problems)
        refuse_strangers("group", groups, {commit.group for commit in commits}, ", ".join(directories))
        found = [commit for commit in commits if matches(commit.group, groups)]
    if output:
        from kafkacodec.log.state.tables import offsets_table

        output.write_table(offsets_table(found))
        return
    if as_json:
        for commit in found:
            say_json(commit._asdict())
        return
    columns = [
        Column("group", stretch=True),
        Column("topic", stretch=True),
        Column("partition", right=True),
        Column("offset", right=True),
        Column("committed (UTC)"),
        Column("expires (UTC)"),
        Column("metadata", stretch=True),
    ]
    rows = (
        [
            commit.group,
            commit.topic,
            str(commit.partition),
            str(commit.offset),
            _time(commit.commit_timestamp),
            _time(commit.expire_timestamp),
            commit.metadata,
        ]
        for commit in found
    )
    print_table(columns, rows)
    say(counted(len(found), "committed offset"))


def _time(milliseconds: int) -> str:
    """The time; "-" if it is unset."""
    return timestamp(milliseconds, SECONDS) if milliseconds >= 0 else "-"
