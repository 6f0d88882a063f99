"""Streams whose reader cannot be made end with the reason, whatever Spark calls first."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.kafkabroker import KafkaBrokerDataSource
from kafkacodec.spark.kafkalog import KafkaLogDataSource
from kafkacodec.spark.schema import spark_schema
from tests.corpus import ROOT

LIVE = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}
WRONG: dict[str, tuple[tuple[dict[str, str], str], ...]] = {
    "kafkalog": (
        ({}, "path: missing"),
        ({"path": str(ROOT), "startingOffsets": "5"}, "startingOffsets: expected earliest, latest or JSON"),
        ({"path": str(ROOT), "subscribe": "a", "assign": '{"a": [0]}'}, "assign: contradicts subscribe"),
        ({"path": str(ROOT), "isolationLevel": "committed"}, "isolationLevel: expected read_uncommitted or"),
        ({"path": str(ROOT), "endingOffsets": "latest"}, "endingOffsets: a stream has no end"),
        ({"path": str(ROOT), "view": "lag"}, "view: lag cannot be read as a stream"),
    ),
    "kafkabroker": (
        ({"subscribe": "orders"}, "kafka.bootstrap.servers: missing"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "subscribe: missing"),
        (LIVE | {"startingOffsets": "5"}, "startingOffsets: expected earliest, latest or JSON"),
        (LIVE | {"assign": '{"a": [0]}'}, "assign: contradicts subscribe"),
        (LIVE | {"kafka.isolation.level": "committed"}, "kafka.isolation"),
        (LIVE | {"endingOffsets": "latest"}, "endingOffsets: a stream has no end"),
    ),
}
CALLS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("initialOffset", ()),
    ("latestOffset", ()),
    ("partitions", ({}, {})),
    ("commit", ({},)),
)


@pytest.mark.parametrize("source", [KafkaLogDataSource, KafkaBrokerDataSource])
def test_each_first_call_says_what_is_wrong(source: Any) -> None:
    for options, message in WRONG[source.name()]:
        reader = source(options).streamReader(spark_schema(("offset", "value")))
        for call, arguments in CALLS:
            with pytest.raises(OptionError) as raised:
                getattr(reader, call)(*arguments)
            assert str(raised.value).startswith(message)
        reader.stop()
        assert pickle.loads(pickle.dumps(reader))


def test_a_wrong_schema() -> None:
    schema = spark_schema(("offset", "value")).add("payload", "binary")
    cases: tuple[tuple[Any, dict[str, str]], ...] = (
        (KafkaLogDataSource, {"path": str(ROOT)}),
        (KafkaBrokerDataSource, LIVE),
    )
    for source, options in cases:
        with pytest.raises(OptionError, match="schema: unknown column 'payload'"):
            source(options).streamReader(schema).initialOffset()
