"""Replicas that lead, follow, truncate, delete and lose records in any order read as the log that a cluster would keep.

The model follows KIP-101: a new leader begins an epoch at its end; a follower first truncates to where the epochs of
the leader and its own part, and then copies. Each replica is looked at when its directory is copied, which need not be
at one time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, strategies as st

from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.partitions.replicas import Part, Replica, agreed_end, merge


@dataclass
class Model:
    """One replica: the value of each offset from `start` on, None for a lost one."""

    start: int = 0
    values: list[str | None] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    mark: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.values)

    def copy(self) -> Model:
        return Model(self.start, list(self.values), list(self.epochs), self.mark)

    def epoch_end(self, asked: int) -> tuple[int, int]:
        """As LeaderEpochFileCache.endOffsetFor: the largest epoch not above the one asked for, and where it ends.

        Before all known epochs, what was deleted is taken as the epoch asked for.
        """
        known = [epoch for epoch, _ in self.epochs if epoch <= asked]
        if not known:
            return asked, self.epochs[0][1] if self.epochs else self.end
        later = [start for epoch, start in self.epochs if epoch > known[-1]]
        return known[-1], later[0] if later else self.end

    def truncate(self, to: int) -> None:
        if to < self.end:
            del self.values[max(to - self.start, 0) :]
            self.start = min(self.start, to)
            self.epochs = [(epoch, start) for epoch, start in self.epochs if start < to]
            self.mark = min(self.mark, to)

    def follow(self, leader: Model) -> None:
        """Truncate as a follower does before it fetches (ReplicaFetcherThread, OffsetForLeaderEpoch)."""
        while self.epochs:
            epoch, end = leader.epoch_end(self.epochs[-1][0])
            if epoch == self.epochs[-1][0]:
                self.truncate(min(end, self.end))
                return
            own = [(e, s) for e, s in self.epochs if e > epoch]
            self.truncate(min(end, own[0][1], self.end))
            self.epochs = [(e, s) for e, s in self.epochs if e <= epoch]
            if not self.epochs:
                return

    def fetch(self, leader: Model, count: int) -> None:
        self.follow(leader)
        if self.end < leader.start:  # everything is deleted at the leader
            self.start, self.values, self.epochs = leader.start, [], []
        for _ in range(min(count, leader.end - self.end)):
            epoch = [e for e, s in leader.epochs if s <= self.end][-1]
            if not self.epochs or self.epochs[-1][0] != epoch:
                self.epochs.append((epoch, self.end))
            self.values.append(leader.values[self.end - leader.start])

    def delete(self, to: int) -> None:
        to = min(max(to, self.start), self.end)
        del self.values[: to - self.start]
        self.start = to
        before = [epoch for epoch, start in self.epochs if start <= to]
        self.epochs = [(e, to) for e in before[-1:]] + [(e, s) for e, s in self.epochs if s > to]

    def seen(self) -> Replica:
        lost = tuple((self.start + i, self.start + i + 1) for i, value in enumerate(self.values) if value is None)
        return Replica(self.start, self.end, tuple(LeaderEpoch(*e) for e in self.epochs), self.mark, lost)


WHO = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), WHO, st.integers(1, 4)),
        st.tuples(st.just("fetch"), WHO, st.integers(0, 5)),
        st.tuples(st.just("elect"), WHO, st.just(0)),
        st.tuples(st.just("delete"), WHO, st.integers(0, 12)),
        st.tuples(st.just("copy"), WHO, st.just(0)),
    ),
    max_size=60,
)
LOSSES = st.lists(st.tuples(WHO, st.integers(0, 30)), max_size=6)


def simulated(steps, *, clean: bool, deletes: bool) -> list[Model]:
    """Three replicas as they were copied."""
    replicas = [Model(epochs=[(0, 0)] if i == 0 else []) for i in range(3)]
    copies: dict[int, Model] = {}
    leader, epoch, written = 0, 0, 0
    fetched = [0, 0, 0]  # up to where the leader knows that each follower has its log
    for what, who, count in steps:
        lead = replicas[leader]
        if what == "append":
            lead.values += [f"{written + i}" for i in range(count)]
            written += count
        elif what == "fetch" and who != leader:
            replicas[who].fetch(lead, count)
            fetched[who] = replicas[who].end
            lead.mark = max(lead.mark, min(fetched[:leader] + fetched[leader + 1 :]))
            replicas[who].mark = min(lead.mark, replicas[who].end)
        elif what == "elect" and not (clean and replicas[who].end < max(r.mark for r in replicas)):
            leader, epoch, fetched = who, epoch + 1, [0, 0, 0]
            lead = replicas[who]
            lead.epochs = [(e, s) for e, s in lead.epochs if s < lead.end] + [(epoch, lead.end)]
        elif what == "delete" and deletes:
            replicas[who].delete(min(count, replicas[who].mark))
        elif what == "copy" and not clean:
            copies[who] = replicas[who].copy()
    return [copies.get(i, replica) for i, replica in enumerate(replicas)]


def merged_values(copies: list[Model], parts: tuple[Part, ...]) -> dict[int, str]:
    found = {}
    for part in parts:
        model = copies[part.replica]
        for offset in range(max(part.first_offset, model.start), min(part.end_offset, model.end)):
            value = model.values[offset - model.start]
            if value is not None:
                assert offset not in found
                found[offset] = value
    return found


@given(STEPS, LOSSES, st.booleans(), st.booleans())
def test_a_merged_log_is_what_the_last_leader_and_its_followers_keep(steps, losses, clean, deletes):
    copies = simulated(steps, clean=clean, deletes=deletes)
    whole = [model.copy() for model in copies]
    for who, offset in losses:
        if copies[who].start <= offset < copies[who].end:
            copies[who].values[offset - copies[who].start] = None
    log = merge([model.seen() for model in copies])

    last = [(model.epochs[-1][0] if model.epochs else -1, model.end) for model in copies]
    assert last[log.leader] == max(last)
    kept = []
    for model in copies:
        model = model.copy()
        if model is not copies[log.leader]:
            model.follow(whole[log.leader])
        kept.append(model)
    expected = {}
    for model in [kept[log.leader], *kept]:
        for i, value in enumerate(model.values):
            if value is not None and model.start + i < copies[log.leader].end:
                assert expected.setdefault(model.start + i, value) == value
    assert merged_values(copies, log.parts) == expected
    for before, after in zip(log.parts, log.parts[1:], strict=False):
        assert before.end_offset == after.first_offset
        assert before.replica != after.replica
    assert log.parts[-1].end_offset == copies[log.leader].end
    assert [e.epoch for e in log.epochs] == sorted({e.epoch for e in log.epochs})
    if clean:  # what a consumer could have read stays
        assert log.high_watermark == max(model.mark for model in copies)


def test_the_higher_epoch_wins_from_its_start():
    old = Replica(0, 120, (LeaderEpoch(4, 0),), 100)
    new = Replica(0, 110, (LeaderEpoch(4, 0), LeaderEpoch(5, 100)), 105)
    assert merge([old, new]).parts == (Part(1, 0, 110),)
    assert merge([old, new]).high_watermark == 105
    assert agreed_end(old.epochs, 120, new.epochs, 110) == 100


def test_a_leader_without_records_of_its_own_wins():
    old = Replica(0, 120, (LeaderEpoch(4, 0),), 100)
    new = Replica(0, 100, (LeaderEpoch(4, 0), LeaderEpoch(5, 100)), 100)
    assert merge([old, new]).parts == (Part(1, 0, 100),)


def test_gaps_and_the_deleted_start_come_from_others():
    leader = Replica(50, 200, (LeaderEpoch(2, 50), LeaderEpoch(3, 150)), None, ((80, 90), (160, 170)))
    other = Replica(0, 165, (LeaderEpoch(1, 0), LeaderEpoch(2, 40), LeaderEpoch(3, 150)), None, ((85, 95),))
    log = merge([other, leader])
    assert log.parts == (
        Part(0, 0, 50), Part(1, 50, 80), Part(0, 80, 85), Part(1, 85, 160), Part(0, 160, 165), Part(1, 165, 200),
    )  # fmt: skip
    assert log.epochs == (LeaderEpoch(1, 0), LeaderEpoch(2, 40), LeaderEpoch(3, 150))
    assert log.high_watermark is None


def test_nothing_comes_back_before_a_start_that_the_cleaner_has_passed():
    leader = Replica(50, 200, (LeaderEpoch(2, 50),), cleaned_to=150)
    assert merge([Replica(0, 150, (LeaderEpoch(2, 0),)), leader]).parts == (Part(1, 50, 200),)


def test_replicas_without_epochs_are_taken_as_equal():
    assert merge([Replica(0, 10), Replica(0, 12)]).parts == (Part(1, 0, 12),)
    assert merge([Replica(0, 10)]) == ((0), (Part(0, 0, 10),), (), None)


def test_offsets_that_nobody_has_belong_to_a_part():
    high, low = Replica(100, 200, (LeaderEpoch(3, 100),)), Replica(0, 60, (LeaderEpoch(2, 0),))
    assert merge([high, low]).parts == (Part(1, 0, 100), Part(0, 100, 200))
    lost = ((20, 30),)
    both = Replica(0, 60, (LeaderEpoch(2, 0),), missing=lost)
    assert merge([both, both]).parts == (Part(0, 0, 60),)


def test_many_gaps_take_linear_time():
    lost = tuple((i, i + 1) for i in range(0, 200_000, 2))
    log = merge([Replica(0, 200_000, missing=lost), Replica(0, 200_000)])
    assert len(log.parts) == 200_000
