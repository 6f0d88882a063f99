"""Writing as in Spark's tasks and its driver, without Spark."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import kafkacodec as kc
from kafkacodec.errors import EncodeError
from kafkacodec.log.files import publishing
from kafkacodec.log.formats import layout
from kafkacodec.log.writing.segment_writer import publish_files
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.writing import owner, recovery, tasks
from kafkacodec.spark.writing.jobs import SegmentsWriter
from kafkacodec.spark.writing.options import parse_write_options
from kafkacodec.spark.writing.staging import Owner, new_directory, new_task, remove, remove_abandoned
from kafkacodec.spark.writing.tasks import TaskWriter
from tests.corpus import ROOT, assert_same_records
from tests.spark_columns import as_decoded, consumer_records, partition_directories
from tests.unit.test_spark_reading import read

LOGS = ROOT / "logs" / "kraft-4.1.0"
ANY = "topic string, partition int, key binary, value binary"


def schema_of(text):
    """A schema without a Spark session."""
    types = {"binary": "binary", "string": "string", "int": "integer", "bigint": "long", "timestamp": "timestamp"}
    fields = [field.strip().split() for field in text.split(",")]
    return StructType.fromJson(
        {
            "type": "struct",
            "fields": [{"name": n, "type": types[t], "nullable": True, "metadata": {}} for n, t in fields],
        }
    )


def batch(**columns):
    kinds = {"partition": pa.int32(), "topic": pa.string(), "timestamp": pa.timestamp("us", tz="UTC")}
    return pa.record_batch({name: pa.array(c, kinds.get(name, pa.binary())) for name, c in columns.items()})


def job(directory, attempts, schema=ANY, overwrite=False, left=(), **options):
    """A job: each task's batches, then the commit."""
    visible = sorted(directory.glob("*-[0-9]/*"))
    writer = SegmentsWriter({"path": str(directory), **options}, schema_of(schema), overwrite)
    messages = [writer.write(iter(batches)) for batches in attempts]
    assert sorted(directory.glob("*-[0-9]/*")) == visible
    for task, message in enumerate(messages):
        object.__setattr__(message, "task", task)
    writer.commit(messages)
    assert sorted(directory.glob("kafkalog*")) == sorted(left)
    return writer


def test_golden_records_come_back(tmp_path):
    """Read a broker's partitions, write them, read them again."""
    names = ["none-0", "zstd-0", "partitions-0", "partitions-1", "partitions-2", "big-none-0"]
    table = read(",".join(str(LOGS / name) for name in names))
    writer = SegmentsWriter({"path": str(tmp_path), "codec": "lz4"}, schema_of(ANY), False)
    writer.commit([writer.write(iter(table.to_batches()))])
    golden = partition_directories({2})
    for name in names:
        expected = [row._replace(offset=i) for i, row in enumerate(consumer_records(golden[LOGS / name]))]
        assert_same_records(as_decoded(read(tmp_path / name)), expected)


def test_tasks_continue_one_another_and_earlier_jobs(tmp_path):
    def rows(first, count):
        values = [b"%d" % i for i in range(first, first + count)]
        return batch(topic=["t"] * count, partition=[0] * count, key=[None] * count, value=values)

    job(tmp_path, [[rows(0, 100), rows(100, 50)], [], [rows(150, 75)]], segmentBytes="1000", batchBytes="200")
    job(tmp_path, [[rows(225, 10)]])
    table = read(tmp_path / "t-0")
    assert table["value"].to_pylist() == [b"%d" % i for i in range(235)]
    assert table["offset"].to_pylist() == list(range(235))
    assert len(kc.log.Partition(tmp_path / "t-0").segments) > 4


def test_indexes_fit_the_segments(tmp_path):
    rows = [batch(value=[b"%0100d" % i for i in range(start, start + 500)]) for start in (0, 500, 1000)]
    job(tmp_path, [rows[:1], rows[1:]], "value binary", topic="t", batchBytes="300", segmentBytes="40000")
    partition = kc.log.Partition(tmp_path / "t-0")
    assert len(partition.segments) > 3
    for segment in partition.segments:
        headers = segment.scan()
        assert headers["crc_ok"].all()
        assert segment.base_offset == headers["base_offset"][0]
        entries = len(kc.log.read_offset_index(segment.path.replace(".log", ".index")))
        assert entries > 2 or segment is partition.segments[-1]
        for offset, position in zip(headers["last_offset"].tolist(), headers["position"].tolist(), strict=True):
            assert segment.position_of_offset(offset) == position
    assert not partition.index_problems


