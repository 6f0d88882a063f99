"""Logs as Arrow streams and lazy frames: what DuckDB, polars and pyarrow read of them, and what is left unread."""

from __future__ import annotations

import datetime
import shutil
from functools import wraps
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import kafkacodec as kc

NOON = datetime.datetime(2025, 3, 10, 12, tzinfo=datetime.UTC)
PLACES = ["topic", "partition", "offset"]


@pytest.fixture(scope="module")
def log() -> kc.log.LogDirectory:
    return kc.sample()


@pytest.fixture(scope="module")
def records(log: kc.log.LogDirectory) -> pl.DataFrame:
    """All records of the sample, read at once."""
    return pl.concat([log.topic(name).to_polars() for name in log.topics])


def readables(log: kc.log.LogDirectory) -> list[kc.log.Segment | kc.log.Partition | kc.log.Selection]:
    return [log.partition("orders", 0).segments[0], log.partition("orders", 0), log.topic("orders"), log.select()]


@pytest.mark.parametrize("number", range(4))
def test_readers_give_the_table(log: kc.log.LogDirectory, number: int) -> None:
    readable = readables(log)[number]
    table = readable.to_arrow()
    assert table.num_rows == (82, 282, 600, 768)[number]
    assert readable.reader().read_all().equals(table)
    assert pa.table(readable).equals(table)
    some = readable.reader(columns=["offset"], end_offset=50).read_all()
    assert some.column_names == ["offset"]
    assert set(some["offset"].to_pylist()) == set(range(50))


@pytest.mark.parametrize("layout", ["copy", "view", "auto"])
def test_a_reader_of_nothing_has_the_columns(log: kc.log.LogDirectory, layout: kc.Layout) -> None:
    topic = log.topic("orders")
    none = topic.reader(layout=layout, start_offset=10_000)
    assert none.schema == topic.reader(layout=layout).read_all().schema
    assert none.read_all().num_rows == 0


def test_a_reader_reads_as_it_is_read(log: kc.log.LogDirectory, tmp_path: Path) -> None:
    partition = kc.log.Partition(shutil.copytree(log.partition("orders", 0).path, tmp_path / "orders-0"))
    reader = partition.reader(max_rows=10)
    Path(partition.segments[-1].path).write_bytes(b"damaged" * 100)
    assert reader.read_next_batch().num_rows == 10
    with pytest.raises(kc.DecodeError):
        reader.read_all()


def test_a_selection_is_its_topics(log: kc.log.LogDirectory) -> None:
    both = log.select("pay*", "orders")
    assert [(p.topic, p.partition) for p in both.partitions] == [*(("orders", n) for n in range(3)), ("payments", 0)]
    assert both.count() == 720
    assert both.count(isolation_level="read_committed") == 688
    assert repr(both) == f"<Selection: 4 partitions of 2 topics in {log.path}>"
    assert both.verify().clean
    assert {p.topic for p in log.select().partitions} == {"customers", "orders", "payments"}
    with pytest.raises(FileNotFoundError, match="did you mean 'orders'"):
        log.select("order")


def test_duckdb_reads_a_topic(log: kc.log.LogDirectory) -> None:
    orders = log.topic("orders").reader()
    found = duckdb.sql("select partition, count(*) from orders group by all order by all").fetchall()
    assert found == [(0, 282), (1, 163), (2, 155)]
    assert orders.read_all().num_rows == 0


@pytest.mark.parametrize(
    "condition",
    [
        pl.col("offset") >= 100,
        pl.col("offset") > 100,
        pl.lit(100) > pl.col("offset"),
        pl.col("offset") == 105,
        pl.col("offset").is_between(80, 110, closed="left"),
        (pl.col("offset") >= 50) & (pl.col("offset") <= 60) & (pl.col("partition") > 0),
        (pl.col("offset") < 5) | (pl.col("partition") == 2),
        pl.col("topic").is_in(["orders", "payments"]) & pl.col("partition").is_in([0, 1]),
        pl.col("topic").str.starts_with("cust"),
        pl.col("topic") == "nothing",
        pl.col("timestamp") >= NOON,
        pl.col("timestamp") < NOON,
        (pl.col("timestamp") > NOON) & (pl.col("topic") == "orders"),
        pl.col("timestamp").dt.minute() == 0,
        pl.col("offset") != 3,
        pl.col("offset") > 2.5,
        pl.col("key").is_null(),
        ~(pl.col("offset") >= 100),
    ],
    ids=str,
)
def test_conditions_choose_what_polars_chooses(
    log: kc.log.LogDirectory, records: pl.DataFrame, condition: pl.Expr
) -> None:
    expected = records.filter(condition).sort(PLACES)
    assert kc.log.scan_polars(log).filter(condition).collect().sort(PLACES).equals(expected)
    few = kc.log.scan_polars(log, max_rows=7).filter(condition).select("value", "offset").collect()
    assert sorted(few.rows(), key=str) == sorted(expected.select("value", "offset").rows(), key=str)


