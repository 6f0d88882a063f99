"""Options of the format `kafkalog`: how they are parsed, and which ones are refused by name."""

import logging
import re
import time
from datetime import datetime

import numpy as np
import pytest

from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.options import source_options
from kafkacodec.spark.reading.options import EARLIEST, LATEST, parse_columns, parse_read_options


def parse(**options):
    return parse_read_options({"path": "/logs", **options})


def test_defaults_read_everything():
    options = parse()
    assert options.paths == ("/logs",)
    assert options.selection.wants("any", 3)
    assert options.selection.wants(None, None)
    assert (options.start.default, options.end.default) == (EARLIEST, LATEST)
    assert not options.permissive
    assert not options.headers
    assert not options.read_committed


def test_names_ignore_case():
    assert parse_read_options({"PATH": "/logs", "includeheaders": "TRUE", "MODE": "permissive"}).permissive


def test_several_paths():
    assert parse_read_options({"path": "/a, /b*,"}).paths == ("/a", "/b*")
    assert parse_read_options({"paths": '["/a,b", "/c"]'}).paths == ("/a,b", "/c")


@pytest.mark.parametrize(
    ("selector", "wanted", "unwanted"),
    [
        ({"subscribe": "orders, users"}, [("orders", 0), ("users", 7)], [("order", 0), (None, None)]),
        ({"subscribePattern": "ord.*"}, [("orders", 0)], [("reorders", 0), (None, None)]),
        ({"assign": '{"orders": [0, 2]}'}, [("orders", 0), ("orders", 2)], [("orders", 1), ("users", 0)]),
    ],
)
def test_selectors(selector, wanted, unwanted):
    selection = parse(**selector).selection
    assert all(selection.wants(*pair) for pair in wanted)
    assert not any(selection.wants(*pair) for pair in unwanted)


def test_offsets_by_partition():
    options = parse(startingOffsets='{"t": {"0": 5, "1": -2}}', endingOffsets='{"t": {"0": -1, "1": 9}}')
    assert options.start.values == {("t", 0): 5, ("t", 1): EARLIEST}
    assert options.end.values == {("t", 0): LATEST, ("t", 1): 9}


def test_timestamps():
    options = parse(startingTimestamp="1700000000000", startingOffsetsByTimestampStrategy="latest")
    assert options.start.by_timestamp
    assert options.start.default == 1700000000000
    assert options.latest_when_no_later_record


def test_columns_keep_the_order_they_are_given_in():
    options = parse(columns="offset,TIMESTAMPTYPE, headers")
    assert options.columns == ("offset", "timestampType", "headers")
    assert options.headers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "groups"}, "view: expected records here, not 'groups'; read other views with spark.read"),
        ({"subscrib": "t"}, "subscrib: unknown option; did you mean subscribe?"),
        ({"path": ""}, "path: missing"),
        ({"paths": "[1]", "path": None}, "paths: expected a JSON list"),
        ({"paths": "["}, "path: given twice"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "assign: contradicts subscribe"),
        ({"subscribe": "a", "subscribePattern": "a"}, "subscribePattern: contradicts subscribe"),
        ({"subscribe": " , "}, "subscribe: no topic given"),
        ({"subscribePattern": "("}, "subscribePattern: invalid RE2 regular expression '('"),
        ({"assign": "{}"}, "assign: expected JSON"),
        ({"assign": '{"a": []}'}, "assign: expected JSON"),
        ({"assign": '{"a": [-1]}'}, "assign: expected JSON"),
        ({"assign": '{"a": [true]}'}, "assign: expected JSON"),
        ({"assign": "nonsense"}, "assign: 'nonsense' is not JSON"),
        ({"assign": "[" * 100_000}, "assign: the JSON '[[[["),
        (
            {"assign": str({"a": [0]})},
            """assign: "{'a': [0]}" is not JSON, but a dict of Python; json.dumps makes JSON""",
        ),
        (
            {"startingOffsets": str({"t": {0: 5}})},
            'startingOffsets: expected earliest, latest or JSON such as {"topic": {"0": 23, "1": 42}}: '
            "\"{'t': {0: 5}}\" is not JSON, but a dict of Python; json.dumps makes JSON of it",
        ),
        ({"subscribe": str(["a", "b"])}, "subscribe: expected names such as a,b, not a list of Python, "),
        ({"columns": str(("key", "value"))}, "columns: expected names such as a,b, not a tuple of Python, "),
        ({"startingOffsets": '{"a":' * 100_000, "subscribe": "a"}, "startingOffsets: expected earliest"),
        ({"startingOffsets": "latest"}, "startingOffsets: 'latest' would read nothing"),
        ({"endingOffsets": "earliest"}, "endingOffsets: 'earliest' would read nothing"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets: -1 (latest) for t-0"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets: -2 (earliest) for t-0"),
        ({"topic": "orders"}, "topic: unknown option; did you mean subscribe?"),
        ({"topics": "orders"}, "topics: unknown option; did you mean subscribe?"),
        ({"partitions": "0"}, "partitions: unknown option; did you mean assign?"),
        ({"startingOffsets": "5"}, "startingOffsets: expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": 5}'}, "startingOffsets: expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"x": 5}}'}, "startingOffsets: expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"0": 1.5}}'}, "startingOffsets: expected earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "startingOffsets: expected earliest, latest or JSON"),
        (
            {"startingOffsets": '{"t": {"0": 9223372036854775808}}'},
            "startingOffsets: expected earliest, latest or JSON",
        ),
        ({"startingOffsets": "earliest", "startingTimestamp": "1"}, "startingOffsets: contradicts startingTimestamp"),
        ({"endingTimestamp": "soon"}, "endingTimestamp is 'soon', which is neither"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "startingOffsetsByTimestamp: expected JSON"),
        ({"startingOffsetsByTimestampStrategy": "latest"}, "startingOffsetsByTimestampStrategy: requires"),
        ({"includeHeaders": "yes"}, "includeHeaders: expected true or false"),
        ({"columns": "offset,headers", "includeHeaders": "false"}, "includeHeaders: false contradicts columns"),
        ({"columns": "offset", "includeHeaders": "true"}, "includeHeaders: true contradicts columns"),
        ({"columns": "key,vlaue"}, "columns: unknown column 'vlaue'"),
        ({"columns": "key,key"}, "columns: key is listed twice"),
        ({"mode": "DROPMALFORMED"}, "mode: expected FAILFAST or PERMISSIVE"),
        ({"isolationLevel": "serializable"}, "isolationLevel: expected read_uncommitted or read_committed"),
        ({"minPartitions": "0"}, "minPartitions: '0' is not a positive integer"),
        ({"maxRecordsPerPartition": "many"}, "maxRecordsPerPartition: 'many' is not a positive integer"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger: unknown option"),
        ({"endAt": "now"}, "endAt: expected highWatermark or logEnd, not 'now'"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss: expected true or false"),
    ],
)
def test_refused_by_name(options, message):
    given = {name: value for name, value in {"path": "/logs", **options}.items() if value is not None}
    with pytest.raises(OptionError, match=f"^{re.escape(message)}"):
        parse_read_options(given)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("startingOffsets", {"t": {0: 5}}, "startingOffsets: expected text; json.dumps makes it of a dict"),
        ("subscribe", ["a", "b"], "subscribe: expected text, such as 'a,b', not list"),
        ("minPartitions", 2.0, "minPartitions: expected text, a whole number or a boolean, not float"),
    ],
)
def test_objects_of_python_as_options_of_an_export(option, value, message):
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        source_options({"path": "/logs", option: value})


