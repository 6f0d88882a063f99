"""``kafkacodec topics``: what each topic or partition holds, from the batch headers; with ``--records``, from all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import click

from kafkacodec.cli.advice import advised
from kafkacodec.cli.console import note, say, say_json
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.inputs import TREE_LEVELS, Choice, gaps_option, optional_choice_options, place
from kafkacodec.cli.options.servers import INSTEAD_OF_FILES, Servers, server_options
from kafkacodec.cli.output import MINUTES, Column, counted, full_option, offsets, print_table, progress, size, timestamp
from kafkacodec.internal_records import INTERNAL_TOPICS
from kafkacodec.log import LogDirectory, Partition
from kafkacodec.log.analysis.copies import copies_of, copies_sentence
from kafkacodec.log.analysis.partition_statistics import (
    PartitionStatistics,
    merge_statistics,
    partition_statistics,
    per_topic,
)

Gaps = Literal["error", "accept"]

# --sort -> key, largest first but for names.
_ORDERS: dict[str, Callable[[PartitionStatistics], Any]] = {
    "name": lambda s: (s.topic is None, s.topic or s.path, s.partition or 0, s.path),
    "size": lambda s: -s.size_in_bytes,
    "records": lambda s: -(s.data_records or 0),
    "latest": lambda s: -(s.last_timestamp or 0),
}


@click.command()
@optional_choice_options
@server_options(INSTEAD_OF_FILES)
@click.option(
    "--partitions/--topics", "by_partition", default=False, help="A line per partition or per topic (default)."
)
@click.option("--records", is_flag=True, help="Read all records too, for compression ratio, keys and tombstones.")
@click.option(
    "--sort", "order", type=click.Choice(list(_ORDERS)), default="name", show_default=True, help="Order of the lines."
)
@gaps_option
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@full_option
def topics(
    choice: Choice, servers: Servers, by_partition: bool, records: bool, order: str, gaps: Gaps, as_json: bool
) -> None:
    """List topics: records, offsets, times, sizes, codecs, batches, producers, and what is missing.

    Reads only batch headers, so it is fast; "-" is what they do not say. --records also reads the records, and finds
    damage inside batches. The exit code is 1 if a partition is damaged or offsets are missing.

    With --bootstrap, lists the topics of a cluster: partitions, leaders, replicas, offsets, sizes.
    """
    if servers.instead_of(choice.paths, "PATH..."):
        if records or order == "latest" or gaps == "accept":
            raise click.UsageError("--records, --sort latest and --gaps accept need files")
        _of_brokers(choice, servers, by_partition, order, as_json)
        return
    partitions = choice.partitions(levels=TREE_LEVELS)
    found = _statistics(partitions, records, gaps)
    lines = sorted(found if by_partition else per_topic(found), key=_ORDERS[order])
    set_aside = _set_aside(choice, partitions)
    copies = _copies(found)
    if as_json:
        for line in lines:
            say_json(line.to_dict() | {"internal": line.topic in INTERNAL_TOPICS, "copies": _of(line, copies)})
    else:
        _print_table(lines, copies, by_partition=by_partition, records=records)
        say(_sum(found))
        for replica in set_aside:
            say(f"not counted: {replica.path} ({replica.state}, {size(replica.size_in_bytes)})")
    sentence = copies_sentence(copies_of(found))
    if sentence:
        note(f"kafkacodec: warning: {sentence}")
    damaged = [part for part in found if part.damaged]
    if damaged:
        raise click.ClickException(_reason(damaged, len(found)))


def _of_brokers(choice: Choice, servers: Servers, by_partition: bool, order: str, as_json: bool) -> None:
    from kafkacodec.cli.rows.live_topics import live_partitions, show_partitions, show_topics

    def wanted(topic: str, number: int) -> bool:
        return matches(topic, choice.topics) and (not choice.numbers or number in choice.numbers)

    with servers.admin() as admin:
        if choice.topics:
            refuse_strangers("topic", choice.topics, admin.list_topics(include_internal=True))
        found = live_partitions(admin, wanted)
    choice.refuse_missing(partition.partition for partition in found)
    (show_partitions if by_partition else show_topics)(found, order, as_json=as_json)


def _statistics(partitions: Sequence[Partition], records: bool, gaps: Gaps) -> list[PartitionStatistics]:
    found = []
    with progress("reading", sum(partition.size_in_bytes for partition in partitions)) as advance:
        for partition in partitions:
            found.append(partition_statistics(partition, records=records, gaps=gaps))
            advance(found[-1].size_in_bytes)
    return found


def _set_aside(choice: Choice, partitions: Sequence[Partition]) -> list[Partition]:
    """Replicas in the same log directories that are not in use."""
    taken = {partition.path for partition in partitions}
    from kafkacodec.log.opening import full_path

    parents = sorted({os.path.dirname(full_path(path)) for path in taken} - {full_path(p) for p in taken})
    given = [full_path(path) for path in choice.paths]
    inside = [path for path in parents if any(path == g or path.startswith(g.rstrip("/") + "/") for g in given)]
    return [p for path in inside for p in LogDirectory(path).set_aside if p.path not in taken and choice.wants(p)]


def _copies(found: Sequence[PartitionStatistics]) -> dict[str | None, dict[str, list[str]]]:
    """For each topic, what `copies_of` finds."""
    topics: dict[str | None, list[PartitionStatistics]] = {}
    for part in found:
        topics.setdefault(part.topic, []).append(part)
    return {topic: copies_of(parts) for topic, parts in topics.items()}


def _of(line: PartitionStatistics, copies: dict[str | None, dict[str, list[str]]]) -> dict[str, list[str]]:
    """The copies of a topic's partitions, or of one partition."""
    of_topic = copies.get(line.topic, {})
    name = f"{line.topic}-{line.partition}"
    return of_topic if line.partition is None else {name: of_topic[name]} if name in of_topic else {}


