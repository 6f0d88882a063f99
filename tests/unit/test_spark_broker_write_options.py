"""Options and columns of the sink `kafkabroker`: what is refused, in one sentence that names it."""

from __future__ import annotations

import logging

import pytest

from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.write_options import parse_sink_options
from tests.unit.test_spark_writing import schema_of

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}
ROWS = schema_of("topic string, value binary")


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"bootstrap.servers": "a:1"}, ROWS, "bootstrap.servers: unknown option; did you mean kafka."),
        ({"Topics": "t"}, ROWS, "Topics: unknown option; did you mean topic?"),
        ({"topic": "a b"}, ROWS, "topic: "),
        ({"includeTimestamp": "maybe"}, ROWS, "includeTimestamp: "),
        ({"includeTimestamp": "true"}, ROWS, "includeTimestamp: there is no column timestamp"),
        ({"transactionalIdPrefix": " "}, ROWS, "transactionalIdPrefix: must not be empty"),
        ({"kafka.transactional.id": "x"}, ROWS, "kafka.transactional.id: each task needs its own"),
        ({"kafka.acks": "1"}, ROWS, "kafka.acks: only all is possible"),
        ({"kafka.value.serializer": "x"}, ROWS, "kafka.value.serializer: keys and values are binary columns"),
        ({"kafka.bootstrap.servers": " "}, ROWS, "kafka.bootstrap.servers: missing"),
        ({"txnAppId": "a"}, ROWS, "txnAppId: unknown option"),
        ({}, schema_of("value binary"), "topic: missing; set the option topic or add a column topic"),
        ({"topic": "t"}, schema_of("key binary"), "column 'value': missing"),
        ({"topic": "t"}, schema_of("value int"), "column 'value': must be binary or string, not int"),
        ({}, schema_of("value string, topic binary"), "column 'topic': must be string, not binary"),
        ({"topic": "t"}, schema_of("value string, partition bigint"), "column 'partition': must be int, not bigint"),
    ],
)
def test_refused(options, schema, message):
    with pytest.raises(OptionError) as raised:
        parse_sink_options(BROKER | options, schema)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_taken(caplog):
    schema = schema_of("topic string, value string, key binary, timestamp timestamp, offset bigint, partition int")
    with caplog.at_level(logging.WARNING, "kafkacodec.spark"):
        options = parse_sink_options(BROKER | {"kafka.compression.type": "zstd"}, schema)
    assert options.columns == ("topic", "value", "key", "partition")
    assert options.producer["acks"] == "all"
    assert options.producer["compression_type"] == "zstd"
    assert caplog.messages == ["columns that are not sent: offset"]
    more = {"TOPIC": "t", "includetimestamp": "true", "transactionalIdPrefix": "p", "checkpointLocation": "c"}
    options = parse_sink_options(BROKER | more, schema, streaming=True)
    assert options.columns == ("value", "key", "timestamp", "partition")
    assert (options.topic, options.transactional_id_prefix) == ("t", "p")


def test_no_secret_in_the_representation():
    login = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='hidden';"
    options = parse_sink_options(BROKER | login | {"kafka.sasl.jaas.config": module}, ROWS)
    assert options.producer["sasl_plain_password"] == "hidden"
    assert "hidden" not in repr(options)