def test_keys_go_where_kafkas_producer_puts_them(tmp_path):
    keys = [b"key-%d" % (i % 37) for i in range(500)]
    job(tmp_path, [[batch(key=keys, value=keys)]], "key binary, value binary", topic="t", numPartitions="4")
    for number in range(4):
        found = read(tmp_path / f"t-{number}")["key"].to_pylist()
        assert found == [key for key, wanted in zip(keys, kc.partition(keys, 4), strict=True) if wanted == number]


@pytest.mark.parametrize("keys", [None, [None, b"a"]])
def test_records_without_a_key_go_to_partitions_in_turn(tmp_path, keys):
    rows = [batch(value=[b"x", b"y"], **({"key": keys} if keys else {})) for _ in range(50)]
    schema = "key binary, value binary" if keys else "value binary"
    job(tmp_path, [rows], schema, topic="t", numPartitions="5")
    unkeyed = [row for row in read(tmp_path).to_pylist() if row["key"] is None]
    counts = [sum(row["partition"] == n for row in unkeyed) for n in range(5)]
    assert counts == [len(unkeyed) // 5] * 5


def test_partition_column_wins_over_the_key(tmp_path):
    rows = batch(partition=[2, None, 0], key=[b"a", b"b", None], value=[b"1", b"2", b"3"])
    job(tmp_path, [[rows]], "partition int, key binary, value binary", topic="t", numPartitions="3")
    expected = {2: [b"1"], 0: [b"3"]}
    expected.setdefault(int(kc.partition([b"b"], 3)[0]), []).append(b"2")
    for number, values in expected.items():
        assert sorted(read(tmp_path / f"t-{number}")["value"].to_pylist()) == sorted(values)


def test_timestamps_are_kept_or_the_time_of_the_job(tmp_path):
    job(
        tmp_path,
        [[batch(value=[b"x"], timestamp=[1_600_000_000_123_456])]],
        "value binary, timestamp timestamp",
        topic="a",
    )
    assert read(tmp_path / "a-0")["timestamp"].cast(pa.int64()).to_pylist() == [1_600_000_000_123_000]
    writer = job(tmp_path, [[batch(value=[b"x"])]], "value binary", topic="b")
    assert read(tmp_path / "b-0")["timestamp"].cast(pa.int64()).to_pylist() == [writer.job.now * 1000]


def test_nothing_is_visible_of_a_job_that_fails(tmp_path):
    writer = SegmentsWriter({"path": str(tmp_path), "topic": "t"}, schema_of("partition int, value binary"), False)
    done = writer.write(iter([batch(partition=[0], value=[b"1"])]))
    with pytest.raises(EncodeError, match="negative partition -3"):
        writer.write(iter([batch(partition=[1, -3], value=[b"1", b"2"])]))
    assert not list(tmp_path.glob("t-*"))
    writer.abort([done, None])
    assert not list(tmp_path.iterdir())


def test_leader_epoch_is_that_of_the_partition(tmp_path):
    with kc.log.LogWriter(tmp_path, "t", 0, leader_epoch=7) as log:
        log.write([(None, b"first")])
    job(tmp_path, [[batch(value=[b"second"])]], "value binary", topic="t")
    epochs = np.concatenate([s.scan()["partition_leader_epoch"] for s in kc.log.Partition(tmp_path / "t-0").segments])
    assert epochs.tolist() == [7, 7]


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("value binary", {}, "topic: missing"),
        ("key binary", {"topic": "t"}, "column 'value': missing"),
        ("value int", {"topic": "t"}, "column 'value': must be binary or string, not int"),
        ("value binary, colour string", {"topic": "t"}, "column 'colour': unknown column"),
        ("value binary", {"topic": "t", "codec": "brotli"}, "codec: expected none, gzip"),
        ("value binary", {"topic": "t", "numPartitions": "0"}, "numPartitions: '0' is not a positive integer"),
        ("value binary", {"topic": "t", "level": "high"}, "level: 'high' is not an integer"),
        ("value binary", {"topic": "t", "compression": "gzip"}, "compression: unknown option"),
        ("value binary", {"topic": "t", "path": ""}, "path: missing"),
        ("value binary", {"topic": "t", "path": "hdfs://host/logs"}, "path: hdfs://host/logs is not a local path"),
        (
            "value binary",
            {"topic": "t", "path": "hdfs:/logs"},
            "path: hdfs:/logs is not a local path; mount the hdfs: fi",
        ),
        ("value binary", {"topic": "a b"}, "topic: invalid topic name 'a b'"),
        ("value binary", {"topic": "t", "txnAppId": "a"}, "txnAppId: requires txnVersion; set both or neither"),
        ("value binary", {"topic": "t", "txnVersion": "1"}, "txnVersion: requires txnAppId; set both or neither"),
        ("value binary", {"topic": "t", "txnAppId": " ", "txnVersion": "1"}, "txnAppId: expected 1 to 512 characters"),
        ("value binary", {"topic": "t", "txnAppId": "a", "txnVersion": "-1"}, "txnVersion: '-1' is not a number from"),
        ("value binary", {"topic": "t", "txnAppId": "a", "txnVersion": "x"}, "txnVersion: 'x' is not an integer"),
        ("value binary", {"topic": "t", "checkpointLocation": "/c"}, "checkpointLocation: unknown option"),
    ],
)
def test_refused_by_name(tmp_path, schema, options, message):
    with pytest.raises(OptionError, match=f"^{re.escape(message)}"):
        SegmentsWriter({"path": str(tmp_path), **options}, schema_of(schema), False)
    assert not list(tmp_path.iterdir())


