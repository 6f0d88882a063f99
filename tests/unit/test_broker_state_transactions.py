"""Transactions of the broker. Expected values are answers of Apache Kafka 4.1.0 and 4.4.0 to the same requests."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from kafkacodec import messages
from kafkacodec.broker.state.machine import Marker
from kafkacodec.broker.state.options import TransactionOptions
from kafkacodec.broker.state.transactions import TransactionCoordinator
from kafkacodec.broker.state.verification import VERIFY_VERSION, verification, verified
from kafkacodec.messages import keys
from kafkacodec.messages.stored import decode_internal_record
from tests.reference.coordinators import Bench, Cluster


def bench(**options: Any) -> Bench:
    """A coordinator that gives the producer ids 1, 2, and so on."""
    cluster = Cluster(t=3, u=1, __consumer_offsets=50)
    ids = count(1)
    wanted = TransactionOptions(**options)

    def make() -> TransactionCoordinator:
        return TransactionCoordinator(cluster, lambda: next(ids), lambda group: ("__consumer_offsets", 7), 50, wanted)

    made = Bench(make)
    made.cluster = cluster
    return made


def markers(on: Bench) -> list[tuple[tuple[str, int], int, bool]]:
    """The markers so far: where, the epoch, and whether it is a commit."""
    return [(a.log, a.data.producer_epoch, a.data.committed) for a in on.log if isinstance(a.data, Marker)]


class Producer:
    """A transactional producer."""

    def __init__(self, on: Bench, name: str = "x", timeout: int = 60_000) -> None:
        self.on, self.name, self.timeout = on, name, timeout
        self.id = self.epoch = -1

    def init(self, version: int = 4, **fields: Any) -> Any:
        """InitProducerId; keeps the id and epoch."""
        every = {"transactional_id": self.name, "transaction_timeout_ms": self.timeout} | fields
        answer = self.on.ask(messages.InitProducerIdRequest(**every), version)
        if not answer.error_code:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def who(self, **fields: Any) -> dict[str, Any]:
        """The fields that say who asks."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch} | fields

    def add(self, topic: str = "t", *numbers: int, version: int = 3, **fields: Any) -> list[int]:
        """AddPartitionsToTxn: the error codes."""
        request = messages.AddPartitionsToTxnRequest
        topics = [request.AddPartitionsToTxnTopic(name=topic, partitions=list(numbers or (0,)))]
        who = self.who(**fields)
        if version > 3:
            one = request.AddPartitionsToTxnTransaction(**who, topics=topics)
            found = self.on.ask(request(transactions=[one]), version).results_by_transaction[0].topic_results
        else:
            old = {f"v3_and_below_{name}": value for name, value in who.items()}
            answer = self.on.ask(request(v3_and_below_topics=topics, **old), version)
            found = answer.results_by_topic_v3_and_below
        return [row.partition_error_code for entry in found for row in entry.results_by_partition]

    def end(self, commit: bool = True, version: int = 4, **fields: Any) -> Any:
        """EndTxn; keeps the id and epoch of version 5."""
        answer = self.on.ask(messages.EndTxnRequest(**self.who(committed=commit, **fields)), version)
        if not answer.error_code and version > 4:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def add_offsets(self, version: int = 3, **fields: Any) -> int:
        """AddOffsetsToTxn: the error code."""
        return int(self.on.ask(messages.AddOffsetsToTxnRequest(**self.who(group_id="g", **fields)), version).error_code)

    def may_write(self, api: int, version: int, **fields: Any) -> int:
        """What Produce or TxnOffsetCommit get told."""
        who = self.who(**fields)
        producer = who["producer_id"], who["producer_epoch"]
        asked = verification(api, version, who["transactional_id"], producer, [("t", 0)])
        return verified(self.on.ask(asked, VERIFY_VERSION), api, version)["t", 0]

    def described(self) -> Any:
        """The entry of DescribeTransactions."""
        request = messages.DescribeTransactionsRequest(transactional_ids=[self.name])
        return self.on.ask(request, 0).transaction_states[0]


