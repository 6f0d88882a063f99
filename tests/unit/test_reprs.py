"""What objects with a state say of themselves: ``<Name: facts>``."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, is_typeddict

import pytest

import kafkacodec as kc
from kafkacodec.dialects import line, rewrite, zookeeper
from kafkacodec.log.analysis.key_statistics import KeyUse
from kafkacodec.named_rows import NamedRows, RowsByKey, Shape
from tests.patience import SOON

MODULES = (
    "", ".log", ".client", ".client.aio", ".broker", ".values", ".protocol",
    ".dialects.kafka07", ".dialects.kafka07.aio", ".dialects.line", ".dialects.line.aio", ".dialects.rewrite",
    ".dialects.rewrite.aio", ".dialects.zookeeper",
)  # fmt: skip


def public_classes() -> Iterator[type]:
    for name in MODULES:
        module = import_module("kafkacodec" + name)
        for public in getattr(module, "__all__", dir(module)):
            found = getattr(module, public)
            if inspect.isclass(found) and found.__module__.startswith("kafkacodec."):
                yield found


def is_plain(found: type) -> bool:
    """Whether Python defines what it says: tuples, dataclasses, enumerations, errors, types without objects."""
    named = hasattr(found, "_fields") or hasattr(found, "__dataclass_fields__")
    return named or is_typeddict(found) or is_protocol(found) or issubclass(found, (BaseException, enum.Enum, str))


def is_protocol(found: type) -> bool:
    return getattr(found, "_is_protocol", False)


def test_every_public_class_says_what_it_is() -> None:
    without = {found.__qualname__ for found in public_classes() if found.__repr__ is object.__repr__}
    assert not {found.__qualname__ for found in public_classes() if not is_plain(found)} & without


def objects(directory: Path) -> dict[str, Any]:
    log = kc.sample()
    search = kc.Search(key="a", invert=True)
    values: Any = [b'{"a": 1}']
    schema = kc.values.infer_json([values])
    return {
        r"Decoder: layout copy, on_error raise": kc.Decoder(),
        r"Encoder: magic 2, codec lz4": kc.Encoder(codec="lz4"),
        r"Search: 1 condition, inverted": search,
        r"RecordColumns: 0 rows \(offset\), \d+ bytes?": kc.decode(b"", columns=["offset"]),
        r"ClusterMetadata: offset \d+, 5 topics, 1 broker, \d configured .*": kc.log.read_cluster_metadata(log),
        r"PartitionLags: 6 rows \(group, topic, .*, …\): \('billing', 'orders', 0, 169, .*": kc.log.lag(log),
        r"Transactions: 15 rows \(producer_id, .*, state\): \(0, 0, 8, 'committed'\), .*, …": log.partition(
            "payments", 0
        ).transactions(),
        rf"LogDirectory: {log.path}": log,
        rf"Topic: orders, 3 partitions in {log.path}": log.topic("orders"),
        rf"Partition: {log.path}/orders-0": log.partition("orders", 0),
        rf"Segment: {log.path}/orders-0/0+\.log": log.partition("orders", 0).segments[0],
        rf"Follower: {log.path}/orders-0, offset 0": kc.log.Follower(log.partition("orders", 0)),
        r"KeyStatistics: 0 keys, exact": kc.log.KeyStatistics(),
        rf"LogWriter: {directory}/t-0, offset 5": kc.log.LogWriter(directory, "t", 0, start_offset=5),
        r"SegmentWriter: .*/0+7\.log, 0 records": kc.log.SegmentWriter(directory, 7),
        r"ValueDecoder: value, framing none, .*": kc.values.ValueDecoder(schema),
        r"DecodedValues: 1 row of struct<a: int64>, 0 errors": kc.values.decode(values, schema, framing="none"),
        r"Registry: http://localhost:1": kc.values.Registry("http://localhost:1"),
        rf"SchemaDirectory: {directory}": kc.values.SchemaDirectory(directory),
        r"Encoder: subject s, <Registry: http://localhost:1>": kc.values.Encoder("http://localhost:1", subject="s"),
        r"LineReader: 2 bytes of an unfinished line": reader(),
        r"MemoryStorage: 0 records": line.MemoryStorage(),
        rf"FileStorage: {directory}": line.FileStorage(directory),
        r"Broker: <MemoryStorage: 0 records>": line.Broker(line.MemoryStorage()),
        r"GroupController: here:9, 0 groups": rewrite.GroupController(rewrite.Broker(1, "here", 9), {"t": 1}),
        r"GroupMember: c, group 'g', idle": rewrite.GroupMember("a", "g", "c"),
        r"KafkaConnection: localhost:1, open": rewrite.KafkaConnection("localhost:1"),
        r"Registry: 0 brokers, 0 topics": zookeeper.Registry({}),
        r"Connection: client, 0 pending, 0 bytes of an incomplete frame.*": kc.protocol.Connection("client"),
        r"Producer: localhost:1, open": kc.client.Producer("localhost:1"),
    }


def test_tables_show_their_first_rows() -> None:
    """pytest shows the ``repr`` in assertions, of which it leaves out all after 240 characters."""
    data = kc.encode([(b"a", b"1"), (None, None), (b"b", b"x" * 1000)])
    table = kc.decode(data, columns=["offset", "key", "value"])
    assert repr(table) == (
        f"<RecordColumns: 3 rows (offset, key, value), {table.nbytes:,} bytes: "
        f"(0, b'a', b'1'), (1, None, None), (2, b'b', b'{'x' * 40}…')>"
    )
    assert repr(table[:2]).endswith("(0, b'a', b'1'), (1, None, None)>")
    many = kc.decode(kc.encode([(b"\x1b", b"<v>" * 50)] * 100))
    assert re.fullmatch(r"<RecordColumns: 100 rows .*: \(0, .*, b'\\x1b', b'<v><v>.*…>", repr(many))
    assert len(repr(many)) <= 240
    assert len(repr(kc.scan(data))) <= 240


def test_lists_of_rows_are_shown_in_the_same_form() -> None:
    uses = NamedRows([KeyUse(b"a", 2, 5), KeyUse(b"b", 1, 3)], KeyUse)
    assert repr(uses) == "<KeyUse: 2 rows (key, records, size_in_bytes): (b'a', 2, 5), (b'b', 1, 3)>"
    many = NamedRows([KeyUse(b"a", n, n) for n in range(1000)], KeyUse)
    assert len(repr(many)) <= 240
    assert repr(many).endswith(", …>")
    assert repr(NamedRows([], KeyUse)) == "<KeyUse: 0 rows (key, records, size_in_bytes)>"
    uses_by_topic = RowsByKey({"t": [*uses]}, Shape(KeyUse, {"topic": str}))
    assert repr(uses_by_topic).startswith("<KeyUse: 2 rows (topic, key, records, size_in_bytes): ('t', b'a', 2, 5), ")


def reader() -> line.LineReader:
    made = line.LineReader()
    made.receive(b"ab")
    return made


@pytest.mark.filterwarnings("ignore:.* was not closed:ResourceWarning")
def test_objects_are_shown_in_one_form(tmp_path: Path) -> None:
    for expected, thing in objects(tmp_path).items():
        assert re.fullmatch(f"<(rewrite\\.|line\\.)?{expected}>", repr(thing)), repr(thing)
        for name in ("close", "discard"):
            if hasattr(thing, name):
                getattr(thing, name)()


def test_deliveries_and_brokers_are_shown_in_the_same_form() -> None:
    with kc.broker.serve(topics={"t": 1}) as kafka, kc.client.Producer(kafka.bootstrap_servers) as producer:
        sent = producer.send("t", b"v")
        sent.result(SOON)
        assert repr(sent) == "<Delivery: t-0, offset 0>"
        rows = producer.send_columns(kc.decode(kc.encode([(None, b"a")])), topic="t")
        rows.result(SOON)
        assert repr(rows) == "<TableDelivery: 1 row known, done>"
        with kc.dialects.rewrite.Producer({"bootstrap.servers": kafka.bootstrap_servers}) as other:
            response = other.send(rewrite.KafkaMessage("t", b"k", b"v"))
            response.wait(60)
            assert repr(response) == "<SendResponse: 1 of 1 message known>"
        assert repr(kafka) == f"<Broker: {', '.join(kafka.listeners)}, {kafka.data}>"
        assert re.fullmatch(r"<Injection: 0 requests met>", repr(kafka.inject("Produce", drop=True)))
