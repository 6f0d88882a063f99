"""Encoding of Arrow columns or Python records as record sets.

The formats are the record batch of magic 2 (KIP-98; `org.apache.kafka.common.record.DefaultRecordBatch`) and the
message sets of magic 0 and 1 (KIP-31, KIP-32; `org.apache.kafka.common.record.LegacyRecord`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypedDict, Unpack, cast

from kafkacodec.arguments import num_threads, one_of, refuse_unknown, require_int
from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.datatypes import NamedTuple, dataclass, fields
from kafkacodec.moments import Moment, milliseconds
from kafkacodec.records._encoder import BatchEncoder
from kafkacodec.records._record_chunks import ArrowChunk, ListChunk, RecordChunk
from kafkacodec.records.compression import CODECS, Codec, compress, compressor
from kafkacodec.shown import repr_of
from kafkacodec.signatures import shows_options

__all__ = [
    "DEFAULT_BATCH_BYTES",
    "BatchOptions",
    "EncodeOptions",
    "EncodePlan",
    "EncodedBatch",
    "Encoder",
    "EncoderOptions",
    "RecordSetOptions",
    "encode",
    "iter_encoded",
]

DEFAULT_BATCH_BYTES: Final = 16384
"""The size of a batch before compression, in bytes: `batch.size` of Kafka's producer."""

_LIST_ROWS: Final = 4096
"""Number of Python records that are converted to columns at a time."""

_TIMESTAMP_TYPE_BIT: Final = 1 << 3
_TRANSACTIONAL_BIT: Final = 1 << 4
_CONTROL_BIT: Final = 1 << 5


class EncodedBatch(NamedTuple):
    """One record batch, with the values that an index stores."""

    data: bytes
    base_offset: int
    last_offset: int
    max_timestamp: int
    num_records: int


class BatchOptions(TypedDict, total=False):
    """The keyword options of `encode` that apply if a log assigns the offsets; see `LogWriter.write`."""

    codec: Codec
    level: int | None
    batch_bytes: int
    timestamp_type: int


class EncodeOptions(BatchOptions, total=False):
    """The keyword options that `encode`, `iter_encoded` and `encode_rows` share."""

    magic: int
    base_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    partition_leader_epoch: int
    drop_unsupported: bool


class RecordSetOptions(EncodeOptions, total=False):
    """The keyword options of `encode` and `iter_encoded`, which make one record set."""

    first_offset: int
    last_offset: int
    default_timestamp: Moment


