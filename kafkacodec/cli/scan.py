"""``kafkacodec scan``: list segments and batches, from the batch headers alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.inputs import Span, place, span_options, threads_option
from kafkacodec.cli.output import Column, counted, full_option, print_table, progress, size, timestamp
from kafkacodec.errors import DecodeError, MissingOffsets

if TYPE_CHECKING:
    from kafkacodec import BatchHeaders
    from kafkacodec.log import Partition, Segment

Batch = dict[str, Any]
LOG_APPEND_TIME = 1
_PIECE = 8192  # batches held in memory at once, as Python objects
_FLAGS = (("is_transactional", "transaction"), ("is_control", "control"))


@dataclass
class Summary:
    """A segment's line in the list.

    Offsets and timestamp are None if there is no batch. Values that headers of magic 0 and 1 lack are None too: the
    number of records, a compressed batch's first offset, the timestamp in magic 0.
    """

    path: str
    topic: str | None
    partition: int | None
    size_in_bytes: int = 0
    trailing_bytes: int = 0
    num_batches: int = 0
    num_records: int | None = 0
    first_offset: int | None = None
    last_offset: int | None = None
    max_timestamp: int | None = None
    magics: list[int] = field(default_factory=list)
    codecs: list[str] = field(default_factory=list)
    transactional_batches: int = 0
    control_batches: int = 0
    crc_failures: int | None = None
    missing_offsets: int = 0
    error: str | None = None


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
    partitions = span.partitions()
    segments = [segment for partition in partitions for segment in partition.segments]
    by_batch = batches if batches is not None else len(segments) == 1 and os.path.isfile(span.paths[0])
    breaks = {error.path: error for partition in partitions for error in _breaks(partition, span)}
    if by_batch:
        found = chain.from_iterable(_batches(segment, span, threads) for segment in segments)
        _print_batches(found, as_json, several=len(segments) > 1)
        for error in breaks.values():
            raise error
    else:
        _print_segments(segments, span, breaks, as_json, threads)


def _breaks(partition: Partition, span: Span) -> list[DecodeError]:
    """Errors between the partition's segments: overlaps, and gaps unless they are accepted."""
    try:
        found = [] if partition.is_kafka07 else partition.breaks(span.start_offset, span.end_offset)
    except OSError:  # reported when the segment is listed
        return []
    return [error for error in found if span.gaps == "error" or not isinstance(error, MissingOffsets)]


class _Stopped(Exception):
    """The reason why the rest of a segment cannot be listed."""


def _headers(segment: Segment, span: Span, threads: int | None) -> Iterator[Batch]:
    """The chosen batches up to the first fault, which is raised. Holds one piece of them in memory."""
    start, end = span.start_offset, span.end_offset
    position, headers = 0, None
    while headers is None or len(headers) == _PIECE:
        try:
            headers = segment.scan(
                verify_crc=span.verify_crc,
                on_error="stop",
                start_position=position,
                max_batches=_PIECE,
                threads=threads,
            )
        except DecodeError as error:
            raise _Stopped(str(error).removeprefix(f"{segment.path}: ")) from None
        except OSError as error:
            raise _Stopped(error.strerror or str(error)) from None
        columns = [_values(headers, name) for name in headers.column_names]
        for row in zip(*columns, strict=True):
            batch = dict(zip(headers.column_names, row, strict=True))
            if (start is None or batch["last_offset"] >= start) and (end is None or _first_offset(batch) < end):
                yield batch
        position = headers.consumed
        if headers.problems:
            raise _Stopped(str(headers.problems[0].exception))


def _first_offset(batch: Batch) -> int:
    """The first offset, or -1 if the header has only the last one, since the batch may begin in the range."""
    first = batch["base_offset"]
    return -1 if first is None else first


def _batches(segment: Segment, span: Span, threads: int | None) -> Iterator[tuple[Segment, Batch]]:
    try:
        for batch in _headers(segment, span, threads):
            yield segment, batch
    except _Stopped as stopped:
        raise click.ClickException(f"{segment.path}: {stopped}") from None


def _values(headers: BatchHeaders, name: str) -> list[Any]:
    """A column as Python values: None for null, timestamps in milliseconds."""
    parts = headers.buffers(name)
    if name == "codec":
        text, ends = bytes(parts["data"]), parts["offsets"].tolist()
        values: list[Any] = [text[start:end].decode() for start, end in pairwise(ends)]
    else:
        column = parts["values"]
        values = (column.astype(np.int64) if column.dtype.kind == "M" else column).tolist()
    if parts["validity"] is None:
        return values
    valid = np.unpackbits(parts["validity"], count=len(values), bitorder="little")
    return [value if known else None for value, known in zip(values, valid, strict=True)]


def _summary(segment: Segment, span: Span, fault: DecodeError | None, threads: int | None) -> Summary:
    summary = Summary(segment.path, segment.topic, segment.partition, crc_failures=0 if span.verify_crc else None)
    magics, codecs, end = set(), set(), 0
    try:
        for batch in _headers(segment, span, threads):
            end = batch["position"] + batch["size_in_bytes"]
            magics.add(batch["magic"])
            codecs.add(batch["codec"])
            _count(summary, batch)
    except _Stopped as stopped:
        summary.error = str(stopped)
    summary.magics, summary.codecs = sorted(magics), sorted(codecs)
    try:
        summary.size_in_bytes = segment.size_in_bytes
    except OSError as error:
        summary.error = summary.error or error.strerror or str(error)
    summary.trailing_bytes = summary.size_in_bytes - end
    if fault is not None:
        summary.error = summary.error or fault.reason
        summary.missing_offsets = fault.missing_offsets if isinstance(fault, MissingOffsets) else 0
    return summary


