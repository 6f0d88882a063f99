"""Streams beside a broker that compacts, rolls, deletes, truncates, and creates topics again, under load.

Processes of their own begin what is killed with them. Where nothing that the query says is looked at, the session of
the tests goes on at its checkpoint.

KAFKACODEC_LIVE_STREAM_SECONDS and KAFKACODEC_LIVE_STREAM_KILLS make the first test longer.
"""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import kafkacodec as kc
from kafkacodec.spark.errors import OptionError
from tests.integration import kafka_jvm, stream_to_table
from tests.integration.stream_to_table import written
from tests.patience import eventually
from tests.stream_query import Query

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.slow]

SECONDS = int(os.environ.get("KAFKACODEC_LIVE_STREAM_SECONDS", "8"))
KILLS = int(os.environ.get("KAFKACODEC_LIVE_STREAM_KILLS", "1"))
ROOT = Path(__file__).parent.parent.parent
PARTITIONS = 2

# The cleaner runs all the time, segments are small, and the high watermarks are written often.
BUSY = {
    "log_segment_bytes": "60000",
    "log_cleanup_policy": "compact,delete",
    "log_cleaner_min_cleanable_ratio": "0.01",
    "log_cleaner_backoff_ms": "100",
    "log_retention_check_interval_ms": "1000",
    "log_segment_delete_delay_ms": "1000",
    "log_flush_start_offset_checkpoint_interval_ms": "1000",
    "log_initial_task_delay_ms": "500",
    "replica_high_watermark_checkpoint_interval_ms": "500",
}
# Segments have their full size from the start; retention deletes what was written some seconds ago.
DELETING = BUSY | {"log_cleanup_policy": "delete", "log_retention_bytes": "240000", "log_preallocate": "true"}


class Process:
    """A query in a process of its own, whose driver and JVM are killed together; it may go on in a session."""

    def __init__(self, logs: Path, directory: Path, **options: str) -> None:
        self.out, self.checkpoint = directory / "out", directory / "checkpoint"
        self._arguments = [str(logs), str(self.out), str(self.checkpoint)]
        self._arguments += [f"{name}={value}" for name, value in options.items()]
        self._said = directory / "query.out"
        self._in_session: Any = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.integration.stream_to_table", *self._arguments]
        with open(self._said, "ab") as said:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)

    def go_on(self, spark: Any) -> None:
        """Start it in a session that is there, after a kill."""
        self._in_session = stream_to_table.start(spark, *self._arguments)

    @property
    def runs(self) -> bool:
        return self._in_session.isActive if self._in_session else self._process.poll() is None

    @property
    def batches(self) -> int:
        """The number of micro-batches that are complete."""
        return sum(name.isdecimal() for name in os.listdir(self.checkpoint / "commits")) if self.started else 0

    @property
    def started(self) -> bool:
        return (self.checkpoint / "commits").is_dir()

    def progress(self, batches: int) -> None:
        """Wait until so many more micro-batches are complete; the query must run."""
        wanted = self.batches + batches
        eventually(lambda: not self.runs or self.batches >= wanted)
        assert self.runs, self.failure()

    def committed(self) -> dict[int, int]:
        """The next offset to read of each partition."""
        lines = (self.checkpoint / "offsets" / str(self.batches - 1)).read_text().splitlines()
        partitions = json.loads(lines[-1])["orders"].items()
        return {int(number): position["offset"] for number, position in partitions if number != "topicId"}

    def failure(self) -> str:
        """What the query said when it failed."""
        if self._in_session:
            return str(self._in_session.exception())
        text = self._said.read_text()
        return text[text.rfind("FAILED") :][:3000] if "FAILED" in text else text[-3000:]

    def lost(self) -> set[tuple[int, int]]:
        """Partitions and offsets that the query said were deleted before it could read them."""
        text = self._said.read_text()
        planned = re.findall(r"offsets (\d+) to (\d+) of orders-(\d) were deleted before", text)
        read = re.findall(r"orders-(\d): offsets? (\d+)(?: to (\d+))? can no longer be read", text)
        spans = [*planned, *((first, last or first, partition) for partition, first, last in read)]
        return {(int(partition), n) for first, last, partition in spans for n in range(int(first), int(last) + 1)}

    def kill(self) -> None:
        if self._in_session:
            self._in_session.stop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self, ends: dict[int, int]) -> None:
        """Read everything that is there, up to these offsets: the ends of the logs."""
        eventually(lambda: not self.runs or self.committed() == ends)
        assert self.runs, self.failure()
        self.kill()


