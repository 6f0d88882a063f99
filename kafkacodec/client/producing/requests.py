"""Produce requests from batches, for the receiving broker's versions, and their responses by batch."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.core.calls import Versions
from kafkacodec.client.producing._batch import set_producer
from kafkacodec.client.producing.queue import REQUEST_BYTES, Batch
from kafkacodec.errors import EncodeError, UnsupportedVersion
from kafkacodec.messages.keys import PRODUCE
from kafkacodec.protocol.versions import highest_common
from kafkacodec.records.compression import CODECS

__all__ = ["Packing", "ProduceCall", "split"]

_ZSTD_VERSION, _TOPIC_ID_VERSION, _PRODUCER_VERSION = 7, 13, 3
_NO_TOPIC_ID: Final = uuid.UUID(int=0)
_ANY_BYTES: Final = 2**31 - 1


class Packing:
    """The batches of a request under construction."""

    __slots__ = ("batches", "size")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.size = REQUEST_BYTES

    def takes(self, batch: Batch, most: int) -> bool:
        """Whether a batch fits into a request of `most` bytes; the first one always does."""
        return not self.batches or self.size + _room(batch) <= most

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        self.batches.append(batch)
        self.size += _room(batch)


def _room(batch: Batch) -> int:
    size = batch.size if batch.data is None else len(batch.data)
    return size + 40 + len(batch.queue.topic) * 3


class ProduceCall:
    """A Produce request: one batch per partition.

    Attributes:
        batches: the batches it contains, except those in `refused`.
        refused: why the broker's version cannot represent a batch; set by `prepare`.
    """

    __slots__ = ("_acks", "_codec", "_highest", "_level", "_timeout_ms", "_topic_ids", "_transactional_id", "batches", "refused")  # fmt: skip  # noqa: E501

    def __init__(
        self,
        batches: list[Batch],
        topic_ids: Mapping[str, uuid.UUID | None],
        *,
        acks: int,
        timeout_ms: int,
        codec: int,
        level: int | None,
        transactional_id: str | None,
        highest_version: int,
    ) -> None:
        self.batches = batches
        self.refused: dict[Batch, Exception] = {}
        self._topic_ids = topic_ids
        self._acks, self._timeout_ms = acks, timeout_ms
        self._codec, self._level = codec, level
        self._transactional_id = transactional_id
        self._highest = highest_version

    def prepare(self, versions: Versions) -> tuple[Any, int]:
        """The request and its version. Raises UnsupportedVersion; EncodeError if no batch can be represented."""
        most = self._highest
        for topic_id in self._topic_ids.values():
            if topic_id is None:
                most = min(most, _TOPIC_ID_VERSION - 1)
        version = _highest_version(versions.get(PRODUCE, range(0)), most)
        if version < _ZSTD_VERSION and CODECS[self._codec] == "zstd":
            raise UnsupportedVersion(f"zstd needs Kafka 2.1 or later (Produce version 7); the broker has {version}")
        by_topic: dict[str, list[Any]] = {}
        entry = messages.ProduceRequest.PartitionProduceData
        for batch in self.batches:
            try:
                records = self._records(batch, version)
            except EncodeError as error:
                self.refused[batch] = error
                continue
            by_topic.setdefault(batch.queue.topic, []).append(entry(index=batch.queue.number, records=records))
        if not by_topic:
            raise next(iter(self.refused.values()))
        topics = []
        for name, entries in by_topic.items():
            topics.append(self._topic(name, entries, version))
        request = messages.ProduceRequest(
            transactional_id=self._transactional_id if version >= _PRODUCER_VERSION else None,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=topics,
        )
        return request, version

    def _topic(self, name: str, entries: list[Any], version: int) -> Any:
        topic_id = self._topic_ids.get(name) if version >= _TOPIC_ID_VERSION else None
        make = messages.ProduceRequest.TopicProduceData
        if topic_id is None:
            return make(name=name, partition_data=entries)
        return make(topic_id=topic_id, partition_data=entries)

    def _records(self, batch: Batch, version: int) -> Any:
        """The batch in the magic that a version uses."""
        assert batch.data is not None
        if version >= _PRODUCER_VERSION:
            return batch.data
        if batch.sequence >= 0:
            raise UnsupportedVersion(f"idempotence needs Kafka 0.11 or later; the broker has Produce version {version}")
        from kafkacodec.records.decode import decode
        from kafkacodec.records.encode import encode

        magic = max(version - 1, 0)
        columns = ("key", "value", "headers") if magic == 0 else ("timestamp", "key", "value", "headers")
        rows = decode(batch.data, columns=columns)
        # One compressed message: 0.10 assigns offsets to only the first one in a request and leaves others unchanged.
        return encode(rows, magic=magic, codec=CODECS[self._codec], level=self._level, batch_bytes=_ANY_BYTES)

    def answers(self, response: Any) -> dict[Batch, Any]:
        """The partition's entry in the response, for each batch that has one."""
        # By their numbers, as the hash of an id is a function in Python.
        names = {}
        for known, topic_id in self._topic_ids.items():
            if topic_id is not None:
                names[topic_id.int] = known
        found = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id.int, "")
            for partition in topic.partition_responses:
                found[name, partition.index] = partition
        parts = {}
        for batch in self.batches:
            part = found.get((batch.queue.topic, batch.queue.number))
            if part is not None:
                parts[batch] = part
        return parts


@lru_cache(64)
def _highest_version(theirs: range, most: int) -> int:
    """The version of a Produce request to a broker with the versions `theirs`. Raises UnsupportedVersion."""
    return highest_common(PRODUCE, {PRODUCE: theirs}, range(messages.APIS[PRODUCE].valid_versions.start, most + 1))


def split(batch: Batch, codec: int, level: int | None) -> list[tuple[bytearray, int]]:
    """Split a batch into smaller ones of half its size; returns their bytes and record counts."""
    from kafkacodec.records.decode import decode
    from kafkacodec.records.encode import iter_encoded

    assert batch.data is not None
    rows = decode(batch.data)
    parts = iter_encoded(rows, batch_bytes=max(batch.size // 2, 1), codec=CODECS[codec], level=level)
    found = [(bytearray(part.data), part.num_records) for part in parts]
    for data, _ in found:
        set_producer(data, -1, -1, -1, False)  # its offsets count from 0
    return found
