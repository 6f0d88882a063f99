"""`kafkacodec.spark.export` to Iceberg and Delta tables: one commit a run, offsets in the table, nothing twice."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import namedtuple

import duckdb
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.errors import PythonException

import kafkacodec as kc
from kafkacodec.errors import KafkaCodecError
from kafkacodec.spark.exporting import job
from kafkacodec.spark.exporting.planning import plan
from tests.avro_samples import encoded
from tests.corpus import assert_same_records
from tests.integration.test_spark_export import GOLDEN, LOGS, append
from tests.integration.test_spark_values import AT, ONE, SECOND, TWO, framed
from tests.spark_columns import as_decoded, consumer_records

pytestmark = pytest.mark.spark

Place = namedtuple("Place", "format target options read versions directory")


@pytest.fixture(params=["iceberg", "delta"])
def place(request, tmp_path):
    """An empty place for a table, how to read it, and how many commits with rows it has."""
    if request.param == "delta":
        target = tmp_path / "table"
        yield Place(
            "delta",
            str(target),
            {},
            lambda: DeltaTable(target).to_pyarrow_table(),
            lambda: DeltaTable(target).version(),
            target,
        )
        return
    from pyiceberg.catalog.sql import SqlCatalog  # slow to import

    catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    yield Place(
        "iceberg",
        "kafka.records",
        {"catalog": catalog},
        lambda: catalog.load_table("kafka.records").scan().to_arrow(),
        lambda: len(catalog.load_table("kafka.records").snapshots()),
        tmp_path / "warehouse" / "kafka" / "records",
    )
    catalog.close()


def export(spark, source, place, **options):
    return kc.spark.export(spark, source, place.target, format=place.format, **place.options, **options)


def values(place):
    table = place.read().sort_by([("partition", "ascending"), ("offset", "ascending")])
    return table["value"].to_pylist()


def test_golden_segments(spark, place):
    source = {"path": str(LOGS), "includeHeaders": True}
    report = export(spark, source, place, row_group_rows=1000)
    table = place.read()
    for path, samples in GOLDEN.items():
        topic, _, partition = path.name.rpartition("-")
        mine = pc.and_(pc.equal(table["topic"], topic), pc.equal(table["partition"], int(partition)))
        assert_same_records(as_decoded(table.filter(mine).sort_by("offset")), consumer_records(samples))
    assert report.rows == len(table)
    found = duckdb.sql('SELECT count(*), sum("offset") FROM "table"').fetchall()
    paths = [
        str(place.directory / ("data" if place.format == "iceberg" else "") / report.run / f.path) for f in report.files
    ]
    assert duckdb.sql(f'SELECT count(*), sum("offset") FROM read_parquet({paths})').fetchall() == found
    parquet = spark.read.parquet(*paths)
    assert parquet.count() == report.rows


def test_the_next_run_goes_on_where_the_last_one_ended(spark, place, tmp_path):
    log = tmp_path / "log"
    append(log, 0, 300)
    export(spark, log, place)
    assert place.versions() == 1
    assert export(spark, log, place).run is None
    append(log, 300, 100)
    append(log, 0, 10, partition=1)
    report = export(spark, log, place)
    assert report.spans == {("orders", 0): (300, 400), ("orders", 1): (0, 10)}
    assert place.versions() == 2
    assert values(place) == [b"%d" % n for n in (*range(400), *range(10))]
    assert not list(place.directory.parent.glob(".*"))


@pytest.mark.parametrize("partition_by", [(), ("date",), ("partition",)])
def test_other_partitions(spark, place, tmp_path, partition_by):
    log = tmp_path / "log"
    for first in (0, 100):
        append(log, first, 100, timestamp=1_700_000_000_000 + first * 1_000_000)
        export(spark, log, place, partition_by=partition_by)
    assert values(place) == [b"%d" % n for n in range(200)]
    with pytest.raises(kc.spark.OptionError, match=r"partition_by: .*topic.*, but the table"):
        export(spark, log, place, partition_by="topic")
    with pytest.raises(kc.spark.OptionError, match=r"columns: .*headers.*, but the table"):
        export(spark, {"path": str(log), "includeHeaders": True}, place, partition_by=partition_by)


def test_a_run_with_another_isolation_level_is_refused(spark, place, tmp_path):
    log = tmp_path / "log"
    append(log, 0, 50)
    committed = {"path": str(log), "isolationLevel": "read_committed"}
    export(None, committed, place)
    append(log, 50, 50)
    with pytest.raises(
        kc.spark.OptionError,
        match=r"^isolationLevel: read_uncommitted, but .* has records of read_committed; choose read_committed or ano",
    ):
        export(spark, log, place)
    export(spark, committed, place)
    assert values(place) == [b"%d" % n for n in range(100)]


def test_delta_takes_two_runs_of_other_topics_at_a_time(spark, tmp_path, monkeypatch):
    """What both say of the table, its isolation level, is no conflict."""
    log, target = tmp_path / "log", tmp_path / "table"
    for topic in ("orders", "payments"):
        append(log, 0, 50, topic=topic)
    kc.spark.export(None, {"path": str(log), "subscribe": "orders"}, target, format="delta")
    append(log, 50, 50)
    run = job._run

    def after_another(*arguments):
        monkeypatch.setattr(job, "_run", run)
        kc.spark.export(None, {"path": str(log), "subscribe": "payments"}, target, format="delta")
        return run(*arguments)

    monkeypatch.setattr(job, "_run", after_another)
    kc.spark.export(None, {"path": str(log), "subscribe": "orders"}, target, format="delta")
    assert len(DeltaTable(target).to_pyarrow_table()) == 150


@pytest.mark.parametrize("first", [True, False])
def test_of_two_runs_at_a_time_one_fails(spark, place, tmp_path, monkeypatch, first):
    log = tmp_path / "log"
    append(log, 0, 50)
    if not first:
        export(spark, log, place)
        append(log, 50, 100)
    run = job._run

    def after_another(*arguments):
        monkeypatch.setattr(job, "_run", run)
        export(spark, log, place)
        return run(*arguments)

    monkeypatch.setattr(job, "_run", after_another)
    with pytest.raises(KafkaCodecError, match=r"another commit to .* was made during this export"):
        export(spark, log, place)
    assert values(place) == [b"%d" % n for n in range(50 if first else 150)]
    with os.scandir(place.directory / ("data" if place.format == "iceberg" else "")) as entries:
        assert sum(len(entry.name) == 32 for entry in entries) == (1 if first else 2)


def test_a_delta_table_is_created_by_one_run(spark, tmp_path, monkeypatch):
    """Also if both have seen that there is none yet."""
    log, target = tmp_path / "log", tmp_path / "table"
    append(log, 0, 50)

    def after_another(*arguments):
        monkeypatch.setattr(job, "plan", plan)
        kc.spark.export(spark, log, target, format="delta")
        return plan(*arguments)

    monkeypatch.setattr(job, "plan", after_another)
    with pytest.raises(
        KafkaCodecError, match=r"another commit to .* was made during this export .*, which wrote nothing"
    ):
        kc.spark.export(spark, log, target, format="delta")
    assert len(DeltaTable(target).to_pyarrow_table()) == 50


def test_a_run_without_records_does_not_go_back(spark, place, tmp_path, monkeypatch):
    """Its commit has no files, only offsets: those of a run that went further meanwhile stay."""
    log = tmp_path / "log"
    append(log, 0, 50)
    export(spark, log, place)
    append(log, 50, 100)
    run = job._run

    def nothing_found_after_another(*arguments):
        monkeypatch.setattr(job, "_run", run)
        export(spark, log, place)
        return [written._replace(files=[]) for written in run(*arguments)]

    monkeypatch.setattr(job, "_run", nothing_found_after_another)
    with pytest.raises(KafkaCodecError, match=r"another commit to .* was made during this export"):
        export(spark, log, place)
    append(log, 150, 10)
    export(spark, log, place)
    assert values(place) == [b"%d" % n for n in range(160)]


@pytest.mark.parametrize("named", [True, False])
def test_a_topic_that_was_created_again(spark, place, tmp_path, named):
    """It is seen by its id, or by the batch before the position, also if its log is longer than that of before."""
    log = tmp_path / "log"
    options = {"partition_by": "date"}
    append(log, 0, 50)
    export(spark, log, place, **options)
    shutil.rmtree(log / "orders-0")
    append(log, 0, 70, timestamp=1_800_000_000_000)
    if not named:
        (log / "orders-0" / "partition.metadata").unlink(missing_ok=True)
    with pytest.raises(kc.spark.OptionError, match=r"failOnDataLoss: .*orders-0"):
        export(spark, log, place, **options)
    report = export(spark, {"path": str(log), "failOnDataLoss": False}, place, **options)
    assert len(report.problems) == 1
    assert values(place).count(b"0") == (2 if named else 1)  # without an id, only the end is known to be another


def test_what_cannot_be_a_table(tmp_path):
    catalog = {"type": "sql", "uri": "sqlite:///:memory:", "warehouse": str(tmp_path)}
    with pytest.raises(kc.spark.OptionError, match=r"target: expected namespace.table for Iceberg, not 'records'"):
        kc.spark.export(None, LOGS, "records", format="iceberg", catalog=catalog)
    for missing in (None, ""):
        with pytest.raises(kc.spark.OptionError, match="catalog: missing"):
            kc.spark.export(None, LOGS, "kafka.records", format="iceberg", catalog=missing)
    for wrong, reason in (
        ("no-such-catalog", "URI missing"),
        ({"type": "sqll"}, "sqll"),
        (
            {"type": "sql", "uri": "sqlite:////no/such/x.db", "warehouse": str(tmp_path)},
            "unable to open database file$",
        ),
    ):
        with pytest.raises(kc.errors.KafkaCodecError, match=f"^catalog: .*{reason}"):
            kc.spark.export(None, LOGS, "kafka.records", format="iceberg", catalog=wrong)
    with pytest.raises(kc.spark.OptionError, match=r"target: .* is not empty and is not a Delta table"):
        kc.spark.export(None, LOGS, LOGS, format="delta")


def test_timestamps_that_dates_cannot_name(spark, place, tmp_path):
    times = [0, 300_000_000_000_000, -2, None]
    records = [kc.Record(None, time, 0, None, b"%d" % n, []) for n, time in enumerate(times)]
    with kc.log.LogWriter(tmp_path / "log", "orders", 0, sync=False) as writer:
        writer.write(records)
    if place.format == "iceberg":
        with pytest.raises(
            KafkaCodecError, match=r"a timestamp from offset [01] to 3 of orders-0 is not in the years 1 to"
        ):
            export(spark, tmp_path / "log", place)
        export(
            spark,
            {"path": str(tmp_path / "log"), "columns": "offset,partition,value"},
            Place("iceberg", "kafka.other", place.options, None, None, None),
            partition_by=(),
        )
        assert len(place.options["catalog"].load_table("kafka.other").scan().to_arrow()) == 4
    else:
        export(spark, tmp_path / "log", place)
        assert values(place) == [b"0", b"1", b"2", b"3"]


EMPTY = '{"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": {"type": "record", "name": "I", \
"fields": []}}]}'


@pytest.fixture
def avro(tmp_path):
    """A log with values of two schemas and a null, and a directory of the schemas."""
    schemas, payloads = tmp_path / "schemas", []
    schemas.mkdir()
    for number, (schema, row) in enumerate(((ONE, {"id": 1}), (TWO, SECOND)), 1):
        (schemas / f"{number}.avsc").write_text(json.dumps(schema))
        payloads.append(framed(number, encoded(schema, [row])[0]))
    add(tmp_path / "avro", *payloads, None)
    return tmp_path / "avro", {"schemas": str(schemas), "ids": [1, 2]}


def add(log, *values):
    with kc.log.LogWriter(log, "orders", 0, append=True, sync=False) as writer:
        writer.write([kc.Record(None, 1_700_000_000_000, 0, b"k", value, []) for value in values])


def test_typed_values(spark, place, avro):
    log, values = avro
    export(spark, log, place, values=values)
    add(log, framed(1, encoded(ONE, [{"id": 4}])[0]))
    assert export(spark, log, place, values=values).rows == 1
    table = place.read().sort_by("offset")
    expected = {**SECOND, "at": AT, "hour": None, "tags": [("a", "b")], "lines": None}
    _, second, null, last = table["value"].to_pylist()
    assert {**second, "hour": None, "lines": None} == expected
    assert second["lines"] == [None, {"int": 5, "string": None}, {"int": None, "string": "x"}]
    assert (null, last["id"], last["at"]) == (None, 4, None)
    assert table["value_schema_id"].to_pylist() == [1, 2, None, 1]
    assert table["value_error"].null_count == 4
    with pytest.raises(kc.spark.OptionError, match=r"columns: "):
        export(spark, log, place)
    with pytest.raises(kc.spark.OptionError, match=r"columns: .*value"):
        export(spark, log, place, values={**values, "ids": [1]})


def test_typed_values_in_parquet(spark, avro, tmp_path):
    log, values = avro
    add(log, b"no schema")
    source = {"path": str(log), "columns": "value,topic"}
    with pytest.raises(PythonException, match=r"orders-0: offset 3: value: "):
        kc.spark.export(spark, source, tmp_path / "out", values=values, partition_by="topic")
    options = {"partition_by": "topic", "values": {**values, "on_error": "null"}}
    report = kc.spark.export(spark, source, tmp_path / "out", **options)
    (problem,) = report.problems
    assert "1 keys or values could not be decoded" in problem.message
    frame = spark.read.parquet(str(tmp_path / "out"))
    assert frame.columns == ["value", "value_schema_id", "value_error", "run", "topic"]
    assert sorted(frame.select("value.id").toArrow()["id"].to_pylist(), key=str) == [1, 2, None, None]
    assert frame.where("value_error IS NOT NULL").count() == 1
    options["values"]["ids"] = [1]
    with pytest.raises(kc.spark.OptionError, match=r"columns: value is struct<.*, but .* has struct<"):
        kc.spark.export(spark, source, tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"ids": [1]}, "values: expected options of decode_values"),
        ({"schemas": {1: json.dumps(ONE)}}, "reader_schema: missing; pass it or ids="),
        ({"schemas": {1: json.dumps(ONE)}, "id": [1]}, "values: 'id' is unknown; did you mean 'ids'"),
        ({"schemas": {1: json.dumps(ONE)}, "ids": [1], "on_error": "skip"}, "values: on_error"),
        ({"schemas": {1: EMPTY}, "ids": [1]}, "values: tables have no type for struct<>; leave the field out"),
    ],
)
def test_how_values_cannot_be_decoded(tmp_path, values, reason):
    with pytest.raises(kc.spark.OptionError, match=re.escape(reason)):
        kc.spark.export(None, LOGS, tmp_path / "out", values=values)