@pytest.fixture
def directory(tmp_path):
    """Ends the queries of a test."""
    queries = []

    def query(broker, **options):
        queries.append(Process(broker.logs, tmp_path, subscribe="orders", maxPartitionBytes="30000", **options))
        return queries[-1]

    yield query
    for started in queries:
        started.kill()


@pytest.fixture
def broker(tmp_path, request):
    broker = kafka_jvm.Broker(tmp_path, **getattr(request, "param", BUSY))
    broker.start()
    yield broker
    broker.kill()


def produced(lines):
    """(partition, offset) -> (key, value) of acknowledged records."""
    found = {}
    for line in lines.read_text().splitlines():
        partition, offset, key, value = line.split(" ")
        found[int(partition), int(offset)] = key, value
    return found


def ends_of(broker):
    """The ends of the logs, by partition."""
    with kc.client.Admin(broker.server) as admin:
        found = admin.list_offsets({("orders", partition): "latest" for partition in range(PARTITIONS)})
    return {place.partition: end.offset for place, end in found.items()}


def rows_of(query):
    rows = ds.dataset(written(query.out)).to_table(["partition", "offset", "key", "value"]).to_pylist()
    return {(r["partition"], r["offset"]): (r["key"], r["value"]) for r in rows}, len(rows)


def produce(broker, name, count):
    """Records in turn into the partitions, in several batches."""
    with kc.client.Producer(broker.server, batch_size=16_384) as producer:
        for n in range(count):
            producer.send("orders", f"{name} {n}".ljust(200), partition=n % PARTITIONS)


