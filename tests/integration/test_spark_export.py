"""`kafkacodec.spark.export` to plain Parquet: what is read back, what the next run adds, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from datetime import date
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException

import kafkacodec as kc
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log import LogWriter
from kafkacodec.spark.exporting.parquet import ParquetDirectory
from tests.corpus import ROOT, assert_same_records
from tests.spark_columns import as_decoded, consumer_records, partition_directories

pytestmark = pytest.mark.spark

LOGS = ROOT / "logs" / "kraft-4.1.0"
GOLDEN = {path: samples for path, samples in partition_directories(magics={0, 1, 2}).items() if path.parent == LOGS}
DAY = 86_400_000
PAGE = Path(__file__).parents[2] / "docs" / "spark-export.md"


def files(target):
    return sorted(target.rglob("*.parquet"))


def append(directory, first, count, *, topic="orders", partition=0, timestamp=1_700_000_000_000):
    """Append records whose values are their numbers, in segments of about a hundred."""
    records = [kc.Record(None, timestamp + n, 0, None, b"%d" % n, []) for n in range(first, first + count)]
    with LogWriter(directory, topic, partition, append=True, segment_bytes=2000, sync=False) as writer:
        writer.write(records, batch_bytes=500)


def values(target):
    """The values of an export in the order of partitions and offsets."""
    found = [(r["partition"], r["offset"], r["value"]) for path in files(target) for r in rows_of(path)]
    return [value for _, _, value in sorted(found)]


def rows_of(path):
    partition = next(int(part.removeprefix("partition=")) for part in path.parts if part.startswith("partition="))
    return [{**row, "partition": partition} for row in pq.read_table(path, partitioning=None).to_pylist()]


@pytest.fixture(scope="module")
def golden(spark, tmp_path_factory):
    """An export of a broker's log directory, with small files and row groups, and its report."""
    target = tmp_path_factory.mktemp("export") / "golden"
    source = {"path": str(LOGS), "includeHeaders": True, "maxPartitionBytes": 1_000_000, "subscribePattern": ".*"}
    return target, kc.spark.export(spark, source, target, file_bytes=1 << 20, row_group_rows=1000)


def test_golden_segments(golden):
    """Each partition has the records that Kafka's own reader found, in order within each file."""
    target, report = golden
    for path, samples in GOLDEN.items():
        topic, _, partition = path.name.rpartition("-")
        mine = [
            pq.read_table(f, partitioning=None)
            for f in files(target)
            if f"topic={topic}/partition={partition}/" in str(f)
        ]
        for table in mine:
            offsets = table["offset"].to_pylist()
            assert offsets == sorted(offsets)
        expected = consumer_records(samples)
        if not expected:
            assert not mine
            continue
        assert_same_records(as_decoded(pa.concat_tables(mine).sort_by("offset")), expected)
    assert report.rows == sum(len(consumer_records(samples)) for samples in GOLDEN.values())


def test_spark_duckdb_and_polars_read_the_same(spark, golden):
    target, report = golden
    source = spark.read.format("kafkalog").option("includeHeaders", True).load(str(LOGS))
    names = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]
    order = [(name, "ascending") for name in ("topic", "partition", "offset")]
    expected = source.select(names).toArrow().sort_by(order)
    mine = spark.read.parquet(str(target)).select(names).toArrow().sort_by(order)
    assert mine.to_pylist() == expected.to_pylist()
    pattern = f"{target}/**/*.parquet"
    totals = 'count(*), sum("offset"), sum(octet_length(value)), count(key)'
    times = "epoch_us(min(timestamp)), epoch_us(max(timestamp))"
    count, offsets, size, keys, first, last = duckdb.sql(
        f"SELECT {totals}, {times} FROM read_parquet('{pattern}', hive_partitioning=true)"
    ).fetchall()[0]
    frame = polars.scan_parquet(pattern, hive_partitioning=True).collect()
    assert count == len(frame) == len(expected) == report.rows
    assert offsets == frame["offset"].sum() == pc.sum(expected["offset"]).as_py()
    assert size == frame["value"].bin.size().sum() == pc.sum(pc.binary_length(expected["value"])).as_py()
    assert keys == frame["key"].count() == len(expected) - expected["key"].null_count
    microseconds = expected["timestamp"].cast(pa.int64())
    assert (first, last) == tuple(pc.min_max(microseconds).as_py().values())
    assert (first, last) == (frame["timestamp"].to_physical().min(), frame["timestamp"].to_physical().max())
    assert set(frame["topic"]) == set(expected["topic"].to_pylist())


