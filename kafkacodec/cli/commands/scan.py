"""``kafkacodec scan``: list segments, or their batches, from the batch headers alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import click

from kafkacodec.cli.advice import advised
from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.options.inputs import TREE_LEVELS, Span, place, span_options, threads_option
from kafkacodec.cli.output import MINUTES, Column, counted, full_option, offsets, print_table, progress, size, timestamp
from kafkacodec.cli.rows.scan_batches import print_batches
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError, MissingOffsets
from kafkacodec.log import Partition, Segment
from kafkacodec.log.analysis.batch_totals import added
from kafkacodec.log.analysis.partition_statistics import breaks_of
from kafkacodec.log.analysis.segment_totals import SegmentStatistics, segment_statistics
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.formats.layout import is_stand_in, stands_for_log
from kafkacodec.log.partitions.inside import breaks_around
from kafkacodec.log.partitions.planning import end_of, least


@dataclass
class Listed:
    """A segment in the list; `error` is what is wrong with it, apart from checksums."""

    found: SegmentStatistics
    error: str | None


@click.command()
@span_options
@full_option
@click.option("--batches/--segments", default=None, help="A line per batch (default for one file) or per segment.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@threads_option
def scan(span: Span, batches: bool | None, as_json: bool, threads: int | None) -> None:
    """List segments and batches without decompressing them.

    --start-offset and --end-offset choose complete batches. A wrong checksum is shown and is not an error; an invalid
    batch header and offsets that are missing after a segment are. A producer is shown as id/epoch:base sequence.
    """
    from kafkacodec.log.opening import is_directory

    partitions = span.partitions(levels=TREE_LEVELS)
    segments = [(partition, segment) for partition in partitions for segment in partition.segments]
    by_batch = batches if batches is not None else len(segments) == 1 and not is_directory(span.paths[0])
    if by_batch:
        print_batches(segments, span, as_json, threads)
        for partition, segment in segments:
            for error in _breaks(partition, segment, span):
                raise error
        return
    listed = _list(segments, span, threads)
    if as_json:
        for line in listed:
            say_json(_plain(line))
    else:
        _print_table(listed)
    for line in listed:
        if line.error is not None:
            path = line.found.path
            raise click.ClickException(str(line.error) if stands_for_log(path) else f"{path}: {line.error}")


def _list(segments: list[tuple[Partition, Segment]], span: Span, threads: int | None) -> list[Listed]:
    """The segments by topic, partition and offset."""
    segments.sort(key=lambda pair: (pair[0].topic is None, pair[0].topic or "", pair[0].partition or 0))
    listed = []
    with progress("scanning", sum(_size(segment) for _, segment in segments)) as advance:
        for partition, segment in segments:
            line = _listed(partition, segment, span, threads)
            advance(line.found.size_in_bytes)
            if line.found.num_batches or line.error is not None or span.start_offset is span.end_offset is None:
                listed.append(line)
    return listed


def _size(segment: Segment) -> int:
    try:
        return segment.size_in_bytes
    except (OSError, DecodeError):  # reported when the segment is read
        return 0


def _listed(partition: Partition, segment: Segment, span: Span, threads: int | None) -> Listed:
    try:
        found = segment_statistics(
            segment,
            start_offset=span.start_offset,
            end_offset=least(span.end_offset, end_of(partition, segment)),
            verify_crc=span.verify_crc,
            threads=threads,
        )
        complete = span.start_offset is span.end_offset is None
        breaks = _chosen(breaks_of(partition, segment, found), span) if complete else _breaks(partition, segment, span)
    except (OSError, DecodeError) as error:
        nothing = SegmentStatistics(path=segment.path, topic=segment.topic, partition=segment.partition)
        return Listed(nothing, reason_of(error))
    found.missing_offsets += sum(e.missing_offsets for e in breaks if isinstance(e, MissingOffsets))
    errors = [advised(error, ["--gaps"]).removeprefix(f"{segment.path}: ") for error in (*found.problems, *breaks)]
    if found.invalid_headers:
        errors.append(f"{counted(found.invalid_headers, 'batch header')} with offsets or counts that cannot be right")
    return Listed(found, errors[0] if errors else None)


def _breaks(partition: Partition, segment: Segment, span: Span) -> list[DecodeError]:
    """Errors between a segment and its neighbours: overlaps, and gaps unless they are accepted."""
    return _chosen(breaks_around(partition, segment, span.start_offset, span.end_offset), span)


def _chosen(errors: list[DecodeError], span: Span) -> list[DecodeError]:
    return [error for error in errors if span.gaps == "error" or not isinstance(error, MissingOffsets)]


_PLAIN = (
    "path",
    "topic",
    "partition",
    "size_in_bytes",
    "damaged_bytes",
    "trailing_bytes",
    "num_batches",
    "num_records",
    "control_records",
    "data_records",
    "first_offset",
    "last_offset",
    "first_timestamp",
    "magics",
    "codecs",
    "transactional_batches",
    "control_batches",
    "crc_failures",
    "gaps",
    "missing_offsets",
    "invalid_headers",
)


def _plain(line: Listed) -> dict[str, Any]:
    """A segment's JSON object. Values that headers of magic 0 and 1 lack are null."""
    plain = {name: getattr(line.found, name) for name in _PLAIN}
    return plain | {"max_timestamp": line.found.last_timestamp, "error": line.error}


