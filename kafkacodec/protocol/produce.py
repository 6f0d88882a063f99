"""Produce requests from a table of records: the inverse of `fetch_to_columns`."""

from __future__ import annotations

import re
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from kafkacodec import messages
from kafkacodec.arguments import limit, require_int
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import EncodeError
from kafkacodec.protocol.partition_rows import PartitionRows, rows_by_partition
from kafkacodec.records.compression import Codec
from kafkacodec.records.encode import EncodePlan, iter_encoded
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kafkacodec.messages import ProduceRequest

__all__ = ["DEFAULT_MAX_BATCH_BYTES", "DEFAULT_MAX_REQUEST_BYTES", "PackedRequest", "produce_requests"]

DEFAULT_MAX_REQUEST_BYTES: Final = 1_048_576
"""The largest request, in bytes: `max.request.size` of Kafka's producer."""

DEFAULT_MAX_BATCH_BYTES: Final = 1_048_588
"""The largest batch, in bytes: `message.max.bytes` of a broker, which refuses larger ones with error 10."""

_MAX_TOPIC_BYTES = 249
_RECORD_COLUMNS = ("timestamp", "key", "value", "headers")
_ZSTD_VERSION, _TOPIC_ID_VERSION, _TRANSACTION_VERSION = 7, 13, 3

# The maximum in any version: acks, timeout, the number of topics, tags and the length of the transactional id; index,
# length of the records and tags of a partition; length of the name or id, number of partitions and tags of a topic.
_REQUEST_BYTES, _PARTITION_BYTES, _TOPIC_BYTES = 15, 10, 24


class PackedRequest(NamedTuple):
    """A Produce request, and which rows of the table it holds.

    Attributes:
        request (ProduceRequest): the request, to be encoded in the version given to `produce_requests`.
        rows (dict[tuple[str, int], numpy.ndarray]): for each topic and partition of the request, in its order, the
            numbers of the rows in the batch (int64). The offset of the first is the ``base_offset`` of that partition
            in the response, which lists topics and partitions in any order: find it by name (or topic id) and index.
    """

    request: ProduceRequest
    rows: dict[tuple[str, int], npt.NDArray[np.int64]]


@suggests_options
def produce_requests(
    records: Any,
    version: int,
    *,
    acks: Literal[-1, 0, 1] = -1,
    timeout_ms: int = 30_000,
    topic_ids: Mapping[str, uuid.UUID] | None = None,
    codec: Codec = "none",
    level: int | None = None,
    max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES,
    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES,
    transactional_id: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequences: Mapping[tuple[str, int], int] | None = None,
    drop_unsupported: bool = False,
) -> Iterator[PackedRequest]:
    """Encode a table of records as Produce requests. Needs pyarrow.

    A request has at most one batch per partition: a broker refuses more with error 87 (INVALID_RECORD). The rest
    follows in later requests, which must be sent in order. The rows of a partition keep their order, and
    the same table always gives the same requests: topics in the order of their first rows, partitions by number;
    where a request is full, the next one starts with the partition that did not fit.

    Args:
        records: a table with the Arrow interface, such as a ``pyarrow.Table`` or the result of `fetch_to_columns`, with
            the columns ``topic`` (text), ``partition`` (integer) and ``key``, ``value``, ``timestamp``, ``headers`` as
            in `kafkacodec.encode`. Others that readers of records write are left out, even ``offset``, which the
            broker assigns.
        version: of the requests. 0 and 1 have messages of magic 0, 2 of magic 1, later ones batches of magic 2.
        acks: 0 no response, 1 the leader, -1 all in-sync replicas.
        timeout_ms: how long the broker waits for the replicas, in milliseconds.
        topic_ids: ids by topic name, for versions 13 and later, which have no names.
        codec, level: as in `kafkacodec.encode`; "zstd" needs version 7. A batch that compression makes larger than
            the limit is written without it.
        max_request_bytes: the maximum size of a request, without the request header.
        max_batch_bytes: the maximum size of a batch with its header, before and after compression; a record that is
            larger before compression gets its own batch. It should be at most ``max.message.bytes`` of the topics.
        transactional_id: the id of a transactional producer, from version 3; the partitions must have been added to
            the transaction.
        producer_id, producer_epoch: those of an idempotent or transactional producer, from version 3; -1 for none.
        sequences: the sequence number of the next record by topic and partition; 0 for those not in it. Afterwards,
            each has grown by the number of its rows.
        drop_unsupported: drop headers in versions 0 to 2 and timestamps in versions 0 and 1, instead of raising.

    Returns:
        An iterator of `PackedRequest`. Batches are encoded as they are requested.

    Raises:
        EncodeError: a column is missing, unknown or of the wrong type; a topic or partition is null or not valid; the
            version cannot represent a record. While iterating, after the requests before it: a record is larger than a
            limit, with its size and the limit. `path` names the column or the row.
        ValueError, TypeError: an option is wrong, or `records` is not Arrow data.
        ImportError: pyarrow is not installed.

    Source: KIP-98 (magic 2, sequences), KIP-32 (magic 1), KIP-110 (zstd), KIP-516 (topic ids).
    """
    require_int("version", version, 0, messages.APIS[0].valid_versions[-1])
    require_int("acks", acks, -1, 1)
    require_int("timeout_ms", timeout_ms, 0, 2**31 - 1)
    _check_producer(version, acks, transactional_id, producer_id, producer_epoch, sequences)
    if codec == "zstd" and version < _ZSTD_VERSION:
        raise ValueError(f"codec 'zstd' needs version {_ZSTD_VERSION} of Produce or later, not {version} (KIP-110)")
    plan = EncodePlan(
        magic=min(max(version - 1, 0), 2),
        codec=codec,
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=transactional_id is not None,
        drop_unsupported=drop_unsupported,
    )
    packer = _Packer(
        messages.ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms),
        None if version < _TOPIC_ID_VERSION else topic_ids or {},
        limit("max_request_bytes", max_request_bytes, 1),
        limit("max_batch_bytes", max_batch_bytes, 1),
    )
    return packer.requests(deque(_groups(records, plan, packer, sequences or {})))


