"""``columns`` of both consumers with decoders of keys and values; the values are made by fastavro."""

from __future__ import annotations

import asyncio
import io
import json
from itertools import repeat

import fastavro
import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client import Consumer, Producer, aio
from kafkacodec.client.consuming import typed
from kafkacodec.client.consuming.typed import reader_of
from kafkacodec.errors import DecodeError, SchemaError
from tests.reference.model_broker import ModelCluster
from tests.reference.model_traffic import SERVER, modelled

OPTIONS = {"bootstrap_servers": SERVER, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string"}]}
SCHEMAS = {7: json.dumps(ORDER), 8: json.dumps(NEWER)}
TYPED = ["value_schema_id", "value_error"]


def framed(number, value):
    written = io.BytesIO()
    fastavro.schemaless_writer(written, json.loads(SCHEMAS[number]), value)
    return b"\0" + number.to_bytes(4) + written.getvalue()


def decoder(**options):
    return kc.values.ValueDecoder(SCHEMAS, **options)


@pytest.fixture
def model(monkeypatch):
    return modelled(monkeypatch, ModelCluster(1, {"t": 1}))


@pytest.fixture
def broker():
    with kc.broker.serve() as running:
        yield running


def put(model, *records):
    assert model.logs["t", 0].append(kc.encode(records), 0).code == 0


@pytest.fixture(params=["blocking", "asyncio"])
def read(request, model):
    """Reads all tables of a range of offsets; an error that ends that comes last, with the position then."""

    async def coroutine(span, options):
        async with aio.Consumer(**OPTIONS) as consumer:
            await consumer.assign_ranges({("t", 0): span})
            tables = []
            try:
                async for table in consumer.columns(**options):
                    tables.append(table)
            except DecodeError as error:
                tables.append((error, await consumer.position("t", 0)))
            return tables

    def blocking(span, options):
        with Consumer(**OPTIONS) as consumer:
            consumer.assign_ranges({("t", 0): span})
            tables = []
            try:
                tables.extend(consumer.columns(**options))
            except DecodeError as error:
                tables.append((error, consumer.position("t", 0)))
            return tables

    def of_face(*span, **options):
        return blocking(span, options) if request.param == "blocking" else asyncio.run(coroutine(span, options))

    return of_face


def test_values_have_the_types_of_their_schemas(model, read):
    put(model, (b"a", framed(7, {"id": 1})), (b"b", None), (b"c", framed(8, {"id": 2, "note": "x"})))
    (table,) = read(0, 3, values=decoder())
    assert table.schema.names[:3] == ["topic", "partition", "offset"]
    assert table.schema.names[-3:] == ["headers", *TYPED]
    assert table.column("value").to_pylist() == [{"id": 1, "note": None}, None, {"id": 2, "note": "x"}]
    assert table.column("value_schema_id").to_pylist() == [7, None, 8]
    assert table.column("key").to_pylist() == [b"a", b"b", b"c"]


def test_a_readers_schema_and_keys(model, read):
    put(model, (framed(7, {"id": 5}), framed(8, {"id": 2, "note": "x"})))
    keys = decoder(part="key")
    (table,) = read(0, 1, keys=keys, values=decoder(reader_schema=SCHEMAS[7]), columns=["key", "value"])
    assert table.schema.names == ["offset", "key", "value", "key_schema_id", "key_error", *TYPED]
    assert table.to_pylist()[0] | {"offset": 0} == {
        "offset": 0,
        "key": {"id": 5},
        "value": {"id": 2},
        "key_schema_id": 7,
        "key_error": None,
        "value_schema_id": 8,
        "value_error": None,
    }


def test_a_wrong_value_raises_and_nothing_is_passed_over(model, read):
    put(model, (None, framed(7, {"id": 1})), (None, b"plain"), (None, framed(7, {"id": 3})))
    before, (error, position) = read(0, 3, values=decoder())
    assert before.column("value").to_pylist() == [{"id": 1}]
    assert str(error).startswith("t-0: offset 1: value: no schema id")
    assert position == 1
    (table,) = read(2, 3, values=decoder())
    assert table.column("value").to_pylist() == [{"id": 3}]
    (table,) = read(0, 3, values=decoder(on_error="null"))
    assert table.column("value").to_pylist() == [{"id": 1}, None, {"id": 3}]
    assert [error is None for error in table.column("value_error").to_pylist()] == [True, False, True]


def test_the_error_comes_again_until_a_seek(model):
    put(model, (None, b"plain"), (None, framed(7, {"id": 3})))
    with Consumer(**OPTIONS) as consumer:
        consumer.assign([("t", 0)])
        for _ in range(2):
            with pytest.raises(DecodeError, match="offset 0"):
                list(consumer.columns(timeout=60, values=decoder()))
        assert consumer.metrics()["consumer.records"] == 0
        consumer.seek("t", 0, 1)
        assert next(consumer.columns(timeout=60, values=decoder())).column("value").to_pylist() == [{"id": 3}]


def test_a_seek_past_a_wrong_value_loses_no_record_before_or_after_it(monkeypatch):
    """Two partitions in one table, with a wrong value and, in the other one, a wrong key before a wrong value."""
    model = modelled(monkeypatch, ModelCluster(1, {"t": 2}))
    good = [framed(7, {"id": number}) for number in range(6)]
    records = [(key, value) for key, value in zip(good, good, strict=True)]
    wrong = {0: [(good[3], b"plain")], 1: [(b"plain", good[3])]}
    for number in range(2):
        made = kc.encode([*records[:3], *wrong[number], *records[4:]])
        assert model.logs["t", number].append(made, 0).code == 0
    with Consumer(**OPTIONS, fetch_min_bytes=1) as consumer:
        consumer.assign_ranges({("t", 0): (0, 6), ("t", 1): (0, 6)})
        given = []
        errors = []
        while True:
            try:
                for table in consumer.columns(
                    keys=decoder(part="key"), values=decoder(), columns=["partition", "value", "key"]
                ):
                    given += zip(table.column("partition").to_pylist(), table.column("offset").to_pylist(), strict=True)
                break
            except DecodeError as error:
                errors.append(str(error).split(": no")[0])
                number = int(error.path[2])
                assert consumer.position("t", number) == 3
                assert [offset for place, offset in given if place == number] == [0, 1, 2]
                consumer.seek("t", number, 4)
        assert sorted(errors) == ["t-0: offset 3: value", "t-1: offset 3: key"]
        assert sorted(given) == [(number, offset) for number in range(2) for offset in (0, 1, 2, 4, 5)]


def test_a_group_commits_no_record_past_a_wrong_value(broker):
    servers = {"bootstrap_servers": broker.bootstrap_servers}
    with Producer(**servers) as producer:
        for value in (framed(7, {"id": 1}), b"plain", framed(7, {"id": 3})):
            producer.send("t", value, partition=0)
    with Consumer("t", **OPTIONS | servers, group_id="g", enable_auto_commit=False) as consumer:
        tables = consumer.columns(timeout=60, values=decoder())
        assert next(tables).column("offset").to_pylist() == [0]
        with pytest.raises(DecodeError, match="offset 1"):
            next(tables)
        consumer.commit()
        assert consumer.committed("t", 0) == 1


def test_a_reader_gives_the_tables_before_an_error_that_its_types_waited_for(model):
    put(model, (b"a", None), (b"b", b"plain"))
    with Consumer(**OPTIONS) as consumer:
        consumer.assign([("t", 0)])
        reader = consumer.reader(values=decoder(), max_rows=1)
        assert reader.read_next_batch().column("key").to_pylist() == [b"a"]
        with pytest.raises(DecodeError, match="offset 1"):
            reader.read_next_batch()


@pytest.mark.parametrize(
    ("options", "kind", "reason"),
    [
        ({"values": "schemas/"}, TypeError, r"values must be a kafkacodec\.values\.ValueDecoder, not str"),
        ({"keys": bytes.decode}, TypeError, r"keys must be a kafkacodec\.values\.ValueDecoder, not "),
        ({"columns": ["key"]}, ValueError, "values decodes the column 'value', which is not among columns"),
    ],
)
def test_wrong_decoders(read, options, kind, reason):
    with pytest.raises(kind, match=reason):
        read(0, 1, **{"values": decoder(), **options})


def test_a_reader_has_typed_columns(model):
    put(model, (b"a", None), (b"a", framed(7, {"id": 1})), (b"b", None), (b"c", framed(7, {"id": 2})))
    with Consumer(**OPTIONS) as consumer:
        consumer.assign_ranges({("t", 0): (0, 4)})
        table = consumer.reader(values=decoder(), max_rows=1).read_all()
        assert table.column("value").to_pylist() == [None, {"id": 1}, None, {"id": 2}]
        assert table.schema.names[-2:] == TYPED


def test_a_reader_of_a_readers_schema_waits_for_nothing(model):
    with Consumer(**OPTIONS) as consumer:
        consumer.assign([("t", 0)])
        reader = consumer.reader(values=decoder(reader_schema=SCHEMAS[7]), columns=["value"])
        assert str(reader.schema.field("value").type) == "struct<id: int64>"
        put(model, (b"a", framed(8, {"id": 1, "note": "x"})))
        assert reader.read_next_batch().column("value").to_pylist() == [{"id": 1}]


def test_a_reader_refuses_a_later_table_of_other_types(model):
    put(model, (b"a", framed(7, {"id": 1})), (b"b", framed(8, {"id": 2, "note": "x"})))
    with Consumer(**OPTIONS) as consumer:
        consumer.assign_ranges({("t", 0): (0, 2)})
        reader = consumer.reader(values=decoder(), max_rows=1)
        assert reader.read_next_batch().column("value").to_pylist() == [{"id": 1}]
        with pytest.raises(SchemaError, match=r"a table has value of struct<id: int64, note: string>.*reader_schema"):
            reader.read_next_batch()
        assert consumer.position("t", 0) == 1
        (table,) = consumer.columns(values=decoder())
        assert table.column("value").to_pylist() == [{"id": 2, "note": "x"}]


def test_what_a_reader_refuses_while_it_waits_for_types_is_not_passed_over(model):
    put(model, (None, framed(7, {"id": 1})), (framed(7, {"id": 5}), framed(8, {"id": 2, "note": "x"})))
    with Consumer(**OPTIONS) as consumer:
        consumer.assign_ranges({("t", 0): (0, 2)})
        reader = consumer.reader(keys=decoder(part="key"), values=decoder(), max_rows=1)
        assert reader.read_next_batch().column("value").to_pylist() == [{"id": 1}]
        with pytest.raises(SchemaError, match="a table has value of struct<id: int64, note: string>"):
            reader.read_next_batch()
        assert [record.offset for record in consumer] == [1]


class Plain:
    """Stands in for decoders: tables are typed already."""

    bad_row = None

    def decoded(self, table):
        return table


def plain_reader(tables, nothing):
    made = typed.Typing(Plain())
    return reader_of(map(made, tables), nothing, made)


def typed_tables(*rows):
    """Tables of a row each, as of decoders without a reader's schema."""
    return [pa.record_batch({"key": pa.array([key]), "value": pa.array([value])}) for key, value in rows]


def test_a_reader_takes_each_type_from_the_first_value_of_its_column():
    tables = typed_tables((None, {"id": 1}), (5, None), (None, None), (6, {"id": 2}))
    (nothing,) = typed_tables((None, None))
    reader = plain_reader(tables, nothing)
    assert [str(field.type) for field in reader.schema] == ["int64", "struct<id: int64>"]
    assert reader.read_all().to_pylist() == [row for table in tables for row in table.to_pylist()]
    without_keys = typed_tables((None, {"id": 1}), (None, None))
    rows = plain_reader(without_keys, nothing).read_all().to_pylist()
    assert [row["value"] for row in rows] == [{"id": 1}, None]


def test_a_reader_does_not_wait_for_ever_for_a_column_without_values(monkeypatch):
    monkeypatch.setattr(typed, "_MOST_WAITED", 10_000)
    (table,) = typed_tables((None, {"id": 1}))
    reader = plain_reader(repeat(table), table)
    assert reader.schema.field("key").type == pa.null()
    assert reader.read_next_batch().to_pylist() == [{"key": None, "value": {"id": 1}}]


def test_a_reader_that_nothing_comes_to_is_empty(model):
    with Consumer(**OPTIONS) as consumer:
        consumer.assign([("t", 0)])
        assert len(consumer.reader(values=decoder(), timeout=0.01).read_all()) == 0
