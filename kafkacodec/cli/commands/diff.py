"""``kafkacodec diff``: what differs between two copies of logs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.files.standard_input import paths_with_copy
from kafkacodec.cli.options.checkpoints import warn_of_checkpoints_beside
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.inputs import TREE_LEVELS, tiered_key_option, topics_option
from kafkacodec.cli.options.log_path import LocalPath
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.output import Column, counted, full_option, print_table, progress
from kafkacodec.log import Partition, discover
from kafkacodec.log.analysis.difference import Difference, OffsetRange
from kafkacodec.log.analysis.log_diff import difference, pairs

_CAUSES = {
    "start": "deleted at the start of {other}",
    "end": "after the end of {other}",
    "compacted": "removed from {other} by compaction",
    "missing": "missing in {other}",
}


def _two(context: click.Context, option: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The two paths; click's own count of them shows no usage."""
    if len(paths) != 2 and not context.resilient_parsing:
        raise click.UsageError(f"{counted(len(paths), 'path')} instead of two, A and B", context)
    return paths_with_copy(context, option, paths)


@click.command()
@click.argument(
    "paths",
    metavar="A B",
    nargs=-1,
    type=LocalPath(exists=True, readable=True, allow_dash=True),
    callback=_two,
)
@topics_option
@tiered_key_option
@click.option(
    "--limit",
    metavar="N",
    type=Number(0),
    default=20,
    show_default=True,
    help="How many ranges and records to list for each partition; all are counted.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@full_option
def diff(paths: tuple[str, str], topics: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Compare the records of A and B: log directories, partitions or segments, such as a directory and a backup.

    Compares timestamp, key, value and headers of records with the same offset, also of transaction markers, which count
    as records here; not how they are formed into batches and compressed. The exit code is 1 if anything differs or
    cannot be read.
    """
    sides = [discover(path, levels=TREE_LEVELS) for path in paths]
    refuse_strangers("topic", topics, {p.topic for side in sides for p in side if p.topic}, ", ".join(paths))
    try:
        chosen = pairs(*(_chosen(path, side, topics) for path, side in zip(paths, sides, strict=True)))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    warn_of_checkpoints_beside(p for pair in chosen for p in pair if p is not None)
    found = []
    with progress("comparing", sum(p.size_in_bytes for pair in chosen for p in pair if p is not None)) as advance:
        for pair in chosen:
            found.append(difference(*pair, limit))
            advance(sum(p.size_in_bytes for p in pair if p is not None))
    if as_json:
        for part in found:
            say_json(part.to_dict())
    else:
        _print(found, limit)
    different = [part for part in found if not part.equal]
    if different:
        verb = "differs" if len(found) == 1 else "differ"
        raise click.ClickException(f"{len(different)} of {counted(len(found), 'partition')} {verb}")


def _chosen(path: str, found: Sequence[Partition], topics: Sequence[str]) -> list[Partition]:
    chosen = [p for p in found if matches(p.topic or "", topics)]
    if not chosen:
        raise click.ClickException(f"{path}: no partition matches --topic")
    return chosen


def _print(found: Sequence[Difference], limit: int) -> None:
    columns = [
        Column("partition", stretch=True, cut_start=True),
        Column("A", right=True),
        Column("B", right=True),
        Column("equal", right=True),
        Column("only A", right=True),
        Column("only B", right=True),
        Column("changed", right=True),
        Column("notes", below=True),
    ]
    print_table(columns, map(_row, found))
    for part in found:
        for line in _details(part, limit):
            say(line)
    equal = sum(part.equal for part in found)
    say(f"{counted(len(found), 'partition')}, {equal:,} equal")


def _name(part: Difference) -> str:
    return os.path.basename(part.a or part.b or "") if part.topic is None else f"{part.topic}-{part.partition}"


def _row(part: Difference) -> list[str]:
    numbers = (part.a_records, part.b_records, part.equal_records, part.a_only, part.b_only, part.changed)
    return [_name(part), *(f"{number:,}" for number in numbers), _note(part)]


def _note(part: Difference) -> str:
    if part.a is None or part.b is None:
        return f"not in {'A' if part.a is None else 'B'}"
    if part.problems:
        return counted(len(part.problems), "problem")
    return "" if part.equal else "differs"


def _details(part: Difference, limit: int) -> list[str]:
    name = _name(part)
    lines = [f"{name}: {problem}" for problem in part.problems[:limit]]
    for side, other, ranges, total in (("A", "B", part.a_ranges, part.a_only), ("B", "A", part.b_ranges, part.b_only)):
        lines += [f"{name}: only in {side}: {_range(found, other)}" for found in ranges]
        hidden = total - sum(found.num_records for found in ranges)
        if ranges and hidden:
            lines.append(f"{name}: only in {side}: {counted(hidden, 'more record')}")
    lines += [f"{name}: offset {record.offset}: other {', '.join(record.columns)}" for record in part.records]
    hidden = part.changed - len(part.records)
    if part.records and hidden:
        lines.append(f"{name}: {counted(hidden, 'more record')} with other content")
    return lines


def _range(found: OffsetRange, other: str) -> str:
    first, last = found.first_offset, found.last_offset
    span = f"offset {first}" if first == last else f"offsets {first} to {last}"
    return f"{span} ({counted(found.num_records, 'record')}), {_CAUSES[found.cause].format(other=other)}"
