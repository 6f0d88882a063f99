"""A connection of a member to a server of the client rewrite, for tests."""

from __future__ import annotations

import socket
from typing import Any

from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite.exchange import Exchange


class Connection:
    """Calls and replies over one socket; a reply that waits for other members is received later."""

    def __init__(self, address: str) -> None:
        host, port = address.rpartition("://")[2].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 30)
        self._exchange = Exchange()
        self._found: dict[int, Any] = {}
        self._last = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def send(self, call: Any) -> int:
        """Send a call; its number is for `receive`."""
        self._last += 1
        self.socket.sendall(self._exchange.request(call, waiter=self._last))
        return self._last

    def receive(self, number: int) -> Any:
        """The reply to a call."""
        while number not in self._found:
            data = self.socket.recv(1 << 16)
            assert data, "the server has closed the connection"
            self._found.update(self._exchange.received(data))
        return self._found.pop(number)

    def ask(self, call: Any) -> Any:
        """Send a call and wait for its reply."""
        return self.receive(self.send(call))

    # Calls

    def create(self, group: str = "g", timeout: int = 30_000, topics: tuple[str, ...] = ("orders",)) -> int:
        call = rewrite.CreateGroup(consumer_group=group, session_timeout=timeout, topics=list(topics))
        return int(self.ask(call).error_code)

    def delete(self, *groups: str) -> tuple[list[str], int]:
        reply = self.ask(rewrite.DeleteGroup(consumer_group=list(groups)))
        return reply.deleted_consumer_groups, reply.error_code

    def list(self, *groups: str) -> Any:
        return self.ask(rewrite.ListGroups(consumer_groups=list(groups)))

    def controllers(self, *groups: str) -> tuple[dict[str, int], int]:
        """The id of the controller of each group, and the error."""
        reply = self.list(*groups)
        return {info.group_name: info.controller_broker.broker_id for info in reply.groups_info}, reply.error_code

    def registering(self, client: str, group: str = "g") -> int:
        return self.send(rewrite.RegisterConsumer(client_id=client, consumer_group=group, consumer_id=client))

    def registered(self, number: int) -> Any:
        """Offsets by partition, or an error code."""
        reply = self.receive(number)
        if reply.error_code:
            return rewrite.ErrorCode(reply.error_code)
        return {p.partition: p.offset for p in reply.partitions_to_own}

    def register(self, client: str, group: str = "g") -> Any:
        return self.registered(self.registering(client, group))

    def heartbeat(self, client: str) -> tuple[int, int]:
        """The error and the generation."""
        reply = self.ask(rewrite.Heartbeat(client_id=client))
        return reply.error_code, reply.controller_generation

    def commit(self, client: str, offsets: dict[int, int], group: str = "g", topic: str = "orders") -> int:
        entry = rewrite.CommitOffsets.PartitionOffset
        entries = [entry(topic=topic, partition=p, offset=o) for p, o in offsets.items()]
        return int(self.ask(rewrite.CommitOffsets(client_id=client, consumer_group=group, offsets=entries)).error_code)

    def fetch(self, group: str = "g") -> dict[int, int]:
        return {o.partition: o.offset for o in self.ask(rewrite.FetchOffsets(consumer_group=group)).offsets}

    def rewinding(self, client: str, offsets: dict[int, int], group: str = "g") -> int:
        entry = rewrite.RewindConsumer.PartitionOffset
        entries = [entry(topic="orders", partition=p, offset=o) for p, o in offsets.items()]
        return self.send(rewrite.RewindConsumer(client_id=client, consumer_group=group, new_offsets=entries))
