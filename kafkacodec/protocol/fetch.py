"""The records of a fetch response as one table."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, Unpack

from kafkacodec import messages
from kafkacodec.arguments import ISOLATION_LEVELS, IsolationLevel, one_of
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError, LimitExceeded, error
from kafkacodec.records.columns import BatchHeaders, Problem, Problems, RecordColumns
from kafkacodec.records.decode import iter_columns
from kafkacodec.records.headers import scan
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES, PLACE_COLUMNS, DecodeOptions, OnError, budget_of, plan_of
from kafkacodec.records.reading import read_further
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    import numpy.typing as npt

    from kafkacodec.messages import FetchResponse
    from kafkacodec.records._decoder import Decoder

__all__ = ["FetchedColumns", "FetchedPartition", "aborted_transactions", "fetch_to_columns"]

_UNKNOWN_MARKER = (1 << 63) - 1

MAX_TOPIC_BYTES = 249
"""The longest topic name in Kafka. Every row holds the name: a longer one could fill memory."""


_BATCH_OVERHEAD = 12
"""The bytes of a batch or message before the part counted by its size field: offset and size."""


class FetchedPartition(NamedTuple):
    """A partition in a fetch response, described by all its batches, including those without rows in the table.

    Attributes:
        topic (str): its name, or its id as text.
        partition (int): its number.
        error_code (int): 0 without an error.
        start_offset (int | None): the first offset of the first batch that was read; None without one. It may be below
            the fetch offset.
        next_offset (int | None): the offset from which the next fetch continues, one after the last batch that was
            read, whether it holds records, control records or those of aborted transactions; None without one. With
            ``on_error="stop"`` it is before the damage.
        limit_too_small (bool): the records are one partial batch, larger than the limits of the fetch: the same request
            can never make progress. Brokers do this in versions 0 to 2.
        needed_bytes (int | None): with `limit_too_small` the size of that batch as its header has it, unverified; None
            if the data ends before it.
    """

    topic: str
    partition: int
    error_code: int
    start_offset: int | None
    next_offset: int | None
    limit_too_small: bool
    needed_bytes: int | None


class FetchedColumns(RecordColumns):
    """The records of a fetch response, with the columns ``topic`` and ``partition`` before the others."""

    _read_parts: _ReadParts

    @property
    def partitions(self) -> list[FetchedPartition]:
        """The partitions in the order of the response, including those without rows.

        They are read from the response's bytes on first access; until then the table keeps these.
        """
        return self._read_parts.described

    def take(self, rows: npt.ArrayLike) -> Self:
        """Like `RecordColumns.take`; `partitions` stays that of this table."""
        made = super().take(rows)
        made._read_parts = self._read_parts
        return made


class _ReadParts:
    """The records of each partition of a response, as far as they were read, and their descriptions."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, Any, memoryview, int, list[Problem]]] = []

    def add(self, topic: str, partition: Any, records: memoryview, end: int, problems: list[Problem]) -> None:
        """Add a partition whose records were read up to `end`, except the ranges of `problems`."""
        self._parts.append((topic, partition, records, end, problems))

    @cached_property
    def described(self) -> list[FetchedPartition]:
        """The description of each partition."""
        found = [_described(*part) for part in self._parts]
        self._parts.clear()
        return found


@shows_options(DecodeOptions, plan_of)
def fetch_to_columns(
    response: FetchResponse,
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    topic_names: Mapping[uuid.UUID, str] | None = None,
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
    **options: Unpack[DecodeOptions],
) -> FetchedColumns:
    """All records of a fetch response in one table, in the order of the response.

    Record sets are decoded in place. A partition without records adds no rows. A trailing partial batch is left out:
    the next fetch returns it in full, unless the limit is too small for it (`FetchedPartition.limit_too_small`). The
    first batch is decoded in full and may start before the fetch offset.

    Args:
        response: of any version.
        isolation_level: ``"read_committed"`` drops the batches of the aborted transactions that the response lists, as
            a consumer does: those of the producer from the transaction's first offset to its next marker. The request
            must have had that isolation level, so that the response ends at the last stable offset.
        topic_names: names by topic id, for versions 13 and later. A topic without one gets its id as text.
        max_total_bytes: as in `kafkacodec.decode`, for all partitions together and the topic names in each row.
        The other options: those of `kafkacodec.decode`, except ``threads``. ``columns`` may name ``topic`` and
            ``partition``, which are always built. Offset limits apply to every partition. ``on_error`` applies to each
            partition: ``"stop"`` drops the rest of the partition and continues with the next. With ``"stop"`` and
            ``"skip"`` the error code of a partition becomes a `Problem` of 0 bytes.

    Returns:
        FetchedColumns: ``topic`` string and ``partition`` int32, then the requested columns of `kafkacodec.decode`.
        ``partitions`` has the offsets of each partition, which do not depend on ``start_offset`` and ``end_offset``.
        ``consumed`` is the sum over all partitions. ``batch_position`` and the position of a `Problem` count from the
        start of the partition's records; the path of its exception names topic and partition.

    Raises:
        BrokerError: the response or one of its partitions has an error code; the exception has the class of that code.
        DecodeError: as `kafkacodec.decode`; the path names topic and partition. `LimitExceeded` also for a topic name
            longer than 249 bytes.
        ValueError, TypeError: an option is wrong, or `response` is not a FetchResponse.

    Source: KIP-98 (aborted transactions), KIP-516 (topic ids).
    """
    one_of("isolation_level", isolation_level, ISOLATION_LEVELS)
    if not isinstance(response, messages.FetchResponse):
        raise TypeError(f"response must be a FetchResponse, not {type(response).__name__}")
    plan = plan_of(place_columns=True, **options).with_columns(*PLACE_COLUMNS)
    if response.error_code:
        raise error(response.error_code)()
    budget = budget_of(max_total_bytes, "pass each partition's records to iter_columns")
    partitions = list(_partitions(response, topic_names or {}))
    plan = plan.for_data(next((records for _, _, records in partitions if records.nbytes), b""))
    with plan.decoder(b"", budget=budget) as decoder:
        return _read(decoder, partitions, isolation_level == "read_committed", plan.on_error)