def _check_producer(
    version: int, acks: int, transactional_id: str | None, producer_id: int, producer_epoch: int, sequences: Any
) -> None:
    require_int("producer_id", producer_id, -1, 2**63 - 1)
    require_int("producer_epoch", producer_epoch, -1, 2**15 - 1)
    if transactional_id is not None and version < _TRANSACTION_VERSION:
        raise ValueError(f"transactional_id needs version {_TRANSACTION_VERSION} of Produce or later, not {version}")
    if producer_id < 0 and (transactional_id is not None or sequences or producer_epoch >= 0):
        raise ValueError("producer_epoch, sequences and transactional_id need a producer_id")
    if producer_id >= 0 and producer_epoch < 0:
        raise ValueError("producer_id needs a producer_epoch")
    if producer_id >= 0 and acks != -1:
        raise ValueError(f"an idempotent producer needs acks -1, not {acks}")
    for place, sequence in (sequences or {}).items():
        require_int(f"sequences[{place!r}]", sequence, 0, 2**31 - 1)


class _Packer:
    """Packs batches into requests."""

    def __init__(
        self, empty: ProduceRequest, topic_ids: Mapping[str, uuid.UUID] | None, max_request: int, max_batch: int
    ) -> None:
        self.empty, self.topic_ids = empty, topic_ids
        self.max_request, self.max_batch = max_request, max_batch
        self.fixed_bytes = _REQUEST_BYTES + len((empty.transactional_id or "").encode())

    def batch_limit(self, topic: str) -> tuple[int, str]:
        """The maximum size of a batch, and the option that sets it."""
        room = self.max_request - self.fixed_bytes - self.topic_bytes(topic) - _PARTITION_BYTES
        return (self.max_batch, "max_batch_bytes") if self.max_batch <= room else (max(room, 1), "max_request_bytes")

    def topic_bytes(self, topic: str) -> int:
        """The maximum number of bytes that a topic adds to a request."""
        return _TOPIC_BYTES + len(topic.encode())

    def requests(self, waiting: deque[_Group]) -> Iterator[PackedRequest]:
        while waiting:
            if chosen := self.next_of(waiting):
                yield self.made(chosen)

    def next_of(self, waiting: deque[_Group]) -> list[tuple[_Group, _Batch]]:
        """The batches of the next request. Their groups move to the end of the queue, or leave it without rows."""
        chosen: list[tuple[_Group, _Batch]] = []
        topics: set[str] = set()
        size = self.fixed_bytes
        while waiting:
            group = waiting[0]
            batch = group.next_batch()
            if batch is not None:
                new = self.topic_bytes(group.topic) * (group.topic not in topics)
                size += new + _PARTITION_BYTES + len(batch.data)
                if chosen and size > self.max_request:
                    break
                topics.add(group.topic)
                chosen.append((group, batch))
            group.pending = None
            waiting.popleft()
        waiting.extend(group for group, _ in chosen)
        return sorted(chosen, key=lambda pair: pair[0].number)

    def made(self, chosen: list[tuple[_Group, _Batch]]) -> PackedRequest:
        of_topic: dict[str, list[Any]] = {}
        for group, batch in chosen:
            entry = messages.ProduceRequest.PartitionProduceData(index=group.partition, records=batch.data)
            of_topic.setdefault(group.topic, []).append(entry)
        request = messages.ProduceRequest(
            transactional_id=self.empty.transactional_id,
            acks=self.empty.acks,
            timeout_ms=self.empty.timeout_ms,
            topic_data=[self.topic_data(name, entries) for name, entries in of_topic.items()],
        )
        return PackedRequest(request, {(group.topic, group.partition): batch.rows for group, batch in chosen})

    def topic_data(self, name: str, entries: list[Any]) -> Any:
        make = messages.ProduceRequest.TopicProduceData
        if self.topic_ids is None:
            return make(name=name, partition_data=entries)
        return make(topic_id=self.topic_ids[name], partition_data=entries)

    def check_topic(self, name: str, row: int) -> None:
        if not 0 < len(name.encode()) <= _MAX_TOPIC_BYTES:
            raise EncodeError(f"a topic name has 1 to {_MAX_TOPIC_BYTES} bytes", path=f"records[{row}].topic")
        if self.topic_ids is not None and not isinstance(self.topic_ids.get(name), uuid.UUID):
            raise ValueError(f"no id of topic {name!r} in topic_ids: version {_TOPIC_ID_VERSION} and later need it")


