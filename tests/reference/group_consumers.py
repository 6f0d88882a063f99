"""Members of groups of the consumer protocol that talk to a coordinator on a `Bench`."""

from __future__ import annotations

import uuid
from typing import Any

from kafkacodec import messages
from tests.reference.coordinators import Bench


class Consumer:
    """A member that reports what it was assigned as soon as it knows."""

    def __init__(self, on: Bench, name: str, *topics: str, **fields: Any) -> None:
        self.on, self.id, self.epoch = on, name, 0
        self.owned: dict[uuid.UUID, list[int]] = {}
        self.joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics)} | fields

    def beat(self, report: bool = False, **fields: Any) -> Any:
        """A heartbeat; `report` tells what it owns."""
        every = {"group_id": "g", "member_id": self.id, "member_epoch": self.epoch}
        if report:
            row = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
            every["topic_partitions"] = [row(topic_id=t, partitions=p) for t, p in self.owned.items()]
        answer = self.on.ask(messages.ConsumerGroupHeartbeatRequest(**every | fields), 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {row.topic_id: sorted(row.partitions) for row in answer.assignment.topic_partitions}
        return answer

    def join(self, **fields: Any) -> Any:
        """Joins."""
        self.epoch, self.owned = 0, {}
        return self.beat(**{"topic_partitions": []} | self.joining | fields)

    def code(self, **fields: Any) -> int:
        """The error code of a heartbeat."""
        return int(self.beat(**fields).error_code)

    def leave(self, epoch: int = -1, **fields: Any) -> int:
        """Leaves."""
        return self.code(member_epoch=epoch, **fields)


def consumers(on: Bench, group: str = "g") -> Any:
    """The entry of ConsumerGroupDescribe."""
    return on.ask(messages.ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]


def settle(on: Bench, *members: Consumer) -> None:
    """Heartbeats until the group is stable and every member knows."""
    for _ in range(20):
        for member in members:
            assert member.beat(report=True).error_code == 0
        row = consumers(on)
        if row.group_state == "Stable" and {m.epoch for m in members} == {row.group_epoch}:
            return
    raise AssertionError(f"not stable: {row}")
