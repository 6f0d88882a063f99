"""Members of classic groups that talk to a coordinator on a `Bench`."""

from __future__ import annotations

from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.datatypes import replace
from tests.reference.coordinators import AT_ONCE, Asked, Bench, Cluster, numbered_ids


def bench(**options: Any) -> Bench:
    """A coordinator on which groups begin at once."""
    wanted = replace(AT_ONCE, **options)
    cluster = Cluster(t=3, u=1)
    made = Bench(lambda: GroupCoordinator(cluster, 50, wanted, new_id=numbered_ids()))
    made.cluster = cluster
    return made


class Member:
    """A member with its requests."""

    def __init__(self, on: Bench, group: str = "g", version: int = 7, **fields: Any) -> None:
        self.on, self.group, self.version = on, group, version
        self.id, self.generation = "", -1
        self.fields = {
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 20_000,
            "protocol_type": "consumer",
        } | fields

    def send_join(self, protocols: dict[str, bytes] | None = None, **fields: Any) -> Asked:
        """JoinGroup, whose answer comes with that of the others."""
        row = messages.JoinGroupRequest.JoinGroupRequestProtocol
        rows = [
            row(name=name, metadata=data)
            for name, data in ({"range": b"topics"} if protocols is None else protocols).items()
        ]
        every = {"group_id": self.group, "member_id": self.id, "protocols": rows} | self.fields | fields
        return self.on.send(messages.JoinGroupRequest(**every), self.version)

    def join(self, protocols: dict[str, bytes] | None = None, **fields: Any) -> Any:
        """Gets an id when it has none, joins, and takes the answer."""
        asked = self.enter(protocols, **fields)
        return self.joined(asked)

    def enter(self, protocols: dict[str, bytes] | None = None, **fields: Any) -> Asked:
        """Gets an id when it has none, and sends JoinGroup."""
        asked = self.send_join(protocols, **fields)
        if asked.answer is not None and asked.answer.error_code == 79:
            self.id = asked.answer.member_id
            asked = self.send_join(protocols, **fields)
        return asked

    def joined(self, asked: Asked) -> Any:
        """Takes the answer to JoinGroup."""
        answer = asked.answer
        if answer is not None and not answer.error_code:
            self.id, self.generation = answer.member_id, answer.generation_id
        return answer

    def send_sync(self, assignments: dict[str, bytes] | None = None, version: int = 4, **fields: Any) -> Asked:
        """SyncGroup, whose answer comes with that of the leader."""
        row = messages.SyncGroupRequest.SyncGroupRequestAssignment
        rows = [row(member_id=name, assignment=data) for name, data in (assignments or {}).items()]
        every = {"group_id": self.group, "generation_id": self.generation, "member_id": self.id, "assignments": rows}
        return self.on.send(messages.SyncGroupRequest(**every | fields), version)

    def sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Any:
        """SyncGroup and its answer."""
        return self.send_sync(assignments, **fields).answer

    def beat(self, **fields: Any) -> int:
        """The error code of a heartbeat's answer."""
        every = {"group_id": self.group, "generation_id": self.generation, "member_id": self.id} | fields
        return int(self.on.ask(messages.HeartbeatRequest(**every), 4).error_code)

    def leave(self, version: int = 4, **fields: Any) -> Any:
        """LeaveGroup and its answer."""
        member = messages.LeaveGroupRequest.MemberIdentity(**{"member_id": self.id} | fields)
        return self.on.ask(messages.LeaveGroupRequest(group_id=self.group, members=[member]), version)


def described(on: Bench, group: str = "g", version: int = 5) -> Any:
    """The entry of DescribeGroups."""
    return on.ask(messages.DescribeGroupsRequest(groups=[group]), version).groups[0]


def stable(on: Bench, count: int, **fields: Any) -> list[Member]:
    """Members of a stable group, the leader first, assigned their number."""
    members: list[Member] = []
    for _ in range(count):
        members.append(Member(on, **fields))
        asked = [members[-1].enter(), *(m.send_join() for m in members[:-1])]
        for member, one in zip([members[-1], *members[:-1]], asked, strict=True):
            member.joined(one)
        waiting = [m.send_sync() for m in members[1:]]
        members[0].sync({m.id: b"%d" % n for n, m in enumerate(members)})
        assert all(not one.answer.error_code for one in waiting)
    return members