class EncoderOptions(RecordSetOptions, total=False):
    """The keyword options of `encode` and of `Encoder`."""

    threads: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodePlan:
    """Checked `RecordSetOptions`.

    Raises:
        ValueError: an option is out of range, or not supported by the codec or the magic.
        TypeError: an option is of another type.
    """

    magic: int = 2
    codec: Codec = "none"
    level: int | None = None
    base_offset: int = 0
    first_offset: int = -1
    last_offset: int = -1
    batch_bytes: int = DEFAULT_BATCH_BYTES
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    timestamp_type: int = 0
    partition_leader_epoch: int = -1
    drop_unsupported: bool = False
    default_timestamp: Moment = -1

    @classmethod
    def of(cls, options: EncodeOptions | BatchOptions) -> EncodePlan:
        """The plan for keyword options; raises TypeError for an unknown one."""
        refuse_unknown(options, [field.name for field in fields(cls)])
        return cls(**options)

    def __post_init__(self) -> None:
        if not hasattr(self.default_timestamp, "__index__"):
            object.__setattr__(self, "default_timestamp", milliseconds(self.default_timestamp, "default_timestamp"))
        require_int("magic", self.magic, 0, 2)
        one_of("codec", self.codec, CODECS)
        for name, lowest, highest in _RANGES:
            require_int(name, getattr(self, name), lowest, highest)
        if (self.first_offset < 0) != (self.last_offset < 0) or self.last_offset < self.first_offset:
            given = f"{self.first_offset} and {self.last_offset}"
            raise ValueError(f"first_offset and last_offset must be a range, or both -1: got {given}")
        if self.magic < 2:
            self._require_message_set()
        self.compressor()

    def _require_message_set(self) -> None:
        given = [name for name in _BATCHES_ONLY if getattr(self, name) != -1]
        if self.is_transactional:
            given.append("is_transactional")
        if self.timestamp_type and self.magic == 0:
            given.append("timestamp_type")
        if given:
            raise ValueError(f"messages of magic {self.magic} have no {given[0]}")

    def compressor(self) -> Callable[[Any], Any] | None:
        """A new function that compresses the records of a batch; None without a codec."""
        number = CODECS.index(self.codec)
        made = compressor(number, level=self.level, magic=self.magic)
        return made if number else None

    def encoder(self, *, is_control: bool = False) -> BatchEncoder:
        """A new encoder of the core."""
        attributes = (
            CODECS.index(self.codec)
            | self.timestamp_type * _TIMESTAMP_TYPE_BIT
            | bool(self.is_transactional) * _TRANSACTIONAL_BIT
            | is_control * _CONTROL_BIT
        )
        return BatchEncoder(
            magic=self.magic,
            drop_unsupported=self.drop_unsupported,
            base_offset=self.base_offset,
            first_offset=self.first_offset,
            last_offset=self.last_offset,
            default_timestamp=cast(int, self.default_timestamp),
            batch_bytes=self.batch_bytes,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            leader_epoch=self.partition_leader_epoch,
            attributes=attributes,
        )


_RANGES: Final = (
    ("base_offset", 0, 2**63 - 2),
    ("first_offset", -1, 2**63 - 2),
    ("last_offset", -1, 2**63 - 2),
    ("batch_bytes", 1, 2**31 - 1),
    ("producer_id", -1, 2**63 - 1),
    ("producer_epoch", -1, 2**15 - 1),
    ("base_sequence", -1, 2**31 - 1),
    ("timestamp_type", 0, 1),
    ("partition_leader_epoch", -1, 2**31 - 1),
    ("default_timestamp", -1, 2**63 - 1),
)

_BATCHES_ONLY: Final = (
    "first_offset",
    "last_offset",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "partition_leader_epoch",
)
"""Options without a field in message sets of magic 0 and 1."""


class Encoder:
    """Encodes record sets with options that are checked once: for many small ones.

        >>> encoder = kc.Encoder(codec="lz4")
        >>> sets = [encoder.encode(rows) for rows in [[(b"key", b"value")], [(None, b"other")]]]

    Options and their errors are those of `kafkacodec.encode`: each record set begins with `base_offset` and
    `base_sequence`. An encoder may be used by any number of threads at once. Copies and pickles have its options.

    Raises:
        ValueError, TypeError: an option is wrong.
    """

    __slots__ = ("_idle", "_plan", "_threads")

    @shows_options(RecordSetOptions, EncodePlan)
    def __init__(self, *, threads: int | None = 1, **options: Unpack[RecordSetOptions]) -> None:
        self.__setstate__((EncodePlan.of(options), num_threads(threads)))

    def __getstate__(self) -> tuple[EncodePlan, int]:
        return self._plan, self._threads

    def __setstate__(self, made_of: tuple[EncodePlan, int]) -> None:
        self._plan, self._threads = made_of
        self._idle: list[tuple[BatchEncoder, Callable[[Any], Any] | None]] = []

    def __repr__(self) -> str:
        return repr_of(self, f"magic {self._plan.magic}", f"codec {self._plan.codec}")

    def encode(self, records: Any) -> bytes:
        """Encodes records as a record set, as `kafkacodec.encode` does.

        Args:
            records: Arrow data, `Record` objects or pairs of key and value, as there.

        Raises:
            EncodeError, TypeError: as there.
        """
        if self._threads > 1 and self._plan.codec != "none":
            return b"".join(batch.data for batch in _batches_of_threads(self._plan, records, self._threads))
        try:
            core, compress_records = idle = self._idle.pop()
        except IndexError:
            core, compress_records = idle = self._plan.encoder(), self._plan.compressor()
        made = core.encode_again(_chunks(records), compress_records)
        self._idle.append(idle)
        return made


