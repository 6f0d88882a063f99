"""What holds for a line protocol broker whatever it is asked, in whatever order."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkacodec.dialects import line
from kafkacodec.errors import KafkaCodecError
from tests.dialect_vectors import rows

TOPIC, PARTITIONS, FACTOR, LAG, SESSION = "t", 5, 3, 50, 100
CONSUMERS = st.sampled_from("abc")
FOLLOWERS = st.integers(1, FACTOR - 1)


class BrokerMachine(RuleBasedStateMachine):
    """One broker, two followers that copy, three consumers; the followers' copies are kept here."""

    def __init__(self) -> None:
        super().__init__()
        config = line.BrokerConfig(
            topics={TOPIC: PARTITIONS},
            replication_factor=FACTOR,
            min_in_sync=2,
            replication_timeout_ms=30,
            replica_lag_ms=LAG,
            session_timeout_ms=SESSION,
        )
        self.storage = line.MemoryStorage()
        self.broker = line.Broker(self.storage, config, partitioner=lambda key, n: 0)
        self.now = self.id = self.generation = self.high_watermark = 0
        self.copies = dict.fromkeys(range(1, FACTOR), 0)
        self.asked: dict[str, str] = {}
        self.acknowledged = 0
        self.owners: dict[tuple[int, int], str] = {}
        self.known: dict[str, int] = {}
        self.committed: dict[int, int] = {}

    def ask(self, command: str, args: str) -> line.Response | None:
        self.id += 1
        self.asked[str(self.id)] = args
        own = None
        for reply in self.broker.receive(f"V1|{self.id}|{command}|{args}", self.now):
            if line.parse_response(reply.line).correlation_id == str(self.id):
                own = line.parse_response(reply.line, command)
            else:
                self.late(line.parse_response(reply.line, "PRODUCE"))
        return own

    def late(self, response: line.Response) -> None:
        """An answer to a PRODUCE with acks=all."""
        assert self.asked[response.correlation_id].endswith("acks=all")
        if response.ok:
            self.acknowledged = max(self.acknowledged, response.fields["offset"] + 1)

    def acknowledge(self, response: line.Response | None, acks: str) -> None:
        if response is not None and response.ok and acks == "all":
            self.acknowledged = max(self.acknowledged, response.fields["offset"] + 1)

    @rule(acks=st.sampled_from(["0", "1", "all"]))
    def produce(self, acks: str) -> None:
        self.acknowledge(self.ask("PRODUCE", f"{TOPIC} k:{self.id} acks={acks}"), acks)

    @rule(follower=FOLLOWERS, count=st.integers(0, 4))
    def copy_and_report(self, follower: int, count: int) -> None:
        end = min(self.copies[follower] + count, self.storage.end(TOPIC, 0))
        self.copies[follower] = end
        response = self.ask("REPLICA_FETCH", f"{TOPIC} 0 {follower} {end}")
        assert response is not None
        if response.ok:
            assert response.fields["under_replicated"] == (len(response.fields["isr"]) < FACTOR)

    @rule(milliseconds=st.integers(0, 2 * SESSION))
    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        for reply in self.broker.tick(self.now):
            self.late(line.parse_response(reply.line, "PRODUCE"))

    @rule(offset=st.integers(0, 20))
    def consume(self, offset: int) -> None:
        response = self.ask("CONSUME", f"{TOPIC} 0 {offset}")
        assert response is not None
        messages, high_watermark = response.fields["messages"], response.fields["hw"]
        assert [m["offset"] for m in messages] == list(range(offset, high_watermark))

    @rule()
    def change_roles_and_back(self) -> None:
        self.ask("SET_PARTITION_ROLE", f"{TOPIC} 0 follower")
        response = self.ask("PRODUCE", f"{TOPIC} k:v")
        assert response is not None
        assert response.code == "NOT_LEADER"
        self.ask("SET_PARTITION_ROLE", f"{TOPIC} 0 leader")

    @rule(consumer=CONSUMERS, assignor=st.sampled_from(["", " assignor=range", " assignor=round_robin"]))
    def join(self, consumer: str, assignor: str) -> None:
        self.assigned(consumer, self.ask("JOIN", f"g {TOPIC} {consumer}{assignor}"))

    @rule(consumer=CONSUMERS)
    def sync(self, consumer: str) -> None:
        self.assigned(consumer, self.ask("SYNC", f"g {TOPIC} {consumer} {self.known.get(consumer, 0)}"))

    def assigned(self, consumer: str, response: line.Response | None) -> None:
        assert response is not None
        if not response.ok:
            assert response.code == "GENERATION_MISMATCH"
            return
        generation = response.fields["generation"]
        assert generation >= self.generation
        self.generation = self.known[consumer] = generation
        for partition in response.fields["assigned"]:
            assert self.owners.setdefault((generation, partition), consumer) == consumer

    @rule(consumer=CONSUMERS)
    def leave(self, consumer: str) -> None:
        self.ask("LEAVE", f"g {TOPIC} {consumer} {self.known.get(consumer, 0)}")

    @rule(consumer=CONSUMERS, partition=st.integers(0, PARTITIONS - 1), offset=st.integers(0, 50))
    def commit(self, consumer: str, partition: int, offset: int) -> None:
        generation = self.known.get(consumer, 0)
        response = self.ask("COMMIT", f"g {TOPIC} {consumer} {generation} {partition} {offset}")
        assert response is not None
        if response.ok:
            assert generation == self.generation
            assert self.owners[generation, partition] == consumer
            assert offset >= self.committed.get(partition, -1)
            self.committed[partition] = offset

    @rule()
    def restart(self) -> None:
        self.broker = line.Broker(self.storage, self.broker._config, now=self.now, partitioner=lambda key, n: 0)

    @precondition(lambda self: self.now > 0)
    @rule()
    def the_clock_does_not_go_back(self) -> None:
        try:
            self.broker.receive(f"V1|1|PRODUCE|{TOPIC} k:v", -1)
        except KafkaCodecError:
            return
        raise AssertionError("the clock went back")

    @invariant()
    def offsets_are_kept(self) -> None:
        for partition, offset in self.committed.items():
            response = self.ask("OFFSET", f"g {TOPIC} {partition}")
            assert response is not None
            assert response.fields["offset"] == offset

    @invariant()
    def the_high_watermark_never_falls(self) -> None:
        state = self.broker.partition(TOPIC, 0)
        assert self.high_watermark <= state.high_watermark <= self.storage.end(TOPIC, 0)
        self.high_watermark = state.high_watermark

    @invariant()
    def any_follower_in_sync_could_be_promoted(self) -> None:
        for replica in self.broker.partition(TOPIC, 0).in_sync:
            assert replica == 0 or self.copies[replica] >= self.acknowledged


TestBroker = BrokerMachine.TestCase
TestBroker.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

LINES = [v["request_line"] for v in rows("line_v1/exchanges") if v["request_line"]]
LINES += [v["response_line"] for v in rows("line_v1/exchanges")] + [v["line"] for v in rows("line_v1/bad")]


@st.composite
def damaged_lines(draw: Any) -> str:
    text = draw(st.sampled_from(LINES))
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.text(max_size=3)) + text[at + draw(st.integers(0, 3)) :]


@given(st.text() | damaged_lines())
@settings(deadline=None)
def test_any_line_gives_a_value_or_a_documented_error(text: str) -> None:
    for parse in (
        line.parse_request,
        line.parse_response,
        *(lambda t, c=c: line.parse_response(t, c) for c in line.COMMANDS),
    ):
        try:
            value = parse(text)
        except line.LineProtocolError:
            continue
        assert value.encode() == text or line.parse_request(value.encode()) == value


@given(st.text() | damaged_lines())
@settings(deadline=None)
def test_a_broker_answers_any_line(text: str) -> None:
    broker = line.Broker(line.MemoryStorage(), line.BrokerConfig(replication_factor=3))
    for reply in broker.receive(text, 0):
        line.parse_response(reply.line)
