"""Invariants of a line protocol broker for any sequence of requests."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkacodec.dialects import line
from kafkacodec.errors import KafkaCodecError
from tests.dialect_vectors import rows
from tests.examples import examples
from tests.line_disk import Disk
from tests.state_machines import machine_settings

TOPIC, PARTITIONS, FACTOR, MIN_IN_SYNC, LAG, SESSION, TIMEOUT = "t", 5, 3, 2, 50, 100, 30
RETENTION, MAX_WAITING, MAX_LINE = 10 * SESSION, 3, 6000
CONFIG = line.BrokerConfig(
    topics={TOPIC: PARTITIONS},
    replication_factor=FACTOR,
    min_in_sync=MIN_IN_SYNC,
    replication_timeout_ms=TIMEOUT,
    replica_lag_ms=LAG,
    session_timeout_ms=SESSION,
    group_retention_ms=RETENTION,
    max_line_bytes=MAX_LINE,
    max_topics=3,
    max_groups=2,
    max_waiting=MAX_WAITING,
)
CONSUMERS = st.sampled_from("abc")
ASSIGNORS = {"a": "", "b": " assignor=range", "c": " assignor=round_robin"}
FOLLOWERS = st.integers(1, FACTOR - 1)
# Some look like several messages, some fill a response line.
VALUES = st.sampled_from(["v", "", "a,5:x", ",1:,2:", "1:", "ж,7:", "x" * 1500, "y," * 900])


class BrokerMachine(RuleBasedStateMachine):
    """One broker on a directory, two followers that copy, three consumers, and a model of the expected state.

    All records of the model are in partition 0 of one topic.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.now = self.id = 0
        self.values: list[str] = []
        self.copies = dict.fromkeys(range(1, FACTOR), 0)
        self.asked: dict[str, str] = {}
        self.acknowledged = 0
        self.committed: dict[int, int] = {}
        self.empty_since: int | None = None
        self.forget_group()
        self.open()

    def open(self) -> None:
        self.storage = line.FileStorage(self.directory)
        self.disk = Disk(self.storage)
        self.broker = line.Broker(self.storage, CONFIG, now=self.now, partitioner=lambda key, n: 0)
        self.reader = line.LineReader(max_line_bytes=MAX_LINE)
        self.high_watermark = 0
        self.waiting: dict[str, int] = {}
        self.forget_followers()

    def forget_followers(self) -> None:
        """The broker becomes leader: the age of its records is unknown."""
        self.appended_at = [-(1 << 50)] * len(self.values)
        self.reported: set[int] = set()

    def forget_group(self) -> None:
        self.generation = 0
        self.owners: dict[tuple[int, int], str] = {}
        self.known: dict[str, int] = {}

    def teardown(self) -> None:
        self.storage.close()
        shutil.rmtree(self.directory)

    def ask(self, command: str, args: str) -> line.Response | None:
        """The response, or None where it comes later."""
        self.id += 1
        self.asked[str(self.id)] = args
        end = ("\n", "\r\n")[self.id % 2]
        noise = (b"", b"\xff\n", b"x" * (MAX_LINE + 2) + b"\n")[self.id % 3]
        lines = self.reader.receive(noise + f"V1|{self.id}|{command}|{args}{end}".encode())
        assert isinstance(lines[-1], str)
        for bad in lines[:-1]:
            (refused,) = self.receive(bad)
            assert (refused.correlation_id, refused.code) == ("0", "BAD_REQUEST")
        own = None
        for response in self.receive(lines[-1], command):
            if response.correlation_id == str(self.id):
                own = response
            else:
                self.late(response)
        assert own is None or own.code != "STORAGE_ERROR" or self.disk.full
        return own

    def receive(self, text: Any, command: str | None = None) -> list[line.Response]:
        responses = []
        for reply in self.broker.receive(text, self.now):
            assert len(reply.line.encode()) <= MAX_LINE
            is_own = reply.line.split("|")[1] == str(self.id)
            responses.append(line.parse_response(reply.line, command if is_own else "PRODUCE"))
        return responses

    def late(self, response: line.Response) -> None:
        """The response to a PRODUCE with acks=all."""
        del self.waiting[response.correlation_id]
        if response.ok:
            self.acknowledged = max(self.acknowledged, response.fields["offset"] + 1)

    @rule(acks=st.sampled_from(["0", "1", "all"]), value=VALUES)
    def produce(self, acks: str, value: str) -> None:
        end, room = self.storage.end(TOPIC, 0), len(self.waiting) < MAX_WAITING
        self.waiting |= {str(self.id + 1): self.now + TIMEOUT} if acks == "all" else {}
        response = self.ask("PRODUCE", f"{TOPIC} k:{value} acks={acks}")
        if self.storage.end(TOPIC, 0) > end:
            self.values.append(value)
            self.appended_at.append(self.now)
            if response is not None and acks == "all":
                self.late(response)
            else:
                assert response is None or response.fields["offset"] == end
            return
        self.waiting.pop(str(self.id), None)
        assert response is not None
        assert response.code == ("STORAGE_ERROR" if self.disk.full and (room or acks != "all") else "BAD_REQUEST")

    @rule(follower=FOLLOWERS, count=st.integers(0, 4))
    def copy_and_report(self, follower: int, count: int) -> None:
        end = self.copies[follower] = min(self.copies[follower] + count, len(self.values))
        before = self.broker.partition(TOPIC, 0).high_watermark
        response = self.ask("REPLICA_FETCH", f"{TOPIC} 0 {follower} {end}")
        assert response is not None
        assert response.ok
        in_sync = response.fields["isr"]
        assert response.fields["under_replicated"] == (len(in_sync) < FACTOR)
        self.reported.add(follower)
        assert (follower in in_sync) == (end >= before and self.lag(follower) <= LAG)

    def lag(self, follower: int) -> int:
        """The age of the first record that the follower lacks."""
        end = self.copies[follower]
        return self.now - self.appended_at[end] if end < len(self.values) else 0

    @precondition(lambda self: not self.disk.full)
    @rule(follower=FOLLOWERS, lag=st.integers(0, 3))
    def writes_are_steady_and_a_follower_is_a_little_late(self, follower: int, lag: int) -> None:
        for _ in range(15):
            self.produce("1", "v")
            self.wait(10)
            self.copies[follower] = max(self.copies[follower], len(self.values) - lag)
            self.copy_and_report(follower, 0)
        assert follower in self.broker.partition(TOPIC, 0).in_sync
        assert self.broker.partition(TOPIC, 0).high_watermark >= len(self.values) - lag - 1

    @rule(milliseconds=st.integers(0, 2 * SESSION) | st.sampled_from([RETENTION, 1 << 40]))
    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        for reply in self.broker.tick(self.now):
            self.late(line.parse_response(reply.line, "PRODUCE"))
        assert all(deadline > self.now for deadline in self.waiting.values())
        deadline = self.broker.next_deadline()
        assert deadline is None or deadline > self.now
        self.groups_are_kept_while_they_live()

    @rule(offset=st.integers(0, 20))
    def consume(self, offset: int) -> None:
        response = self.ask("CONSUME", f"{TOPIC} 0 {offset}")
        assert response is not None
        messages, high_watermark = response.fields["messages"], response.fields["hw"]
        assert bool(messages) == (offset < high_watermark)
        stop = offset + len(messages)
        assert messages == [{"offset": o, "value": self.values[o]} for o in range(offset, stop)]
        assert stop <= high_watermark or not messages

    @rule(milliseconds=st.integers(0, 2 * LAG))
    def change_roles_and_back(self, milliseconds: int) -> None:
        self.ask("SET_PARTITION_ROLE", f"{TOPIC} 0 follower")
        response = self.ask("PRODUCE", f"{TOPIC} k:v")
        assert response is not None
        assert response.code == "NOT_LEADER"
        assert not self.waiting
        self.wait(milliseconds)
        self.ask("SET_PARTITION_ROLE", f"{TOPIC} 0 leader")
        self.forget_followers()

    @rule(consumer=CONSUMERS, assignor=st.sampled_from(list(ASSIGNORS.values())))
    def join(self, consumer: str, assignor: str) -> None:
        self.assigned(consumer, self.ask("JOIN", f"g {TOPIC} {consumer}{assignor}"))

    @precondition(lambda self: not self.disk.full)
    @rule()
    def everybody_joins_until_nothing_changes(self) -> None:
        """Members that name different assignors do not expel each other forever."""
        generations = []
        for _ in range(4):
            for consumer, assignor in ASSIGNORS.items():
                self.join(consumer, assignor)
            generations.append(self.generation)
        assert len(set(generations[1:])) == 1

    @rule(consumer=CONSUMERS)
    def sync(self, consumer: str) -> None:
        self.assigned(consumer, self.ask("SYNC", f"g {TOPIC} {consumer} {self.known.get(consumer, 0)}"))

    def assigned(self, consumer: str, response: line.Response | None) -> None:
        assert response is not None
        if not response.ok:
            assert response.code in ("GENERATION_MISMATCH", "STORAGE_ERROR", "BAD_REQUEST")
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

    @precondition(lambda self: not self.disk.full)
    @rule(number=st.integers(0, 9))
    def others_come_and_go(self, number: int) -> None:
        """Requests for unknown topics and groups without members leave room for two more of each."""
        for command, args in (("CONSUME", f"x{number} 0 0"), ("REPLICA_FETCH", f"y{number} 0 1 0")):
            response = self.ask(command, args)
            assert response is not None
            assert response.ok
        response = self.ask("PRODUCE", f"u{number % 2} k:v acks=1")
        assert response is not None
        assert response.ok
        response = self.ask("JOIN", f"h{number} {TOPIC} a")
        assert response is not None
        assert response.ok
        generation = response.fields["generation"]
        response = self.ask("LEAVE", f"h{number} {TOPIC} a {generation}")
        assert response is not None
        assert response.ok

    @rule(full=st.booleans())
    def the_disk_fills_up_or_is_freed(self, full: bool) -> None:
        self.disk.full = full

    @rule(torn=st.sampled_from([b"", b"0", b"00000000 [", b"\0" * 100]))
    def restart(self, torn: bytes) -> None:
        """A restart after a kill, which may leave an incomplete record."""
        self.storage.close()
        with open(self.directory / "records.log", "ab") as file:
            file.write(torn)
        self.open()
        assert self.storage.cut_bytes == len(torn)
        self.committed = {p: min(o, self.storage.end(TOPIC, p)) for p, o in self.committed.items()}
        if self.empty_since is not None:
            self.empty_since = self.now

    @precondition(lambda self: self.now > 0)
    @rule()
    def the_clock_does_not_go_back(self) -> None:
        try:
            self.broker.receive(f"V1|1|PRODUCE|{TOPIC} k:v", self.now - 1)
        except KafkaCodecError:
            return
        raise AssertionError("the clock went back")

    @invariant()
    def groups_are_kept_while_they_live(self) -> None:
        """A group without members may be removed, after which its generations start again."""
        row = next((row for row in self.storage.load_groups() if row["group"] == "g"), None)
        if row is None:
            lived_on = self.empty_since is not None and self.now - self.empty_since <= RETENTION
            assert not (self.committed and lived_on)
            self.forget_group()
            self.committed.clear()
            self.empty_since = None
        elif row["members"]:
            self.empty_since = None
        elif self.empty_since is None:
            self.empty_since = self.now

    @invariant()
    def offsets_are_kept(self) -> None:
        for partition, offset in self.committed.items():
            response = self.ask("OFFSET", f"g {TOPIC} {partition}")
            assert response is not None
            assert response.fields["offset"] == offset or (self.disk.full and response.fields["offset"] == -1)

    @invariant()
    def the_high_watermark_never_falls(self) -> None:
        state = self.broker.partition(TOPIC, 0)
        assert self.high_watermark <= state.high_watermark <= len(self.values)
        self.high_watermark = state.high_watermark

    @invariant()
    def enough_replicas_hold_what_is_shown(self) -> None:
        shown = self.broker.partition(TOPIC, 0).high_watermark
        assert shown == 0 or 1 + sum(end >= shown for end in self.copies.values()) >= MIN_IN_SYNC

    @invariant()
    def any_follower_in_sync_could_be_promoted(self) -> None:
        for replica in self.broker.partition(TOPIC, 0).in_sync:
            assert replica == 0 or self.copies[replica] >= self.acknowledged
            assert replica == 0 or (replica in self.reported and self.lag(replica) <= LAG)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert [value for _, value in self.storage.read(TOPIC, 0, 0, 1 << 40)] == self.values


