"""Replicas of the line protocol under random failures: nothing acknowledged is lost, whatever fails when.

The short form takes seconds; KAFKACODEC_LONG=1 runs 2,000 worlds (make proofs).
"""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from kafkacodec.dialects.line.replicas import broker, following
from kafkacodec.dialects.line.replicas.broker import ReplicatedBroker
from kafkacodec.dialects.line.replicas.roles import next_epoch
from kafkacodec.dialects.line.replicas.tickets import Tickets
from kafkacodec.dialects.line.replication import Partition
from tests.examples import examples
from tests.replicas.simulation import Node, World

WORLDS = 2_000 if os.environ.get("KAFKACODEC_LONG") else examples(20)
EVENTS = 10_000


def lived(seed):
    """A world after its events."""
    world = World(seed)
    world.run(EVENTS)
    return world


def test_nothing_that_was_acknowledged_is_lost():
    counts = [0, 0, 0, 0]
    for seed in range(WORLDS):
        world = lived(seed)
        assert world.settle() == [], seed
        history = world.history
        seen = (history.produced, history.consumed, history.owned, history.committed)
        counts = [count + len(one) for count, one in zip(counts, seen, strict=True)]
    assert all(count > WORLDS for count in counts), counts


def acknowledges_at_once(monkeypatch):
    """It commits what only the leader has."""
    advance = Partition._advance

    def advanced(self):
        advance(self)
        if self.leader:
            self.high_watermark = max(self.high_watermark, self.end)

    monkeypatch.setattr(Partition, "_advance", advanced)
    monkeypatch.setattr(Partition, "in_sync", property(lambda self: [0, 1, 2]))


def keeps_what_the_leader_lacks(monkeypatch):
    """A deposed leader does not cut its log off."""
    monkeypatch.setattr(following._Copying, "agree", lambda self, committed: iter(()))


def leads_without_promises(monkeypatch):
    """Whoever is told to leads, with the log that it has."""

    def elected(log, name, roles, me, replicas, needed, count):
        epoch = next_epoch(max(roles[name].promised, replicas - 1), me, replicas)
        yield following.Promise(epoch)
        yield following.Accept(epoch)
        yield following.Lead(epoch)

    monkeypatch.setattr(following, "elect", elected)


def reports_before_it_is_on_the_disk(monkeypatch):
    """A follower does not wait for its disk, and the power fails."""
    follow = following.follow

    def hasty(*args):
        steps, result = follow(*args), None
        while True:
            step = steps.send(result)
            result = None if isinstance(step, following.Flush) else (yield step)

    monkeypatch.setattr(following, "follow", hasty)


def shows_what_is_not_committed(monkeypatch):
    """CONSUME goes beyond the high watermark."""

    def consumed(self, request, connection):
        state = self._partitions.look(request.args["topic"], request.args["partition"], self._now)
        before, state.high_watermark = state.high_watermark, self._records_of.stored_end("", 0)
        try:
            return ReplicatedBroker._consume(self, request, connection)
        finally:
            state.high_watermark = before

    monkeypatch.setitem(broker._HANDLERS, "CONSUME", consumed)


def answers_about_groups_alone(monkeypatch):
    """A leader does not wait until its followers have what changed, and still follow it."""

    def due(self):
        found, self.waiting = list(self.waiting), type(self.waiting)()
        return found

    monkeypatch.setattr(Tickets, "due", due)


def answers_before_its_files_are_on_the_disk(monkeypatch):
    """Promises, roles and groups are told of while a kill may still undo them, on a disk that is seldom done."""
    saved_then = Node.saved_then

    def hasty(self, then):
        if self.world.random.random() < 0.01:
            saved_then(self, lambda: None)
        then()

    monkeypatch.setattr(Node, "saved_then", hasty)


@pytest.mark.parametrize(
    "breaks",
    [
        acknowledges_at_once,
        keeps_what_the_leader_lacks,
        leads_without_promises,
        reports_before_it_is_on_the_disk,
        shows_what_is_not_committed,
        answers_about_groups_alone,
        answers_before_its_files_are_on_the_disk,
    ],
)
def test_a_broken_broker_is_told(monkeypatch, breaks):
    """In one of some worlds; in others its replicas may wait for one another for ever."""
    breaks(monkeypatch)
    for seed in range(20):
        with suppress(AssertionError):
            if lived(seed).settle():
                return
    pytest.fail("no world shows that")
