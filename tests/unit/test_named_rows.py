"""Results as tables: in notebooks, and of pyarrow, pandas and polars."""

from __future__ import annotations

import inspect
import pickle
import shutil
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin import operations
from kafkacodec.client.admin.quotas import QuotaOperations
from kafkacodec.client.admin.tokens import DelegationToken
from kafkacodec.log.analysis import log_diff
from kafkacodec.named_rows import NamedRows, RowsByKey, Shape

TIME = pa.timestamp("ms", tz="UTC")


class Part(NamedTuple):
    broker: int
    size: int


class Item(NamedTuple):
    name: str
    last_timestamp: int
    share: float | None
    parts: list[Part]
    by_partition: dict[TopicPartition, Part]
    configs: dict[str, str | None]
    words: frozenset[str] | None
    error: kc.BrokerError | None


ITEM = Item(
    "a", 5, 0.5, [Part(1, 2)], {TopicPartition("t", 3): Part(4, 5)}, {"x": None}, frozenset("ba"), kc.errors.error(3)()
)


def test_annotations_decide_the_types_of_columns() -> None:
    part = {"broker": pa.int32(), "size": pa.int64()}
    table = NamedRows([ITEM, ITEM._replace(last_timestamp=-1, words=None, error=None)], Item).to_arrow()
    assert table.schema == pa.schema(
        {
            "name": pa.string(),
            "last_timestamp": TIME,
            "share": pa.float64(),
            "parts": pa.list_(pa.struct(part)),
            "by_partition": pa.list_(pa.struct({"topic": pa.string(), "partition": pa.int32(), **part})),
            "configs": pa.map_(pa.string(), pa.string()),
            "words": pa.list_(pa.string()),
            "error": pa.string(),
        }
    )
    first, second = table.to_pylist()
    assert first["by_partition"] == [{"topic": "t", "partition": 3, "broker": 4, "size": 5}]
    assert (first["configs"], first["words"], first["share"]) == ([("x", None)], ["a", "b"], 0.5)
    assert first["error"].startswith("UNKNOWN_TOPIC_OR_PARTITION")
    assert (second["last_timestamp"], second["words"], second["error"]) == (None, None, None)


def test_notebooks_align_numbers_to_the_right_and_show_no_secrets() -> None:
    html = NamedRows([ITEM], Item)._repr_html_()
    assert "Item: 1 row<" in html
    assert '<th style="text-align:right">share</th>' in html
    assert '<td style="text-align:right">1970-01-01 00:00:00.005</td>' in html
    assert '<td style="text-align:left">broker=1 size=2</td>' in html
    token = DelegationToken("id", b"password", "User:a", None, [], 1, 2, 3)
    tokens = NamedRows([token], DelegationToken)
    assert "hmac" not in tokens._repr_html_()
    assert tokens.to_arrow()["hmac"].to_pylist() == [b"password"]
    many = NamedRows([Part(1, n) for n in range(60)], Part)._repr_html_()
    assert "Part: 60 rows, the first 50 of which are" in many
    assert ">49<" in many
    assert ">50<" not in many


def test_dicts_have_rows_for_their_items_and_the_items_in_these() -> None:
    quotas = RowsByKey(
        {(("user", "a"), ("ip", None)): {"rate": 1.5, "share": 2.0}},
        Shape(float, {"entity": dict[str, str | None]}, {"quota": str}, "value"),
    )
    assert quotas.to_arrow().to_pylist() == [
        {"entity": [("user", "a"), ("ip", None)], "quota": "rate", "value": 1.5},
        {"entity": [("user", "a"), ("ip", None)], "quota": "share", "value": 2.0},
    ]
    lists = RowsByKey({TopicPartition("t", 1): [Part(1, 2), Part(3, 4)]}, Shape(Part, operations.PARTITION))
    assert lists.to_polars().rows() == [("t", 1, 1, 2), ("t", 1, 3, 4)]
    assert pickle.loads(pickle.dumps(lists)).to_arrow().equals(lists.to_arrow())
    assert lists == {TopicPartition("t", 1): [Part(1, 2), Part(3, 4)]}


def test_results_of_the_admin_client_are_tables() -> None:
    with kc.broker.serve(topics={"a": 2}) as kafka, kc.client.Admin(kafka.bootstrap_servers) as admin:
        assert admin.list_topics().to_polars()[["name", "num_partitions"]].rows() == [("a", 2)]
        assert admin.list_offsets({("a", 1): "latest"}).to_polars().rows() == [("a", 1, 0, None, 0)]
        assert "compression.type" in admin.describe_configs([("topic", "a")]).to_pandas()["name"].tolist()
        (directory,) = admin.describe_log_dirs().to_arrow().to_pylist()
        assert [part["partition"] for part in directory["replicas"] if part["topic"] == "a"] == [0, 1]
        assert "TopicListing: 1 row<" in admin.list_topics()._repr_html_()