def test_a_version_is_written_once(tmp_path, caplog):
    rows, app = [[batch(topic=["t"], partition=[0], value=[b"a"])]], {"txnAppId": "app"}
    for version in ("5", "5", "4", "6"):
        job(tmp_path, rows, txnVersion=version, **app)
    assert read(tmp_path)["value"].to_pylist() == [b"a"] * 2
    assert [r.getMessage().rpartition(": ")[2] for r in caplog.records] == [
        f"version {version} of 'app' was written before and is not written again" for version in (5, 4)
    ]
    job(tmp_path, rows, txnVersion="0", txnAppId="other")
    job(tmp_path, [[]], txnVersion="1", txnAppId="other")  # without records
    job(tmp_path, rows, txnVersion="1", txnAppId="other")
    assert read(tmp_path)["value"].to_pylist() == [b"a"] * 3


def test_two_jobs_with_the_same_version(tmp_path):
    """Neither knows of the other when it begins."""
    options = {"path": str(tmp_path), "txnAppId": "app", "txnVersion": "0"}
    rows = [batch(topic=["t"], partition=[0], value=[b"a"])]
    writers = [SegmentsWriter(options, schema_of(ANY), False) for _ in range(4)]
    staged = [writer.write(iter(rows)) for writer in writers]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pair: pair[0].commit([pair[1]]), zip(writers, staged, strict=True)))
    assert read(tmp_path)["value"].to_pylist() == [b"a"]
    assert not leftovers(tmp_path)


def test_small_segments_are_joined(tmp_path):
    def rows(task):
        values = [b"%d" % n for n in range(100 * task, 100 * task + 100)]
        return [batch(topic=["t"] * 100, partition=[n % 3 for n in range(100)], value=values)]

    job(tmp_path, [rows(task) for task in range(10)])
    for number in range(3):
        partition = kc.log.Partition(tmp_path / f"t-{number}")
        assert len(partition.segments) == 1
        values = [int(v) for v in read(tmp_path / f"t-{number}")["value"].to_pylist()]
        assert values == [n for n in range(1000) if n % 100 % 3 == number]
        assert partition.verify().clean
    job(tmp_path, [rows(task) for task in range(10)], segmentBytes="4000", batchBytes="200")
    for number in range(3):
        sizes = [segment.size_in_bytes for segment in kc.log.Partition(tmp_path / f"t-{number}").segments]
        assert all(2000 < size <= 4000 for size in sizes[1:-1])
    assert kc.log.LogDirectory(tmp_path).verify().clean


