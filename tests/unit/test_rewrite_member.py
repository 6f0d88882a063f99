"""The membership protocol of the proposal: consumers (`GroupMember`)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import ErrorCode, Partition
from kafkacodec.errors import LocalProtocolError, RemoteProtocolError
from tests.rewrite_session import BROKER, Session


class MemberSession:
    """A member whose calls reach a controller immediately."""

    def __init__(self) -> None:
        self.s = Session()
        self.member = rewrite.GroupMember("m", "g", "m")

    def run(self, actions: list[rewrite.Action]) -> list[rewrite.Action]:
        """The remaining actions for the host."""
        left: list[rewrite.Action] = []
        for action in actions:
            if isinstance(action, rewrite.Send):
                for reply in self.s.controller.receive(action.call, self.s.now, "m"):
                    if reply.connection == "m":
                        left += self.run(self.member.receive(reply.message, self.s.now))
            else:
                left.append(action)
        return left


def test_a_member_finds_its_controller_and_consumes() -> None:
    m = MemberSession()
    assert m.run(m.member.start(0)) == [rewrite.Failed(ErrorCode.UNKNOWN_GROUP)]
    m.s.create()
    (assigned,) = m.run(m.member.start(0))
    assert assigned == rewrite.Assigned({Partition("t", i): -1 for i in range(4)})
    assert m.member.controller == BROKER
    assert m.run(m.member.tick(0)) == []
    assert m.member.generation == 1
    assert m.member.next_deadline() == 33
    m.s.register("x")
    m.s.now = 33
    assert m.run(m.member.tick(33)) == [rewrite.Stop(ErrorCode.GROUP_CHANGES)]
    (assigned,) = m.run(m.member.stopped(33))
    assert assigned == rewrite.Assigned({Partition("t", 0): -1, Partition("t", 1): -1})
    (rewound,) = m.run(m.member.rewind({Partition("t", 0): 5, Partition("t", 7): 1}, 33))
    assert rewound == rewrite.Rewound({Partition("t", 0): 5}, {Partition("t", 7): ErrorCode.UNKNOWN_PARTITION})
    assert m.member.partitions == {Partition("t", 0): 5, Partition("t", 1): -1}


def test_a_member_stops_when_its_heartbeats_are_not_answered() -> None:
    m = MemberSession()
    m.s.create()
    m.run(m.member.start(0))
    assert len(m.member.tick(50)) == 1
    assert m.member.tick(60) == []
    assert m.member.tick(101) == [rewrite.Stop(None)]
    assert m.member.partitions == {}
    assert m.member.next_deadline() is None
    assert isinstance(m.member.stopped(101)[0], rewrite.Send)
    assert isinstance(m.member.disconnected(101)[0], rewrite.Send)


def test_a_member_that_is_not_answered_asks_again() -> None:
    member = rewrite.GroupMember("m", "g", "m", request_timeout_ms=50)
    (asked,) = member.start(0)
    assert member.next_deadline() == 50
    assert member.tick(49) == []
    (again,) = member.tick(50)
    assert isinstance(asked, rewrite.Send)
    assert isinstance(again, rewrite.Send)
    assert type(again.call) is rewrite.ListGroups
    assert member.next_deadline() == 100
    # A late reply to the first call is ignored.
    controller = rewrite.GroupController(BROKER, {"t": 1})
    controller.create_group("g", 100, ["t"], ephemeral=False)
    (late,) = controller.receive(asked.call, 60)
    (listed,) = controller.receive(again.call, 60)
    assert member.receive(late.message, 60) == []
    (register,) = member.receive(listed.message, 60)
    assert isinstance(register, rewrite.Send)
    assert type(register.call) is rewrite.RegisterConsumer
    # The other members have a session timeout to register, so this takes longer.
    assert member.next_deadline() == 60 + 100 + 50
    assert member.tick(209) == []
    (again,) = member.tick(210)
    assert isinstance(again, rewrite.Send)
    assert type(again.call) is rewrite.ListGroups
    assert again.broker is None


def test_a_rewind_that_is_not_answered_ends_the_session() -> None:
    m = MemberSession()
    m.s.create()
    m.run(m.member.start(0))
    m.member.rewind({Partition("t", 0): 5}, 0)
    for now in range(0, 30_100, 50):
        m.s.now = now
        assert m.run(m.member.tick(now)) == []
    assert m.member.tick(30_100) == [rewrite.Stop(None)]


@pytest.mark.parametrize("session_timeout", [0, -1, -(1 << 63)])
def test_a_session_timeout_that_is_none_is_refused(session_timeout: int) -> None:
    m = MemberSession()
    m.s.create()
    (asked,) = m.member.start(0)
    assert isinstance(asked, rewrite.Send)
    (reply,) = m.s.controller.receive(asked.call, 0)
    listed: Any = reply.message
    listed.groups_info[0].session_timeout = session_timeout
    with pytest.raises(RemoteProtocolError, match="session timeout"):
        m.member.receive(listed, 0)
    assert m.member.state is rewrite.MemberState.DISCOVERING
    listed.groups_info[0].session_timeout = (1 << 63) - 1
    assert len(m.member.receive(listed, 0)) == 1
    deadline = m.member.next_deadline()
    assert deadline is not None
    assert deadline <= 2_000_000


def test_illegal_steps_of_a_member_change_nothing() -> None:
    member = rewrite.GroupMember("m", "g", "m")
    for step in (lambda: member.stopped(0), lambda: member.rewind({}, 0)):
        with pytest.raises(LocalProtocolError):
            step()
    with pytest.raises(RemoteProtocolError):
        member.receive(rewrite.ListGroupsResponse(correlation_id=1), 0)
    member.start(5)
    with pytest.raises(LocalProtocolError):
        member.start(5)
    with pytest.raises(LocalProtocolError):
        member.tick(4)
    with pytest.raises(RemoteProtocolError):
        member.receive(rewrite.HeartbeatResponse(correlation_id=1), 5)
    assert member.state is rewrite.MemberState.DISCOVERING
    member.disconnected(5)
    assert member.receive(rewrite.ListGroupsResponse(correlation_id=1), 5) == []
