"""Unsent messages of a producer, without I/O: by broker and partition, and when they are due."""

from __future__ import annotations

from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.kafka07.choosing import Target
from kafkacodec.dialects.kafka07.message_set import Codec, encode_messages
from kafkacodec.dialects.kafka07.wire import MultiProduceRequest, ProduceRequest
from kafkacodec.errors import EncodeError

__all__ = ["Dispatch", "Outbox"]

_HEADER_BYTES = 10  # of a message: length, magic, attributes, CRC


class Dispatch(NamedTuple):
    """A due request.

    Attributes:
        broker: its broker.
        frame: its bytes; empty if none of its messages is valid.
        waiters: of its messages.
        refused: waiters of invalid messages, each with the reason.
    """

    broker: int
    frame: bytes
    waiters: list[Any]
    refused: list[tuple[Any, EncodeError]]


class _Queue:
    """The messages for a broker."""

    def __init__(self, now: float) -> None:
        self.since = now
        self.count = self.nbytes = 0
        self.parts: dict[tuple[str, int], list[tuple[bytes, Any]]] = {}


class Outbox:
    """Messages that wait to be sent together.

    The messages for a broker are due when there are enough, or when the first has waited long enough. They form one
    request, with one message set for each partition: of plain messages, or of one container.

    Args:
        codec: of containers; ``none``: there are none.
        max_messages, max_bytes: the numbers of messages and bytes for a broker at which they are due.
        max_message_size: the largest payload that the brokers accept.
        linger_ms: how long a message waits for others.
    """

    def __init__(
        self, *, codec: Codec, max_messages: int, max_bytes: int, max_message_size: int, linger_ms: float
    ) -> None:
        self._codec, self._max_messages, self._max_bytes = codec, max_messages, max_bytes
        self._max_message_size, self._linger = max_message_size, linger_ms
        self._queues: dict[int, _Queue] = {}

    def add(self, target: Target, topic: str, payload: bytes, waiter: Any, now: float) -> bool:
        """Take a message; whether the messages for its broker are enough now.

        Raises:
            EncodeError: the brokers do not take a message of this size.
        """
        if self._codec == "none" and len(payload) > self._max_message_size:
            raise EncodeError(f"a message of {len(payload)} bytes exceeds max_message_size, {self._max_message_size}")
        queue = self._queues.get(target.broker)
        if queue is None:
            queue = self._queues[target.broker] = _Queue(now)
        queue.parts.setdefault((topic, target.partition), []).append((payload, waiter))
        queue.count += 1
        queue.nbytes += len(payload) + _HEADER_BYTES
        return queue.count >= self._max_messages or queue.nbytes >= self._max_bytes

    def take(self, now: float, *, everything: bool = False) -> list[Dispatch]:
        """Return due requests, or requests for all messages."""
        due = [broker for broker, queue in self._queues.items() if everything or self._is_due(queue, now)]
        return [self._dispatch(broker, self._queues.pop(broker)) for broker in due]

    def next_deadline(self) -> float | None:
        """Return when a request is due; None if there are no messages."""
        return min((queue.since + self._linger for queue in self._queues.values()), default=None)

    def _is_due(self, queue: _Queue, now: float) -> bool:
        enough = queue.count >= self._max_messages or queue.nbytes >= self._max_bytes
        return enough or now >= queue.since + self._linger

    def _dispatch(self, broker: int, queue: _Queue) -> Dispatch:
        requests: list[ProduceRequest] = []
        waiters: list[Any] = []
        refused: list[tuple[Any, EncodeError]] = []
        for (topic, partition), messages in queue.parts.items():
            data, sent = self._encode(messages, refused)
            if sent:
                requests.append(ProduceRequest(topic, partition, data))
                waiters += sent
        whole = requests[0] if len(requests) == 1 else MultiProduceRequest(requests)
        return Dispatch(broker, whole.encode() if requests else b"", waiters, refused)

    def _encode(
        self, messages: list[tuple[bytes, Any]], refused: list[tuple[Any, EncodeError]]
    ) -> tuple[bytes, list[Any]]:
        """The message set, and the waiters of the messages in it. A container that is too large is cut in two."""
        data = encode_messages([payload for payload, _ in messages], codec=self._codec)
        if self._codec == "none" or len(data) - _HEADER_BYTES <= self._max_message_size:
            return data, [waiter for _, waiter in messages]
        if len(messages) == 1:
            reason = f"a message of {len(data) - _HEADER_BYTES} bytes in its container; brokers take "
            refused.append((messages[0][1], EncodeError(f"{reason}{self._max_message_size}")))
            return b"", []
        half = len(messages) // 2
        first, of_first = self._encode(messages[:half], refused)
        second, of_second = self._encode(messages[half:], refused)
        return first + second, of_first + of_second
