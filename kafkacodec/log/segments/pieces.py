"""Reading a segment piece by piece into buffers, whose batches are checked by threads.

If a log was appended in small writes, its page cache is fragmented, and mapping takes longer than copying.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from kafkacodec.datatypes import NamedTuple
from kafkacodec.records.decode import iter_columns
from kafkacodec.records.headers import scan
from kafkacodec.records.parallel.workers import Job, Workers
from kafkacodec.records.plan import OnError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.log.opening import StoredFile
    from kafkacodec.records.columns import BatchHeaders, RecordColumns

__all__ = ["ROWS_AT_ONCE", "Piece", "checked", "intact_pieces"]

ROWS_AT_ONCE = 65536

BUFFER_BYTES = 4 << 20
"""The size of a piece in bytes: small enough to stay in the cache."""

SMALLEST_SHARE = 1 << 20
"""The smallest piece in bytes, if the file is divided among threads."""

COLUMNS = (
    "position",
    "size_in_bytes",
    "base_offset",
    "last_offset",
    "magic",
    "codec",
    "max_timestamp",
    "partition_leader_epoch",
    "count",
    "is_control",
)
"""The columns of batch headers that `verify` compares."""


class Piece(NamedTuple):
    """Intact batches from position `start` of the file on; positions in `headers` count from there."""

    start: int
    headers: BatchHeaders
    num_records: int


def intact_pieces(file: StoredFile, max_decompressed_bytes: int, threads: int) -> Generator[Piece]:
    """The pieces of a segment in order, up to the first with a fault or with a batch larger than a piece.

    Args:
        file: the segment.
        max_decompressed_bytes: larger batches are faults.
        threads: their number, including the caller's. Each has one piece in memory, and one is read ahead.
    """
    size = min(BUFFER_BYTES, file.size)
    if threads > 1:
        size = min(size, max(file.size // (2 * threads), SMALLEST_SHARE))
    most = threads + (threads > 1)
    free: list[memoryview] = []
    waiting: deque[tuple[Piece, memoryview, Job[int | None]]] = deque()
    position, going_on = 0, True
    with closing(Workers(threads)) as workers:
        while True:
            while going_on and position < file.size and len(waiting) < most:
                buffer = free.pop() if free else memoryview(bytearray(size))
                data = buffer[: file.read_into(buffer, position)]
                headers = scan(data, columns=COLUMNS, verify_crc=False, on_error="stop")
                going_on = headers.consumed > 0
                if going_on:
                    call = partial(_num_records, data[: headers.consumed], max_decompressed_bytes)
                    waiting.append((Piece(position, headers, 0), buffer, workers.start(call)))
                    position += headers.consumed
            if not waiting:
                return
            piece, buffer, job = waiting.popleft()
            num_records = workers.result(job, (other for _, _, other in waiting))
            if num_records is None:
                return
            free.append(buffer)
            yield piece._replace(num_records=num_records)


def _num_records(data: memoryview, max_decompressed_bytes: int) -> int | None:
    """The number of records in complete batches; None if one is not intact."""
    count = consumed = 0
    for chunk in checked(data, 0, "stop", max_decompressed_bytes):
        if chunk.problems:
            return None
        count += len(chunk)
        consumed = chunk.consumed
    return count if consumed == len(data) else None


def checked(
    data: Buffer,
    start: int,
    on_error: OnError,
    max_decompressed_bytes: int,
    threads: int = 1,
    max_rows: int = ROWS_AT_ONCE,
) -> Iterator[RecordColumns]:
    """The records of batches, checked as by a reader, in chunks."""
    return iter_columns(
        data,
        start_position=start,
        max_rows=max_rows,
        columns=("headers",),  # the one column whose bytes are checked only when it is built
        include_control=True,
        on_error=on_error,
        max_decompressed_bytes=max_decompressed_bytes,
        threads=threads,
    )
