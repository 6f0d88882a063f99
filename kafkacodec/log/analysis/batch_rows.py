"""The batches of a piece of a segment as numpy columns, of any format, for counting and comparing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import dataclass, fields
from kafkacodec.dialects import kafka07
from kafkacodec.errors import DecodeError
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.order.corrections import Corrections
from kafkacodec.log.order.gap_evidence import knows_base
from kafkacodec.log.segments.walk import Damage, walk_over_damage
from kafkacodec.records.columns import BatchHeaders, RecordColumns
from kafkacodec.records.compression import CODECS

__all__ = ["NO_TIME", "BatchRows", "batches_of", "messages_of"]

Ints = npt.NDArray[np.signedinteger[Any]]
Flags = npt.NDArray[np.bool_]

NO_TIME = np.iinfo(np.int64).min
"""No timestamp, or an unknown one: numpy's "not a time" as an integer."""

_LOG_APPEND_TIME = 1

_WINDOW = 32 << 20
"""Bytes of a file whose headers are read at once."""

# The initial of a codec's name -> its place in CODECS; the place after the last one is any other codec.
_PLACES = np.full(256, len(CODECS), np.uint8)
_PLACES[[ord(name[0]) for name in CODECS]] = range(len(CODECS))


@dataclass
class BatchRows:
    """Batches in the order of the file, one per row. In Kafka 0.6 and 0.7, messages.

    Attributes:
        position, size: in bytes.
        first, last: offsets.
        end: the offset that follows: the last one + 1; before 0.8, the position of the next message in the log.
        before: the offset after the batch before, in the file; at the start of a file the first offset.
        has_first: whether the first offset is known: not for compressed sets of magic 0 and 1.
        has_count: whether the number of records is known: likewise, and not for compressed messages before 0.8.
        count: records.
        magic, codec: the format; the codec's place in `CODECS`, or after it if it has none.
        first_time, max_time: timestamps of the first record and the largest one, in ms, or `NO_TIME`.
        producer: the producer id, or -1.
        is_transactional, is_control: as in `BatchHeaders`.
        wrong_crc: the checksum was verified and is wrong.
    """

    position: Ints
    size: Ints
    first: Ints
    last: Ints
    end: Ints
    before: Ints
    has_first: Flags
    has_count: Flags
    count: Ints
    magic: Ints
    codec: npt.NDArray[np.uint8]
    first_time: Ints
    max_time: Ints
    producer: Ints
    is_transactional: Flags
    is_control: Flags
    wrong_crc: Flags

    def __len__(self) -> int:
        return len(self.position)

    def between(self, start_offset: int | None, end_offset: int | None) -> BatchRows:
        """The batches that may have offsets in the range [start_offset, end_offset)."""
        if start_offset is None and end_offset is None:
            return self
        keep = np.ones(len(self), np.bool_)
        if start_offset is not None:
            keep &= self.last >= start_offset
        if end_offset is not None:
            keep &= ~self.has_first | (self.first < end_offset)
        return BatchRows(*(getattr(self, field.name)[keep] for field in fields(self)))

    @classmethod
    def of_headers(cls, headers: BatchHeaders, before: int | None) -> BatchRows:
        """The rows of batch headers; `before` is the offset after the batch before them, if there is one."""
        known = knows_base(headers)
        names = headers.buffers("codec")
        max_time = headers["max_timestamp"].astype(np.int64)
        # With log append time, all records have the largest timestamp. With a delete horizon, it replaces the first.
        appended = headers["timestamp_type"] == _LOG_APPEND_TIME
        first_time = np.where(appended, max_time, headers["base_timestamp"].astype(np.int64))
        first_time[~known | (~_nulls(headers, "delete_horizon_ms") & ~appended)] = NO_TIME
        magic = headers["magic"]
        first = np.where(magic >= 2, headers["base_offset"], headers["last_offset"])
        end = headers["last_offset"] + 1
        return cls(
            position=headers["position"],
            size=headers["size_in_bytes"],
            first=first,
            last=headers["last_offset"],
            end=end,
            before=_shifted(end, int(first[0]) if before is None else before),
            has_first=known,
            has_count=known,
            count=headers["count"],
            magic=magic,
            codec=_PLACES[names["data"][names["offsets"][:-1]]],
            first_time=first_time,
            max_time=max_time,
            producer=np.where(magic >= 2, headers["producer_id"], -1),
            is_transactional=headers["is_transactional"],
            is_control=headers["is_control"],
            wrong_crc=~headers["crc_ok"] & ~_nulls(headers, "crc_ok"),
        )

    @classmethod
    def of_messages(cls, messages: RecordColumns, base_offset: int, before: int | None) -> BatchRows:
        """The rows of messages of Kafka 0.6 and 0.7, which have no timestamps and producers."""
        names = messages.buffers("codec")
        codec = _PLACES[names["data"][names["offsets"][:-1]]]
        offset, count = messages["offset"], len(messages)
        false = np.zeros(count, np.bool_)
        unknown = np.full(count, NO_TIME)
        return cls(
            position=offset - base_offset,
            size=messages["next_offset"] - offset,
            first=offset,
            last=offset,
            end=messages["next_offset"],
            before=_shifted(messages["next_offset"], int(offset[0]) if before is None else before),
            has_first=np.ones(count, np.bool_),
            has_count=codec == CODECS.index("none"),
            count=np.ones(count, np.int64),
            magic=messages["magic"],
            codec=codec,
            first_time=unknown,
            max_time=unknown,
            producer=np.full(count, -1),
            is_transactional=false,
            is_control=false,
            wrong_crc=false,
        )