TestBroker = BrokerMachine.TestCase
TestBroker.settings = machine_settings

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


MESSAGE_VALUES = st.text(st.sampled_from(",:0123456789-ax\ré"), max_size=12)


@given(st.lists(st.tuples(st.integers(0, 3), MESSAGE_VALUES), max_size=6), st.integers(-2, 30) | st.integers())
@settings(deadline=None)
def test_messages_come_back_whatever_they_hold(steps: list[tuple[int, str]], above: int) -> None:
    messages, offset = [], 0
    for step, value in steps:
        messages.append({"offset": offset + step, "value": value})
        offset += step + 1
    fields = {"messages": messages, "hw": min(max(offset + above, offset), (1 << 63) - 1)}
    written = line.Response.success("1", "CONSUME", fields).encode()
    read = line.parse_response(written, "CONSUME").fields
    assert (read["messages"], read["hw"]) == (messages, fields["hw"])


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\r\n", b"\xc3", b"\xa9"]), max_size=12))
@settings(deadline=None)
def test_lines_do_not_depend_on_how_their_bytes_come(pieces: list[bytes]) -> None:
    reader, data = line.LineReader(max_line_bytes=8), b"".join(pieces)
    got = [text for piece in pieces for text in reader.receive(piece)]
    whole, rest = line.split_lines(data, max_line_bytes=8)
    assert list(map(str, got)) == list(map(str, whole))
    assert reader.unfinished == rest
    *ended, last = data.split(b"\n")
    assert last.startswith(rest)
    assert len(got) == len(ended)
    for text, raw in zip(got, ended, strict=True):
        raw = raw.removesuffix(b"\r")
        if isinstance(text, str):
            assert text.encode() == raw
            assert len(raw) <= 8
        else:
            assert len(raw) > 8 or raw.decode(errors="replace").encode() != raw
            assert text.position is not None
            assert text.position <= len(data)


