"""Record times are whatever producers wrote. Spark's microseconds hold those up to 294247: others are told or null."""

import logging

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import LimitExceeded
from kafkacodec.log import LogWriter
from kafkacodec.spark.reading import view_rows
from kafkacodec.spark.reading.discovery import partitions_of
from kafkacodec.spark.reading.tasks import read_ranges
from kafkacodec.spark.reading.views import VIEWS
from kafkacodec.spark.sql.blobs import Explosion
from kafkacodec.spark.sql.column_functions import UDFS
from kafkacodec.spark.times import TIME, microseconds
from tests.unit.test_spark_reading import options, read

MOST = 9223372036854775  # ms, whose microseconds fit 64 bits
NANOSECONDS = 1_700_000_000_000_000_001
TIMES = [1_700_000_000_000, MOST, MOST + 1, NANOSECONDS, (1 << 63) - 1, -1, 5]
EXPECTED = [1_700_000_000_000_000, MOST * 1000, None, None, None, None, 5000]


def rows(times):
    return [(offset, time, 0, None, b"v", []) for offset, time in enumerate(times)]


@pytest.fixture
def log(tmp_path):
    with LogWriter(tmp_path, "clicks", 3) as writer:
        writer.write(rows(TIMES))
    return tmp_path


def micros(table):
    return table["timestamp"].cast(pa.int64()).to_pylist()


def test_microseconds():
    most = (1 << 63) - 1
    source = pa.array([0, None, -1, MOST, MOST + 1, -MOST, -MOST - 1, most, -most - 1], pa.int64())
    for part in (source, source[1:], source[:4], source[:0]):
        converted = microseconds(part.view(pa.timestamp("ms", tz="UTC")))
        converted.validate(full=True)
        assert converted.type == TIME
        expected = [None if n is None or abs(n) > MOST else n * 1000 for n in part.to_pylist()]
        assert converted.view(pa.int64()).to_pylist() == expected


@pytest.mark.parametrize("names", [["timestamp"], ["timestamp", "offset"], ["value", "timestamp"]])
def test_an_error_names_partition_offset_and_value(log, names):
    with pytest.raises(LimitExceeded, match=rf"clicks-3: offset 2: the timestamp {MOST + 1} ms .* mode=PERMISSIVE"):
        read(log, names=names, mode="FAILFAST")


def test_times_that_are_not_wanted_are_no_error(log):
    assert read(log, names=["offset"], mode="FAILFAST")["offset"].to_pylist() == list(range(7))


def test_permissive_reads_null_and_tells_once_for_a_range(log, caplog):
    with caplog.at_level(logging.WARNING, "kafkacodec.spark"):
        assert micros(read(log, mode="PERMISSIVE")) == EXPECTED
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"clicks-3: offset 2: the timestamp {MOST + 1} ms ")
    assert message.endswith("it is null, as are those of 2 more records up to offset 4")


def test_what_is_told_is_noted_for_reports(log):
    from kafkacodec.spark.reading.planning import plan

    noted = []
    (ranges,) = plan(options(log, mode="PERMISSIVE"))
    list(read_ranges(ranges, ("timestamp",), permissive=True, note=lambda path, found: noted.extend(found)))
    assert [(problem.size_in_bytes, type(problem.exception)) for problem in noted] == [(0, LimitExceeded)]


def blobs(**given):
    settings = {"column": "blob", "columns": ("offset", "timestamp"), "keep": ("name",), "problems": True}
    data = [kc.encode(rows(times)) for times in (TIMES, [1, 2], [NANOSECONDS])]
    source = pa.record_batch([pa.array(data), pa.array(list("abc"))], ["blob", "name"])
    explosion = Explosion(**settings | {"on_error": "skip", "max_total_bytes": 1 << 20} | given)
    return pa.Table.from_batches(explosion.explode([source]))


def test_blobs_list_what_is_null():
    found = blobs()
    records, problems = found.filter(found["offset"].is_valid()), found.filter(found["problems"].is_valid())
    assert micros(records) == [*EXPECTED, 1000, 2000, None]
    assert problems["name"].to_pylist() == ["a", "c"]
    messages = [entry["message"] for (entry,) in problems["problems"].to_pylist()]
    assert f"offset 2: the timestamp {MOST + 1} ms" in messages[0]
    assert f"offset 0: the timestamp {NANOSECONDS} ms" in messages[1]


def test_blobs_raise_by_default():
    with pytest.raises(LimitExceeded, match=rf"column blob, row 0 .*offset 2: the timestamp {MOST + 1} ms"):
        blobs(on_error="raise", problems=False)


@pytest.mark.parametrize("name", ["decode_records", "batch_headers"])
def test_functions_of_blobs_raise(name):
    function, kind = UDFS[name]
    with pytest.raises(LimitExceeded, match=f"{NANOSECONDS} ms"):
        function(pa.array([kc.encode(rows([5, NANOSECONDS]))]))
    good = function(pa.array([kc.encode(rows([5, 6])), None]))
    assert good.type.equals(kind)


def view(log, name, mode):
    asked = options(log, mode=mode)
    schema = VIEWS[name].arrow(VIEWS[name].columns.names)
    tasks = VIEWS[name].plan(partitions_of(asked), asked)
    found = [
        batch
        for task in tasks
        for table in VIEWS[name].rows(task, asked, tuple(schema.names))
        for batch in view_rows.as_batches(table, schema, asked)
    ]
    return pa.Table.from_batches(found, schema)


def test_the_view_of_batches(log, caplog):
    with pytest.raises(LimitExceeded, match=rf"topic clicks, partition 3, file .*max_timestamp {(1 << 63) - 1} ms"):
        view(log, "batches", "FAILFAST")
    found = view(log, "batches", "PERMISSIVE")
    assert found["max_timestamp"].to_pylist() == [None]
    assert found["base_timestamp"].cast(pa.int64()).to_pylist() == [TIMES[0] * 1000]
    assert "max_timestamp" in caplog.text
