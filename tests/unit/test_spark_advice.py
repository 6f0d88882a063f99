"""Errors of Spark's sources and sinks end with what to do, in the words of their options."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

import kafkacodec as kc
from kafkacodec.errors import CrcMismatch, DecodeError, EncodeError, MissingOffsets
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.job import export
from kafkacodec.spark.live import connections
from kafkacodec.spark.live.planning import plan_batch
from kafkacodec.spark.live.producing import send
from kafkacodec.spark.live.read_options import parse_broker_options, wanted_columns
from kafkacodec.spark.live.streaming import BrokerStreamReader
from kafkacodec.spark.live.write_options import SinkOptions, check_sink_schema, parse_sink_options
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import Pruning, plan
from kafkacodec.spark.reading.streaming import SegmentStreamReader
from kafkacodec.spark.reading.tasks import read_ranges
from kafkacodec.spark.reading.views import view_schema
from kafkacodec.spark.sql.blobs import Explosion
from kafkacodec.spark.writing.options import check_schema, parse_write_options
from kafkacodec.spark.writing.recovery import recover_write
from kafkacodec.spark.writing.staging import remove_abandoned


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    return str(kc.sample(tmp_path / "logs", damaged=True).path)


def read(path: str, **options: str) -> int:
    reading = parse_read_options({"path": path, "subscribe": "orders", **options})
    how: dict[str, Any] = {"permissive": reading.permissive, "gaps": reading.gaps}
    return sum(rows.num_rows for task in plan(reading) for rows in read_ranges(task, ("offset",), **how))


def test_damage_says_how_to_read_on(damaged: str) -> None:
    with pytest.raises(CrcMismatch, match=r"\(byte 1245\); mode=PERMISSIVE skips and logs damage$") as failure:
        read(damaged)
    assert failure.value.position == 1245
    assert str(pickle.loads(pickle.dumps(failure.value))) == str(failure.value)
    assert read(damaged, mode="PERMISSIVE")


def test_a_gap_is_logged_by_itself(damaged: str, caplog: pytest.LogCaptureFixture) -> None:
    read(damaged, mode="PERMISSIVE")
    gaps = [record.getMessage() for record in caplog.records if "gap of" in record.getMessage()]
    assert len(gaps) == 2
    assert not any("skipped" in text or text.count("orders-") > 1 for text in gaps)
    assert any("skipped 1460 bytes from byte 1245: batch at offset 105" in r.getMessage() for r in caplog.records)


def test_problems_of_an_export_name_the_file_once(damaged: str, tmp_path: Path) -> None:
    report = export(None, {"path": damaged, "mode": "PERMISSIVE"}, tmp_path / "out")
    assert len(report.problems) == 3
    assert all(problem.path and problem.path not in problem.message for problem in report.problems)


def test_damage_in_a_column_says_how_to_read_on() -> None:
    rows = pa.record_batch({"value": pa.array([b"\0" * 16 + b"\x22" + b"\0" * 60])})
    with pytest.raises(DecodeError, match=r"\(byte .*\); decode_batches with mode='PERMISSIVE' skips damage$"):
        list(Explosion("value", ("value",), (), "raise", False, 1 << 30).explode([rows]))


@pytest.mark.parametrize(
    "option",
    [
        {"startingTimestamp": "1741564800"},
        {"endingTimestamp": "1741564800"},
        {"startingOffsetsByTimestamp": '{"orders": {"0": 1741564800}}'},
        {"startingOffsetsByTimestamp": '{"orders": {"0": "1741564800"}}'},
    ],
)
def test_a_time_in_seconds_is_warned_of(option: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    parse_read_options({"path": "x", **option})
    name = next(iter(option))
    assert set(caplog.messages) == {f"{name}: 1741564800 is in 1970, in milliseconds; for seconds, add 000"}
    caplog.clear()
    parse_read_options(
        {"path": "x", **{key: text.replace("1741564800", "1741564800000") for key, text in option.items()}}
    )
    parse_read_options({"path": "x", "startingOffsets": '{"orders": {"0": 1741564800}}'})
    assert not caplog.messages


def test_no_later_record_names_the_option() -> None:
    reading = parse_read_options({"path": kc.sample().path, "subscribe": "orders", "startingTimestamp": "2999-01-01"})
    with pytest.raises(
        OptionError, match="; startingOffsetsByTimestampStrategy=latest starts such partitions at their"
    ):
        plan(reading)


VALUE = StructField("value", StringType())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([StructField("value", LongType())], "column 'value': must be binary or string, not bigint; cast it to string"),
        (
            [StructField("value", ArrayType(IntegerType()))],
            "column 'value': must be binary or string, not array<int>; to_json makes text of it",
        ),
        ([VALUE, StructField("partition", LongType())], "column 'partition': must be int, not bigint; cast it to int"),
        ([StructField("key", StringType())], "column 'value': missing; columns are key"),
    ],
)
def test_columns_of_sinks(fields: list[StructField], message: str) -> None:
    live, files = StructType(fields), parse_write_options({"path": "x", "topic": "t"})
    with pytest.raises(OptionError) as of_broker:
        check_sink_schema(live, "t", with_time=False)
    with pytest.raises(OptionError) as of_log:
        check_schema(live, files)
    assert str(of_broker.value) == str(of_log.value) == message


def test_a_misspelt_value() -> None:
    kind: DataType = StringType()
    with pytest.raises(OptionError, match=r"^column 'value': missing; columns are key, vlaue; did you mean 'vlaue'\?$"):
        check_sink_schema(StructType([StructField("key", kind), StructField("vlaue", kind)]), "t", with_time=False)


def test_options_of_the_other_format() -> None:
    message = (
        r"^path: unknown option; the format kafkalog reads and writes directories, this one has topics of brokers$"
    )
    with pytest.raises(OptionError, match=message):
        wanted_columns({"path": "/logs", "subscribe": "orders"})
    for option, meant in (("codec", "compression.type"), ("acks", "acks")):
        with pytest.raises(OptionError, match=rf"^{option}: unknown option; did you mean kafka\.{meant}\?$"):
            parse_sink_options({option: "x", "topic": "t"}, StructType([VALUE]))
    with pytest.raises(OptionError, match=r"^compression: unknown option; did you mean codec\?$"):
        parse_write_options({"path": "x", "topic": "t", "compression": "zstd"})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with kc.broker.serve(topics={"orders": 2, "payments": 1}) as broker:
        yield broker.bootstrap_servers
        connections.close_all()


def test_a_row_that_is_too_large_names_the_option(server: str) -> None:
    options = SinkOptions("orders", {"bootstrap_servers": server, "acks": "all"}, None, ("value",))
    with pytest.raises(EncodeError, match=r"are allowed by kafka\.max\.request\.size$"):
        send([pa.record_batch({"value": [b"x" * 3_000_000]})], options, 0)


def test_a_stream_with_other_topics_than_its_checkpoint(server: str, caplog: pytest.LogCaptureFixture) -> None:
    def reader(**options: str) -> BrokerStreamReader:
        given = {"kafka.bootstrap.servers": server, "subscribe": "payments", **options}
        return BrokerStreamReader(parse_broker_options(given, streaming=True), ("value",))

    start = {"orders": {"0": 0, "1": 0}, "payments": {"0": 0}}
    message = "orders-0: is in the checkpoint, but subscribe does not name it: a query with other topics needs another"
    with pytest.raises(OptionError, match=f"^failOnDataLoss: {message} checkpoint; .*reading continues without them$"):
        reader().latestOffset(start, ReadAllAvailable())
    assert reader(failOnDataLoss="false").latestOffset(start, ReadAllAvailable()) == {"payments": {"0": 0}}
    assert message in caplog.text


def test_a_stream_of_files_with_other_topics_than_its_checkpoint() -> None:
    def reader(topics: str) -> SegmentStreamReader:
        options = {"path": kc.sample().path, "endAt": "logEnd", "subscribe": topics, "startingOffsets": "earliest"}
        return SegmentStreamReader(parse_read_options(options, streaming=True), ("offset",))

    stream = reader("orders,payments")
    start = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    message = (
        r"^failOnDataLoss: orders-\d is in the checkpoint, but subscribe does not name it: a query with other topics"
    )
    with pytest.raises(OptionError, match=message):
        reader("payments").latestOffset(start, ReadAllAvailable())
    with pytest.raises(OptionError, match=r"^subscribe: no segments of custmers; did you mean 'customers'\?$"):
        reader("orders,payments,custmers").latestOffset(start, ReadAllAvailable())
    more = reader("orders,payments,customers").latestOffset(start, ReadAllAvailable())
    assert more["customers"]["0"]["offset"] == kc.sample().partition("customers", 0).end_offset()


def test_arguments_of_an_export(tmp_path: Path) -> None:
    frame: Any = object()
    with pytest.raises(OptionError, match=r"^source: expected a path or options of kafkalog, not object; df\.write"):
        export(None, frame, tmp_path / "out")
    schema: Any = kc.values.Schema('{"type": "object"}', "json")
    with pytest.raises(
        OptionError, match=r"^values: expected options of decode_values, \{'schemas': \.\.\.\}, not Schema$"
    ):
        export(None, kc.sample().path, tmp_path / "out", values=schema)
    export(None, kc.sample().path, tmp_path / "out")
    with pytest.raises(OptionError, match=r"^partition_by: date, but .* has .*; choose another target$"):
        export(None, kc.sample().path, tmp_path / "out", partition_by="date")


def test_lost_offsets_name_the_option(tmp_path: Path) -> None:
    log = kc.sample(tmp_path / "logs")
    reading = parse_read_options({"path": log.path, "subscribe": "orders"})
    tasks = plan(reading)
    for file in Path(log.path).glob("orders-0/*"):
        file.unlink()
    ranges = [piece for task in tasks for piece in task]
    with pytest.raises(MissingOffsets, match=r"; failOnDataLoss=false reads on$"):
        list(read_ranges(ranges, ("offset",), permissive=False))


@pytest.mark.parametrize("function", [recover_write, remove_abandoned])
def test_a_misspelt_directory_of_a_write(function: Callable[[Path], list[str]], tmp_path: Path) -> None:
    assert function(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="nope"):
        function(tmp_path / "nope")


def test_a_view_that_lists_everything() -> None:
    with pytest.raises(OptionError, match=r"^subscribe: the view lag takes no selection; use where\(\) on its rows$"):
        view_schema({"path": kc.sample().path, "view": "lag", "subscribe": "orders"})
    assert view_schema({"path": kc.sample().path, "view": "batches", "subscribe": "orders"})


def test_times_that_are_in_the_wrong_order_are_shown_as_times():
    with kc.broker.serve(topics={"t": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            for day in ("2025-01-01", "2025-01-02"):
                producer.send("t", b"x", timestamp=day)
        given = {"startingTimestamp": "2025-01-02", "endingTimestamp": "2025-01-01"}
        options = parse_broker_options(
            {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", **given}, streaming=False
        )
        with pytest.raises(OptionError) as raised:
            plan_batch(options, Pruning())
    assert str(raised.value).startswith(
        "startingTimestamp: 2025-01-02 00:00:00.000 UTC (1735776000000 ms) for t-0 is after endingTimestamp, "
        "2025-01-01 00:00:00.000 UTC (1735689600000 ms)"
    )
