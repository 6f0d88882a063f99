"""Planning and reading as in Spark's tasks, without Spark: ranges of segments to batches of Spark's schema."""

import logging
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kafkacodec as kc
from kafkacodec.errors import DecodeError, MissingOffsets
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import Pruning, plan
from kafkacodec.spark.reading.tasks import null_when_empty, read_ranges
from kafkacodec.spark.schema import COLUMNS, arrow_schema, column_names
from tests.corpus import ROOT, assert_same_records
from tests.spark_columns import as_decoded, consumer_records, partition_directories

ALL = column_names(headers=True)
LOGS = ROOT / "logs" / "kraft-4.1.0"
PARTITIONS = partition_directories(magics={0, 1, 2})


def options(path, **given):
    return parse_read_options({"path": str(path), **{name: str(value) for name, value in given.items()}})


def read(path, pruning=None, names=ALL, **given):
    """The table that Spark would get, task after task."""
    checked = options(path, **given)
    tasks = pickle.loads(pickle.dumps(plan(checked, pruning)))
    how = {"permissive": checked.permissive, "gaps": checked.gaps}
    batches = [batch for ranges in tasks for batch in read_ranges(ranges, names, **how)]
    assert all(batch.schema == arrow_schema(names) for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, arrow_schema(names))


@pytest.mark.parametrize("directory", PARTITIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize("size", [1 << 40, 4096])
def test_golden_segments(directory, size):
    table = read(directory, maxPartitionBytes=size)
    assert_same_records(as_decoded(table), consumer_records(PARTITIONS[directory]))
    topic, _, partition = directory.name.rpartition("-")
    assert set(table["topic"].to_pylist()) <= {topic}
    assert set(table["partition"].to_pylist()) <= {int(partition)}


def test_batches_have_their_rows_where_records_are_ordinary(tmp_path):
    """As many as stay in the cache; their bytes end a batch of larger ones."""
    for size, expected in ((100, [8192, 8192, 3616]), (10_000, [105] * 2)):
        partition = tmp_path / f"of-{size}"
        partition.mkdir()
        records = [(b"key-%06d" % n, bytes(size)) for n in range(sum(expected))]
        (partition / f"{0:020}.log").write_bytes(kc.encode(records))
        [ranges] = plan(options(partition))
        found = [len(batch) for batch in read_ranges(ranges, ("key", "value", "offset"), permissive=False)]
        assert found[:-1] == expected[:-1]
        assert sum(found) == sum(expected)


def test_where_records_are_and_who_wrote_them():
    """In small ranges, compared with the headers that Kafka's own reader gives."""
    table = read(LOGS / "idempotent-0", names=("offset", "_metadata"), maxPartitionBytes=4096)
    found = dict(zip(table["offset"].to_pylist(), table["_metadata"].to_pylist(), strict=True))
    expected = {
        batch["lastOffset"]: {
            "file": str(sample.path),
            "batch_position": batch["position"],
            "producer_id": batch["producerId"],
            "producer_epoch": batch["producerEpoch"],
            "leader_epoch": batch["partitionLeaderEpoch"],
        }
        for sample in PARTITIONS[LOGS / "idempotent-0"]
        for batch in sample.expected.batches
    }
    assert {offset: found[offset] for offset in expected} == expected
    assert {row["producer_id"] for row in expected.values()} - {-1}


def test_no_headers_are_null():
    headers = read(LOGS / "none-0")["headers"]
    assert 0 < headers.null_count < len(headers)
    assert all(item is None or len(item) for item in headers.to_pylist())


@pytest.mark.parametrize("lengths", [[0, 2, 0, 1], [1, 1], [0, 0, 0], [], [0] * 9 + [3]])
def test_null_when_empty(lengths):
    plain = [[{"key": f"k{i}", "value": None}] * n for i, n in enumerate(lengths)]
    type_ = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    converted = null_when_empty(pa.array(plain, type_))
    converted.validate(full=True)
    assert converted.type == COLUMNS["headers"].arrow
    assert converted.to_pylist() == [item or None for item in plain]


@pytest.mark.parametrize("names", [["offset"], ["topic"], ["timestampType", "key"], ["partition", "topic"]])
def test_only_the_columns_asked_for(names):
    assert read(LOGS / "none-0", names=names).equals(read(LOGS / "none-0").select(names))


def test_batches_are_small():
    [ranges] = plan(options(LOGS / "txn-0"))
    batches = list(read_ranges(ranges, ALL, permissive=False))
    assert all(0 < batch.num_rows <= 8192 for batch in batches)


def test_offsets_bound_what_is_read():
    whole = read(LOGS / "none-0")["offset"].to_numpy()
    part = read(LOGS / "none-0", startingOffsets='{"none": {"0": 17}}', endingOffsets='{"none": {"0": 90}}')
    assert np.array_equal(part["offset"], whole[(whole >= 17) & (whole < 90)])
    assert read(LOGS / "none-0", startingOffsets='{"none": {"0": 1000000}}').num_rows == 0


def test_a_start_that_was_deleted(tmp_path, caplog):
    with kc.log.LogWriter(tmp_path, "t", 0, start_offset=100) as log:
        log.write([(None, b"x")])
    start = {"startingOffsets": '{"t": {"0": 40}}'}
    with pytest.raises(OptionError, match=r"^failOnDataLoss: offsets 40 to 99 of t-0 were deleted"):
        read(tmp_path, **start)
    assert read(tmp_path, **start, failOnDataLoss="false").num_rows == 1
    assert "offsets 40 to 99 of t-0 were deleted" in caplog.text
    assert read(tmp_path).num_rows == 1


def test_deleted_records_are_not_read(tmp_path):
    shutil.copytree(LOGS / "none-0", tmp_path / "none-0", copy_function=shutil.copyfile)
    whole = read(tmp_path)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nnone 0 40\n")
    later = whole.filter(pc.field("offset") >= 40)
    assert 0 < later.num_rows < whole.num_rows
    for start in ("earliest", '{"none": {"0": 7}}'):
        assert read(tmp_path, startingOffsets=start, failOnDataLoss="false") == later
    oldest = min(whole["timestamp"].cast(pa.int64()).to_pylist()) // 1000
    assert read(tmp_path, startingTimestamp=str(oldest)) == later
    assert read(tmp_path / "none-0") == later


def test_timestamps_bound_what_is_read():
    whole = read(LOGS / "ooo-time-0")
    times = whole["timestamp"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_numpy()
    middle = int(np.median(times))
    first = whole["offset"].to_numpy()[np.flatnonzero(times >= middle)[0]]
    start = read(LOGS / "ooo-time-0", startingTimestamp=middle)
    assert start["offset"][0].as_py() == first
    end = read(LOGS / "ooo-time-0", endingOffsetsByTimestamp=f'{{"ooo-time": {{"0": {middle}}}}}')
    assert start.num_rows + end.num_rows == whole.num_rows
    late = {"startingTimestamp": int(times.max()) + 1}
    with pytest.raises(OptionError, match=r"^startingTimestamp: no record"):
        read(LOGS / "ooo-time-0", **late)
    assert read(LOGS / "ooo-time-0", **late, startingOffsetsByTimestampStrategy="latest").num_rows == 0


def test_selectors():
    assert set(read(LOGS, subscribe="none,gzip")["topic"].to_pylist()) == {"none", "gzip"}
    assert set(read(LOGS, subscribePattern="tiny-.*")["topic"].to_pylist()) == {
        f"tiny-{codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    }
    assert set(read(LOGS, assign='{"partitions": [0, 2]}')["partition"].to_pylist()) == {0, 2}


@pytest.mark.parametrize(
    ("path", "given", "message"),
    [
        ("/nonexistent", {}, "path: /nonexistent"),
        (LOGS / "nothing-*", {}, "path: no file or directory matches"),
        ("ftp://bucket/logs", {}, "path: ftp://bucket/logs is not a local path"),
        ("dbfs:/logs", {}, "path: dbfs:/logs is not a local path; mount the dbfs: file system"),
        (LOGS, {"subscribe": "none,nonesuch"}, "subscribe: no segments of nonesuch"),
        (LOGS, {"subscribe": "none,partition"}, "subscribe: no segments of partition; did you mean 'partitions'?"),
        (LOGS, {"assign": '{"partitions": [0, 9]}'}, "assign: no segments of partitions-9"),
        (
            LOGS,
            {"subscribe": "partitions", "startingOffsets": '{"partitions": {"0": 1}}'},
            "startingOffsets: no value for the selected partitions partitions-1, partitions-2",
        ),
        (
            LOGS / "none-0",
            {"endingOffsets": '{"none": {"0": 1}, "gzip": {"0": 1}}'},
            "endingOffsets: names partitions that are not selected: gzip-0",
        ),
        (
            LOGS / "none-0",
            {"startingOffsets": '{"none": {"0": 9}}', "endingOffsets": '{"none": {"0": 8}}'},
            "startingOffsets: 9 for none-0 is after endingOffsets, 8",
        ),
        (
            LOGS / "none-0",
            {"startingTimestamp": "2100-01-01"},
            f"startingTimestamp: no record in {LOGS / 'none-0'} is at or after 2100-01-01 00:00:00.000 UTC "
            "(4102444800000 ms); startingOffsetsByTimestampStrategy=latest",
        ),
        (
            LOGS / "none-0",
            {"startingTimestamp": "2025-01-02", "endingTimestamp": "2025-01-01T12:00"},
            "startingTimestamp: 2025-01-02 00:00:00.000 UTC (1735776000000 ms) for none-0 is after endingTimestamp, "
            "2025-01-01 12:00:00.000 UTC (1735732800000 ms)",
        ),
    ],
)
def test_refused_by_name(path, given, message):
    with pytest.raises(OptionError) as raised:
        plan(options(path, **given))
    assert str(raised.value).startswith(message)


def test_globs_lists_and_files():
    segment = sorted((LOGS / "none-0").glob("*.log"))[0]
    assert read(segment)["topic"].to_pylist()[:1] == ["none"]
    both = read(f"{LOGS}/none-0,{LOGS}/gzip-0")
    assert both.num_rows == read(f"{LOGS}/[ng]*ip-0").num_rows + read(LOGS / "none-0").num_rows
    assert read(segment.as_uri()).num_rows == read(segment).num_rows


def test_braces_and_commas_in_names(tmp_path):
    two = read(f"{LOGS}/none-0,{LOGS}/gzip-0").num_rows
    assert read(f"{LOGS}/{{none,gzip}}-0").num_rows == two
    assert read(f"{LOGS}/{{no,gz}}*-0,{LOGS}/none-0").num_rows == two
    assert parse_read_options({"path": "/{a,b}/{c,d}, /e"}).paths == ("/a/c", "/a/d", "/b/c", "/b/d", "/e")
    assert parse_read_options({"paths": '["s3://logs/{a,b}"]'}).paths == ("s3://logs/a", "s3://logs/b")
    with pytest.raises(OptionError, match=f"no file or directory matches {LOGS}/nine-\\*"):
        plan(options(f"{LOGS}/{{none,nine}}-*"))
    for name in ("a,b", "{a,b}"):
        shutil.copytree(LOGS / "none-0", tmp_path / name / "none-0")
        assert read(tmp_path / name).num_rows == read(LOGS / "none-0").num_rows


def test_small_segments_share_a_task_and_large_ones_are_split():
    everything = plan(options(LOGS))
    assert len(everything) == 1
    split = plan(options(LOGS, maxPartitionBytes=20_000))
    assert len(split) > 10
    assert sum(r.size_in_bytes for task in split for r in task) == sum(r.size_in_bytes for r in everything[0])
    assert len(plan(options(LOGS, minPartitions=7))) >= 7


def test_records_per_task():
    tasks = plan(options(LOGS / "txn-0", maxRecordsPerPartition=100))
    counts = [sum(batch.num_rows for batch in read_ranges(task, ALL, permissive=False)) for task in tasks]
    assert max(counts) <= 100
    assert sum(counts) == read(LOGS / "txn-0").num_rows


def test_read_committed():
    committed = read(LOGS / "txn-0", isolationLevel="read_committed")
    assert 0 < committed.num_rows < read(LOGS / "txn-0").num_rows
    cut = options(LOGS / "txn-0", isolationLevel="read_committed", maxRecordsPerPartition=10)
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan(cut)]
    assert len(tasks) > 100
    parts = [batch for task in tasks for batch in read_ranges(task, ALL, permissive=False)]
    assert pa.Table.from_batches(parts)["offset"].to_pylist() == committed["offset"].to_pylist()


def test_pruning_skips_segments_that_filters_exclude():
    assert set(read(LOGS, Pruning(topics=frozenset(["none"])))["topic"].to_pylist()) == {"none"}
    assert set(read(LOGS, Pruning(partitions=frozenset([2])))["topic"].to_pylist()) == {"partitions"}
    offsets = read(LOGS / "none-0", Pruning(start_offset=20, end_offset=40))["offset"].to_pylist()
    assert offsets == list(range(20, 40))
    whole = read(LOGS / "none-0")
    times = whole["timestamp"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_numpy()
    later = read(LOGS / "none-0", Pruning(start_timestamp=int(times[-1])))
    assert 0 < later.num_rows < whole.num_rows
    assert later["offset"][-1] == whole["offset"][-1]


@pytest.fixture
def damaged(tmp_path):
    """A partition whose second batch of ten has a wrong byte."""
    source = sorted((LOGS / "none-0").glob("*.log"))[0]
    data = bytearray(source.read_bytes())
    headers = kc.scan(data)
    data[int(headers["position"][1]) + 70] ^= 1
    directory = tmp_path / "none-0"
    directory.mkdir()
    (directory / source.name).write_bytes(data)
    return directory, headers


def test_failfast_ends_at_the_first_damage(damaged):
    directory, headers = damaged
    with pytest.raises(DecodeError) as raised:
        read(directory)
    assert str(directory) in str(raised.value)
    assert raised.value.position == headers["position"][1]


def test_permissive_skips_and_logs(damaged, caplog):
    directory, headers = damaged
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        table = read(directory, mode="PERMISSIVE")
    assert table.num_rows == headers["count"].sum() - headers["count"][1]
    [message] = {record.getMessage() for record in caplog.records}
    assert str(directory) in message
    assert f"from byte {headers['position'][1]}" in message


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_empty_files_have_no_records(tmp_path, mode):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").touch()
    assert read(tmp_path, mode=mode).num_rows == 0


def test_not_a_segment(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"PAR1 and so on, which is no batch at all" * 10)
    with pytest.raises(DecodeError, match="t-0"):
        read(tmp_path)
    assert read(tmp_path, mode="PERMISSIVE").num_rows == 0


@pytest.mark.parametrize("limits", [{}, {"maxPartitionBytes": "3000"}, {"maxRecordsPerPartition": "7"}])
def test_offsets_that_are_missing_between_segments(tmp_path, caplog, limits):
    source = ROOT / "logs/kraft-4.1.0/none-0"
    shutil.copytree(source, tmp_path / "none-0", copy_function=shutil.copyfile)
    assert read(tmp_path, **limits).num_rows == 174
    (tmp_path / "none-0/00000000000000000032.log").unlink()  # 33 records
    with pytest.raises(MissingOffsets, match="gap of 33 offsets from 32 on"):
        read(tmp_path, **limits)
    assert read(tmp_path, endingOffsets='{"none": {"0": 32}}', **limits).num_rows == 32
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert read(tmp_path, mode="PERMISSIVE", **limits).num_rows == 174 - 33
    assert "gap of 33 offsets" in caplog.text
    caplog.clear()
    assert read(tmp_path, gaps="accept", **limits).num_rows == 174 - 33
    assert caplog.text == ""
