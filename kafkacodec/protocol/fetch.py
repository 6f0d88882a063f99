"""The records of a fetch response as one table."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from kafkacodec import messages
from kafkacodec.errors import DecodeError, LimitExceeded, error
from kafkacodec.records.arguments import ISOLATION_LEVELS, IsolationLevel, one_of
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.decode import (
    DEFAULT_MAX_TOTAL_BYTES,
    PLACE_COLUMNS,
    DecodeOptions,
    OnError,
    budget_of,
    plan_of,
    read_further,
)
from kafkacodec.records.signatures import shows_options

if TYPE_CHECKING:
    from kafkacodec.messages import FetchResponse
    from kafkacodec.records._decoder import Decoder

__all__ = ["fetch_to_columns"]

_UNKNOWN_MARKER = (1 << 63) - 1

MAX_TOPIC_BYTES = 249
"""The longest topic name in Kafka. Every row holds the name: a longer one could fill memory."""


@shows_options(DecodeOptions, plan_of)
def fetch_to_columns(
    response: FetchResponse,
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    topic_names: Mapping[uuid.UUID, str] | None = None,
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
    **options: Unpack[DecodeOptions],
) -> RecordColumns:
    """All records of a fetch response in one table, in the order of the response.

    Record sets are decoded in place. A partition without records adds no rows. A trailing partial batch is left out:
    the next fetch returns it in full. The first batch of a partition is decoded in full and may start before the fetch
    offset.

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
        RecordColumns: ``topic`` string and ``partition`` int32, then the requested columns of `kafkacodec.decode`.
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
) -> RecordColumns:
    result = decoder.empty_table(RecordColumns)
    result.problems = Problems()
    size = sum(records.nbytes for _, _, records in partitions)
    for topic, partition, records in partitions:
        place = f"{topic}-{partition.partition_index}"
        if partition.error_code:
            refusal = error(partition.error_code)(f"{place}: {error(partition.error_code).name}")
            if on_error == "raise":
                raise refusal
            result.problems.note(Problem(0, None, 0, refusal))
        if not records.nbytes:
            continue
        before = len(result.problems)
        aborted = _aborted(partition) if committed else b""
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
    return result


def _partitions(response: Any, names: Mapping[uuid.UUID, str]) -> Iterator[tuple[str, Any, memoryview]]:
    """Topic, partition and its records."""
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id) or str(topic.topic_id)
        if len(name.encode()) > MAX_TOPIC_BYTES:
            raise LimitExceeded(f"topic name longer than {MAX_TOPIC_BYTES} bytes", path=name[:40])
        for partition in topic.partitions:
            yield name, partition, memoryview(b"" if partition.records is None else partition.records)


def _aborted(partition: Any) -> bytes:
    """The aborted transactions of a partition in the decoder's layout. The decoder finds their ends by the markers."""
    entries = [(t.producer_id, t.first_offset, _UNKNOWN_MARKER) for t in partition.aborted_transactions or ()]
    return np.array(sorted(entries), np.int64).tobytes()