@pytest.mark.slow
def test_many_segments_in_a_partition_give_one_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("kafkacodec.spark.writing.publish.JOIN_AT_MOST", 0)
    tasks = [[batch(topic=["t"] * 2, partition=[0, 1], value=[b"a", b"b"])] for _ in range(65)]
    job(tmp_path, tasks[:64])
    assert not caplog.records
    job(tmp_path, tasks)
    (record,) = caplog.records
    assert re.search(r"^t-0 gets 65 segments of \d+ bytes on average: df\.repartition", record.getMessage())


def test_only_the_attempts_that_spark_names_are_published(tmp_path):
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False)
    rows = [batch(topic=["t"], partition=[0], value=[b"a"])]
    first, second = writer.write(iter(rows)), writer.write(iter(rows))
    assert first.directory != second.directory
    writer.commit([second])
    assert read(tmp_path)["value"].to_pylist() == [b"a"]
    assert not leftovers(tmp_path)


def test_output_that_was_removed_is_not_missed_silently(tmp_path):
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False)
    staged = writer.write(iter([batch(topic=["t"] * 2, partition=[0, 1], value=[b"a", b"b"])]))
    hidden = tmp_path / "hidden"
    os.rename(os.path.join(staged.directory, "t-1"), hidden)
    with pytest.raises(OSError, match="has written 2 records, but its files have 1") as caught:
        writer.commit([staged])
    assert caught.value.filename == staged.directory
    shutil.rmtree(staged.directory)
    with pytest.raises(FileNotFoundError, match="removed before the job was complete") as caught:
        writer.commit([staged])
    assert not list(tmp_path.glob("t-*"))


def test_a_task_of_a_job_that_has_ended_makes_nothing_anew(tmp_path):
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False)

    def rows():
        yield batch(topic=["t"], partition=[0], value=[b"a"])
        shutil.rmtree(writer.job.staging)
        yield batch(topic=["t"] * 9000, partition=[1] * 9000, value=[b"a"] * 9000)

    with pytest.raises(FileNotFoundError, match="the staging directory was removed"):
        writer.write(rows())
    assert not leftovers(tmp_path)


def test_a_task_that_makes_its_directory_again_makes_nothing_that_stays(tmp_path, monkeypatch):
    """Its job ends between its look at the directory and the first file."""
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False)

    def removed_first(directory, *arguments, **options):
        remove(writer.job.staging)
        return kc.log.LogWriter(directory, *arguments, **options)

    monkeypatch.setattr(tasks, "LogWriter", removed_first)
    with pytest.raises(FileNotFoundError, match="the staging directory was removed"):
        writer.write(iter([batch(topic=["t"], partition=[0], value=[b"a"])]))
    assert not leftovers(tmp_path)


def test_a_directory_that_another_job_took_for_unbegun_is_made_again(tmp_path, monkeypatch):
    """Between its creation and its owner's, and after the owner's temporary file is there."""
    replace_file, taken = publishing.replace_file, []

    def taken_first(path, data, **options):
        if len(taken) < 2:
            if taken:
                (tmp_path / os.path.dirname(path) / "owner.0123456789abcdef.tmp").touch()
            taken.extend(remove_abandoned(tmp_path))
        replace_file(path, data, **options)

    monkeypatch.setattr(publishing, "replace_file", taken_first)
    staging = new_directory(str(tmp_path))
    directory = new_task(staging, Owner(owner.driver()), 0)
    assert taken == [staging] * 2
    assert os.listdir(directory) == []
    assert remove_abandoned(tmp_path) == []
    assert os.path.isdir(directory)


def test_overwriting_is_refused(tmp_path):
    (tmp_path / "t-0").mkdir()
    with pytest.raises(FileExistsError, match="not empty"):
        SegmentsWriter({"path": str(tmp_path), "topic": "t"}, schema_of("value binary"), True)
    SegmentsWriter({"path": str(tmp_path / "new"), "topic": "t"}, schema_of("value binary"), True)