def _count(summary: Summary, batch: Batch) -> None:
    """Add a batch to its segment's summary."""
    if not summary.num_batches:
        summary.first_offset = batch["base_offset"]
    summary.num_batches += 1
    summary.last_offset = batch["last_offset"]
    if batch["count"] is None or summary.num_records is None:
        summary.num_records = None
    else:
        summary.num_records += batch["count"]
    time, latest = batch["max_timestamp"], summary.max_timestamp
    if time is not None:
        summary.max_timestamp = time if latest is None else max(time, latest)
    summary.transactional_batches += bool(batch["is_transactional"])
    summary.control_batches += bool(batch["is_control"])
    if summary.crc_failures is not None:
        summary.crc_failures += batch["crc_ok"] is False


def _print_segments(
    segments: list[Segment],
    span: Span,
    breaks: Mapping[str | None, DecodeError],
    as_json: bool,
    threads: int | None,
) -> None:
    with progress("scanning", sum(segment.size_in_bytes for segment in segments)) as advance:
        summaries = []
        for segment in segments:
            summaries.append(_summary(segment, span, breaks.get(segment.path), threads))
            advance(summaries[-1].size_in_bytes)
    if as_json:
        for summary in summaries:
            say_json(asdict(summary))
    else:
        _print_segment_table(summaries)
    for summary in summaries:
        if summary.error is not None:
            raise click.ClickException(f"{summary.path}: {summary.error}")


def _print_segment_table(summaries: list[Summary]) -> None:
    columns = [
        Column("partition", stretch=True),
        Column("size", right=True),
        Column("batches", right=True),
        Column("records", right=True),
        Column("offsets"),
        Column("latest (UTC)", optional=True),
        Column("format", stretch=True),
        Column("notes", wrap=True),
    ]
    print_table(columns, map(_segment_row, summaries))
    records = [summary.num_records for summary in summaries]
    parts = [counted(len(summaries), "segment"), counted(sum(s.num_batches for s in summaries), "batch", "batches")]
    if None not in records:
        parts.append(counted(sum(filter(None, records)), "record"))
    say(", ".join([*parts, size(sum(s.size_in_bytes for s in summaries))]))


def _segment_row(summary: Summary) -> list[str]:
    notes = ["damaged"] if summary.error is not None and not summary.missing_offsets else []
    if summary.missing_offsets:
        notes.append(f"{counted(summary.missing_offsets, 'offset')} missing after it")
    if summary.crc_failures:
        notes.append(counted(summary.crc_failures, "wrong checksum"))
    if summary.trailing_bytes:
        notes.append(f"{size(summary.trailing_bytes)} after the last batch")
    return [
        place(summary.topic, summary.partition, summary.path),
        size(summary.size_in_bytes),
        f"{summary.num_batches:,}",
        "-" if summary.num_records is None else f"{summary.num_records:,}",
        _offsets(summary.first_offset, summary.last_offset),
        timestamp(summary.max_timestamp)[:19],
        " ".join([*(f"v{magic}" for magic in summary.magics), ",".join(summary.codecs)]),
        ", ".join(notes),
    ]


def _offsets(first: int | None, last: int | None) -> str:
    """``3..9``; ``..9`` if only the last one is known."""
    return "-" if last is None else f"{'' if first is None else first}..{last}"


def _print_batches(found: Iterable[tuple[Segment, Batch]], as_json: bool, *, several: bool) -> None:
    if as_json:
        for segment, batch in found:
            where = {"path": segment.path, "topic": segment.topic, "partition": segment.partition}
            say_json(where | batch)
        return
    columns = [
        Column("position", right=True),
        Column("size", right=True),
        Column("offsets"),
        Column("records", right=True),
        Column("format"),
        Column("crc", optional=True),
        Column("latest (UTC)", optional=True),
        Column("producer"),
        Column("notes", wrap=True),
    ]
    if several:
        columns.insert(0, Column("partition", stretch=True))
        print_table(columns, ([place(s.topic, s.partition, s.path), *_batch_row(batch)] for s, batch in found))
    else:
        print_table(columns, (_batch_row(batch) for _, batch in found))


def _batch_row(batch: Batch) -> list[str]:
    notes = ["wrong checksum"] if batch["crc_ok"] is False else []
    notes += [note for name, note in _FLAGS if batch[name]]
    if batch["timestamp_type"] == LOG_APPEND_TIME:
        notes.append("log append time")
    if batch["delete_horizon_ms"] is not None:
        notes.append(f"delete horizon {timestamp(batch['delete_horizon_ms'])}")
    producer = batch["producer_id"]
    return [
        str(batch["position"]),
        str(batch["size_in_bytes"]),
        _offsets(batch["base_offset"], batch["last_offset"]),
        "-" if batch["count"] is None else str(batch["count"]),
        f"v{batch['magic']} {batch['codec']}",
        {None: "-", True: "ok", False: "WRONG"}[batch["crc_ok"]],
        timestamp(batch["max_timestamp"])[:19],
        "-" if producer in (None, -1) else f"{producer}/{batch['producer_epoch']}:{batch['base_sequence']}",
        ", ".join(notes),
    ]