_WITHOUT_OPTIONS: Final = Encoder()


@shows_options(EncoderOptions, Encoder, plain=_WITHOUT_OPTIONS.encode)
def encode(records: Any, **options: Unpack[EncoderOptions]) -> bytes:
    """Encode records as a record set. `Encoder` checks the options once for many record sets.

    Args:
        records: an object with the Arrow interface (``__arrow_c_stream__`` or ``__arrow_c_array__``: tables and record
            batches of pyarrow, polars, pandas, DuckDB, `RecordColumns`), an iterable of such objects (the chunks of
            `iter_columns` or of a log), or an iterable of `Record` or of ``(key, value)``. Columns are found by
            name. Others that readers of records write, such as ``topic`` and ``producer_id``, are left out; any other
            is an error, since it may be a misspelt one:

            - ``key``, ``value``: binary, string, their large and view forms, fixed-size binary, or a dictionary of
              one of these. One of the two columns may be missing; its values are then null.
            - ``offset`` (int64 or int32, optional): must increase from row to row; gaps are kept. Without it the
              records are numbered from `base_offset`; with it `base_offset` is not used.
            - ``timestamp`` (timestamp of any unit, rounded down to milliseconds; date; int64 milliseconds; optional):
              null, or a missing column, becomes `default_timestamp`; a time of -1 ms is refused. That of a `Record`
              may also be a datetime, a date or text, as in `default_timestamp`. Only times relative to now read the
              clock: else the same records always give the same bytes.
            - ``headers`` (list or large_list of struct<key, value>, or map; optional).
        magic (int): format of the batches: 2 (the default), or 0 or 1 for message sets as Kafka wrote them before
            0.11. There, a batch is a sequence of messages or, with a codec, one compressed message that contains them;
            zstd and the options about producers, transactions and leaders are not supported.
        codec (str): "none" (the default), "gzip", "snappy", "lz4" or "zstd".
        level (int | None): compression level as in Kafka's ``compression.<codec>.level``; None, the default, is the
            default level of the library.
        base_offset (int): offset of the first record if there is no offset column; 0 by default.
        first_offset, last_offset (int): the range of offsets that the batches cover, if it is larger than that of the
            records, as in batches from which Kafka's log cleaner removed the first or last records: the base offset of
            the first batch, and the last offset of the last one. Without records, the result is one batch without
            records (see `empty_batch`). Both -1, the default: the range of the records.
        batch_bytes (int): maximum size of a batch in bytes, before compression and with its 61-byte header; 16,384 by
            default. A larger record gets a separate batch. A batch also ends if the next offset is more than 2^31-1
            above the first.
        producer_id, producer_epoch, base_sequence (int): of an idempotent producer; -1, the default, for none. Each
            batch continues the sequence, which wraps to 0 after 2^31-1; as in Kafka it counts offsets, not records.
        is_transactional (bool): sets the transactional bit of each batch.
        default_timestamp (Moment): of records without a timestamp: in milliseconds, a datetime (UTC without a time
            zone), a date, or text such as ``"2026-05-01T12:00"`` or ``"-1h"``; -1, the default, is Kafka's "no
            timestamp".
        timestamp_type (int): 0 create time (the default), 1 log append time. With 1, readers use the largest timestamp
            of a batch for all its records.
        partition_leader_epoch (int): of each batch; -1, the default, for none.
        threads (int | None): number of threads that compress, including the caller's, from 1 to 1,024; None for one per
            processor that the process may use; 1 by default. The bytes are the same for any number; without a codec,
            one thread is used.
        drop_unsupported (bool): drop what the magic cannot represent (headers in 0 and 1, timestamps in 0) instead of
            raising EncodeError at the first such record.

    Returns:
        The bytes; empty without records and without a range of offsets.

    Raises:
        EncodeError: a column is unknown or has the wrong type, a record is too large for a batch, offsets do not
            increase or are outside the range, or a batch would span more than 2^31 offsets. `path` names the column or
            the row.
        ValueError, TypeError: an option is wrong, or `records` is neither Arrow data nor an iterable.
    """
    return (Encoder(**options) if options else _WITHOUT_OPTIONS).encode(records)