def ready(on: Bench, name: str = "x", version: int = 4, **fields: Any) -> Producer:
    """A producer that has its id."""
    producer = Producer(on, name, **fields)
    assert producer.init(version).error_code == 0
    return producer


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_init_producer_id_raises_the_epoch(version: int) -> None:
    p = Producer(bench())
    assert [(p.init(version).producer_id, p.epoch) for _ in range(3)] == [(1, 0), (1, 1), (1, 2)]


def test_init_producer_id_that_names_its_epoch() -> None:
    p = ready(bench())
    for _ in range(3):
        p.init()
    assert (p.epoch, p.init(producer_id=1, producer_epoch=3).producer_epoch) == (3, 4)
    assert p.init(producer_id=1, producer_epoch=3).producer_epoch == 4  # the answer was lost
    codes = [
        p.init(producer_id=1, producer_epoch=0).error_code,
        p.init(producer_id=100_001, producer_epoch=0).error_code,
        p.init(producer_epoch=2).error_code,
        p.init(transactional_id="").error_code,
        p.init(transactional_id="new", producer_id=5_000_000, producer_epoch=3).error_code,
    ]
    assert codes == [90, 90, 42, 42, 0]
    assert p.init(3, transactional_id="x", producer_id=1, producer_epoch=0).error_code == 47


def test_time_outs_that_may_be_asked_for() -> None:
    on = bench()
    assert [Producer(on, "t", n).init().error_code for n in (0, -1, 900_000, 900_001)] == [50, 50, 0, 50]


def test_a_producer_without_transactions_gets_an_id_of_its_own() -> None:
    on = bench()
    answers = [Producer(on).init(version, transactional_id=None) for version in (0, 5)]
    assert [(a.producer_id, a.producer_epoch) for a in answers] == [(1, 0), (2, 0)]
    assert on.log == []


@pytest.mark.parametrize("version", range(6))
def test_a_transaction_ends_with_a_marker_in_each_partition(version: int) -> None:
    on = bench()
    p = ready(on)
    assert p.add("t", 0, 2, version=min(version, 3)) == [0, 0]
    assert p.add_offsets(min(version, 4)) == 0
    assert (p.described().transaction_state, p.described().transaction_start_time_ms) == ("Ongoing", on.now)
    epoch = int(version == 5)
    assert p.end(bool(version % 2), version).error_code == 0
    places = [("__consumer_offsets", 7), ("t", 0), ("t", 2)]
    assert markers(on) == [(place, epoch, bool(version % 2)) for place in places]
    assert p.described().transaction_state == ("CompleteCommit" if version % 2 else "CompleteAbort")
    assert (p.epoch, p.described().topics) == (epoch, [])


def test_the_second_version_raises_the_epoch_at_each_end() -> None:
    p = ready(bench(), version=5)
    assert p.may_write(keys.PRODUCE, 12) == 0
    assert (p.end(version=5).error_code, p.epoch) == (0, 1)
    old = p.epoch - 1
    assert p.end(version=5, producer_epoch=old).producer_epoch == 1  # the same end again
    assert p.end(False, 5, producer_epoch=old).error_code == 48
    assert p.end(version=5, producer_epoch=old - 1).error_code == 90
    assert p.may_write(keys.PRODUCE, 12, producer_epoch=old) == 47
    assert p.may_write(keys.PRODUCE, 12) == 0
    assert (p.end(False, 5).error_code, p.epoch) == (0, 2)
    assert p.end(version=5).error_code == 48  # nothing was added
    assert (p.end(False, 5).error_code, p.epoch) == (0, 3)


def test_what_is_refused_at_ending() -> None:
    p = ready(bench())
    assert [p.end(commit).error_code for commit in (True, False)] == [48, 48]
    p.add()
    codes = [
        p.end(producer_epoch=1).error_code,
        p.end(producer_epoch=-1).error_code,
        p.end(producer_id=1_000_001).error_code,
        p.end(transactional_id="none").error_code,
        p.end(transactional_id="").error_code,
        p.end().error_code,
        p.end().error_code,
        p.end(False).error_code,
    ]
    assert codes == [90, 90, 49, 49, 42, 0, 0, 48]