def test_files_have_what_readers_prune_by(golden):
    target, report = golden
    for file in report.files:
        metadata = pq.read_metadata(target / report.run / file.path)
        assert metadata.num_rows == file.rows
        assert max(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)) <= 1000
        group = metadata.row_group(0)
        columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
        assert "DELTA_LENGTH_BYTE_ARRAY" in columns["value"].encodings
        assert columns["offset"].statistics.min == file.first_offset
        assert columns["offset"].compression == "ZSTD"
        assert [pq.ParquetSchema.column(metadata.schema, s.column_index).name for s in group.sorting_columns] == [
            "offset"
        ]
        assert str(metadata.schema.to_arrow_schema().field("timestamp").type) == "timestamp[us, tz=UTC]"


def test_files_are_sorted_by_the_offset_after_nested_columns(spark, tmp_path):
    append(tmp_path / "log", 0, 3)
    source = {"path": str(tmp_path / "log"), "columns": "headers,value,offset"}
    report = kc.spark.export(spark, source, tmp_path / "out", partition_by=())
    metadata = pq.read_metadata(tmp_path / "out" / report.run / report.files[0].path)
    (column,) = metadata.row_group(0).sorting_columns
    assert metadata.schema.column(column.column_index).path == "offset"


def test_an_export_goes_through_a_link(spark, tmp_path):
    """To another file system, into which files cannot be moved from this one."""
    append(tmp_path / "log", 0, 3)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        (tmp_path / "out").symlink_to(elsewhere)
        assert kc.spark.export(spark, tmp_path / "log", tmp_path / "out").rows == 3
        assert values(tmp_path / "out") == [b"0", b"1", b"2"]


def test_a_start_is_for_partitions_that_were_not_exported_yet(spark, tmp_path):
    append(tmp_path / "log", 0, 3, timestamp=2000)
    source = {"path": str(tmp_path / "log"), "startingTimestamp": 1000}
    assert kc.spark.export(spark, source, tmp_path / "out").rows == 3
    for file in (tmp_path / "log" / "orders-0").glob(f"{0:020d}.*"):  # as retention deletes them
        file.unlink()
    (tmp_path / "log" / "orders-0" / f"{3:020d}.log").touch()
    assert kc.spark.export(spark, source, tmp_path / "out").rows == 0


def test_report(golden):
    target, report = golden
    table = report.partitions()
    assert pc.sum(table["rows"]).as_py() == report.rows
    assert pc.sum(table["files"]).as_py() == len(files(target)) == len(report.files)
    assert pc.sum(table["size_in_bytes"]).as_py() == sum(path.stat().st_size for path in files(target))
    written = json.loads((target / "run=1" / "_SUCCESS").read_text())
    assert written["partitions"] == table.to_pylist()
    assert written["offsets"] == report.offsets
    assert not report.problems
    assert not list(target.parent.glob(".*"))


def test_the_next_run_goes_on_where_the_last_one_ended(spark, tmp_path):
    log, target = tmp_path / "log", tmp_path / "out"
    append(log, 0, 500)
    append(log, 0, 10, partition=1)
    assert kc.spark.export(spark, log, target).spans == {("orders", 0): (0, 500), ("orders", 1): (0, 10)}
    nothing = kc.spark.export(spark, log, target)
    assert (nothing.run, nothing.rows) == (None, 0)
    append(log, 500, 300)
    append(log, 0, 5, partition=2)
    report = kc.spark.export(spark, log, target)
    assert (report.run, report.rows) == ("run=2", 305)
    assert report.spans == {("orders", 0): (500, 800), ("orders", 2): (0, 5)}
    assert values(target) == [b"%d" % n for n in (*range(800), *range(10), *range(5))]


def test_an_end_is_where_the_next_run_starts(spark, tmp_path):
    append(tmp_path / "log", 0, 100)
    source = {"path": str(tmp_path / "log"), "startingOffsets": '{"orders": {"0": 10}}'}
    kc.spark.export(spark, {**source, "endingOffsets": '{"orders": {"0": 40}}'}, tmp_path / "out")
    assert kc.spark.export(spark, source, tmp_path / "out").spans == {("orders", 0): (40, 100)}
    assert values(tmp_path / "out") == [b"%d" % n for n in range(10, 100)]