class _Batch(NamedTuple):
    data: bytes
    rows: npt.NDArray[np.int64]


class _Group:
    """The rows of a partition, and its batches one by one."""

    def __init__(self, number: int, own: PartitionRows, options: dict[str, Any], limited_by: str) -> None:
        self.number, self.topic, self.partition, self.rows = number, own.topic, own.partition, own.rows
        self.chunks, self.options, self.limited_by = own.chunks, options, limited_by
        self.pending: _Batch | None = None
        self.batches: Iterator[_Batch] | None = None
        self.reached = (0, 0)

    def next_batch(self) -> _Batch | None:
        """The next batch, the same until `pending` is reset; None after the last."""
        if self.batches is None:
            self.batches = self.each_batch()
        if self.pending is None:
            self.pending = next(self.batches, None)
        return self.pending

    def each_batch(self) -> Iterator[_Batch]:
        first = 0
        try:
            for batch in iter_encoded(self.chunks, **self.options):
                data, rows = batch.data, self.rows[first : first + batch.num_records]
                if len(data) > self.options["batch_bytes"]:
                    data = self.without_codec(first, len(rows), data)
                if self.options["magic"] == 2:  # as from Kafka's producers: else a broker compresses anew
                    data = b"".join((bytes(8), memoryview(data)[8:]))
                yield _Batch(data, rows)
                first += len(rows)
        except EncodeError as error:
            raise EncodeError(error.reason, path=self.path_in_table(error.path)) from None

    def without_codec(self, first: int, count: int, data: bytes) -> bytes:
        """A batch over the limit, uncompressed if it then fits."""
        most = self.options["batch_bytes"]
        if self.options["codec"] != "none":
            own = {**self.options, "codec": "none", "level": None}
            if own["base_sequence"] >= 0:
                own["base_sequence"] = (own["base_sequence"] + first) % 2**31
            data = b"".join(batch.data for batch in iter_encoded(self.chunks_of(first, count), **own))
        if len(data) > most:
            raise EncodeError(
                f"a record takes {len(data)} bytes in a batch, and {self.limited_by} leaves {most}",
                path=f"records[{first}]",
            )
        return data

    def chunks_of(self, first: int, count: int) -> list[Any]:
        """The rows of a batch, which must come after those requested before."""
        number, start = self.reached
        found = []
        while count:
            chunk = self.chunks[number]
            if start + len(chunk) > first:
                found.append(chunk.slice(first - start, count))
                first, count = first + len(found[-1]), count - len(found[-1])
                self.reached = number, start
            number, start = number + 1, start + len(chunk)
        return found

    def path_in_table(self, path: str | None) -> str | None:
        """The path of an error about the group's rows, with row numbers of the whole table."""
        found = re.match(r"records\[(\d+)\]", path or "")
        return f"records[{self.rows[int(found[1])]}]{(path or '')[found.end() :]}" if found else path


_PLANNED = ("magic", "codec", "level", "producer_id", "producer_epoch", "is_transactional", "drop_unsupported")
"""The options of `EncodePlan` that all batches share."""


def _groups(records: Any, plan: EncodePlan, packer: _Packer, sequences: Mapping[tuple[str, int], int]) -> list[_Group]:
    """The rows of each partition, in the order of the requests."""
    shared = {name: getattr(plan, name) for name in _PLANNED}
    found = []
    for number, own in enumerate(rows_by_partition(records, _RECORD_COLUMNS)):
        packer.check_topic(own.topic, int(own.rows[0]))
        most, limited_by = packer.batch_limit(own.topic)
        sequence = -1 if plan.producer_id < 0 else sequences.get((own.topic, own.partition), 0)
        options = {**shared, "batch_bytes": min(most, 2**31 - 1), "base_sequence": sequence}
        found.append(_Group(number, own, options, limited_by))
    return found