@shows_options(RecordSetOptions, EncodePlan)
def iter_encoded(
    records: Any, *, threads: int | None = 1, **options: Unpack[RecordSetOptions]
) -> Iterator[EncodedBatch]:
    """Encode records one batch at a time: the same bytes as `encode`, in bounded memory.

    Options and errors are those of `encode`; an EncodeError is raised after the batches before it were yielded. Memory
    holds one chunk of the input (one record batch of a stream, or 4,096 Python records), the open batch, and one
    encoded batch. Each thread adds up to 8 batches, encoded or not, and the chunks that they are in.
    """
    plan, count = EncodePlan.of(options), num_threads(threads)
    if count > 1 and plan.codec != "none":
        return _batches_of_threads(plan, records, count)
    return _each_batch(plan.encoder(), plan.compressor(), records)


def iter_writable(records: Any, plan: EncodePlan) -> Iterator[tuple[bytearray | memoryview, int, int]]:
    """The batches of a plan as bytes that can be changed, each with its number of records, and its size in bytes before
    compression: about the memory that it keeps. Errors as `encode`."""
    encoder = plan.encoder()
    encoder.writable = True
    for batch in _each_batch(encoder, plan.compressor(), records):
        yield batch.data, batch.num_records, encoder.plain_bytes  # type: ignore[misc]


def _batches_of_threads(plan: EncodePlan, records: Any, threads: int) -> Iterator[EncodedBatch]:
    from kafkacodec.records.parallel.encoding import compressed_in_threads

    call = partial(compress, CODECS.index(plan.codec), level=plan.level, magic=plan.magic)
    for batch in compressed_in_threads(plan.encoder(), plan.encoder(), call, _chunks(records), threads):
        yield EncodedBatch(*batch)


def _each_batch(
    encoder: BatchEncoder, compress_records: Callable[[Any], Any] | None, records: Any
) -> Iterator[EncodedBatch]:
    for chunk in _chunks(records):
        while batch := encoder.next_batch(chunk, compress_records):
            yield EncodedBatch(*batch)
    if batch := encoder.last_batch(compress_records):
        yield EncodedBatch(*batch)


def _chunks(records: Any) -> Iterator[RecordChunk]:
    if type(records) is list:
        if not records or not _is_arrow(records[0]):
            return _list_chunks(iter(records))
    elif _is_arrow(records):
        return arrow_chunks(records)
    if isinstance(records, (bytes, bytearray, memoryview, str, dict)) or not isinstance(records, Iterable):
        raise TypeError(f"records must be Arrow data or an iterable of records, not {type(records).__name__}")
    rows = iter(records)
    first = list(islice(rows, 1))
    if first and _is_arrow(first[0]):
        return arrow_chunks(chain(first, rows))
    return _list_chunks(chain(first, rows))


def arrow_chunks(tables: Any) -> Iterator[ArrowChunk]:
    """The record batches of a table, or of an iterable of tables."""
    return (ArrowChunk(array) for table in ([tables] if _is_arrow(tables) else tables) for array in ArrowReader(table))


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _list_chunks(records: Iterator[Any]) -> Iterator[RecordChunk]:
    """Columns made from Python records: pairs of key and value, or rows shaped like `Record`."""
    before, row = None, 0
    while True:
        chunk = ListChunk()
        chunk.extend(records, row, _LIST_ROWS, before)
        if len(chunk):
            yield chunk.finish()
        if len(chunk) < _LIST_ROWS:
            return
        before, row = chunk, row + len(chunk)
