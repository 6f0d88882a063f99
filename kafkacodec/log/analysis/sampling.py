"""Stretches of consecutive batches in a log, with their records as a broker would compress them again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import DecodeError
from kafkacodec.log.opening import fault_of, open_file
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.segments.walk import first_batches
from kafkacodec.records.columns import BatchHeaders, RecordColumns
from kafkacodec.records.compression import CODECS, DEFAULT_MAX_DECOMPRESSED_BYTES, decompress
from kafkacodec.records.decode import decode
from kafkacodec.records.encode import DEFAULT_BATCH_BYTES, encode
from kafkacodec.records.headers import scan

__all__ = ["HEADER_BYTES", "Stretch", "read_stretch"]

STRETCH_BATCHES: Final = 512
"""A stretch ends after this many batches: codecs take longest for many small ones."""

HEADER_BYTES: Final = 61
"""Size of a batch of magic 2 without its records."""

_COLUMNS: Final = ("timestamp", "key", "value", "headers")  # offsets of old logs may repeat
_ONE_BATCH: Final = (1 << 31) - 1


@dataclass
class Stretch:
    """Consecutive batches.

    Attributes:
        stored (dict[str, int]): their size in the log by the codec that they are stored with, in bytes; ``mixed`` for
            messages of Kafka 0.7 with different codecs.
        payloads (list): the records of each batch in the format of magic 2, without compression.
        control_bytes (int): the size of control batches, which are never compressed; included in `stored`.
        unreadable_bytes (int): bytes that are not intact batches; not included in `stored`.
    """

    stored: dict[str, int] = field(default_factory=dict)
    payloads: list[Any] = field(default_factory=list)
    control_bytes: int = 0
    unreadable_bytes: int = 0

    def add(self, codec: str, size: int, payloads: list[Any]) -> None:
        """Add stored bytes and their records."""
        self.stored[codec] = self.stored.get(codec, 0) + size
        self.payloads += payloads


def read_stretch(piece: SegmentRange, max_bytes: int) -> Stretch:
    """The stretch at the start of a range. It ends with the batch that reaches `max_bytes`.

    If the file cannot be read, or an upload has a damaged manifest, or a damaged chunk within the stretch, the whole
    range is unreadable.

    Raises:
        OSError: the file cannot be read for a reason that may pass.
        Truncated: it was shortened while it was read.
    """
    try:
        return _batches(piece, max_bytes) if piece.kind.has_batches else _messages(piece, max_bytes)
    except (DecodeError, OSError) as error:
        if fault_of(piece.path, error) is None:
            raise
        return Stretch(unreadable_bytes=piece.size_in_bytes)


class _Run(NamedTuple):
    """A batch, or consecutive messages of magic 0 or 1 without a codec."""

    start: int
    end: int
    magic: int
    codec: str
    is_control: bool
    intact: bool


def _batches(piece: SegmentRange, max_bytes: int) -> Stretch:
    stretch = Stretch()
    with open_file(piece.path) as file:
        headers = first_batches(file, piece.start_position, STRETCH_BATCHES, verify_crc=True)
        end = piece.start_position
        for run in _runs(headers, min(piece.end_position, piece.start_position + max_bytes)):
            end = run.end
            data = memoryview(file.read(run.start, run.end - run.start))
            try:
                if run.is_control and run.intact:
                    stretch.control_bytes += len(data)
                stretch.add(run.codec, len(data), _payloads(data, run))
            except DecodeError:
                stretch.unreadable_bytes += len(data)
        if headers.problems and end == headers.consumed:
            stretch.unreadable_bytes += min(piece.end_position - end, max_bytes)
    return stretch


def _runs(headers: BatchHeaders, end: int) -> Iterator[_Run]:
    """The batches that start before `end`."""
    count = int(np.searchsorted(headers["position"], end))
    names = headers.buffers("codec")
    codecs, bounds = bytes(names["data"]), names["offsets"].tolist()
    columns = [
        headers[name][:count].tolist() for name in ("position", "size_in_bytes", "magic", "is_control", "crc_ok")
    ]
    open_run: _Run | None = None
    for i, (position, size, magic, is_control, crc_ok) in enumerate(zip(*columns, strict=True)):
        codec = codecs[bounds[i] : bounds[i + 1]].decode()
        run = _Run(position, position + size, magic, codec, is_control, crc_ok)
        if open_run is not None and _joins(open_run, run):
            open_run = open_run._replace(end=run.end)
            continue
        if open_run is not None:
            yield open_run
        open_run = run
    if open_run is not None:
        yield open_run


def _joins(run: _Run, following: _Run) -> bool:
    return run.magic < 2 and run.codec == "none" and run._replace(start=0, end=0) == following._replace(start=0, end=0)


def _payloads(data: memoryview, run: _Run) -> list[Any]:
    """The records of a run; raises DecodeError if it is damaged."""
    if not run.intact:
        raise DecodeError("wrong checksum")
    if run.is_control:
        return []
    if run.magic < 2:
        return _joined(decode(data, columns=_COLUMNS), DEFAULT_BATCH_BYTES if run.codec == "none" else _ONE_BATCH)
    payload = data[HEADER_BYTES:]
    if run.codec == "none":
        return [bytes(payload)]  # the file is closed before the bytes are compressed
    return [decompress(CODECS.index(run.codec), payload, limit=DEFAULT_MAX_DECOMPRESSED_BYTES)]


def _joined(records: RecordColumns, batch_bytes: int) -> list[Any]:
    """The records of batches of magic 2 of this size."""
    data = memoryview(encode(records, batch_bytes=batch_bytes))
    headers = scan(data, columns=("position", "size_in_bytes"), verify_crc=False)
    starts, sizes = headers["position"].tolist(), headers["size_in_bytes"].tolist()
    return [data[start + HEADER_BYTES : start + size] for start, size in zip(starts, sizes, strict=True)]


def _messages(piece: SegmentRange, max_bytes: int) -> Stretch:
    """A stretch of a log of Kafka 0.6 or 0.7."""
    stretch, done = Stretch(), piece.start_position
    columns = (*_COLUMNS, "codec")
    for chunk in piece.read(on_error="stop", gaps="accept", max_bytes=max_bytes, columns=columns):
        if len(chunk):
            codecs = chunk.buffers("codec")
            bounds = zip(codecs["offsets"][:-1], codecs["offsets"][1:], strict=True)
            names = {bytes(codecs["data"][start:end]).decode() for start, end in bounds}
            codec = names.pop() if len(names) == 1 else "mixed"
            stretch.add(codec, chunk.consumed - done, _joined(chunk, DEFAULT_BATCH_BYTES))
        stretch.unreadable_bytes += sum(problem.size_in_bytes for problem in chunk.problems)
        break
    return stretch