KILLED_AMONG_RENAMES = """
import os, signal, sys
from kafkacodec.log.formats import layout
from kafkacodec.log.files import publishing
from tests.unit.test_spark_writing import batch, job
publish, count = publishing.publish, 0
def killed(source, target, **options):
    global count
    count += target.endswith(".log") and "staging" not in target
    if count == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    publish(source, target, **options)
publishing.publish = killed
from pathlib import Path
job(Path(sys.argv[1]), [[batch(topic=["t"] * 3, partition=[0, 1, 2], value=[b"a", b"b", b"c"])]])
"""


def leftovers(directory):
    return list(directory.glob("kafkalog.staging-0.*"))


def test_leftovers_of_a_killed_driver_are_ignored_and_removed(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED_AMONG_RENAMES, tmp_path], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = leftovers(tmp_path)
    log = kc.log.LogDirectory(tmp_path)
    assert {(p.partition, p.end_offset()) for p in log.all_partitions} == {(0, 1), (1, 0), (2, 0)}
    assert log.verify().ok
    assert read(tmp_path)["value"].to_pylist() == [b"a"]
    assert {p.topic for p in kc.log.discover([tmp_path / "t-0", left])} == {"t"}
    rows = [batch(topic=["t"] * 3, partition=[0, 1, 2], value=[b"d", b"e", b"f"])]
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False)
    assert not read(tmp_path)["value"].to_pylist()
    writer.commit([writer.write(iter(rows))])
    assert not leftovers(tmp_path)
    assert sorted(read(tmp_path)["value"].to_pylist()) == [b"d", b"e", b"f"]


def test_leftovers_of_a_driver_that_may_be_running_stay_for_a_day(tmp_path):
    others = [tmp_path / layout.staging_name(digit * 32) for digit in "123"]
    for other, driver in zip(others, ["elsewhere pid:[1] 7 8", "", owner.driver()], strict=True):
        (other / "0.0").mkdir(parents=True)
        (other / "owner").write_text(json.dumps([driver, ""]))
    job(tmp_path, [[batch(topic=["t"], partition=[0], value=[b"a"])]], left=others)
    yesterday = time.time() - 25 * 3600
    for path in [path for other in others for path in (other, *other.rglob("*"))]:
        os.utime(path, (yesterday, yesterday))
    job(tmp_path, [[batch(topic=["t"], partition=[0], value=[b"a"])]])


def test_what_a_link_points_to_is_no_leftover(tmp_path):
    (tmp_path / "photos" / "2019").mkdir(parents=True)
    link = tmp_path / layout.staging_name("1" * 32)
    link.symlink_to(tmp_path / "photos")
    assert remove_abandoned(tmp_path, older_than=0) == []
    assert (tmp_path / "photos" / "2019").exists()


def test_rows_that_wait_do_not_keep_the_batches_that_they_came_in(tmp_path):
    options = parse_write_options({"path": str(tmp_path), "topic": "t"})
    directory = new_task(new_directory(str(tmp_path)), Owner(), 0)
    writer = TaskWriter(options, directory, 0, 0)
    before = pa.total_allocated_bytes()
    for n in range(200):
        writer.add(batch(partition=[0, 1], value=[b"x" * 1_000_000, b"%d" % n]))
    assert pa.total_allocated_bytes() - before < 80 << 20
    assert writer.finish() == 400
    [chunk] = kc.log.Partition(os.path.join(directory, "t-1")).read()
    assert list(chunk["value"]) == [b"%d" % n for n in range(200)]


def test_a_staging_directory_in_use_stays(tmp_path):
    used, left = (tmp_path / layout.staging_name(digit * 32) for digit in "12")
    (left / "0.0" / "t-0").mkdir(parents=True)
    (tmp_path / "kafkalog.staging-0").mkdir()
    with kc.log.LogWriter(used / "0.0", "t", 0) as writer:
        writer.write([(None, b"x")])
        assert remove_abandoned(tmp_path) == []
        assert remove_abandoned(tmp_path, older_than=0) == [str(left)]
    assert leftovers(tmp_path) == [used]
    assert remove_abandoned(tmp_path, older_than=0) == [str(used)]
    assert (tmp_path / "kafkalog.staging-0").exists()


