"""``kafkacodec verify``: check that every record can be read and trusted."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.advice import advised
from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.options.checkpoints import warn_of_checkpoints_beside
from kafkacodec.cli.options.inputs import (
    TREE_LEVELS,
    Choice,
    choice_options,
    gaps_option,
    place,
    size_of,
    threads_option,
)
from kafkacodec.cli.output import Column, counted, full_option, print_table, progress, size

if TYPE_CHECKING:
    from kafkacodec.log import LogDirectory, Partition, Report


@click.command()
@choice_options
@full_option
@click.option("--strict", is_flag=True, help="Fail on warnings too: wrong index files or checkpoints, torn tails.")
@click.option("--all", "everything", is_flag=True, help="List intact partitions too.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per partition instead of a table.")
@gaps_option
@threads_option
def verify(choice: Choice, strict: bool, everything: bool, as_json: bool, gaps: str, threads: int | None) -> None:
    """Check every batch, the order of offsets, the index files, and a data directory's checkpoints.

    Decompresses and reads all records. An error means that records are lost or cannot be trusted; a warning does not.
    The exit code is 1 if there are errors, with --strict also if there are warnings. A PATH may be a tree of data
    directories. Partitions that are not intact are listed, with --all every one. --gaps accept is for logs whose gaps
    are known, such as recovered ones.
    """
    from kafkacodec.log.opening import full_path

    partitions = choice.unwarned(levels=TREE_LEVELS)
    directories = choice.log_directories(levels=TREE_LEVELS)
    reported = {os.path.abspath(directory.path) for directory in directories}
    warn_of_checkpoints_beside(p for p in partitions if os.path.dirname(full_path(p.path)) not in reported)
    reports: list[tuple[Partition, Report]] = []
    with progress("verifying", sum(map(size_of, partitions))) as advance:
        for partition in partitions:
            report = partition.verify(threads=threads, advance=advance)
            reports.append((partition, report.with_gaps_accepted() if gaps == "accept" else report))
    checkpoints = [_checkpoints(directory, partitions) for directory in directories]
    if as_json:
        for partition, report in reports:
            say_json({"topic": partition.topic, "partition": partition.partition} | report.to_dict())
        for report in checkpoints:
            if report.findings:
                say_json({"topic": None, "partition": None} | report.to_dict())
    else:
        _print(reports, checkpoints, everything=everything)
    bad = [report for _, report in reports if not (report.clean if strict else report.ok)]
    if bad:
        raise click.ClickException(f"{len(bad)} of {counted(len(reports), 'partition')} failed verification")
    if strict and not all(report.clean for report in checkpoints):
        raise click.ClickException("checkpoints failed verification")


def _checkpoints(directory: LogDirectory, partitions: list[Partition]) -> Report:
    """The report on a data directory's checkpoints, for the chosen partitions."""
    inside = {partition.path for partition in directory.all_partitions}
    return directory.verify_checkpoints([partition for partition in partitions if partition.path in inside])


def _print(reports: list[tuple[Partition, Report]], checkpoints: list[Report], *, everything: bool) -> None:
    columns = [
        Column("partition", stretch=True),
        Column("segments", right=True),
        Column("size", right=True),
        Column("batches", right=True),
        Column("records", right=True),
        Column("damaged", right=True),
        Column("state"),
    ]
    listed = reports if everything else [(partition, report) for partition, report in reports if not report.clean]
    if listed:
        from kafkacodec.log.analysis.copies import copies_of

        copies = copies_of(partition for partition, _ in reports)
        print_table(columns, (_row(partition, report, copies) for partition, report in listed))
    for report in [*(report for _, report in reports), *checkpoints]:
        for finding in report.findings:
            say(advised(str(finding)))
        hidden = sum(report.counts.values()) - len(report.findings)
        if hidden:
            say(f"{report.path}: {counted(hidden, 'more finding')}")
    say(_sum([report for _, report in reports]))


def _sum(reports: list[Report]) -> str:
    intact = sum(report.clean for report in reports)
    damaged = sum(not report.ok for report in reports)
    warned = len(reports) - intact - damaged
    whole = "intact" if len(reports) == 1 else "all intact"
    parts = [counted(len(reports), "partition"), whole if intact == len(reports) else f"{intact:,} intact"]
    parts += [f"{warned:,} with warnings"] * bool(warned) + [f"{damaged:,} damaged"] * bool(damaged)
    parts.append(counted(sum(report.num_segments for report in reports), "segment"))
    parts.append(counted(sum(report.data_records for report in reports), "record"))
    return ", ".join([*parts, size(sum(report.size_in_bytes for report in reports))])


def _row(partition: Partition, report: Report, copies: Collection[str]) -> list[str]:
    """A partition's cells; one that several directories have is named by its path."""
    name = place(
        partition.topic, partition.partition, partition.segments[0].path if partition.segments else report.path
    )
    return [
        partition.path if name in copies else name,
        str(report.num_segments),
        size(report.size_in_bytes),
        f"{report.num_batches:,}",
        f"{report.data_records:,}",
        size(report.damaged_bytes) if report.damaged_bytes else "-",
        "intact" if report.clean else "warnings" if report.ok else "DAMAGED",
    ]
