"""Jobs that are killed at each moment, and jobs at the same time: each record is there once, and nothing else stays.

What Spark's tasks and driver call, in processes of its own, without Spark. KAFKACODEC_KILLS=all runs more rounds.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkacodec.log import LogDirectory, LogWriter
from kafkacodec.log.files import publishing
from kafkacodec.log.formats import layout
from kafkacodec.spark.errors import UnfinishedWrite
from kafkacodec.spark.writing.jobs import SegmentsWriter
from kafkacodec.spark.writing.recovery import recover_write
from tests.integration import kafka_jvm
from tests.unit.test_spark_writing import schema_of

ALL = os.environ.get("KAFKACODEC_KILLS") == "all"
KILLS = 50 if ALL else 5
ROUNDS = 100 if ALL else 6

PARTITIONS, TASKS, ROWS = 4, 3, 40
CALLS = 55  # renames and removals of a job in the log, or a few more
SCHEMA = "topic string, partition int, value binary"


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written: only a power failure does."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def job(directory: Path, name: str, **options: str) -> None:
    """Append records of several tasks to several partitions; small segments stay apart, so that there are more."""
    options = {"path": str(directory), "segmentBytes": "600", "batchBytes": "100", **options}
    writer = SegmentsWriter(options, schema_of(SCHEMA), False)
    staged = []
    for task in range(TASKS):
        values = [b"%s %d" % (name.encode(), n) for n in range(task * ROWS, (task + 1) * ROWS)]
        columns = {
            "topic": pa.array(["orders"] * ROWS),
            "partition": pa.array([n % PARTITIONS for n in range(ROWS)], pa.int32()),
            "value": pa.array(values, pa.binary()),
        }
        staged.append(writer.write(iter([pa.record_batch(columns)])))
    for task, message in enumerate(staged):
        object.__setattr__(message, "task", task)
    writer.commit(list(staged))


def values_of(name: str) -> list[bytes]:
    return [b"%s %d" % (name.encode(), n) for n in range(TASKS * ROWS)]


def found(directory: Path) -> Counter[bytes]:
    """How often each value is there; the log must be in order."""
    log = LogDirectory(directory)
    assert log.verify().ok
    partitions = log.partitions("orders")
    for partition in partitions:
        offsets = [o for chunk in partition.read(columns=["offset"]) for o in chunk["offset"].tolist()]
        assert offsets == list(range(len(offsets)))
    return Counter(r.value for p in partitions for chunk in p.read() for r in chunk.records())


def in_a_child(work: Callable[[], object]) -> int:
    """Start a process that does this, and ends with status 0 if that succeeds."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    status = os.waitpid(child, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