def test_every_result_of_the_admin_client_with_items_is_a_table() -> None:
    calls = {
        name: str(inspect.signature(call).return_annotation)
        for name, call in inspect.getmembers(kc.client.Admin, inspect.isfunction)
        if not name.startswith("_") and name not in ("metrics", "close")
    }
    plain = {name for name, kind in calls.items() if kind.startswith(("dict", "list"))}
    assert not plain
    assert calls["list_topics"] == "RowsByKey[str, TopicListing]"
    assert sum(kind.startswith(("RowsByKey", "NamedRows")) for kind in calls.values()) >= 24
    assert inspect.iscoroutinefunction(QuotaOperations.describe_client_quotas)


def test_what_is_known_of_logs_are_tables(tmp_path: Path) -> None:
    log = kc.sample()
    statistics = kc.log.statistics(log.path)
    table = statistics.to_arrow()
    assert table["topic"].to_pylist() == [part.topic for part in statistics]
    assert table["num_records"].to_pylist() == [part.num_records for part in statistics]
    assert table.schema.field("first_timestamp").type == TIME
    assert kc.log.per_topic(statistics).to_polars().height == len({part.topic for part in statistics})
    transactions = log.partition("payments", 0).transactions()
    states = [row["state"] for row in transactions.to_arrow().to_pylist()]
    assert states.count("aborted") == len(transactions.aborted) == 3
    assert states.count("open") == len(transactions.open) == 1
    assert states.count("committed") == 11
    shutil.copytree(log.path, tmp_path / "copy")
    for segment in (tmp_path / "copy/orders-2").glob("*.log"):
        segment.write_bytes(b"")
    found = kc.log.diff(log.path, tmp_path / "copy")
    assert repr(found) == "<Differences: 8 partitions>"
    table = found.to_arrow()
    assert [row["topic"] for row in table.to_pylist() if not row["equal"]] == ["orders"]
    assert "Differences: 8 rows" in found._repr_html_()
    different = next(part for part in found if not part.equal)
    ranges = different.to_arrow().to_pylist()
    assert {row["side"] for row in ranges} == {"a"}
    assert sum(row["num_records"] for row in ranges) == log.partition("orders", 2).count()
    assert len(list(found)) < 8  # those that were taken are gone, and nothing is compared twice
    trial = kc.log.codec_trial(log.partition("orders", 0), codecs=[("none", None), ("zstd", 3)])
    assert trial.to_polars()["codec"].to_list() == ["none", "zstd"]
    report = kc.log.Report("a")
    report.add(kc.log.Finding("error", "damaged", "a/0.log", "torn", 7))
    assert report.to_polars()["position"].to_list() == [7]


def test_notebooks_show_decoded_values() -> None:
    values: Any = [b'{"a": 1}', None, b"{"]
    decoded = kc.values.decode(
        values, kc.values.infer_json([values[:1]]), format="json", framing="none", on_error="null"
    )
    html = decoded._repr_html_()
    assert '<td style="text-align:left">a=1</td>' in html
    assert "1 error: 3 rows" in html
    assert decoded.to_polars().height == 3


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.duration("s")])
def test_notebooks_show_decoded_times_that_python_does_not_have(kind: pa.DataType) -> None:
    times = pa.array([(1 << 62) + 1]).view(kind)
    table = pa.table(
        {
            "value": pa.StructArray.from_arrays([times], ["t"]),
            "schema_id": pa.nulls(1, pa.int64()),
            "schema_uuid": pa.nulls(1, pa.string()),
            "error": pa.nulls(1, pa.string()),
        }
    )
    assert "t=" in kc.values.decoding.DecodedValues(table)._repr_html_()


def test_a_difference_that_cannot_be_made_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, compare, fails = kc.sample(), log_diff.difference, [True]

    def difference(*arguments: Any) -> Any:
        if fails[0]:
            raise OSError("the disk is busy")
        return compare(*arguments)

    monkeypatch.setattr(log_diff, "difference", difference)
    found = kc.log.diff(log.path, log.path)
    with pytest.raises(OSError, match="busy"):
        found.to_arrow()
    with pytest.raises(OSError, match="busy"):
        next(found)
    fails[0] = False
    assert len(list(found)) == 8


@pytest.mark.parametrize("name", ["to_arrow", "to_pandas", "to_polars"])
def test_many_rows_are_one_table(name: str) -> None:
    rows = NamedRows((Part(1, n) for n in range(10_000)), Part)
    assert len(getattr(rows, name)()) == 10_000
    assert [row.size for row in islice(rows, 2)] == [0, 1]
