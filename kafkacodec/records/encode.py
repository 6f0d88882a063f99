"""Records into record sets: Arrow columns or Python records in, Kafka's bytes out.

The formats are the record batch of magic 2 (KIP-98; `org.apache.kafka.common.record.DefaultRecordBatch`) and the
message sets of magic 0 and 1 (KIP-31, KIP-32; `org.apache.kafka.common.record.LegacyRecord`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final, Literal, NamedTuple

from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.errors import EncodeError
from kafkacodec.records._encoder import ArrowChunk, BatchEncoder, ListChunk, RecordChunk
from kafkacodec.records.arguments import require_int
from kafkacodec.records.compression import CODECS, compressor

__all__ = ["EncodedBatch", "control_batch", "encode", "encode_batches"]

_LIST_ROWS: Final = 4096
"""Python records are turned into columns this many at a time."""

_TIMESTAMP_TYPE_BIT: Final = 1 << 3
_TRANSACTIONAL_BIT: Final = 1 << 4
_CONTROL_BIT: Final = 1 << 5

_CONTROL_TYPES: Final = {"abort": 0, "commit": 1}


class EncodedBatch(NamedTuple):
    """One record batch, and what an index needs to know of it."""

    data: bytes
    base_offset: int
    last_offset: int
    max_timestamp: int
    record_count: int


def encode(
    records: Any,
    *,
    magic: int = 2,
    codec: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    batch_bytes: int = 16384,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    timestamp_type: int = 0,
    partition_leader_epoch: int = -1,
    drop_unsupported: bool = False,
) -> bytes:
    """Encode records as a record set: whole batches, one behind the other.

    Args:
        records: an object with the Arrow interface (``__arrow_c_stream__`` or ``__arrow_c_array__``: tables and record
            batches of pyarrow, polars, pandas, DuckDB, `RecordColumns`), an iterable of such (the chunks that
            `iter_columns` or a log gives), or an iterable of `Record` or of ``(key, value)``. Columns are found by
            name, others are ignored:

            - ``key``, ``value``: binary, string, their large and view forms, fixed-size binary, or a dictionary of
              one of these. A column that is missing is null in every row, but one of the two must be there.
            - ``offset`` (int64 or int32, optional): must increase from row to row, gaps are kept. Without it the
              records are numbered from `base_offset` on; with it `base_offset` is not used.
            - ``timestamp`` (timestamp of any unit, rounded down to milliseconds; date; int64 milliseconds; optional):
              null, and a missing column, become -1, which is Kafka's "no timestamp". No clock is read, so that the same
              records give the same bytes.
            - ``headers`` (list or large_list of struct<key, value>, or map; optional).
        magic: format of the batches: 2, or 0 or 1 for message sets as Kafka wrote them before 0.11. There, a batch is
            a run of messages or, with a codec, one compressed message that holds them; none of the arguments about
            producers, transactions and leaders may be given, nor zstd.
        codec: "none", "gzip", "snappy", "lz4" or "zstd".
        level: compression level as in Kafka's ``compression.<codec>.level``; None takes the library's default.
        base_offset: offset of the first record, where there is no offset column.
        batch_bytes: a batch takes records while its size, before compression and with its 61-byte header, is not above
            this. A larger record gets a batch of its own. Batches also end where the next offset is more than
            2^31-1 above the first.
        producer_id, producer_epoch, base_sequence: of an idempotent producer. Every further batch continues the
            sequence, which wraps to 0 after 2^31-1; as in Kafka it counts offsets rather than records.
        is_transactional: sets the batch's transactional bit.
        timestamp_type: 0 create time, 1 log append time. With 1 a reader gives every record of a batch the batch's
            largest timestamp.
        partition_leader_epoch: of every batch.
        drop_unsupported: leave out what the magic cannot hold, headers in 0 and 1 and timestamps in 0, instead of
            raising EncodeError at the first record that has any.

    Returns:
        The bytes; none where there are no records.

    Raises:
        EncodeError: a column of the wrong type, a record too large for a batch, offsets that do not increase, an
            argument out of range. `path` names the column or the row.
        TypeError: `records` is neither Arrow data nor iterable.
    """
    encoder = _encoder(
        magic, codec, base_offset, batch_bytes, producer_id, producer_epoch, base_sequence, is_transactional,
        timestamp_type, partition_leader_epoch, drop_unsupported=drop_unsupported, is_control=False,
    )  # fmt: skip
    return encoder.encode(_chunks(records), _compressor(codec, level, magic))


def encode_batches(
    records: Any,
    *,
    magic: int = 2,
    codec: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    batch_bytes: int = 16384,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    timestamp_type: int = 0,
    partition_leader_epoch: int = -1,
    drop_unsupported: bool = False,
) -> Iterator[EncodedBatch]:
    """Encode records batch by batch: the same bytes as `encode` in bounded memory.

    Arguments and errors are those of `encode`; an error comes when its record is reached, with all batches before it
    already given out. Held at any time: one chunk of the input (one record batch of a stream, 4,096 Python records),
    the batch that is open, and one encoded batch.
    """
    encoder = _encoder(
        magic, codec, base_offset, batch_bytes, producer_id, producer_epoch, base_sequence, is_transactional,
        timestamp_type, partition_leader_epoch, drop_unsupported=drop_unsupported, is_control=False,
    )  # fmt: skip
    return _each_batch(encoder, _compressor(codec, level, magic), records)


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
        EncodeError: an unknown kind, a number out of range.
    """
    if kind not in ("commit", "abort"):
        raise EncodeError(f"a control batch is 'commit' or 'abort', not {kind!r}")
    require_int("offset", offset, 0, 2**63 - 2)
    require_int("producer_id", producer_id, 0, 2**63 - 1)
    require_int("producer_epoch", producer_epoch, 0, 2**15 - 1)
    require_int("coordinator_epoch", coordinator_epoch, -(2**31), 2**31 - 1)
    require_int("timestamp", timestamp, -(2**63), 2**63 - 1)
    version = bytes(2)
    key = version + _CONTROL_TYPES[kind].to_bytes(2, "big")
    value = version + coordinator_epoch.to_bytes(4, "big", signed=True)
    encoder = _encoder(
        2, "none", offset, 2**31 - 1, producer_id, producer_epoch, -1, True, 0, partition_leader_epoch,
        drop_unsupported=False, is_control=True,
    )  # fmt: skip
    chunk = ListChunk()
    chunk.append_record(offset, timestamp, key, value, ())
    return encoder.encode([chunk.finish()])


