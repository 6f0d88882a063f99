"""Batches that only brokers write: the markers that end transactions, and what the log cleaner leaves of a batch."""

from __future__ import annotations

from typing import Literal

from kafkacodec.arguments import one_of, require_int
from kafkacodec.internal_records import ControlType
from kafkacodec.records._record_chunks import ListChunk
from kafkacodec.records.encode import EncodePlan
from kafkacodec.signatures import suggests_options

__all__ = ["control_batch", "empty_batch"]

_KINDS = {"abort": ControlType.ABORT, "commit": ControlType.COMMIT}


@suggests_options
def control_batch(
    kind: Literal["commit", "abort"],
    *,
    offset: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
    timestamp: int = -1,
    partition_leader_epoch: int = -1,
) -> bytes:
    """The control batch that a transaction coordinator writes to end a transaction: one marker at `offset`.

    The key holds the version (0) and type of the control record, the value an EndTxnMarker of version 0
    (`org.apache.kafka.common.record.ControlRecordType`, `EndTransactionMarker`).

    Args:
        kind: "commit" or "abort".
        offset: where the marker is written.
        producer_id, producer_epoch: of the producer whose transaction ends.
        coordinator_epoch: of the transaction coordinator.
        timestamp: milliseconds since 1970, -1 for none.
        partition_leader_epoch: of the batch.

    Raises:
        ValueError: an unknown kind, a number out of range.
        TypeError: a number is not an integer.
    """
    one_of("kind", kind, tuple(_KINDS))
    require_int("offset", offset, 0, 2**63 - 2)
    require_int("producer_id", producer_id, 0, 2**63 - 1)
    require_int("producer_epoch", producer_epoch, 0, 2**15 - 1)
    require_int("coordinator_epoch", coordinator_epoch, -(2**31), 2**31 - 1)
    require_int("timestamp", timestamp, -(2**63), 2**63 - 1)
    version = bytes(2)
    key = version + _KINDS[kind].to_bytes(2, "big")
    value = version + coordinator_epoch.to_bytes(4, "big", signed=True)
    plan = EncodePlan(
        base_offset=offset,
        batch_bytes=2**31 - 1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        partition_leader_epoch=partition_leader_epoch,
    )
    chunk = ListChunk()
    chunk.append_record(offset, timestamp, key, value, ())
    return plan.encoder(is_control=True).encode([chunk.finish()])


@suggests_options
def empty_batch(
    base_offset: int,
    last_offset: int,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    timestamp: int = -1,
    timestamp_type: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """A record batch without records, which Kafka's log cleaner leaves where it removed all records of a batch.

    It keeps what brokers and consumers still need: the range of offsets, and the producer's last sequence (KIP-98;
    `org.apache.kafka.common.record.DefaultRecordBatch.writeEmptyHeader`). The size is 61 bytes, the magic 2.

    Args:
        base_offset, last_offset: the first and last offset of the batch; at most 2^31 offsets.
        producer_id, producer_epoch, base_sequence: of the batch that was cleaned; -1, the default, for none.
        is_transactional, is_control: of that batch.
        timestamp: the largest of that batch, in milliseconds since 1970; -1, the default, for none.
        timestamp_type: 0 create time (the default), 1 log append time.
        partition_leader_epoch: of the batch; -1, the default, for none.

    Raises:
        ValueError: a number is out of range.
        TypeError: a number is not an integer.
    """
    require_int("base_offset", base_offset, 0, 2**63 - 2)
    require_int("last_offset", last_offset, base_offset, min(base_offset + 2**31 - 1, 2**63 - 2))
    require_int("timestamp", timestamp, -(2**63), 2**63 - 1)
    plan = EncodePlan(
        first_offset=base_offset,
        last_offset=last_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        timestamp_type=timestamp_type,
        partition_leader_epoch=partition_leader_epoch,
    )
    return plan.encoder(is_control=is_control).empty_batch(timestamp)
