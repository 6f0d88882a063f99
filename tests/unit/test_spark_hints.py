"""Errors and warnings of Spark's formats and functions that say what was meant, and how results are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import EncodeError
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.job import export
from kafkacodec.spark.exporting.report import ExportedFile, ExportReport
from kafkacodec.spark.live import connections
from kafkacodec.spark.live.offsets import TopicOffsets
from kafkacodec.spark.live.producing import send
from kafkacodec.spark.live.read_options import parse_broker_options, wanted_columns
from kafkacodec.spark.live.write_options import SinkOptions
from kafkacodec.spark.reading.discovery import partitions_of
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.sql.blobs import Explosion
from kafkacodec.spark.sql.column_functions import UDFS


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with kc.broker.serve(topics={"orders": 2, "payments": 1}) as broker:
        yield broker.bootstrap_servers
        connections.close_all()


def offsets(server: str, **options: str) -> TopicOffsets:
    return TopicOffsets(parse_broker_options({"kafka.bootstrap.servers": server, **options}, streaming=False))


def test_a_similar_topic_is_named(server: str) -> None:
    with pytest.raises(OptionError, match=r"^subscribe: ordres: .*; did you mean 'orders'\?$"):
        offsets(server, subscribe="payments,ordres").partitions()
    with pytest.raises(OptionError, match=r"^subscribe: nothing-like-it: .* hides it from this user$"):
        offsets(server, subscribe="nothing-like-it").partitions()


def test_a_pattern_without_a_topic_is_a_warning(server: str, caplog: pytest.LogCaptureFixture) -> None:
    live = offsets(server, subscribePattern="invoices-.*")
    assert live.partitions() == live.partitions() == {}
    files = {"path": kc.sample().path, "subscribePattern": "order"}
    assert partitions_of(parse_read_options(files)) == []
    assert [record.getMessage() for record in caplog.records] == [
        "subscribePattern: 'invoices-.*' is found in no topic's name",
        "subscribePattern: 'order' matches the complete name of no topic here",
    ]
    caplog.clear()
    assert offsets(server, subscribePattern="rder").partitions().keys() == {("orders", 0), ("orders", 1)}
    assert partitions_of(parse_read_options(files | {"subscribePattern": "order."}))
    assert not caplog.records


@pytest.mark.parametrize("option", ["bootstrap.servers", "security.protocol"])
def test_the_prefix_of_client_options(option: str) -> None:
    """As Spark calls it first, for the schema."""
    with pytest.raises(OptionError, match=f"^{option}: unknown option; did you mean kafka.{option}\\?$"):
        wanted_columns({option: "x", "subscribe": "orders"})
    with pytest.raises(OptionError, match=f"^{option}: unknown option; options are path"):
        parse_read_options({option: "x", "path": "/logs"})


def test_a_partition_that_the_topic_does_not_have(server: str) -> None:
    options = SinkOptions("payments", {"bootstrap_servers": server, "acks": "all"}, None, ("value", "partition"))
    rows = pa.record_batch({"value": pa.array([b"a", b"b"]), "partition": pa.array([0, 1], pa.int32())})
    with pytest.raises(EncodeError, match="'payments' has no partition 1; without the column partition, the key choo"):
        send([rows], options, 0)


def test_arguments_of_an_export(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^spark: expected a Spark session or None, not a path; the order is export"):
        export(str(tmp_path), SimpleNamespace(), "out")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^values: 'schema' is unknown; did you mean 'schemas'\?$"):
        export(None, kc.sample().path, tmp_path / "out", values={"schema": "dir"})


def test_a_report_is_shown_in_one_line_and_as_a_table() -> None:
    files = tuple(ExportedFile(f"{n}.parquet", "orders", n, None, 600, 1200, 0, 599) for n in range(2))
    spans = {("orders", n): (0, 600) for n in range(2)}
    report = ExportReport("records", "parquet", "run=1", spans, {"orders": {"0": 600, "1": 600}}, files)
    line = "ExportReport: records: 1,200 records of 2 partitions in 2 files (2,400 bytes)"
    assert repr(report) == f"<{line}>"
    assert line in report._repr_html_()
    assert report._repr_html_().count("<tr>") == 3
    assert repr(ExportReport("records", "parquet", None)) == "<ExportReport: records: nothing new>"


def test_damage_in_a_column_names_the_column_and_the_row() -> None:
    blob = bytearray(kc.encode([(b"k", b"v")]))
    damaged = bytes(blob[:-1]) + bytes([blob[-1] ^ 1])
    explosion = Explosion("payload", ("value",), (), "raise", False, 1 << 30)
    batch = pa.record_batch({"payload": pa.array([bytes(blob), None, damaged])})
    with pytest.raises(kc.DecodeError, match=r"^column payload, row 2 of its batch: "):
        list(explosion.explode([batch]))


def test_functions_have_the_names_that_columns_show() -> None:
    assert all(function.__name__ == name for name, (function, _) in UDFS.items())


def test_both_formats_are_found_by_their_modules() -> None:
    import pyspark_kafkabroker
    import pyspark_kafkacodec

    names: list[Any] = [module.DefaultSource.name() for module in (pyspark_kafkabroker, pyspark_kafkacodec)]
    assert names == ["kafkabroker", "kafkalog"]