def test_days(spark, tmp_path):
    """Days end at midnight UTC, before 1970 too; what no date can name has none, and files stay few."""
    times = [-2, -DAY, 0, DAY - 1, DAY, 300_000_000_000_000, *(DAY * n for n in range(2, 40))]
    with LogWriter(tmp_path / "log", "orders", 0, sync=False) as writer:
        writer.write(kc.Record(None, time, 0, None, b"%d" % time, []) for time in times * 3)
    target = tmp_path / "out"
    kc.spark.export(spark, tmp_path / "log", target, partition_by="date")
    found = {}
    for path in files(target):
        name = path.parent.name.removeprefix("date=")
        found.setdefault(name, []).extend(int(v) for v in pq.read_table(path, partitioning=None)["value"].to_pylist())
    expected = {str(date.fromordinal(date(1970, 1, 1).toordinal() + t // DAY)): [] for t in times if t < 10**13}
    for time in times * 3:
        name = str(date.fromordinal(date(1970, 1, 1).toordinal() + time // DAY)) if time < 10**13 else None
        expected.setdefault(name or "__HIVE_DEFAULT_PARTITION__", []).append(time)
    assert {name: sorted(times) for name, times in found.items()} == {n: sorted(t) for n, t in expected.items()}
    assert spark.read.parquet(str(target)).where("date = '1969-12-31'").count() == 6


def test_columns_and_no_partitions(spark, tmp_path):
    source = {"path": str(LOGS / "none-0"), "columns": "value,topic"}
    kc.spark.export(spark, source, tmp_path / "out", partition_by=(), compression="gzip", compression_level=3)
    (file,) = files(tmp_path / "out")
    assert pq.read_table(file, partitioning=None).column_names == ["value", "topic"]
    assert pq.read_metadata(file).num_rows == spark.read.format("kafkalog").load(str(LOGS / "none-0")).count()


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ({"path": str(LOGS), "subscrib": "none"}, {}, "subscrib: unknown option; did you mean subscribe?"),
        ({"path": str(LOGS), "replicas": "all"}, {}, "replicas: an export reads each partition once"),
        ({"path": str(LOGS), "columns": ["value"]}, {}, "columns: expected text, such as 'value', not list"),
        (LOGS / "nonesuch", {}, "path: .*nonesuch: No such file or directory"),
        ({"kafka.bootstrap.servers": "a:1", "subscribe": "b"}, {}, "an export reads log directories, not brokers"),
        (LOGS, {"format": "parket"}, "format: 'parket' is unknown; did you mean 'parquet'?"),
        (LOGS, {"compression": "zst"}, "compression: 'zst' is unknown; did you mean 'zstd'?"),
        (LOGS, {"compression": "snappy", "compression_level": 3}, "compression_level: snappy has no levels"),
        (LOGS, {"compression_level": 23}, "compression_level: expected a number from 1 to 22, not 23"),
        (LOGS, {"file_bytes": "1g"}, "file_bytes: expected a number from 1048576 to .*, not '1g'"),
        (LOGS, {"row_group_rows": 0}, "row_group_rows: expected a number from 1 "),
        (LOGS, {"partition_by": ("topic", "dat")}, "partition_by: 'dat' is no column .*did you mean 'date'?"),
        (LOGS, {"partition_by": ("topic", "topic")}, "partition_by: topic is listed twice"),
        ({"path": str(LOGS), "columns": "value,topic,partition"}, {}, "partition_by: date needs the column timestamp"),
        (
            {"path": str(LOGS), "columns": "topic"},
            {"partition_by": "topic"},
            "columns: all of them are in partition_by",
        ),
        (LOGS, {"catalog": "x"}, "catalog: applies to format iceberg, not parquet"),
        (LOGS, {"target": " "}, "target: missing"),
        (LOGS, {"target": LOGS}, "target: .* has .*, which no export wrote"),
        (LOGS, {"target": LOGS / "none-0" / "partition.metadata"}, "target: .* is not a directory"),
    ],
)
def test_wrong_options_are_refused_before_spark_is_asked(tmp_path, source, options, message):
    with pytest.raises(kc.spark.OptionError, match=message):
        kc.spark.export(None, source, **{"target": tmp_path / "out", **options})
    assert not (tmp_path / "out").exists()


def test_a_target_keeps_its_columns(spark, tmp_path):
    kc.spark.export(spark, LOGS / "none-0", tmp_path / "out")
    with pytest.raises(kc.spark.OptionError, match=r"partition_by: topic, but .*out has topic, partition, date"):
        kc.spark.export(spark, LOGS / "none-0", tmp_path / "out", partition_by="topic")
    with pytest.raises(kc.spark.OptionError, match=r"columns: .*headers, but .*out has "):
        kc.spark.export(spark, {"path": str(LOGS / "none-0"), "includeHeaders": True}, tmp_path / "out")
    (tmp_path / "out" / "run=1" / "_SUCCESS").write_text("{}")
    with pytest.raises(KafkaCodecError, match="_SUCCESS is missing or damaged, so the end of the export is unknown"):
        kc.spark.export(spark, LOGS / "none-0", tmp_path / "out")


def test_damage(spark, tmp_path):
    """A failed run leaves nothing; a permissive one lists what it left out."""
    source = sorted((LOGS / "none-0").glob("*.log"))[0]
    data = bytearray(source.read_bytes())
    headers = kc.scan(data)
    data[int(headers["position"][1]) + 70] ^= 1
    (tmp_path / "none-0").mkdir()
    (tmp_path / "none-0" / source.name).write_bytes(data)
    with pytest.raises(PythonException, match="CrcMismatch"):
        kc.spark.export(spark, tmp_path / "none-0", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none-0"]
    report = kc.spark.export(spark, {"path": str(tmp_path / "none-0"), "mode": "PERMISSIVE"}, tmp_path / "out")
    assert report.rows == headers["count"].sum() - headers["count"][1]
    (problem,) = report.problems
    assert (problem.topic, problem.partition) == ("none", 0)
    assert problem.path == str(tmp_path / "none-0" / source.name)
    assert (problem.position, problem.size_in_bytes) == (headers["position"][1], headers["size_in_bytes"][1])
    assert report.partitions()["problems"].to_pylist() == [1]


def test_lost_offsets_are_an_error_or_in_the_report(spark, tmp_path):
    log, target = tmp_path / "log", tmp_path / "out"
    append(log, 0, 500)
    kc.spark.export(spark, log, target)
    append(log, 500, 500)
    segments = sorted((log / "orders-0").glob("*.log"))
    kept = next(path for path in segments if int(path.stem) > 500)
    for path in (log / "orders-0").iterdir():
        if path.stem.isdecimal() and int(path.stem) < int(kept.stem):
            path.unlink()
    with pytest.raises(kc.spark.OptionError, match=r"failOnDataLoss: offsets 500 to \d+ of orders-0 were deleted"):
        kc.spark.export(spark, log, target)
    report = kc.spark.export(spark, {"path": str(log), "failOnDataLoss": False}, target)
    assert report.spans == {("orders", 0): (int(kept.stem), 1000)}
    assert [problem.message for problem in report.problems] == [
        f"offsets 500 to {int(kept.stem) - 1} of orders-0 were deleted before they were read; "
        f"reading continues at offset {kept.stem.lstrip('0')}"
    ]
    shutil.rmtree(log / "orders-0")
    append(log, 0, 10)
    with pytest.raises(
        kc.spark.OptionError, match=r"failOnDataLoss: .*orders-0.* was (deleted and created again|truncated)"
    ):
        kc.spark.export(spark, log, target)


def test_the_examples_of_the_docs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"spark": spark}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        # There is a session already, in a JVM with another current directory.
        code = re.sub(r"^spark = .*", "", block, flags=re.MULTILINE).replace('parquet("', f'parquet("{tmp_path}/')
        exec(compile(code, PAGE.name, "exec"), names)
    assert names["report"].rows == spark.read.format("kafkalog").load(kc.sample().path).count()


def test_of_two_runs_at_a_time_one_fails(spark, tmp_path, monkeypatch):
    log, target = tmp_path / "log", tmp_path / "out"
    append(log, 0, 100)
    commit = ParquetDirectory.commit

    def after_another(self, *arguments):
        monkeypatch.setattr(ParquetDirectory, "commit", commit)
        kc.spark.export(spark, log, target)
        commit(self, *arguments)

    monkeypatch.setattr(ParquetDirectory, "commit", after_another)
    with pytest.raises(KafkaCodecError, match=r"another export wrote run=1 .* in the meantime"):
        kc.spark.export(spark, log, target)
    assert values(target) == [b"%d" % n for n in range(100)]
