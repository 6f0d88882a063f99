"""``kafkacodec bench``: measure how fast this machine reads segments."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

import kafkacodec as kc
from kafkacodec.cli.console import note, say, say_json
from kafkacodec.cli.options.inputs import Choice, choice_options
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.output import Column, counted, print_table, progress, size
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError
from kafkacodec.log import Segment
from kafkacodec.log.opening import fault_of, open_file
from kafkacodec.log.segments.kinds import kind_of

MIB = 1 << 20


@dataclass(frozen=True)
class Rate:
    """The rate of one way of reading. Bytes are those on disk, compressed or not."""

    reading: str
    bytes_per_second: float
    records_per_second: float | None


def _number(context: click.Context, option: click.Parameter, value: float) -> float:
    if math.isnan(value):  # passes FloatRange, and the measurement would never end
        raise click.BadParameter("'nan' is not a number of seconds", context, option)
    return value


@click.command()
@choice_options
@click.option("--limit", metavar="MIB", type=Number(1), default=256, show_default=True, help="Load at most this.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    default=1,
    show_default=True,
    callback=_number,
    help="Seconds to measure each way of reading.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
def bench(choice: Choice, limit: int, seconds: float, as_json: bool) -> None:
    """Measure how fast this machine reads the segments at PATH, in one thread.

    Loads segments into memory first, up to the limit but at least one, so that the disk is not measured. The rate is
    that of the fastest round, by the thread's CPU time. A segment is read up to the first damage. One that cannot be
    read at all is named and left out, and the exit code is 1.
    """
    segments, unread = _load(choice, limit * MIB)
    size_in_bytes = sum(map(len, segments))
    if not as_json:
        say(f"{counted(len(segments), 'segment')}, {size(size_in_bytes)}")
    with progress("measuring", size_in_bytes * len(_READINGS)) as advance:
        rates = []
        for name, read in _READINGS.items():
            rates.append(_measure(name, read, segments, size_in_bytes, seconds))
            advance(size_in_bytes)
    if as_json:
        for rate in rates:
            say_json(asdict(rate))
    else:
        columns = Column("reading"), Column("bytes/s", right=True), Column("records/s", right=True)
        print_table(columns, map(_row, rates))
    if unread:
        raise click.ClickException(
            f"without {counted(unread, 'file or directory', 'files or directories')} that cannot be read"
        )


def _load(choice: Choice, limit: int) -> tuple[list[bytes], int]:
    """Non-empty segments of the chosen partitions, at least one and then as many as fit the limit.

    Also returns how many files and directories cannot be read, each of which is named.
    """
    segments: list[bytes] = []
    faults: list[Exception] = []
    for segment in _segments(choice, faults):
        if not kind_of(segment.path).has_batches:
            raise click.ClickException(f"{segment.path}: bench does not support logs of Kafka 0.6 and 0.7")
        with _readable(segment.path, faults), open_file(segment.path) as file:
            limit -= file.size
            if segments and limit < 0:
                break
            if file.size:
                segments.append(file.read(0, file.size))
    if not segments:
        what = f"{counted(len(faults), 'file or directory', 'files or directories')} cannot be read"
        raise click.ClickException(f"{', '.join(choice.paths)}: {what if faults else 'all segments are empty'}")
    return segments, len(faults)


def _segments(choice: Choice, faults: list[Exception]) -> Iterator[Segment]:
    for partition in choice.partitions():
        found: list[Segment] = []
        with _readable(partition.path, faults):
            found = partition.segments
        yield from found


@contextmanager
def _readable(path: str, faults: list[Exception]) -> Iterator[None]:
    """Names what cannot be read, and goes on without it."""
    try:
        yield
    except (OSError, DecodeError) as error:
        fault = fault_of(path, error)
        if fault is None:
            raise
        note(f"kafkacodec: {fault}")
        faults.append(fault)


def _measure(
    name: str, read: Callable[[bytes], int | None], segments: list[bytes], size_in_bytes: int, seconds: float
) -> Rate:
    best, end = float("inf"), time.monotonic() + seconds
    while True:
        start = time.thread_time()
        counts = [read(data) for data in segments]
        best = min(best, max(time.thread_time() - start, 1e-9))
        if time.monotonic() >= end:
            break
    records = None if None in counts else sum(filter(None, counts))
    return Rate(name, size_in_bytes / best, None if records is None else records / best)


def _rows(chunks: Iterable[Any]) -> int:
    return sum(map(len, chunks))


def _headers(data: bytes, *, verify_crc: bool) -> None:
    kc.scan(data, verify_crc=verify_crc, on_error="stop")


_READINGS: dict[str, Callable[[bytes], int | None]] = {
    "batch headers": lambda data: _headers(data, verify_crc=False),
    "batch headers and checksums": lambda data: _headers(data, verify_crc=True),
    "all columns": lambda data: _rows(kc.iter_columns(data, on_error="stop")),
    "the value column alone": lambda data: _rows(kc.iter_columns(data, columns=("value",), on_error="stop")),
    "one Python object per record": lambda data: sum(1 for _ in kc.iter_records(data, on_error="stop")),
}


def _row(rate: Rate) -> list[str]:
    records = "-" if rate.records_per_second is None else f"{rate.records_per_second:,.0f}"
    return [rate.reading, size(rate.bytes_per_second), records]