CHANGES = ("open", "mkdir", "rename", "replace", "unlink", "rmdir")


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do this in a process that is killed before it changes names for the time of that number; False if it has fewer
    such changes."""

    def counting() -> None:
        left = number
        for holder, name in [(publishing, "publish"), *((os, name) for name in CHANGES)]:
            original = getattr(holder, name)

            def call(*arguments: Any, original: Any = original, **options: Any) -> object:
                nonlocal left
                if original is not os_open or arguments[1] & os.O_CREAT:
                    left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(*arguments, **options)

            setattr(holder, name, call)
        work()

    os_open = os.open
    status = ended(in_a_child(counting))
    assert status in (0, -signal.SIGKILL)
    return status != 0


def kill_at(number: int, calls: list[tuple[Any, str]]) -> None:
    """Make one of these calls kill the process: call `number` // 2, before or after it is done.

    Those in staging directories are not counted.
    """
    count = 0

    def counted(original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal count
            if "staging" in str(arguments[-1]) or "dir_fd" in options:
                return original(*arguments, **options)
            count += 1
            if count - 1 == number // 2 and number % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if count - 1 == number // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for holder, name in calls:
        setattr(holder, name, counted(getattr(holder, name)))


def killed_job(directory: Path, name: str, number: int, **options: str) -> bool:
    """Run a job that is killed at one of its renames and removals; False if it has fewer, and is complete."""

    def work() -> None:
        kill_at(number, [(publishing, "publish"), (os, "unlink")])
        job(directory, name, **options)

    status = ended(in_a_child(work))
    assert status in (0, -signal.SIGKILL)
    return status != 0


def test_killed_jobs_that_run_again_write_each_record_once(tmp_path: Path) -> None:
    """With a version, wherever the kill is; also in the middle of rolling back."""
    rnd = random.Random(13)
    expected: Counter[bytes] = Counter()
    kills = renames = jobs = 0
    while kills < KILLS:
        name, options = f"job{jobs}", {"txnAppId": "app", "txnVersion": str(jobs)}
        while killed_job(tmp_path, name, rnd.randrange(2 * CALLS), **options):
            kills += 1
            renames += '"journal":null' not in state_of(tmp_path)
        jobs += 1
        expected.update(values_of(name))
        assert found(tmp_path) == expected
    assert renames > KILLS // 3  # kills between the first rename and the commit point
    job(tmp_path, "last")
    assert found(tmp_path) == expected + Counter(values_of("last"))
    assert not leftovers(tmp_path)


def leftovers(directory: Path) -> list[Path]:
    """What no reader sees, of jobs that have ended or are running."""
    return [*directory.glob("kafkalog.*"), *directory.rglob("*.tmp"), *directory.rglob("*.tmp.*")]


def small_job(directory: Path, value: bytes = b"v") -> None:
    """Two tasks that write a record each to one partition, at most once."""
    options = {"path": str(directory), "txnAppId": value.decode(), "txnVersion": "0"}
    writer = SegmentsWriter(options, schema_of(SCHEMA), False)
    columns = [pa.array(["orders"]), pa.array([0], pa.int32()), pa.array([value], pa.binary())]
    rows = pa.record_batch(columns, names=["topic", "partition", "value"])
    writer.commit([writer.write(iter([rows])) for _ in range(2)])


def test_a_job_that_is_killed_at_any_moment_leaves_nothing_that_the_next_one_does_not_remove(tmp_path: Path) -> None:
    """It is removed when the next one starts, whether that writes or finds that it was written before."""
    left = 0
    for moment in itertools.count():
        directory = tmp_path / str(moment)
        directory.mkdir()
        if not killed_at(moment, functools.partial(small_job, directory)):
            break
        left += bool(leftovers(directory))
        assert set(found(directory)) <= {b"v"}  # a part while it publishes, and nothing else at any time
        SegmentsWriter({"path": str(directory)}, schema_of(SCHEMA), False)
        assert not list(directory.glob("kafkalog.*"))
        small_job(directory)
        assert found(directory) == {b"v": 2}
        small_job(directory, b"another")
        assert not leftovers(directory)
    assert left > 20


def test_killed_jobs_without_a_version_write_each_record_once_if_they_were_not_complete(tmp_path: Path) -> None:
    rnd = random.Random(7)
    expected: Counter[bytes] = Counter()
    for number in range(KILLS):
        name = f"job{number}"
        killed_job(tmp_path, name, rnd.randrange(2 * CALLS))
        if '"journal":null' not in state_of(tmp_path) or not found(tmp_path)[values_of(name)[0]]:
            job(tmp_path, name)
        expected.update(values_of(name))
        assert found(tmp_path) == expected


def state_of(directory: Path) -> str:
    path = directory / layout.WRITE_STATE
    return path.read_text() if path.exists() else '"journal":null'


def test_two_jobs_at_once_write_each_record_once(tmp_path: Path) -> None:
    expected: Counter[bytes] = Counter()
    for number in range(ROUNDS):
        names = [f"{letter}{number}" for letter in "ab"]
        children = [in_a_child(lambda name=name: job(tmp_path, name)) for name in names]
        assert [ended(child) for child in children] == [0, 0]
        for name in names:
            expected.update(values_of(name))
        if number % 10 == 0 or number == ROUNDS - 1:
            assert found(tmp_path) == expected
    assert not list(tmp_path.glob("kafkalog.*"))


def test_two_jobs_at_once_of_which_one_is_killed(tmp_path: Path) -> None:
    rnd = random.Random(3)
    expected: Counter[bytes] = Counter()
    for number in range(ROUNDS):
        names = [f"{letter}{number}" for letter in "ab"]
        options = {"txnAppId": "b", "txnVersion": str(number)}
        other = in_a_child(lambda name=names[0]: job(tmp_path, name))
        killed_job(tmp_path, names[1], rnd.randrange(2 * CALLS), **options)
        assert ended(other) == 0
        job(tmp_path, names[1], **options)
        for name in names:
            expected.update(values_of(name))
        assert found(tmp_path) == expected


def kill_between_renames(directory: Path, name: str) -> None:
    """A job of which a part is visible."""
    before, number = found(directory), 20
    while not found(directory) - before:
        recover_write(directory)
        assert killed_job(directory, name, number)
        number += 6


@pytest.mark.java
def test_a_broker_serves_what_killed_jobs_and_their_reruns_have_written(broker: kafka_jvm.Broker) -> None:
    kafka_jvm.create_topic(broker.server, "orders", PARTITIONS)
    broker.stop()
    rnd = random.Random(5)
    expected: Counter[bytes] = Counter()
    for number in range(KILLS):
        options = {"txnAppId": "app", "txnVersion": str(number)}
        while killed_job(broker.logs, f"job{number}", rnd.randrange(2 * CALLS), **options):
            pass
        expected.update(values_of(f"job{number}"))
    broker.start()
    assert consumed(broker) == expected
    broker.stop()

    # A broker that serves a part of a job: it can no longer be removed.
    kill_between_renames(broker.logs, "part")
    broker.start()
    part = consumed(broker) - expected
    assert 0 < sum(part.values()) < TASKS * ROWS
    broker.stop()
    with pytest.raises(UnfinishedWrite, match=r"orders-0 from offset \d+ to \d+: a broker has made its records read"):
        job(broker.logs, "next")
    assert recover_write(broker.logs, keep=True)
    job(broker.logs, "next")
    broker.start()
    assert consumed(broker) == expected + part + Counter(values_of("next"))


def consumed(broker: kafka_jvm.Broker) -> Counter[bytes]:
    lines = kafka_jvm.tool("consume", broker.server, "orders", PARTITIONS, "read_committed")
    return Counter(record.value or b"" for record in kafka_jvm.records(lines))


def test_a_writer_that_appended_to_a_part_of_a_job(tmp_path: Path) -> None:
    job(tmp_path, "first")
    kill_between_renames(tmp_path, "part")
    part = found(tmp_path) - Counter(values_of("first"))
    with LogWriter(tmp_path, "orders", 0, append=True) as writer:
        writer.write([(None, b"theirs")])
    with pytest.raises(UnfinishedWrite, match=r"orders-0 from offset \d+ to \d+: \d+\.log has been appended since"):
        job(tmp_path, "next")
    recover_write(tmp_path, keep=True)
    job(tmp_path, "next")
    assert found(tmp_path) == Counter(values_of("first")) + part + Counter([b"theirs", *values_of("next")])