def test_times_and_numbers_of_numpy_as_options_of_an_export():
    found = source_options({"path": "/logs", "startingTimestamp": datetime(2025, 3, 10), "minPartitions": np.int64(2)})
    assert (found.start.default, found.min_partitions) == (1_741_564_800_000, 2)


def test_streams_have_no_end_but_may_start_at_the_latest():
    given = {"path": "/logs", "startingOffsets": "latest", "maxOffsetsPerTrigger": "10"}
    assert parse_read_options(given, streaming=True).start.default == LATEST
    with pytest.raises(OptionError, match=r"^endingOffsets: a stream has no end"):
        parse_read_options({**given, "endingOffsets": "latest"}, streaming=True)


@pytest.mark.parametrize(
    ("given", "streaming", "fails", "gaps", "to_high_watermark"),
    [
        ({}, False, True, "error", False),
        ({}, True, True, "error", True),
        ({"mode": "PERMISSIVE"}, False, False, "error", False),
        ({"mode": "PERMISSIVE"}, True, True, "error", True),
        ({"failOnDataLoss": "false"}, False, False, "accept", False),
        ({"failOnDataLoss": "false", "gaps": "error"}, True, False, "error", True),
        ({"failOnDataLoss": "true", "mode": "PERMISSIVE"}, False, True, "error", False),
        ({"endAt": "highwatermark"}, False, True, "error", True),
        ({"endAt": "logEnd"}, True, True, "error", False),
    ],
)
def test_data_loss_and_the_end(given, streaming, fails, gaps, to_high_watermark):
    options = parse_read_options({"path": "/logs", **given}, streaming=streaming)
    assert (options.fail_on_data_loss, options.gaps) == (fails, gaps)
    assert options.to_high_watermark == to_high_watermark


@pytest.mark.parametrize("streaming", [False, True])
def test_options_of_a_broker_are_ignored_and_named_once_without_their_values(streaming, caplog):
    brought = {
        "Kafka.Bootstrap.Servers": "broker:9092",
        "kafka.sasl.jaas.config": "secret",
        "groupIdPrefix": "g",
        "kafkaConsumer.pollTimeoutMs": "1",
    }
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        options = parse_read_options({"path": "/logs", "subscribe": "a", **brought}, streaming=streaming)
    assert options == parse_read_options({"path": "/logs", "subscribe": "a"}, streaming=streaming)
    [message] = [record.getMessage() for record in caplog.records]
    assert all(name in message for name in brought)
    assert "secret" not in message


def test_a_table_of_a_catalog_is_refused_with_what_to_use_instead():
    properties = {"owner": "me", "path": "file:/logs", "location": "file:/logs", "provider": "kafkalog"}
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        parse_columns(properties)
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        parse_read_options({})  # what the reader of such a table gets


def test_times_are_also_dates_and_relative_to_now():
    assert parse(startingTimestamp="2023-11-14T22:13:20").start.default == 1_700_000_000_000
    assert parse(endingTimestamp=" 2023-11-14 ").end.default == 1_699_920_000_000
    hour_ago = time.time() * 1000 - 3_600_000
    assert abs(parse(startingTimestamp="-1h").start.default - hour_ago) < 60_000
    by_partition = parse(startingOffsetsByTimestamp='{"t": {"0": "2023-11-14", "1": 5}}').start.values
    assert by_partition == {("t", 0): 1_699_920_000_000, ("t", 1): 5}
    with pytest.raises(OptionError, match="startingTimestamp is 'soon', which is neither milliseconds, a date or time"):
        parse(startingTimestamp="soon")
    with pytest.raises(OptionError, match="startingTimestamp: '-1' is a time before 1970"):
        parse(startingTimestamp="-1")
    with pytest.raises(OptionError, match="startingOffsets: expected earliest"):
        parse(startingOffsets='{"t": {"0": "-1h"}}')