def batches_of(
    file: StoredFile,
    before: int | None = None,
    *,
    verify_crc: bool = False,
    threads: int | None = 1,
    misplaced: Corrections | None = None,
) -> Iterator[BatchRows | Damage]:
    """The batches of a segment in pieces of bounded size, and the damage between them.

    `before` is the segment's base offset, which shows what is lost if the file begins with damage. Batches that are
    `misplaced` are damage.
    """
    end: int | None = None
    for whole in walk_over_damage(file, verify_crc=verify_crc, window=_WINDOW, threads=threads):
        for part in (whole,) if misplaced is None or isinstance(whole, Damage) else _without(whole, misplaced, file):
            if isinstance(part, Damage):
                end = before if end is None else end
                yield part
            elif len(part):
                rows = BatchRows.of_headers(part, end)
                end = int(rows.end[-1])
                yield rows


def _without(headers: BatchHeaders, misplaced: Corrections, file: StoredFile) -> Iterator[BatchHeaders | Damage]:
    """Headers without the batches that have wrong offsets, and those as damage."""
    positions, start = headers["position"], 0
    for row in misplaced.between(int(positions[0]), headers.consumed) if len(headers) else ():
        problem = misplaced.problem(row, file.path)
        at = int(np.searchsorted(positions, problem.position))
        yield headers[start:at]
        assert isinstance(problem.exception, DecodeError)
        yield Damage(problem.position, problem.position + problem.size_in_bytes, problem.exception)
        start = at + 1
    yield headers[start:]


def messages_of(file: StoredFile, base_offset: int, *, verify_crc: bool = False) -> Iterator[BatchRows | Damage]:
    """The messages of a segment of Kafka 0.6 or 0.7, likewise. A wrong checksum is damage."""
    end = base_offset
    for chunk in kafka07.iter_columns(
        file.view(),
        initial_offset=base_offset,
        columns=("offset", "next_offset", "magic", "codec"),
        deep=False,
        verify_crc=verify_crc,
        on_error="skip",
    ):
        file.check_size()
        if len(chunk):
            rows = BatchRows.of_messages(chunk, base_offset, end)
            end = int(rows.end[-1])
            yield rows
        for problem in chunk.problems:
            assert isinstance(problem.exception, DecodeError)
            stop = problem.position + problem.size_in_bytes
            yield Damage(problem.position, stop, problem.exception.within(file.path))


def _shifted(ends: Ints, before: int) -> Ints:
    """For each batch, where the one before ends."""
    found = np.empty(len(ends), np.int64)
    found[0], found[1:] = before, ends[:-1]
    return found


def _nulls(headers: BatchHeaders, name: str) -> Flags:
    """Which rows of a column are null."""
    validity = headers.buffers(name)["validity"]
    if validity is None:
        return np.zeros(len(headers), np.bool_)
    found: Flags = np.unpackbits(validity, count=len(headers), bitorder="little") == 0
    return found