def _read(
    decoder: Decoder, partitions: list[tuple[str, Any, memoryview]], committed: bool, on_error: OnError
) -> FetchedColumns:
    result = decoder.empty_table(FetchedColumns)
    result.problems = Problems()
    result._read_parts = parts = _ReadParts()
    size = sum(records.nbytes for _, _, records in partitions)
    for topic, partition, records in partitions:
        place = f"{topic}-{partition.partition_index}"
        if partition.error_code:
            refusal = error(partition.error_code)(f"{place}: {error(partition.error_code).name}")
            if on_error == "raise":
                raise refusal
            result.problems.note(Problem(0, None, 0, refusal))
        if not records.nbytes:
            parts.add(topic, partition, records, 0, [])
            continue
        before = len(result.problems)
        aborted = aborted_transactions(partition) if committed else b""
        try:
            decoder.open(records, aborted=aborted)
            decoder.set_place(topic, partition.partition_index)
            if not len(result):
                decoder.expect(result, size)
            read_further(decoder, on_error, result)
        except DecodeError as fault:
            raise fault.within(place) from None
        for problem in result.problems[before:]:
            if isinstance(problem.exception, DecodeError):
                problem.exception.within(place)
        parts.add(topic, partition, records, decoder.position, result.problems[before:])
    return result


def _described(topic: str, partition: Any, records: memoryview, end: int, problems: list[Problem]) -> FetchedPartition:
    """Describe a partition whose records were read up to `end`, except the ranges of `problems`."""
    first = last = None
    position = 0
    for gap_start, gap_size in [*((p.position, p.size_in_bytes) for p in problems), (end, 0)]:
        if position < gap_start <= end:
            part = records[position:gap_start]
            headers = scan(part, columns=["base_offset", "last_offset"], verify_crc=False, on_error="stop")
            if len(headers):
                first = _first_offset(part, headers) if last is None else first
                last = int(headers.view("last_offset")[-1])
        position = max(position, gap_start + gap_size)
    too_small = records.nbytes > 0 and end == 0 and not problems
    needed = None
    if too_small and records.nbytes >= _BATCH_OVERHEAD:
        needed = _BATCH_OVERHEAD + int.from_bytes(records[8:_BATCH_OVERHEAD], "big", signed=True)
    return FetchedPartition(
        topic=topic,
        partition=partition.partition_index,
        error_code=partition.error_code,
        start_offset=first,
        next_offset=None if last is None else last + 1,
        limit_too_small=too_small,
        needed_bytes=needed,
    )


def _first_offset(records: memoryview, headers: BatchHeaders) -> int | None:
    """The offset at which the first batch starts, which for a compressed message is inside it."""
    valid = headers.buffers("base_offset")["validity"]
    if valid is None or valid[0] & 1:
        return int(headers.view("base_offset")[0])
    (size,) = scan(records, columns=["size_in_bytes"], verify_crc=False, max_batches=1)["size_in_bytes"].tolist()
    for chunk in iter_columns(records[:size], columns=["offset"], max_rows=1):
        return int(chunk["offset"][0])
    return None


def _partitions(response: Any, names: Mapping[uuid.UUID, str]) -> Iterator[tuple[str, Any, memoryview]]:
    """Each topic, partition and its records."""
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id) or str(topic.topic_id)
        if len(name.encode()) > MAX_TOPIC_BYTES:
            raise LimitExceeded(f"topic name longer than {MAX_TOPIC_BYTES} bytes", path=name[:40])
        for partition in topic.partitions:
            yield name, partition, memoryview(b"" if partition.records is None else partition.records)


def aborted_transactions(partition: Any) -> bytes:
    """The aborted transactions of a partition in the decoder's layout. The decoder finds their ends by the markers."""
    entries = [(t.producer_id, t.first_offset, _UNKNOWN_MARKER) for t in partition.aborted_transactions or ()]
    return array("q", chain.from_iterable(sorted(entries))).tobytes()