@pytest.mark.slow
def test_many_topics_and_partitions_in_one_batch(tmp_path):
    topics = [f"t{i % 7}" for i in range(3000)]
    numbers = [i * i % 1000 for i in range(3000)]
    values = [b"%d" % i for i in range(3000)]
    rows = batch(topic=topics, partition=numbers, value=values)
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of("topic string, partition int, value binary"), False)
    log = kc.log.LogDirectory(writer.write(iter([rows])).directory)
    expected = {}
    for topic, number, value in zip(topics, numbers, values, strict=True):
        expected.setdefault((topic, number), []).append(value)
    found = {
        (p.topic, p.partition): [r for c in p.read(columns=["value"]) for r in pa.record_batch(c)["value"].to_pylist()]
        for p in log.all_partitions
    }
    assert found == expected


def test_null_topics_are_refused(tmp_path):
    with pytest.raises(EncodeError, match="topic is null"):
        job(tmp_path, [[batch(topic=["t", None], value=[b"", b""])]], "topic string, value binary")


def test_two_jobs_into_one_partition(tmp_path):
    """The later job waits, and continues where the earlier one ended."""
    rows = [batch(topic=["t"] * 500, partition=[n % 3 for n in range(500)], value=[b"%d" % n for n in range(500)])]
    writers = [SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False) for _ in range(6)]
    staged = [writer.write(iter(rows)) for writer in writers]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda pair: pair[0].commit([pair[1]]), zip(writers, staged, strict=True)))
    assert sorted(read(tmp_path)["value"].to_pylist()) == sorted([b"%d" % n for n in range(500)] * 6)
    assert kc.log.LogDirectory(tmp_path).verify().clean
    assert not leftovers(tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_empty_segment_that_a_broker_makes_in_a_new_partition_makes_way(tmp_path):
    partition = tmp_path / "t-0"
    partition.mkdir()
    for suffix in (".log", ".index", ".timeindex"):
        (partition / f"{0:020d}{suffix}").write_bytes(b"")
    job(tmp_path, [[batch(value=[b"a", b"b"], partition=[0, 0])]], topic="t")
    assert [r.value for chunk in kc.log.Partition(partition).read() for r in chunk.records()] == [b"a", b"b"]


def test_an_existing_segment_keeps_its_index_files(tmp_path):
    there, staged = tmp_path / "there", tmp_path / "staged"
    for directory in (there, staged):
        directory.mkdir()
        for suffix in (".index", ".timeindex", ".log"):
            (directory / f"{0:020d}{suffix}").write_bytes(directory.name.encode())
    moves = [(str(staged / f"{0:020d}{s}"), str(there / f"{0:020d}{s}")) for s in (".index", ".timeindex", ".log")]
    with pytest.raises(FileExistsError):
        publish_files(moves)
    assert [path.read_bytes() for path in sorted(there.iterdir())] == [b"there"] * 3
    assert [path.read_bytes() for path in sorted(staged.iterdir())] == [b"staged"] * 3


def test_nothing_is_visible_if_a_rename_fails(tmp_path, monkeypatch):
    job(tmp_path, [[batch(topic=["t"] * 2, partition=[0, 2], value=[b"a", b"b"])]])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ordinary = publishing.publish

    def fails_at_the_last(source, target, **options):
        if "t-2" in target and target.endswith(".log") and "staging" not in target:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
        ordinary(source, target, **options)

    monkeypatch.setattr(publishing, "publish", fails_at_the_last)
    writer = SegmentsWriter({"path": str(tmp_path)}, schema_of(ANY), False)
    staged = writer.write(iter([batch(topic=["t"] * 3, partition=[0, 1, 2], value=[b"c", b"d", b"e"])]))
    with pytest.raises(OSError, match="No space left"):
        writer.commit([staged])
    writer.abort([staged])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "t-1").exists()


def test_a_broker_or_writer_that_has_the_log_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery, "WAIT", 0.2)
    with kc.log.LogWriter(tmp_path, "t", 0, sync=False) as log:
        log.write([(None, b"x")])
        with pytest.raises(BlockingIOError, match="another writer in this process") as caught:
            job(tmp_path, [[batch(topic=["t"], partition=[0], value=[b"a"])]])
        assert caught.value.filename == str(tmp_path / "t-0")
    assert read(tmp_path)["value"].to_pylist() == [b"x"]