def test_what_is_refused_at_adding() -> None:
    p = ready(bench())
    assert (p.add("none"), p.add("t", 0, 9), p.add("__consumer_offsets")) == ([3], [55, 3], [29])
    assert [p.add(producer_epoch=n) for n in (1, -1)] == [[90], [90]]
    assert p.add(version=1, producer_epoch=-1) == [47]
    assert (p.add(producer_id=9), p.add(transactional_id="none"), p.add(transactional_id="")) == ([49], [49], [42])
    assert (p.add("t", 0), p.add("t", 0, 1)) == ([0], [0, 0])
    codes = [p.add_offsets(producer_epoch=1), p.add_offsets(producer_id=9), p.add_offsets(transactional_id="none")]
    assert codes == [90, 49, 49]
    for version in (4, 5):
        q = ready(bench())
        assert q.add(version=version, verify_only=True) == [120]
        assert (q.add(version=version), q.add(version=version, verify_only=True)) == ([0], [0])


@pytest.mark.parametrize(("api", "codes"), [(keys.PRODUCE, "48 48 120 0"), (keys.TXN_OFFSET_COMMIT, "48 120 0")])
def test_what_writers_are_told_of_a_partition_that_was_not_added(api: int, codes: str) -> None:
    versions = (3, 10, 11, 12) if api == keys.PRODUCE else (3, 4, 5)
    found = [ready(bench()).may_write(api, version) for version in versions]
    assert found == [int(code) for code in codes.split()]


@pytest.mark.parametrize("version", [4, 5])
def test_a_producer_that_takes_over_ends_the_open_transaction(version: int) -> None:
    on = bench()
    one, two = ready(on, version=version), Producer(on)
    one.may_write(keys.PRODUCE, 12) if version == 5 else one.add()
    assert two.init(version).error_code == 51
    assert markers(on) == [(("t", 0), 1, False)]
    assert (two.init(version).error_code, two.epoch) == (0, 2)
    assert one.end(version=version).error_code == 90
    assert (one.add(), one.add(version=1), one.end(version=1).error_code) == ([90], [47], 47)
    assert one.init(producer_id=one.id, producer_epoch=0).error_code == 90
    two.add()
    assert (two.end(version=version).error_code, two.epoch) == (0, 3 if version == 5 else 2)


def test_transactions_time_out() -> None:
    on = bench()
    p, q = ready(on, timeout=1_000), ready(on, "q", 5, timeout=1_000)
    p.add()
    q.may_write(keys.PRODUCE, 12)
    on.wait(9_999)
    assert markers(on) == []
    on.wait(1)
    assert markers(on) == [(("t", 0), 1, False)] * 2
    assert p.end().error_code == 90
    assert (q.end(version=5).error_code, q.end(False, 5).error_code, q.epoch) == (48, 0, 1)
    assert p.init().producer_epoch == 2


def test_epochs_that_are_used_up_get_another_producer_id() -> None:
    on = bench()
    p = ready(on, version=5)
    fields: Any = decode_internal_record("__transaction_state", *on.log[0].data.rows[0])
    fields.value.producer_epoch = 32_766
    on.machine.apply(fields.key, fields.value, -1)
    p.epoch = 32_766
    p.may_write(keys.PRODUCE, 12)
    answer = p.end(version=5)
    assert (answer.producer_id, answer.producer_epoch) == (2, 0)
    assert markers(on) == [(("t", 0), 32_767, True)]
    again = p.end(version=5, producer_id=1, producer_epoch=32_766)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, 2, 0)
    fresh: Any = on.restarted()
    assert (fresh.transactions["x"].producer_id, fresh.transactions["x"].previous_id) == (2, 1)