def _encoder(
    magic: int,
    codec: str,
    base_offset: int,
    batch_bytes: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
    timestamp_type: int,
    leader_epoch: int,
    *,
    drop_unsupported: bool,
    is_control: bool,
) -> BatchEncoder:
    """The encoder for these options, once they are known to fit the format."""
    require_int("magic", magic, 0, 2)
    if codec not in CODECS:
        raise EncodeError(f"the codec must be one of {', '.join(CODECS)}, not {codec!r}")
    require_int("base_offset", base_offset, 0, 2**63 - 2)
    require_int("batch_bytes", batch_bytes, 1, 2**31 - 1)
    require_int("producer_id", producer_id, -1, 2**63 - 1)
    require_int("producer_epoch", producer_epoch, -1, 2**15 - 1)
    require_int("base_sequence", base_sequence, -1, 2**31 - 1)
    require_int("timestamp_type", timestamp_type, 0, 1)
    require_int("partition_leader_epoch", leader_epoch, -1, 2**31 - 1)
    if magic < 2:
        numbers = {
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "base_sequence": base_sequence,
            "partition_leader_epoch": leader_epoch,
        }
        _require_message_set(magic, codec, is_transactional, timestamp_type, numbers)
    attributes = (
        CODECS.index(codec)
        | timestamp_type * _TIMESTAMP_TYPE_BIT
        | bool(is_transactional) * _TRANSACTIONAL_BIT
        | is_control * _CONTROL_BIT
    )
    return BatchEncoder(
        magic=magic,
        drop_unsupported=drop_unsupported,
        base_offset=base_offset,
        batch_bytes=batch_bytes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
        attributes=attributes,
    )


def _require_message_set(
    magic: int, codec: str, is_transactional: bool, timestamp_type: int, numbers: dict[str, int]
) -> None:
    """Raise EncodeError for what no message of magic 0 or 1 can say."""
    given = [name for name, value in numbers.items() if value != -1]
    if is_transactional:
        given.append("is_transactional")
    if timestamp_type and magic == 0:
        given.append("timestamp_type")
    if given:
        raise EncodeError(f"messages of magic {magic} have no {given[0]}")
    if codec == "zstd":
        raise EncodeError(f"zstd needs magic 2, not {magic}")


def _compressor(codec: str, level: int | None, magic: int) -> Callable[[Any], Any] | None:
    """What the records of a batch are put through. A level is checked here, before there are records."""
    number = CODECS.index(codec)
    put_through = compressor(number, level=level, magic=magic)
    return put_through if number else None


def _each_batch(
    encoder: BatchEncoder, compress_records: Callable[[Any], Any] | None, records: Any
) -> Iterator[EncodedBatch]:
    for chunk in _chunks(records):
        while batch := encoder.next_batch(chunk, compress_records):
            yield EncodedBatch(*batch)
    if batch := encoder.last_batch(compress_records):
        yield EncodedBatch(*batch)


def _chunks(records: Any) -> Iterator[RecordChunk]:
    if _is_arrow(records):
        return map(ArrowChunk, ArrowReader(records))
    if isinstance(records, (bytes, bytearray, memoryview, str, dict)) or not isinstance(records, Iterable):
        raise TypeError(f"records must be Arrow data or an iterable of records, not {type(records).__name__}")
    rows = iter(records)
    first = list(islice(rows, 1))
    if first and _is_arrow(first[0]):
        return (ArrowChunk(array) for table in chain(first, rows) for array in ArrowReader(table))
    return _list_chunks(chain(first, rows))


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _list_chunks(records: Iterator[Any]) -> Iterator[RecordChunk]:
    """Columns made from Python records: pairs of key and value, or rows shaped like `Record`."""
    chunk = ListChunk()
    numbered: bool | None = None
    for row, record in enumerate(records):
        try:
            has_offset = _append(chunk, record)
        except EncodeError as e:
            raise EncodeError(e.reason, path=f"records[{row}].{e.path}" if e.path else f"records[{row}]") from None
        if numbered is None:
            numbered = has_offset
        elif numbered != has_offset:
            raise EncodeError("records with and without an offset are mixed", path=f"records[{row}]")
        if len(chunk) == _LIST_ROWS:
            yield chunk.finish()
            chunk = ListChunk()
    if len(chunk):
        yield chunk.finish()


def _append(chunk: ListChunk, record: Any) -> bool:
    """Add one record; whether it brought an offset."""
    shape = len(record) if isinstance(record, (tuple, list)) else 0
    if shape == 2:
        chunk.append_record(None, None, record[0], record[1], ())
        return False
    if shape != 6:
        raise EncodeError(f"neither a Record nor a pair of key and value: {type(record).__name__}")
    offset, timestamp, _, key, value, headers = record
    chunk.append_record(offset, timestamp, key, value, headers)
    return offset is not None