def _print_table(
    lines: Sequence[PartitionStatistics],
    copies: dict[str | None, dict[str, list[str]]],
    *,
    by_partition: bool,
    records: bool,
) -> None:
    cells = _cells(by_partition, records, copies)
    rows = [[value(line) for value in cells.values()] for line in lines if line.topic not in INTERNAL_TOPICS]
    internal = [[value(line) for value in cells.values()] for line in lines if line.topic in INTERNAL_TOPICS]
    print_table(list(cells), [*rows, *(["internal topics:"] if rows and internal else []), *internal])


Cell = Callable[[PartitionStatistics], str]


def _cells(by_partition: bool, records: bool, copies: dict[str | None, dict[str, list[str]]]) -> dict[Column, Cell]:
    """The columns, and what is in them for a topic or a partition."""
    name: dict[Column, Cell] = {Column("topic", stretch=True): lambda s: s.topic or os.path.basename(s.path)}
    parts: dict[Column, Cell] = {Column("parts", right=True): lambda s: f"{s.num_partitions:,}"}
    if by_partition:
        title = Column("partition", stretch=True, cut_start=True)
        name = {title: lambda s: place(s.topic, s.partition, s.path)}
        parts = {Column("offsets"): lambda s: offsets(s.first_offset, s.last_offset)}
    sums = {
        Column("records", right=True): lambda s: _number(s.data_records),
        Column("size", right=True): lambda s: size(s.size_in_bytes),
        Column("latest (UTC)", optional=records): lambda s: timestamp(s.last_timestamp, MINUTES),
        Column("codec", stretch=True): lambda s: ",".join(s.codecs) or "-",
    }
    of_records: dict[Column, Cell] = {
        Column("ratio", right=True): lambda s: _ratio(s.compression_ratio),
        Column("tombstones", right=True): lambda s: _number(s.tombstones),
    }
    of_batches: dict[Column, Cell] = {
        Column("B/record", right=True, optional=True): lambda s: _mean(s.batch_bytes, s.data_records, "{:,.0f}".format),
        Column("start (UTC)", optional=True): lambda s: timestamp(s.first_timestamp, MINUTES),
        Column("batches", right=True, optional=True): lambda s: f"{s.num_batches:,}",
        Column("batch size", right=True, optional=True): lambda s: _mean(s.batch_bytes, s.num_batches, size),
        Column("producers", right=True, optional=True): _producers,
        Column("gaps", right=True, optional=True): lambda s: f"{s.gaps:,}",
    }
    rest = of_records | of_batches if records else of_batches
    notes: dict[Column, Cell] = {
        Column("notes", below=True): lambda s: ", ".join(_notes(s, 0 if by_partition else len(copies.get(s.topic, ()))))
    }
    return name | parts | sums | rest | notes


def _producers(line: PartitionStatistics) -> str:
    return f"{len(line.producers):,}{'+' if line.more_producers else ''}"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _mean(total: int, count: int | None, shown: Callable[[float], str]) -> str:
    return shown(total / count) if count else "-"


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _notes(line: PartitionStatistics, replicas: int) -> Iterator[str]:
    if line.state != "current":
        yield line.state
    if replicas:
        yield f"{counted(replicas, 'partition')} in several directories"
    if line.damaged_bytes:
        yield f"{size(line.damaged_bytes)} damaged"
    if line.invalid_headers:
        yield counted(line.invalid_headers, "invalid batch header")
    if line.missing_offsets:
        yield f"{counted(line.missing_offsets, 'offset')} missing"
    elif line.problems and not line.damaged_bytes:
        yield "damaged"
    if line.open_transactions:
        yield counted(line.open_transactions, "open transaction")
    if line.aborted_transactions:
        yield counted(line.aborted_transactions, "aborted transaction")
    start, first = line.log_start_offset, line.first_offset
    if start is not None and first is not None and start > first:
        yield f"offsets before {start} are deleted"
    if line.trailing_bytes:
        yield f"{size(line.trailing_bytes)} after the last batch"


def _sum(found: Sequence[PartitionStatistics]) -> str:
    total = merge_statistics(found)
    parts = [counted(len({s.topic for s in found}), "topic"), counted(len(found), "partition")]
    parts.append(counted(total.num_segments, "segment"))
    if total.data_records is not None:
        parts.append(counted(total.data_records, "record"))
    return ", ".join([*parts, size(total.size_in_bytes)])


def _reason(damaged: Sequence[PartitionStatistics], count: int) -> str:
    first = next((advised(problem) for part in damaged for problem in part.problems), None)
    what = f"{len(damaged)} of {counted(count, 'partition')} damaged; kafkacodec verify shows all that is wrong"
    return what if first is None else f"{what}. The first: {first}"
