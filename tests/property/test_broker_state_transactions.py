"""The broker's transaction coordinator: whatever is asked, whatever arrives late, fails or is lost in a restart.

A transaction whose end was promised ends that way in every partition that it wrote to, in one way only; epochs never go
down; what a restart loads is what was.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkacodec import messages
from kafkacodec.broker.state.machine import Marker
from kafkacodec.broker.state.transactions import TransactionCoordinator
from tests.examples import examples
from tests.reference.coordinators import Asked, Bench, Cluster

NAMES = st.sampled_from(["x", "y"])
VERSIONS = st.sampled_from([4, 5])


class Transactions(RuleBasedStateMachine):
    """Producers that know the newest epoch, or the one before."""

    def __init__(self) -> None:
        super().__init__()
        ids, cluster = count(1), Cluster(t=4)
        self.bench = Bench(
            lambda: TransactionCoordinator(cluster, lambda: next(ids), lambda group: ("__consumer_offsets", 0))
        )
        self.asked: list[Asked] = []
        self.known: dict[str, tuple[int, int]] = {}
        self.promised: list[tuple[int, int, bool, frozenset[tuple[str, int]]]] = []
        self.highest: dict[int, int] = {}

    def who(self, name: str, late: bool) -> dict[str, Any]:
        number, epoch = self.known.get(name, (0, 0))
        return {"transactional_id": name, "producer_id": number, "producer_epoch": epoch - late}

    def send(self, request: Any, version: int) -> Asked:
        self.asked.append(self.bench.send(request, version))
        return self.asked[-1]

    @rule(name=NAMES)
    def init(self, name: str) -> None:
        asked = self.send(messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 5)
        if asked.answered and not asked.answer.error_code:
            self.known[name] = asked.answer.producer_id, asked.answer.producer_epoch

    @rule(name=NAMES, partition=st.integers(0, 3), version=VERSIONS, late=st.booleans())
    def add(self, name: str, partition: int, version: int, late: bool) -> None:
        request = messages.AddPartitionsToTxnRequest
        topics = [request.AddPartitionsToTxnTopic(name="t", partitions=[partition])]
        one = request.AddPartitionsToTxnTransaction(**self.who(name, late), topics=topics)
        self.send(request(transactions=[one]), version)

    @rule(name=NAMES, commit=st.booleans(), version=VERSIONS, late=st.booleans())
    def end(self, name: str, commit: bool, version: int, late: bool) -> None:
        before = self.bench.machine.transactions.get(name)
        asked = self.send(messages.EndTxnRequest(**self.who(name, late), committed=commit), version)
        if not asked.answered or asked.answer.error_code:
            return
        if before is not None and before.state == "Ongoing":
            self.promised.append((before.producer_id, before.epoch, commit, before.partitions))
        if version > 4:
            self.known[name] = asked.answer.producer_id, asked.answer.producer_epoch

    @rule(on=st.booleans())
    def hold(self, on: bool) -> None:
        self.bench.holds = on

    @rule(fails=st.booleans())
    def release(self, fails: bool) -> None:
        if self.bench.held:
            self.bench.release(OSError("no space left") if fails else None)

    @rule(milliseconds=st.sampled_from([1_000, 70_000]))
    def wait(self, milliseconds: int) -> None:
        self.bench.wait(milliseconds)

    @rule()
    def restart(self) -> None:
        self.bench.held.clear()
        self.asked.clear()
        self.bench.restart()

    @invariant()
    def epochs_only_go_up(self) -> None:
        for found in self.bench.machine.transactions.values():
            assert found.epoch >= self.highest.get(found.producer_id, -1)
            self.highest[found.producer_id] = found.epoch

    def teardown(self) -> None:
        self.bench.holds = False
        while self.bench.held:
            self.bench.release()
        self.bench.wait(200_000)
        assert all(asked.answered for asked in self.asked)
        fresh: Any = self.bench.restarted()
        assert all(t.state not in ("Ongoing", "PrepareCommit", "PrepareAbort") for t in fresh.transactions.values())
        assert {n: t.record() for n, t in fresh.transactions.items()} == {
            n: t.record() for n, t in self.bench.machine.transactions.items()
        }
        ends: dict[tuple[int, tuple[str, int], int], set[bool]] = {}
        for append in self.bench.log:
            if isinstance(append.data, Marker):
                found = ends.setdefault((append.data.producer_id, append.log, append.data.producer_epoch), set())
                found.add(append.data.committed)
        for producer, epoch, commit, places in self.promised:
            for place in places:
                assert commit in ends.get((producer, place, epoch), set()) | ends.get(
                    (producer, place, epoch + 1), set()
                )


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