@given(st.text() | damaged_lines())
@settings(deadline=None)
def test_a_broker_answers_any_line(text: str) -> None:
    broker = line.Broker(line.MemoryStorage(), line.BrokerConfig(replication_factor=3))
    for reply in broker.receive(text, 0):
        line.parse_response(reply.line)


@given(st.lists(st.tuples(st.sampled_from("tu"), st.integers(0, 1), st.text(max_size=20)), max_size=8), st.data())
@settings(deadline=None, max_examples=examples(50))
def test_a_damaged_file_of_records_gives_a_part_of_them_or_a_documented_error(
    records: list[tuple[str, int, str]], draws: st.DataObject
) -> None:
    """The records are a prefix of those written to each partition; a file that is refused is not changed."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "records.log"
        with line.FileStorage(directory) as storage:
            for topic, partition, value in records:
                storage.append(topic, partition, "k", value)
        data = bytearray(path.read_bytes())
        for _ in range(draws.draw(st.integers(1, 3))):
            at = draws.draw(st.integers(0, len(data)))
            data[at : at + draws.draw(st.integers(0, 80))] = draws.draw(st.binary(max_size=5))
        path.write_bytes(data)
        try:
            storage = line.FileStorage(directory)
        except KafkaCodecError:
            assert path.read_bytes() == data
            return
        with storage:
            assert data.startswith(path.read_bytes()) or not storage.topics()
            for key in [(t, p) for t in "tu" for p in range(2)]:
                kept = [value for _, value in storage.read(*key, 0, 99)]
                assert kept == [value for t, p, value in records if (t, p) == key][: len(kept)]
