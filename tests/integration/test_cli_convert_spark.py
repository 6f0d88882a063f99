"""``kafkacodec convert --spark``: an export by the command."""

from __future__ import annotations

import json

import duckdb
import pyarrow.parquet as pq
import pytest

import kafkacodec as kc
from tests.avro_samples import encoded
from tests.integration.test_spark_export import LOGS, append, files, values
from tests.integration.test_spark_values import ONE, SECOND, TWO, framed

pytestmark = pytest.mark.spark


def test_the_command_exports_what_is_new(spark, kafkacodec, tmp_path):
    log, target = tmp_path / "log", tmp_path / "out"
    for topic in ("orders", "other", "orders-2"):
        append(log, 0, 50, topic=topic)
    command = ("convert", log, "--spark", "-o", target, "--topic", "orders*", "--partition-by", "topic, partition")
    code, _, err = kafkacodec(*command, "--start-time", "1700000000010", "--compression", "gzip")
    assert (code, err.startswith(f"{target}: 80 records of 2 partitions in 2 files (")) == (0, True)
    assert sorted(path.parent.parent.name for path in files(target)) == ["topic=orders", "topic=orders-2"]
    assert pq.read_metadata(files(target)[0]).row_group(0).column(0).compression == "GZIP"
    assert kafkacodec(*command) == (0, "", f"{target}: nothing new\n")
    append(log, 50, 5)
    assert kafkacodec(*command)[2].startswith(f"{target}: 5 records of 1 partition in 1 file (")
    assert values(target) == sorted([b"%d" % n for n in (*range(10, 50), *range(10, 55))], key=int)
    code, _, _ = kafkacodec("convert", log, "--spark", "-o", tmp_path / "delta", "--format", "delta")
    assert code == 0
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{tmp_path}/delta/*/*/*/*/*.parquet')").fetchall() == [(155,)]


def test_the_command_says_what_is_damaged(spark, kafkacodec, tmp_path):
    append(tmp_path / "log", 0, 20)
    segment = next((tmp_path / "log").rglob("*.log"))
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    command = ("convert", tmp_path / "log", "--spark", "-o", tmp_path / "out")
    code, _, err = kafkacodec(*command)
    assert code == 1
    assert err.startswith(f"kafkacodec: error: Spark failed: {segment}: batch at offset 0: the CRC-32C of a batch is")
    code, _, err = kafkacodec(*command, "--on-error", "skip")
    assert code == 0
    assert err.startswith(f"kafkacodec: warning: {segment}: {kc.scan(data)['size_in_bytes'][0]:,} bytes skipped: ")


def test_the_command_decodes_values(spark, kafkacodec, tmp_path):
    for number, schema in ((1, ONE), (2, TWO)):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    with kc.log.LogWriter(tmp_path / "log", "orders", 0, sync=False) as writer:
        writer.write([(None, framed(1, encoded(ONE, [{"id": 5}])[0])), (None, framed(2, encoded(TWO, [SECOND])[0]))])
    command = ("convert", tmp_path / "log", "--spark", "-o", tmp_path / "out", "--values", "avro")
    code, _, err = kafkacodec(*command, "--schemas", tmp_path)
    assert code == 2
    assert "Error: --values in an export needs --reader-schema FILE, or --schemas FILE: its columns" in err
    code, _, err = kafkacodec(*command, "--schemas", tmp_path, "--reader-schema", tmp_path / "1.avsc")
    assert code == 0, err
    (path,) = files(tmp_path / "out")
    table = pq.read_table(path, partitioning=None)
    assert table["value"].to_pylist() == [{"id": 5}, {"id": 2}]
    assert table["value_schema_id"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--spark -o out --threads 2", "--threads: Spark decides"),
        ("--spark -o out --partition 0", "--partition: an export keeps its place in all partitions"),
        ("--spark -o out --on-error stop", "--on-error stop: "),
        ("--spark -o out --compression brotli", "--compression: 'brotli' is unknown"),
        ("--spark -o out --partition-by offset", "--partition-by: 'offset' is no column to partition by"),
        ("--spark -o out.csv --format csv", "--spark writes parquet, iceberg, delta, not csv"),
        ("--spark -o -", "--spark writes a directory or a table"),
        ("-o out --format delta", "--format delta needs --spark"),
        ("-o out.parquet --catalog prod", "--catalog needs --spark"),
        ("-o tests --format json", "tests is a directory; choose a file"),
    ],
)
def test_what_the_command_refuses(kafkacodec, options, reason):
    code, _, err = kafkacodec("convert", LOGS, *options.split())
    assert code == 2
    assert f"Error: {reason}" in err


def test_the_command_without_pyspark(kafkacodec, monkeypatch):
    monkeypatch.setattr("kafkacodec.spark.environment.requirements.find_spec", lambda package: None)
    code, _, err = kafkacodec("convert", LOGS, "--spark", "-o", "out")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: kafkacodec.spark needs pyspark; run: pip install 'kafkacodec[spark]'",
    )
