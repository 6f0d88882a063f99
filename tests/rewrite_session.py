"""A group controller of the rewrite proposal with a clock, for tests."""

from __future__ import annotations

from typing import Any

from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import ErrorCode

BROKER = rewrite.Broker(7, "localhost", 9092)


class Session:
    """A controller with a clock; the client id of a call is also its connection."""

    def __init__(self, partitions: dict[str, int] | None = None, **options: Any) -> None:
        self.controller = rewrite.GroupController(BROKER, partitions or {"t": 4}, **options)
        self.now = 0
        self.id = 0

    def call(self, cls: Any, client: str, **fields: Any) -> list[rewrite.Reply]:
        self.id += 1
        message = cls(correlation_id=self.id, client_id=client, **fields)
        again = cls.decode(message.encode())
        return self.controller.receive(again, self.now, connection=client)

    def create(self, group: str = "g", timeout: int = 100, topics: tuple[str, ...] = ("t",)) -> int:
        fields = {"consumer_group": group, "session_timeout": timeout, "topics": list(topics)}
        (reply,) = self.call(rewrite.CreateGroup, "admin", **fields)
        return int(reply.message.error_code)  # type: ignore[attr-defined]

    def register(self, client: str, group: str = "g") -> dict[str, Any]:
        """Replies by connection: partitions with offsets, or an error code."""
        replies = self.call(rewrite.RegisterConsumer, client, consumer_group=group, consumer_id=client)
        return {str(r.connection): outcome(r.message) for r in replies}

    def heartbeat(self, client: str) -> int:
        (reply,) = self.call(rewrite.Heartbeat, client, session_timeout=100)
        return int(reply.message.error_code)  # type: ignore[attr-defined]

    def rewind(self, client: str, offsets: dict[tuple[str, int], int], group: str = "g") -> dict[str, Any]:
        entry = rewrite.RewindConsumer.PartitionOffset
        entries = [entry(topic=t, partition=p, offset=o) for (t, p), o in offsets.items()]
        replies = self.call(rewrite.RewindConsumer, client, consumer_group=group, new_offsets=entries)
        return {str(r.connection): outcome(r.message) for r in replies}


def outcome(message: Any) -> Any:
    if isinstance(message, rewrite.RegisterConsumerResponse):
        if message.error_code:
            return ErrorCode(message.error_code)
        return {p.partition: p.offset for p in message.partitions_to_own}
    if isinstance(message, rewrite.RewindConsumerResponse):
        return {p.partition: (p.offset, p.error_code) for p in message.actual_offsets}
    return message
