"""Compaction in the embedded broker: which log is cleaned when, beside its requests, and what is left of it."""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.broker.topics.compaction import Compaction
from kafkacodec.broker.topics.configs import TopicConfig
from kafkacodec.broker.topics.partition import Partition
from kafkacodec.log.growing.directory import GrowingDirectory

START = 1_700_000_000_000
EVERY = 15_000
Then = Callable[[Any, Exception | None], None]


class Later:
    """Keeps work until the test does it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Then]] = []

    def run(self, work: Callable[[], Any], then: Then) -> None:
        self.waiting.append((work, then))

    def step(self) -> None:
        work, then = self.waiting.pop(0)
        try:
            found = work()
        except Exception as error:
            then(None, error)
        else:
            then(found, None)

    def all(self) -> None:
        while self.waiting:
            self.step()


class Cleaner:
    """A directory whose compacted topics are cleaned by steps."""

    def __init__(self, path: Path) -> None:
        self.now = START
        self.directory = GrowingDirectory(path, clock=lambda: self.now)
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.thread = Later()
        self.compaction = Compaction(self.directory, self.partitions, self.thread, EVERY)
        self.compaction.due(START)

    def topic(self, name: str, **config: str) -> Partition:
        values = {"cleanup.policy": "compact", **{key.replace("_", "."): value for key, value in config.items()}}
        settings, topic_id = TopicConfig(values, {}), uuid.uuid4()
        log = self.directory.open(name, 0, settings.of_log(), topic_id=topic_id)
        made = self.partitions[name, 0] = Partition(name, topic_id, 0, log, 0, settings)
        return made

    def look(self, now: int) -> None:
        self.now = now
        self.compaction.due(now)
        self.thread.all()


def write(partition: Partition, values: list[bytes], time: int = START) -> None:
    """One segment with a record of the same key for each value."""
    for n, value in enumerate(values):
        partition.append(bytearray(kc.encode([kc.Record(0, time + n, 0, b"k", value, ())])))
    partition.log.roll()


def left(partition: Partition) -> list[bytes]:
    end = partition.log.end_offset
    data, at = b"", partition.log.start_offset
    while at < end:
        piece = partition.log.read(at, 1 << 20).read()
        if not piece:
            break
        data += piece
        at = int(kc.scan(piece).to_arrow()["last_offset"][-1].as_py()) + 1
    values: list[bytes] = kc.decode(data)["value"].tolist()
    return values


@pytest.fixture
def cleaner(tmp_path):
    made = Cleaner(tmp_path / "data")
    yield made
    made.directory.abandon()


def test_a_log_is_cleaned_when_enough_of_it_is_dirty(cleaner):
    topic = cleaner.topic("t")
    write(topic, [b"%d" % n for n in range(10)])
    cleaner.compaction.due(START + EVERY - 1)
    assert not cleaner.thread.waiting
    cleaner.look(START + EVERY)
    assert left(topic) == [b"9"]
    assert cleaner.directory.cleaned == {("t", 0): 10}
    checkpoint = Path(cleaner.directory.path, "cleaner-offset-checkpoint").read_text("ascii")
    assert checkpoint == "0\n1\nt 0 10\n"
    # One more record of the same size is half of the log, which is not more than half.
    write(topic, [b"a"])
    cleaner.look(START + 2 * EVERY)
    assert left(topic) == [b"9", b"a"]
    write(topic, [b"b"])
    cleaner.look(START + 3 * EVERY)
    assert left(topic) == [b"b"]


def test_the_dirtiest_log_comes_first_and_others_follow_at_once(cleaner):
    low, high = cleaner.topic("low", min_cleanable_dirty_ratio="0.1"), cleaner.topic("high")
    write(low, [b"1", b"2"])
    cleaner.look(START + EVERY)
    write(low, [b"3"])
    write(high, [b"1", b"2"])
    cleaner.compaction.due(START + 2 * EVERY)
    assert cleaner.compaction.is_cleaning(high)
    assert not cleaner.compaction.is_cleaning(low)
    cleaner.thread.all()
    assert (left(low), left(high)) == ([b"3"], [b"2"])


def test_lags(cleaner):
    young = cleaner.topic("young", min_compaction_lag_ms="100000")
    late = cleaner.topic("late", min_cleanable_dirty_ratio="1", max_compaction_lag_ms="50000")
    assert late.log.config.segment_ms == 50_000
    for topic in (young, late):
        write(topic, [b"1", b"2"])
    cleaner.look(START + 45_000)
    assert (left(young), left(late)) == ([b"1", b"2"], [b"1", b"2"])
    cleaner.look(START + 60_000)
    assert (left(young), left(late)) == ([b"1", b"2"], [b"2"])
    cleaner.look(START + 105_000)
    assert left(young) == [b"2"]


def test_appends_and_reads_go_on_while_a_log_is_cleaned(cleaner):
    topic = cleaner.topic("t")
    write(topic, [b"1", b"2"])
    cleaner.compaction.due(START + EVERY)
    work, then = cleaner.thread.waiting.pop()
    found = work()
    write(topic, [b"3"])
    assert left(topic) == [b"1", b"2", b"3"]
    then(found, None)
    assert left(topic) == [b"2", b"3"]
    cleaner.thread.all()


def test_a_topic_that_is_deleted_or_a_broker_that_stops_ends_the_pass(cleaner):
    gone, stopped = cleaner.topic("gone"), cleaner.topic("stopped")
    write(gone, [b"1", b"2"])
    cleaner.compaction.due(START + EVERY)
    assert cleaner.compaction.is_cleaning(gone)
    del cleaner.partitions["gone", 0]
    cleaner.directory.delete("gone", [0], 60_000)
    cleaner.thread.all()
    assert cleaner.directory.cleaned == {}
    write(stopped, [b"1", b"2"])
    cleaner.compaction.due(START + 2 * EVERY)
    cleaner.compaction.stop()
    cleaner.thread.all()
    assert left(stopped) == [b"1", b"2"]
    assert not list(Path(cleaner.directory.path).glob("*/*.cleaned"))


def test_a_damaged_log_is_left_alone_and_others_are_cleaned(cleaner, caplog):
    bad, good = cleaner.topic("bad"), cleaner.topic("good")
    for topic in (bad, good):
        write(topic, [b"x" * 400] * 3)
    with Path(bad.log.path, "00000000000000000000.log").open("r+b") as file:
        file.seek(100)  # in the first batch's records
        file.write(b"\xff" * 40)
    cleaner.look(START + EVERY)
    assert left(good) == [b"x" * 400]
    assert "bad-0 cannot be compacted" in caplog.text
    cleaner.look(START + 2 * EVERY)
    assert caplog.text.count("bad-0 cannot be compacted") == 1


def test_a_checkpoint_that_is_not_of_this_log_counts_as_none(cleaner):
    topic = cleaner.topic("t")
    cleaner.directory.cleaned["t", 0] = 99
    write(topic, [b"1", b"2"])
    cleaner.look(START + EVERY)
    assert (left(topic), cleaner.directory.cleaned) == ([b"2"], {("t", 0): 2})


class _Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.put(record.getMessage())


@pytest.fixture
def told():
    handler, logger = _Told(), logging.getLogger("kafkacodec.broker")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.messages
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_how_often_is_looked_for_what_to_clean_changes_at_once(told):
    config = {"log.cleaner.backoff.ms": 3_600_000, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0}
    with kc.broker.serve(topics={"t": 1}, config=config | {"segment.ms": 1000}) as broker:
        now = time.time_ns() // 1_000_000
        for n in range(20):
            broker.write("t", [kc.Record(0, now - 100_000 + 2000 * n, 0, b"k%d" % (n % 3), b"%d" % n, ())])
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            admin.incremental_alter_configs({("broker", "1"): {"log.cleaner.backoff.ms": "5"}})
        while "compacted t-0 up to offset 19" not in told.get(timeout=60):
            pass
        assert broker.records("t")["offset"].tolist() == [16, 17, 18, 19]


def test_a_broker_rolls_by_time_compacts_and_opens_what_is_left(tmp_path, told):
    config = {"log.cleaner.backoff.ms": 5, "cleanup.policy": "compact", "segment.ms": 1000, "min.compaction.lag.ms": 1}
    config["min.cleanable.dirty.ratio"] = 0  # what comes after a pass is cleaned, however little it is
    now = time.time_ns() // 1_000_000
    with kc.broker.serve(tmp_path, topics={"t": 1}, config=config) as broker:
        for n in range(20):
            broker.write("t", [kc.Record(0, now - 100_000 + 2000 * n, 0, b"k%d" % (n % 3), b"%d" % n, ())])
        while "compacted t-0 up to offset 19" not in told.get(timeout=60):
            pass
        assert broker.records("t")["offset"].tolist() == [16, 17, 18, 19]
        assert broker.write("t", [(b"k0", b"new")]) == 20
    with kc.broker.serve(tmp_path, config=config) as broker:
        assert broker.records("t")["value"].tolist() == [b"16", b"17", b"18", b"19", b"new"]
    assert kc.log.LogDirectory(tmp_path).partition("t", 0).verify().ok
