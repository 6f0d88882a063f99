"""The options of producers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from kafkacodec.arguments import is_integer, one_of, require_int
from kafkacodec.client.options import ClientOptions, ClientSettings
from kafkacodec.datatypes import dataclass, field
from kafkacodec.records.compression import CODECS, Codec, compressor

__all__ = [
    "Partitioner",
    "ProducerOptions",
    "ProducerSettings",
]

_MOST = 2**31 - 1
_MOST_IN_FLIGHT: Final = 5  # a broker remembers the last five batches of a producer (KAFKA-5494)

Partitioner = Callable[[Any, Sequence[int], Sequence[int]], int]
"""Chooses a partition, given the serialized key or None, all partitions, and those that have a leader."""

_ACKS: Final[dict[Any, int]] = {"all": -1, "-1": -1, -1: -1, "0": 0, 0: 0, "1": 1, 1: 1}


class ProducerOptions(ClientOptions, total=False):
    """Options of a producer; `ProducerSettings` documents them."""

    acks: Literal["all", 0, 1, -1]
    compression_type: Codec | None
    compression_level: int | None
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_block_ms: int
    max_request_size: int
    delivery_timeout_ms: int
    retries: int | None
    enable_idempotence: bool | None
    transactional_id: str | None
    transaction_timeout_ms: int
    key_serializer: Callable[[Any], Any] | None
    value_serializer: Callable[[Any], Any] | None
    partitioner: Partitioner | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ProducerSettings(ClientSettings):
    """The checked options of a producer, in addition to those of every client.

    Args:
        acks: which replicas must have a batch before it counts as delivered: ``"all"`` (or -1): all in-sync replicas;
            1: the leader; 0: none, so that nothing confirms its arrival.
        compression_type: "none", "gzip", "snappy", "lz4" or "zstd".
        compression_level: as in Kafka's ``compression.<codec>.level``.
        linger_ms: how long a batch waits for more records before it is sent.
        batch_size: the maximum size of a batch in bytes before compression; a larger record gets its own batch. Batches
            of tables have up to 960 KiB. Compressed batches have at most 128 MiB of records, the default limit of
            consumers.
        buffer_memory: when this many bytes wait to be sent or acknowledged, `send` waits until half of it is free.
        max_block_ms: how long `send` waits for free memory, or for the metadata of a topic.
        max_request_size: the maximum size of a request, and of a record, in bytes. A compressed record has at most
            128 MiB.
        delivery_timeout_ms: how long after `send` an unacknowledged record fails.
        retries: how often a batch is retried. None, the default: as often as time allows.
        enable_idempotence: whether brokers drop duplicates, so that nothing is written twice and the order is kept
            (KIP-98). None, the default: yes, if the other options and the brokers (0.11 and later) allow it.
        transactional_id: makes the producer transactional (KIP-98). One producer at a time can use an id; older
            ones are fenced.
        transaction_timeout_ms: how long a transaction may stay open before the broker aborts it.
        key_serializer, value_serializer: convert each key and value, including None, to bytes.
        partitioner: chooses partitions instead of the hash of the key.
    """

    allow_auto_create_topics: bool = True
    acks: Literal["all", 0, 1, -1] = "all"
    compression_type: Codec | None = "none"
    compression_level: int | None = None
    linger_ms: int = 5
    batch_size: int = 131_072
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    delivery_timeout_ms: int = 120_000
    retries: int | None = None
    enable_idempotence: bool | None = None
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    key_serializer: Callable[[Any], Any] | None = field(default=None, repr=False)
    value_serializer: Callable[[Any], Any] | None = field(default=None, repr=False)
    partitioner: Partitioner | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        acks: Any = self.acks
        if not (isinstance(acks, str) or is_integer(acks)) or acks not in _ACKS:
            raise ValueError(f"acks must be 'all', -1, 0 or 1, not {acks!r}")
        object.__setattr__(self, "compression_type", self.compression_type or "none")
        one_of("compression_type", self.compression_type, CODECS)
        try:
            compressor(self.codec, level=self.compression_level)
        except (TypeError, ValueError) as error:
            raise type(error)(f"compression_level: {error}") from None
        require_int("batch_size", self.batch_size, 0, _MOST)
        require_int("buffer_memory", self.buffer_memory, 1, 2**63 - 1)
        require_int("max_request_size", self.max_request_size, 100, _MOST)
        if self.retries is not None:
            require_int("retries", self.retries, 0, _MOST)
        for name in ("key_serializer", "value_serializer", "partitioner"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                from kafkacodec.client.core.java_serializers import not_callable

                raise not_callable(name, getattr(self, name))
        if self.transactional_id == "":
            raise ValueError("transactional_id is empty")
        if (self.enable_idempotence or self.transactional_id is not None) and (reason := self._not_idempotent()):
            wanted = "transactional_id" if self.transactional_id is not None else "enable_idempotence"
            raise ValueError(f"{wanted} needs {reason}")

    def _not_idempotent(self) -> str | None:
        """What idempotence needs of another option, as text; None if all are right."""
        if self.required_acks != -1:
            return f"acks='all', not {self.acks!r}"
        if self.retries == 0:
            return "retries"
        if self.max_in_flight_requests_per_connection > _MOST_IN_FLIGHT:
            most = self.max_in_flight_requests_per_connection
            return f"max_in_flight_requests_per_connection of at most {_MOST_IN_FLIGHT}, not {most}"
        if self.transactional_id is not None and self.enable_idempotence is False:
            return "enable_idempotence"
        return None

    @property
    def required_acks(self) -> int:
        """The value in requests: -1, 0 or 1."""
        return _ACKS[self.acks]

    @property
    def codec(self) -> int:
        """The codec's number in batches."""
        return CODECS.index(self.compression_type or "none")

    @property
    def idempotent(self) -> bool:
        """Whether sequences are wanted; brokers may not support them."""
        return self.enable_idempotence is not False and self._not_idempotent() is None
