"""What a task does: fetch a range of offsets and give it to Spark as Arrow batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafkacodec.client.blocking.consumer import Consumer
from kafkacodec.client.consuming.record import ConsumedColumns
from kafkacodec.errors import DeadlineExceeded, MissingOffsets, error
from kafkacodec.spark.broker.connections import borrowed
from kafkacodec.spark.broker.planning import OffsetRange
from kafkacodec.spark.broker.read_options import BrokerReadOptions
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.reading import ROWS, Shaper

__all__ = ["read_task"]

logger = logging.getLogger("kafkacodec.spark")

_OutOfRange = error(1)


def read_task(
    wanted: OffsetRange | None, names: tuple[str, ...], options: BrokerReadOptions
) -> Iterator[pa.RecordBatch]:
    """The records of a range, nothing without one."""
    if wanted is None:
        return iter(())
    return read_range(
        wanted,
        names,
        client=options.client,
        fail_on_data_loss=options.fail_on_data_loss,
        timeout_ms=options.poll_timeout_ms,
    )


def read_range(
    wanted: OffsetRange,
    names: Sequence[str],
    *,
    client: Mapping[str, Any],
    fail_on_data_loss: bool,
    timeout_ms: int,
) -> Iterator[pa.RecordBatch]:
    """The records of a range in batches of at most `ROWS` rows, with the columns `names`.

    Raises:
        MissingOffsets: offsets were deleted meanwhile, with `fail_on_data_loss`; else that is logged.
        DeadlineExceeded: no record came within `timeout_ms`.
        BrokerError, DecodeError: the partition cannot be read.
    """
    shaper = Shaper(names)
    with without_traceback(), borrowed(Consumer, client) as consumer:
        for table in _tables(consumer, wanted, shaper.core_columns, fail_on_data_loss, timeout_ms / 1000):
            yield shaper.shape(table)
        consumer.assign([])


def _tables(
    consumer: Consumer, wanted: OffsetRange, columns: Sequence[str], fail_on_data_loss: bool, timeout: float
) -> Iterator[ConsumedColumns]:
    key, start = (wanted.topic, wanted.partition), wanted.start
    while True:
        consumer.assign_ranges({key: (start, wanted.end)})
        try:
            for table in consumer.columns(max_rows=ROWS, timeout=timeout, columns=columns):
                start = table.next_offsets.get(key, start)
                yield table
        except _OutOfRange:
            before = consumer.position(*key)
            first = consumer.beginning_offsets([key])[key]
            start = first if before < first < wanted.end else wanted.end
            _report(wanted, before, start, fail_on_data_loss)
            continue
        reached = consumer.position(*key)
        if reached >= wanted.end:
            return
        if reached > start:  # offsets without records came
            start = reached
            continue
        raise DeadlineExceeded(
            f"{wanted.topic}-{wanted.partition}: no record from offset {start} to {wanted.end - 1} came within "
            f"{timeout:g} s (kafkaConsumer.pollTimeoutMs)"
        )


def _report(wanted: OffsetRange, start: int, end: int, fail_on_data_loss: bool) -> None:
    text = (
        f"{wanted.topic}-{wanted.partition}: offsets {start} to {end - 1} can no longer be read: they were deleted, or "
        "the topic was made again"
    )
    if fail_on_data_loss:
        raise MissingOffsets(f"{text}; failOnDataLoss=false reads on without them", first_offset=start, end_offset=end)
    logger.warning("%s", text)