@contextlib.contextmanager
def load(broker, lines, per_second=300):
    """A producer that runs meanwhile."""
    process = kafka_jvm.background("load", broker.server, "orders", PARTITIONS, per_second, output=lines)
    try:
        eventually(lambda: lines.stat().st_size > 0)
        yield
        process.communicate(b"stop", timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def run(query, broker, delete, session=None):
    """Let a query run and kill it now and then; returns the number of kills, and up to where records were deleted.

    After the last kill it goes on in the session, if there is one.
    """
    rnd = random.Random(5)
    killed, deleted = 0, 0
    begin = time.monotonic()
    while killed < KILLS or time.monotonic() - begin < SECONDS:
        query.progress(rnd.randrange(1, 4))
        time.sleep(rnd.uniform(0, 1))
        if killed < KILLS and time.monotonic() - begin > SECONDS * (killed + 1) / (KILLS + 1):
            query.kill()
            killed += 1
            if delete and killed % 2:  # what the query has read
                ends = query.committed()
                with kc.client.Admin(broker.server) as admin:
                    admin.delete_records({("orders", partition): offset for partition, offset in ends.items()})
                deleted = max(deleted, *ends.values())
            if session is None or killed < KILLS:
                query.start()
            else:
                query.go_on(session)
    return killed, deleted


def test_every_record_once_while_the_cleaner_runs(spark, broker, directory, tmp_path):
    """Of the records that are missing in the table, the cleaner may have removed all: their keys have newer ones."""
    kafka_jvm.create_topic(broker.server, "orders", PARTITIONS)
    with load(broker, tmp_path / "produced"):
        query = directory(broker, maxOffsetsPerTrigger="2000")
        killed, deleted = run(query, broker, delete=True, session=spark)
    query.finish(ends_of(broker))
    expected = produced(tmp_path / "produced")
    found, count = rows_of(query)
    once = sum(key.startswith("once") for key, _ in expected.values())
    print(
        f"{len(expected)} produced, {once} keys used once; {count} rows, {len(expected) - len(found)} compacted; "
        f"{killed} kills, {query.batches} batches, deleted up to {deleted}"
    )
    assert count == len(found)  # nothing twice
    assert found.items() <= expected.items()
    newest = {}
    for (partition, offset), (key, _) in expected.items():
        newest[partition, key] = max(offset, newest.get((partition, key), 0))
    missing = expected.keys() - found.keys()
    assert [place for place in missing if newest[place[0], expected[place][0]] == place[1]] == []
    assert len(missing) > 0  # the cleaner was faster than the query
    assert deleted > 0


@pytest.mark.parametrize("broker", [DELETING], indirect=True, ids=["retention"])
def test_every_record_once_or_reported_while_retention_deletes(broker, directory, tmp_path):
    """A killed query may come too late for some records; it names them."""
    kafka_jvm.create_topic(broker.server, "orders", PARTITIONS)
    produce(broker, "first", 100)
    query = directory(broker, maxOffsetsPerTrigger="2000", failOnDataLoss="false")
    eventually(lambda: query.batches)  # from offset 0 on
    with load(broker, tmp_path / "produced"):
        killed, _ = run(query, broker, delete=False)
        eventually(lambda: min(int(log.stem) for log in broker.logs.glob("orders-*/*.log")) > 0)  # retention deletes
    query.finish(ends_of(broker))
    expected = produced(tmp_path / "produced")
    found, count = rows_of(query)
    first = {place: row for place, row in found.items() if row[1].startswith("first")}
    assert len(first) == 100
    assert count == len(found)  # nothing twice
    found = {place: row for place, row in found.items() if place not in first}
    missing, lost = expected.keys() - found.keys(), query.lost()
    print(
        f"{len(expected)} produced, {count} rows, {len(missing)} deleted before they were read, {len(lost)} reported; "
        f"{killed} kills, {query.batches} batches"
    )
    assert found.items() <= expected.items()
    assert missing - lost == set()


@pytest.mark.parametrize("broker", [kafka_jvm.SOON_BACK], indirect=True, ids=["quiet"])
def test_a_truncated_log_and_a_topic_created_again(broker):
    """The broker loses the end of its log in a crash, and writes other records; then the topic is created again."""
    kafka_jvm.create_topic(broker.server, "orders", PARTITIONS)
    produce(broker, "first", 1000)
    given = {"subscribe": "orders", "endAt": "logEnd"}
    query = Query(broker.logs, **given)
    assert len(query.rows(query.plan())) == 1000

    broker.kill()
    cuts = [cut_in_half(broker.logs / f"orders-{partition}") for partition in range(PARTITIONS)]
    assert all(0 < cut < 500 for cut in cuts)
    broker.start()
    said = f"orders-0, which was read up to offset 500, was truncated at offset {cuts[0]}"
    with pytest.raises(
        OptionError, match=f"^failOnDataLoss: {said}; with failOnDataLoss=false reading continues at offset {cuts[0]}$"
    ):
        query.plan()
    lenient = Query(broker.logs, query.at, **given, failOnDataLoss="false")
    assert lenient.rows(lenient.plan()) == []
    produce(broker, "second", 1000)
    with pytest.raises(OptionError, match="truncated and written again in the same leader epoch"):
        query.plan()
    second = [(partition, offset) for partition, cut in enumerate(cuts) for offset in range(cut, cut + 500)]
    assert places(lenient.rows(lenient.plan()), b"second") == second

    with kc.client.Admin(broker.server) as admin:
        admin.delete_topics("orders")
    kafka_jvm.create_topic(broker.server, "orders", PARTITIONS)
    produce(broker, "third", 3000)
    query = Query(broker.logs, lenient.at, **given)
    sentence = f"the topic of orders-0, which was read up to offset {cuts[0] + 500}, was deleted and created again"
    with pytest.raises(OptionError, match=f"^failOnDataLoss: {sentence}; .* with the new topic from offset 0$"):
        query.plan()
    assert places(lenient.rows(lenient.plan()), b"third") == [(p, o) for p in (0, 1) for o in range(1500)]


def places(rows, name):
    """Partitions and offsets; all values have this name."""
    assert all(row["value"].startswith(name) for row in rows)
    return sorted((row["partition"], row["offset"]) for row in rows)


def cut_in_half(directory):
    """Remove the last batches of a log; the offset of the first of them."""
    *_, last = sorted(directory.glob("*.log"))
    headers = kc.scan(last.read_bytes())
    first = len(headers) // 2
    os.truncate(last, int(headers["position"][first]))
    return int(headers["base_offset"][first])