def _print_table(listed: list[Listed]) -> None:
    columns = [
        Column("partition", stretch=True, cut_start=True),
        Column("file", stretch=True, cut_start=True),
        Column("size", right=True),
        Column("records", right=True),
        Column("offsets"),
        Column("start (UTC)"),
        Column("latest (UTC)", optional=True),
        Column("batches", right=True, optional=True),
        Column("format", optional=True),
        Column("notes", below=True),
    ]
    print_table(columns, _rows(listed))
    say(_sum([line.found for line in listed]))


def _rows(listed: list[Listed]) -> Iterator[list[str] | str]:
    """A heading for each topic, if there are several, and a row for each segment."""
    several = len({line.found.topic for line in listed}) > 1
    for topic, lines in groupby(listed, key=lambda line: line.found.topic):
        group = list(lines)
        if several:
            yield f"{'other files' if topic is None else topic}: {_sum([line.found for line in group])}"
        yield from map(_row, group)


def _row(line: Listed) -> list[str]:
    found = line.found
    where = "-" if found.topic is None else place(found.topic, found.partition, found.path)
    if is_stand_in(found.path):
        return [
            where,
            "no segment" if stands_for_log(found.path) else "not uploaded",
            *"------",
            "",
            ", ".join(_notes(line)),
        ]
    return [
        where,
        os.path.basename(found.path),
        size(found.size_in_bytes),
        "-" if found.data_records is None else f"{found.data_records:,}",
        offsets(found.first_offset, found.last_offset),
        timestamp(found.first_timestamp, MINUTES),
        timestamp(found.last_timestamp, MINUTES),
        f"{found.num_batches:,}",
        " ".join([*(f"v{magic}" for magic in found.magics), ",".join(found.codecs)]),
        ", ".join(_notes(line)),
    ]


def _notes(line: Listed) -> list[str]:
    found = line.found
    notes = []
    if found.damaged_bytes:
        notes.append(f"{size(found.damaged_bytes)} damaged")
    elif line.error is not None and not found.missing_offsets:
        notes.append("damaged")
    if found.missing_offsets:
        notes.append(f"{counted(found.missing_offsets, 'offset')} missing")
    if found.crc_failures:
        notes.append(counted(found.crc_failures, "wrong checksum"))
    if found.trailing_bytes:
        notes.append(f"{size(found.trailing_bytes)} after the last batch")
    return notes


def _sum(found: list[SegmentStatistics]) -> str:
    records: int | None = 0
    for part in found:
        records = added(records, part.data_records)
    segments = sum(not is_stand_in(part.path) for part in found)
    parts = [counted(segments, "segment"), counted(sum(s.num_batches for s in found), "batch", "batches")]
    if records is not None:
        parts.append(counted(records, "record"))
    return ", ".join([*parts, size(sum(s.size_in_bytes for s in found))])