def test_rows_are_counted_before_a_later_condition(log: kc.log.LogDirectory, records: pl.DataFrame) -> None:
    lazily = kc.log.scan_polars(log)
    assert lazily.select(pl.len()).collect().item() == len(records)
    assert lazily.head(40).collect().height == 40
    first = lazily.head(300).collect()
    assert lazily.head(300).filter(pl.col("offset") > 100).collect().equals(first.filter(pl.col("offset") > 100))
    assert lazily.filter(pl.col("topic") == "orders").head(5).collect()["offset"].to_list() == [0, 1, 2, 3, 4]


@pytest.fixture
def only_middle(log: kc.log.LogDirectory, tmp_path: Path) -> Path:
    """A copy of a topic in which every file but the second segment of partition 0 is a trap: a file of text."""
    copied = Path(shutil.copytree(log, tmp_path / "log"))
    second = Path(kc.log.LogDirectory(copied).partition("orders", 0).segments[1].path)
    for file in copied.rglob("*.log"):
        if file != second:
            file.write_text("a trap" * 100)
    return copied


def test_segments_outside_are_not_opened(only_middle: Path) -> None:
    start, end = (s.base_offset for s in kc.log.LogDirectory(only_middle).partition("orders", 0).segments[1:3])
    lazily = kc.log.scan_polars(only_middle)
    here = (pl.col("topic") == "orders") & (pl.col("partition") == 0)
    found = lazily.filter(here & (pl.col("offset") >= start) & (pl.col("offset") < end)).collect()
    assert found["offset"].to_list() == [*range(start, end)]
    first = kc.log.scan_polars(only_middle / "orders-0", start_offset=start).head(3).collect()
    assert first["offset"].to_list() == [*range(start, start + 3)]
    with pytest.raises(Exception, match="unknown magic"):
        lazily.filter(here & (pl.col("offset") < end)).collect()


def test_columns_that_are_not_used_are_not_built(log: kc.log.LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    read = kc.log.Partition.read

    @wraps(read)
    def spy(partition: kc.log.Partition, **options: object) -> object:
        asked.append({*options["columns"]})
        return read(partition, **options)

    monkeypatch.setattr(kc.log.Partition, "read", spy)
    kc.log.scan_polars(log).filter(pl.col("offset") > 10).select("timestamp").collect()
    assert asked
    assert all(columns == {"timestamp", "offset"} for columns in asked)


def test_options_of_reading_apply(log: kc.log.LogDirectory) -> None:
    committed = kc.log.scan_polars(log.topic("payments").partitions[0], isolation_level="read_committed")
    assert committed.select(pl.len()).collect().item() == 88
    with pytest.raises(TypeError, match="did you mean 'start_offset'"):
        kc.log.scan_polars(log, **{"start_ofset": 3})
    assert kc.log.scan_polars(log, columns=["offset"]).collect_schema() == pl.Schema({"offset": pl.Int64})
    with pytest.raises(FileNotFoundError):
        kc.log.scan_polars("/nowhere")


def test_a_consumer_is_a_stream() -> None:
    with kc.broker.serve(topics={"orders": 2}) as kafka:
        kafka.write("orders", [(str(n).encode(), b"a book") for n in range(50)])
        with kc.client.Consumer("orders", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as c:
            read = c.reader(timeout=5, max_rows=20)
            batch = read.read_next_batch()
            assert batch.schema == read.schema
            assert 0 < batch.num_rows <= 20
            rest = read.read_all()
            assert batch.num_rows + rest.num_rows == 50
        with kc.client.Consumer("orders", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as c:
            found = duckdb.from_arrow(c.reader(timeout=5, columns=["value"]))
            assert found.aggregate("value, count(*)").fetchall() == [(b"a book", 50)]
