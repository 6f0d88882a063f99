"""The broker's classic groups against a model of Kafka's coordinator, and against their own log after a restart."""

from __future__ import annotations

from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkacodec import messages
from kafkacodec.broker.state.coordinator import GroupCoordinator
from tests.examples import examples
from tests.reference.coordinators import AT_ONCE, Asked, Bench, Cluster
from tests.reference.model_coordinators import ClassicCoordinator

SLOTS = st.integers(0, 3)


class ClassicGroups(RuleBasedStateMachine):
    """The same requests for both; the answers are the same, at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(lambda: GroupCoordinator(Cluster(), 50, AT_ONCE))
        self.model = ClassicCoordinator()
        self.ids: dict[int, tuple[str, str]] = {}  # ours and the model's
        self.generations: dict[int, int] = {}
        self.open: dict[int, tuple[Asked, int]] = {}
        self.tokens = 0

    def both(self, slot: int, request: Any, version: int, **differs: tuple[Any, Any]) -> None:
        """Send to both; an answer that comes later is compared by `compare`."""
        self.tokens += 1
        ours, theirs = ({name: pair[n] for name, pair in differs.items()} for n in (0, 1))
        fields = {name: getattr(request, name) for name in request.to_dict()}
        asked = self.bench.send(type(request)(**fields | ours), version)
        self.model.handle(type(request)(**fields | theirs), self.tokens)
        self.open[slot] = asked, self.tokens

    def member(self, slot: int) -> dict[str, Any]:
        return {"member_id": self.ids.get(slot, ("nobody", "nobody"))}

    @rule(slot=SLOTS, topics=st.sampled_from([b"one", b"two"]))
    def join(self, slot: int, topics: bytes) -> None:
        if slot in self.open or self.model.state == "Completing":
            return
        row = messages.JoinGroupRequest.JoinGroupRequestProtocol
        fields = {"group_id": "g", "session_timeout_ms": 1_000_000, "rebalance_timeout_ms": 1_000_000}
        request = messages.JoinGroupRequest(
            **fields, protocol_type="consumer", protocols=[row(name="range", metadata=topics)]
        )
        if slot not in self.ids or not self.model.knows(self.ids[slot][1]):
            self.both(slot, request, 7)
            asked, token = self.open.pop(slot)
            assert asked.answer.error_code == self.model.ready[token].error_code == 79
            self.ids[slot] = asked.answer.member_id, self.model.ready[token].member_id
        self.both(slot, request, 7, **self.member(slot))

    @rule(slot=SLOTS, late=st.booleans())
    def sync(self, slot: int, late: bool) -> None:
        if slot in self.open:
            return
        row = messages.SyncGroupRequest.SyncGroupRequestAssignment
        known = [(each, pair) for each, pair in self.ids.items() if self.model.knows(pair[1])]
        rows = tuple([row(member_id=pair[n], assignment=b"for %d" % each) for each, pair in known] for n in (0, 1))
        generation = self.generations.get(slot, 0) - late
        request = messages.SyncGroupRequest(group_id="g", generation_id=generation)
        self.both(slot, request, 4, assignments=(rows[0], rows[1]), **self.member(slot))

    @rule(slot=SLOTS)
    def beat(self, slot: int) -> None:
        if slot not in self.open:
            request = messages.HeartbeatRequest(group_id="g", generation_id=self.generations.get(slot, 0))
            self.both(slot, request, 4, **self.member(slot))
            asked, token = self.open.pop(slot)
            assert asked.answer.error_code == self.model.ready[token].error_code

    @rule(slot=SLOTS)
    def leave(self, slot: int) -> None:
        if slot not in self.open and slot in self.ids:
            member = messages.LeaveGroupRequest.MemberIdentity
            rows = tuple([member(member_id=one)] for one in self.ids[slot])
            self.both(slot, messages.LeaveGroupRequest(group_id="g"), 4, members=(rows[0], rows[1]))
            del self.open[slot]
            if not self.model.members and self.bench.machine.groups["g"].state == "Empty":
                self.model.generation = self.bench.machine.groups["g"].generation  # which Kafka counts up, too

    @invariant()
    def compare(self) -> None:
        for slot, (asked, token) in list(self.open.items()):
            answer, wanted = asked.answer, self.model.ready.get(token)
            assert (answer is None) == (wanted is None), (slot, answer, wanted)
            if answer is None or wanted is None:
                continue
            del self.open[slot]
            assert answer.error_code == wanted.error_code
            if isinstance(answer, messages.SyncGroupResponse):
                assert bytes(answer.assignment) == bytes(wanted.assignment)
            elif isinstance(answer, messages.JoinGroupResponse) and not answer.error_code:
                names = dict(self.ids.values())
                self.generations[slot] = answer.generation_id
                assert answer.generation_id == wanted.generation_id
                assert names[answer.leader] == wanted.leader
                assert [names[row.member_id] for row in answer.members] == [row.member_id for row in wanted.members]

    @invariant()
    def what_is_stored_is_what_is(self) -> None:
        ours = self.bench.machine.groups.get("g")
        if ours is not None and self.model.state == "Stable":
            assert ours.state == "Stable"
            fresh: Any = self.bench.restarted()
            assert fresh.groups["g"].described() == ours.described()


TestClassicGroups = ClassicGroups.TestCase
TestClassicGroups.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
