"""Share partitions under random members: nobody gets what is done or out, whatever is restarted, nothing is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from kafkacodec.broker.state.sharing.batches import Batch, combined
from kafkacodec.broker.state.sharing.deliveries import ACCEPT, REJECT, RELEASE, Acknowledged, Wanted
from kafkacodec.broker.state.sharing.partition import SharePartition

MOST = 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.sampled_from("mn"), st.integers(1, 6), st.booleans()),
        st.tuples(
            st.just("say"), st.sampled_from("mn"), st.integers(0, 20), st.sampled_from([ACCEPT, RELEASE, REJECT])
        ),
        st.tuples(st.just("leave"), st.sampled_from("mn")),
        st.tuples(st.just("fail"), st.sampled_from("mn"), st.integers(0, 20)),
        st.tuples(st.just("expire")),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)
LOGS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=6)


class Model:
    """What every record's fate must be, one record at a time.

    Attributes:
        out: by offset, who has it and for which time.
        done: offsets that nobody may get any more.
        counts: how often each was given out, as far as that was written.
    """

    def __init__(self, log: list[tuple[int, int]]) -> None:
        self.log: list[tuple[int, int]] = []
        end = 0
        for size, gap in log:
            self.log.append((end + gap, end + gap + size - 1))
            end += gap + size
        self.offsets = {offset for first, last in self.log for offset in range(first, last + 1)}
        self.shared = SharePartition(0, (), MOST)
        self.out: dict[int, str] = {}
        self.done: set[int] = set()
        self.counts: dict[int, int] = {}
        self.start = 0
        self.kept: tuple[Batch, ...] = ()
        self.clock = 0

    def fetch(self, member: str, records: int, strict: bool) -> None:
        read = [batch for batch in self.log if batch[1] >= self.shared.next_offset]
        for first, last, count in self.shared.acquire(read, Wanted(member, records, 3, strict, self.clock + 10)):
            for offset in range(first, last + 1):
                assert offset not in self.done
                assert offset not in self.out
                assert 1 <= count <= MOST
                assert count == self.counts.get(offset, 0) + 1
                self.counts[offset] = count
                self.out[offset] = member

    def say(self, member: str, offset: int, kind: int) -> None:
        change = self.shared.acknowledge(member, [Acknowledged(offset, offset, [kind])], 0)
        if self.out.get(offset) != member:
            assert isinstance(change, int) or not change.batches
            return
        assert not isinstance(change, int)
        self.write(change)
        self.said(offset, released=kind == RELEASE)

    def said(self, offset: int, *, released: bool) -> None:
        del self.out[offset]
        if not released or self.counts[offset] >= MOST:
            self.done.add(offset)

    def fail(self, member: str, offset: int) -> None:
        change = self.shared.acknowledge(member, [Acknowledged(offset, offset, [ACCEPT])], 0)
        if not isinstance(change, int):
            self.shared.undo(change)

    def write(self, change: Any) -> None:
        self.start = self.shared.start
        self.kept = combined(self.kept, change.batches, self.start)
        self.shared.done(change)

    def free(self, change: Any, offsets: list[int]) -> None:
        self.write(change)
        for offset in offsets:
            if offset in self.offsets:
                self.said(offset, released=True)
            else:
                del self.out[offset]

    def restart(self) -> None:
        """What was out was not written: it is as it was before."""
        for offset in self.out:
            self.counts[offset] -= 1
        known = {n: b.delivery_count for b in self.kept for n in range(b.first_offset, b.last_offset + 1)}
        self.counts = {offset: known.get(offset, 0) for offset in self.counts if offset not in self.done}
        self.out = {}
        self.shared = SharePartition(self.start, self.kept, MOST)


@given(LOGS, STEPS)
def test_every_record_has_one_fate(log: list[tuple[int, int]], steps: list[Any]) -> None:
    model = Model(log)
    for name, *arguments in steps:
        if name in ("fetch", "say", "fail"):
            getattr(model, name)(*arguments)
        elif name == "leave":
            mine = [offset for offset, member in model.out.items() if member == arguments[0]]
            model.free(model.shared.release(arguments[0]), mine)
        elif name == "expire":
            model.clock += 20
            model.free(model.shared.expire(model.clock), list(model.out))
        else:
            model.restart()
        assert model.shared.start <= min(model.offsets - model.done, default=model.shared.start)
    for _ in range(2 * len(model.offsets) + 2):  # all that is left is worked on
        model.fetch("last", 100, strict=False)
        for offset in [offset for offset, member in model.out.items() if member == "last"]:
            model.say("last", offset, ACCEPT)
    assert model.offsets <= model.done | set(model.out)