def test_a_restart_between_decision_and_markers_writes_them_again() -> None:
    on = bench()
    p = ready(on)
    p.add("t", 0, 1)
    on.holds = True
    asked = on.send(messages.EndTxnRequest(**p.who(committed=True)), 4)
    on.release()  # the decision is in the log
    assert [type(append.data) for append in on.held] == [Marker, Marker]
    on.held.clear()  # and then the broker ends
    assert not asked.answered
    on.holds = False
    on.restart()
    assert markers(on) == [(("t", 0), 0, True), (("t", 1), 0, True)]
    assert p.described().transaction_state == "CompleteCommit"


def test_a_marker_that_cannot_be_written_is_tried_again_unless_its_topic_is_gone() -> None:
    on = bench()
    p = ready(on)
    p.add("t", 0)
    p.add("u", 0)
    on.holds = True
    on.send(messages.EndTxnRequest(**p.who(committed=True)), 4)
    on.release()
    on.release(OSError("no space left"))
    on.release(OSError("no space left"))
    assert (on.held, p.end().error_code) == ([], 51)
    del on.cluster.counts["u"]
    on.holds = False
    on.wait(1_000)
    assert (markers(on), p.described().transaction_state) == ([(("t", 0), 0, True)], "CompleteCommit")


def test_transactions_are_described_and_listed() -> None:
    on = bench()
    unknown = Producer(on, "none").described()
    assert (unknown.error_code, unknown.transaction_state, unknown.producer_id) == (105, "", 0)
    assert Producer(on, "").described().error_code == 42
    one, two, three = (ready(on, name) for name in ("one", "two", "three"))
    row = three.described()
    assert (row.transaction_state, row.transaction_start_time_ms, row.transaction_timeout_ms) == ("Empty", -1, 60_000)
    one.add("t", 1, 0)
    assert [(t.topic, t.partitions) for t in one.described().topics] == [("t", [0, 1])]
    two.add()
    two.end()
    on.wait(1)

    def listed(version: int = 2, **fields: Any) -> list[str]:
        answer = on.ask(messages.ListTransactionsRequest(**fields), version)
        assert answer.error_code == 0
        return [row.transactional_id for row in answer.transaction_states]

    assert listed(0) == ["one", "two", "three"]
    assert listed(state_filters=["CompleteCommit", "Empty"]) == ["two", "three"]
    assert listed(state_filters=["ongoing"]) == []
    assert listed(producer_id_filters=[two.id, 4_000_000_000]) == ["two"]
    assert listed(duration_filter=3_600_000) == ["three"]
    assert listed(duration_filter=0) == ["one", "two", "three"]
    assert listed(transactional_id_pattern="t.*") == ["two", "three"]
    assert (listed(transactional_id_pattern="on"), listed(transactional_id_pattern="")[0]) == ([], "one")
    bad = on.ask(messages.ListTransactionsRequest(transactional_id_pattern="("), 2)
    unknown = on.ask(messages.ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"]), 0)
    assert (bad.error_code, unknown.unknown_state_filters) == (128, ["Nonsense"])


def test_the_records_are_what_kafka_writes() -> None:
    on = bench()
    p = ready(on, version=5)
    p.may_write(keys.PRODUCE, 12)
    p.end(version=5)
    found: list[Any] = [
        decode_internal_record("__transaction_state", *append.data.rows[0])
        for append in on.log
        if not isinstance(append.data, Marker)
    ]
    assert [(r.version, r.value.transaction_status, r.value.producer_epoch) for r in found] == [
        (1, 0, 0),
        (1, 1, 0),
        (1, 2, 1),
        (1, 4, 1),
    ]
    assert [r.value.client_transaction_version for r in found] == [0, 2, 2, 2]
    assert [r.value.transaction_partitions is None for r in found] == [True, False, False, False]


def test_idle_ids_are_forgotten() -> None:
    on = bench()
    idle, busy = ready(on), ready(on, "busy", timeout=900_000)
    on.wait(7 * 86_400_000 - 3_600_000)
    busy.init()
    on.wait(3_600_000)
    assert (idle.described().error_code, busy.described().error_code) == (105, 0)
    assert list(on.restarted().transactions) == ["busy"]  # type: ignore[attr-defined]
