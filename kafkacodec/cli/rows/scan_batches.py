"""The list of batches that ``kafkacodec scan`` prints: a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from kafkacodec.cli.advice import advised
from kafkacodec.cli.console import say_json
from kafkacodec.cli.options.inputs import Span, place
from kafkacodec.cli.output import SECONDS, Column, offsets, print_table, timestamp
from kafkacodec.dialects import kafka07
from kafkacodec.errors import DecodeError
from kafkacodec.log.opening import open_file
from kafkacodec.log.partitions.planning import end_of, least
from kafkacodec.log.segments.kinds import kind_of

if TYPE_CHECKING:
    from kafkacodec import RecordColumns
    from kafkacodec.log import Partition, Segment
    from kafkacodec.records.columns import Columns

Batch = dict[str, Any]
_LOG_APPEND_TIME = 1
_PIECE = 8192  # batches in memory at once, as Python objects
_FLAGS = (("is_transactional", "transaction"), ("is_control", "control"))


def print_batches(segments: list[tuple[Partition, Segment]], span: Span, as_json: bool, threads: int | None) -> None:
    """Print the chosen batches of segments, of each up to its first fault, which is raised."""
    found = ((segment, batch) for where, segment in segments for batch in _batches(where, segment, span, threads))
    if as_json:
        for segment, batch in found:
            where = {"path": segment.path, "topic": segment.topic, "partition": segment.partition}
            say_json(where | batch)
    else:
        _print_table(found, several=len(segments) > 1)


def _batches(partition: Partition, segment: Segment, span: Span, threads: int | None) -> Iterator[Batch]:
    read = _of_headers if kind_of(segment.path).has_batches else _of_messages
    try:
        start, end = span.start_offset, least(span.end_offset, end_of(partition, segment))
        for batch in read(segment, span, threads):
            # Without a first offset, the batch may begin in the range.
            first = -1 if batch["base_offset"] is None else batch["base_offset"]
            if (start is None or batch["last_offset"] >= start) and (end is None or first < end):
                yield batch
    except DecodeError as error:
        raise click.ClickException(
            f"{segment.path}: {advised(error, ['--gaps']).removeprefix(f'{segment.path}: ')}"
        ) from None
    except OSError as error:
        raise click.ClickException(f"{segment.path}: {error.strerror or error}") from None


def _of_headers(segment: Segment, span: Span, threads: int | None) -> Iterator[Batch]:
    position, headers = 0, None
    while headers is None or len(headers) == _PIECE:
        headers = segment.scan(
            verify_crc=span.verify_crc,
            on_error="stop",
            start_position=position,
            max_batches=_PIECE,
            threads=threads,
        )
        yield from _rows(headers)
        position = headers.consumed
        if headers.problems:
            raise headers.problems[0].exception


def _of_messages(segment: Segment, span: Span, _threads: int | None) -> Iterator[Batch]:
    """The messages of Kafka 0.6 and 0.7, with the keys of a batch; an offset is a position in the log."""
    base = segment.base_offset or 0
    with open_file(segment.path) as file:
        for chunk in kafka07.iter_columns(
            file.view(),
            max_rows=_PIECE,
            initial_offset=base,
            columns=("offset", "next_offset", "magic", "codec"),
            deep=False,
            verify_crc=span.verify_crc,
            on_error="stop",
        ):
            file.check_size()
            for row in _rows(chunk):
                yield _as_batch(row, base, span.verify_crc)
            if chunk.problems:
                raise chunk.problems[0].exception


def _as_batch(message: Batch, base_offset: int, verified: bool) -> Batch:
    offset, compressed = message["offset"], message["codec"] != "none"
    return {
        "position": offset - base_offset,
        "size_in_bytes": message["next_offset"] - offset,
        "base_offset": offset,
        "last_offset": offset,
        "magic": message["magic"],
        "codec": message["codec"],
        "timestamp_type": -1,
        "max_timestamp": None,
        "count": None if compressed else 1,
        "producer_id": None,
        "is_transactional": False,
        "is_control": False,
        "delete_horizon_ms": None,
        "crc_ok": True if verified else None,
    }


def _rows(table: Columns | RecordColumns) -> Iterator[Batch]:
    names = table.column_names
    for row in zip(*(_values(table, name) for name in names), strict=True):
        yield dict(zip(names, row, strict=True))


def _values(table: Columns, name: str) -> list[Any]:
    """A column as Python values: None for null, timestamps in milliseconds."""
    parts = table.buffers(name)
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


def _print_table(found: Iterable[tuple[Segment, Batch]], *, several: bool) -> None:
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
        columns.insert(0, Column("partition", stretch=True, cut_start=True))
        print_table(columns, ([place(s.topic, s.partition, s.path), *_row(batch)] for s, batch in found))
    else:
        print_table(columns, (_row(batch) for _, batch in found))


def _row(batch: Batch) -> list[str]:
    notes = ["wrong checksum"] if batch["crc_ok"] is False else []
    notes += [note for name, note in _FLAGS if batch[name]]
    if batch["timestamp_type"] == _LOG_APPEND_TIME:
        notes.append("log append time")
    if batch["delete_horizon_ms"] is not None:
        notes.append(f"delete horizon {timestamp(batch['delete_horizon_ms'])}")
    producer = batch["producer_id"]
    return [
        str(batch["position"]),
        str(batch["size_in_bytes"]),
        offsets(batch["base_offset"], batch["last_offset"]),
        "-" if batch["count"] is None else str(batch["count"]),
        f"v{batch['magic']} {batch['codec']}",
        {None: "-", True: "ok", False: "WRONG"}[batch["crc_ok"]],
        timestamp(batch["max_timestamp"], SECONDS),
        "-" if producer in (None, -1) else f"{producer}/{batch['producer_epoch']}:{batch['base_sequence']}",
        ", ".join(notes),
    ]
