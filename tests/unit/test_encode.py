"""kc.encode: column types, division into batches, header fields, and values that do not fit."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafkacodec as kc

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def read(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in kc.iter_records(data, **options)]


def keys_and_values(data: bytes) -> list[tuple[bytes | None, bytes | None]]:
    return [(r.key, r.value) for r in kc.iter_records(data)]


def lying(kind: pa.DataType, offsets: list[int]) -> pa.RecordBatch:
    """A batch whose offsets were changed after pyarrow had checked them."""
    memory = np.zeros(len(offsets), np.int32 if kind == pa.binary() else np.int64)
    column = pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(memory), pa.py_buffer(b"abcd")])
    batch = pa.RecordBatch.from_arrays([column], ["value"])
    memory[:] = offsets
    return batch


VALUES = [b"", b"a", None, b"twelve bytes", b"thirteen byte", b"x" * 1000, None, b"last"]


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()],
    ids=str,
)
def test_bytes_and_text_in_all_their_layouts(kind: pa.DataType) -> None:
    text = "string" in str(kind)
    column = pa.array([v.decode() if text and v is not None else v for v in VALUES], kind)
    data = kc.encode(pa.table({"key": column, "value": column}))
    assert keys_and_values(data) == [(v, v) for v in VALUES]


def test_fixed_size_binary() -> None:
    column = pa.array([b"abcd", None, b"efgh"], pa.binary(4))
    assert keys_and_values(kc.encode(pa.table({"value": column}))) == [(None, b"abcd"), (None, None), (None, b"efgh")]


@pytest.mark.parametrize("words", [pa.binary(), pa.large_binary(), pa.string_view(), pa.binary(20)], ids=str)
@pytest.mark.parametrize("number", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_dictionaries(number: str, words: pa.DataType) -> None:
    numbers = pa.array([2, 0, None, 1, 3, 2], number)
    texts = [b"a word of twenty ...", b"and another of these", b"third of all of them", None]
    column = pa.DictionaryArray.from_arrays(numbers, pa.array(texts, pa.binary(20)).cast(pa.binary()).cast(words))
    expected = [texts[2], texts[0], None, texts[1], None, texts[2]]
    assert keys_and_values(kc.encode(pa.table({"value": column}))) == [(None, v) for v in expected]
    assert keys_and_values(kc.encode(pa.table({"value": column.slice(3)}))) == [(None, v) for v in expected[3:]]


def test_a_dictionary_that_lacks_a_word() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a"]), safe=False)
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: invalid dictionary index: got 1, limit 1"):
        kc.encode(pa.record_batch({"value": column}))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_slices_and_chunks_give_the_same_bytes_as_one_column(kind: pa.DataType) -> None:
    values = [None if i % 5 == 0 else b"%d" % i * (i % 40) for i in range(1000)]
    column = pa.array([b"cut off", *values, b"cut off too"], kind)
    sliced = pa.chunked_array([column.slice(1, 333), column.slice(334, 0), column.slice(334, 667)])
    whole = pa.array(values, kind)
    options: dict[str, Any] = {"batch_bytes": 2000, "base_offset": 7}
    assert kc.encode(pa.table({"value": sliced}), **options) == kc.encode(pa.table({"value": whole}), **options)


def test_a_sliced_record_batch() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"a", None, b"c", b"d"]),
            "timestamp": pa.array([1, 2, None, 4], pa.timestamp("ms")),
            "headers": pa.array([[], [{"key": "h", "value": b"1"}], None, [{"key": "i", "value": None}]], HEADERS),
        }
    )
    struct = pa.array(batch.to_struct_array().to_pylist(), batch.to_struct_array().type)
    expected = [(0, 2, None, None, [("h", b"1")]), (1, None, b"c", None, []), (2, 4, b"d", None, [("i", None)])]
    assert read(kc.encode(batch.slice(1))) == expected
    assert read(kc.encode(pa.RecordBatch.from_struct_array(struct.slice(1)))) == expected


@pytest.mark.parametrize(
    ("column", "milliseconds"),
    [
        (pa.array([5, None], pa.int64()), [5, None]),
        (pa.array([5, None], pa.timestamp("s")), [5000, None]),
        (pa.array([5, None], pa.timestamp("ms", "UTC")), [5, None]),
        (pa.array([5999, -1, None], pa.timestamp("us", "Europe/Zurich")), [5, None, None]),
        (pa.array([-1_000_001, 1_999_999], pa.timestamp("ns")), [-2, 1]),
        (pa.array([1], pa.date32()), [86_400_000]),
        (pa.array([datetime.date(1970, 1, 3)], pa.date64()), [2 * 86_400_000]),
    ],
    ids=lambda x: str(x.type) if isinstance(x, pa.Array) else "",
)
def test_timestamps_of_every_unit_become_milliseconds(column: pa.Array, milliseconds: list[int | None]) -> None:
    data = kc.encode(pa.table({"value": pa.nulls(len(column), pa.binary()), "timestamp": column}))
    assert [r.timestamp for r in kc.iter_records(data)] == milliseconds


@pytest.mark.parametrize("as_map", [False, True], ids=["list", "map"])
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_headers(as_map: bool, large: bool) -> None:
    rows: list[Any] = [[("a", b"1"), ("b", None)], [], None, [("ü", b"")], [("x", b"y" * 300)] * 200]
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    if as_map:
        kind = pa.map_(pa.string(), pa.large_binary() if large else pa.binary())
        column = pa.array(rows, kind)
    else:
        kind = pa.large_list(pair) if large else pa.list_(pair)
        column = pa.array([r and [{"key": k, "value": v} for k, v in r] for r in rows], kind)
    data = kc.encode(pa.table({"headers": column, "value": pa.nulls(5)}))
    assert [list(r.headers) for r in kc.iter_records(data)] == [r or [] for r in rows]


def test_offsets_keep_their_gaps() -> None:
    offsets = [3, 4, 9, 2**31 + 3, 2**40]
    data = kc.encode(pa.table({"offset": offsets, "value": [b"x"] * 5}))
    assert [r.offset for r in kc.iter_records(data)] == offsets
    headers = kc.scan(data)
    assert headers["base_offset"].tolist() == [3, 2**31 + 3, 2**40]
    assert headers["last_offset"].tolist() == [9, 2**31 + 3, 2**40]


def test_a_delta_of_2_to_the_31_minus_1_is_the_last_that_fits() -> None:
    data = kc.encode(pa.table({"offset": [1, 2**31], "value": [b"x"] * 2}))
    assert len(kc.scan(data)) == 1
    assert [r.offset for r in kc.iter_records(data)] == [1, 2**31]


def test_batches_are_no_larger_than_asked_unless_one_record_is() -> None:
    sizes = [10, 10, 10, 500, 10, 10]
    data = kc.encode([(None, b"x" * n) for n in sizes], batch_bytes=100)
    headers = kc.scan(data)
    # 61 bytes of header and 10 + 7 of each small record
    assert headers["count"].tolist() == [2, 1, 1, 2]
    assert headers["size_in_bytes"].tolist() == [61 + 34, 61 + 17, 61 + 509, 61 + 34]


def test_header_fields() -> None:
    data = kc.encode(
        [(b"k", b"v")] * 3, base_offset=100, batch_bytes=80, producer_id=5, producer_epoch=6, base_sequence=2**31 - 2,
        is_transactional=True, timestamp_type=1, partition_leader_epoch=9,
    )  # fmt: skip
    headers = kc.scan(data)
    assert headers["base_offset"].tolist() == [100, 102]
    assert headers["producer_id"].tolist() == [5, 5]
    assert headers["producer_epoch"].tolist() == [6, 6]
    assert headers["base_sequence"].tolist() == [2**31 - 2, 0]
    assert headers["partition_leader_epoch"].tolist() == [9, 9]
    assert headers["timestamp_type"].tolist() == [1, 1]
    assert headers["crc_ok"].tolist() == [True, True]
    assert pa.table(headers)["is_transactional"].to_pylist() == [True, True]
    assert pa.table(headers)["is_control"].to_pylist() == [False, False]


def test_log_append_time_gives_every_record_the_largest_timestamp() -> None:
    table = pa.table({"value": [b"a", b"b", b"c"], "timestamp": pa.array([5, 9, 7], pa.timestamp("ms"))})
    assert [r.timestamp for r in kc.iter_records(kc.encode(table, timestamp_type=1))] == [9, 9, 9]


def test_no_timestamps_are_minus_one() -> None:
    headers = kc.scan(kc.encode([(b"k", b"v")]))
    assert pa.table(headers)["max_timestamp"].cast(pa.int64()).to_pylist() in ([None], [-1])
    assert [r.timestamp for r in kc.iter_records(kc.encode([(b"k", b"v")]))] == [None]


def test_nothing_gives_nothing() -> None:
    assert kc.encode([]) == b""
    assert kc.encode(pa.table({"value": pa.array([], pa.binary())})) == b""
    assert list(kc.iter_encoded([])) == []


def test_python_records() -> None:
    records = [
        kc.Record(5, 1000, 0, b"k", b"v", [("h", b"x"), ("i", None)]),
        kc.Record(8, None, 0, None, "text", []),
        (9, 1002, 0, memoryview(b"mk"), bytearray(b"ba"), None),
    ]
    assert read(kc.encode(records, base_offset=77)) == [
        (5, 1000, b"k", b"v", [("h", b"x"), ("i", None)]),
        (8, None, None, b"text", []),
        (9, 1002, b"mk", b"ba", []),
    ]


def test_python_records_across_blocks_equal_columns() -> None:
    n = 10_000
    pairs = [(b"%d" % i, None if i % 3 else b"v" * (i % 50)) for i in range(n)]
    table = pa.table({"key": pa.array([p[0] for p in pairs]), "value": pa.array([p[1] for p in pairs], pa.binary())})
    assert kc.encode(iter(pairs)) == kc.encode(table)


def test_decoded_columns_can_be_encoded_as_they_are() -> None:
    data = kc.encode([(b"%d" % i, b"v" * i) for i in range(300)], base_offset=11)
    assert kc.encode(kc.decode(data)) == data


def test_chunks_one_after_the_other_equal_the_whole() -> None:
    data = kc.encode([(None, b"%d" % n) for n in range(100)])
    chunks = list(kc.iter_columns(data, max_rows=7))
    assert len(chunks) > 1
    assert kc.encode(kc.iter_columns(data, max_rows=7)) == data
    assert b"".join(batch.data for batch in kc.iter_encoded(iter(chunks))) == data
    with pytest.raises(TypeError, match="tuple has no Arrow interface"):
        kc.encode([chunks[0], (b"a", b"b")])


def test_other_libraries_frames() -> None:
    import pandas as pd
    import polars as pl

    expected = kc.encode([(b"a", b"1"), (b"b", None)])
    frame = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", None], "more": [1, 2]})
    assert kc.encode(frame) == expected
    assert kc.encode(frame.with_columns(pl.col("key").cast(pl.String))) == expected
    assert kc.encode(pd.DataFrame({"key": [b"a", b"b"], "value": [b"1", None]})) == expected


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batch_by_batch_equals_the_whole(codec: str) -> None:
    n = 20_000
    table = pa.table(
        {
            "key": pa.array([b"%d" % (i % 100) for i in range(n)]),
            "value": pa.array([b"value %d" % i for i in range(n)]),
            "timestamp": pa.array([1000 + i for i in range(n)], pa.timestamp("ms")),
        }
    )
    table = pa.Table.from_batches(table.to_batches(max_chunksize=999))
    batches = list(kc.iter_encoded(table, codec=codec, base_offset=50))
    assert b"".join(b.data for b in batches) == kc.encode(table, codec=codec, base_offset=50)
    assert batches[0].base_offset == 50
    assert all(b.base_offset == a.last_offset + 1 for a, b in itertools.pairwise(batches))
    assert sum(b.num_records for b in batches) == n
    assert batches[-1].max_timestamp == 1000 + n - 1
    assert len(kc.decode(batches[3].data)) == batches[3].num_records


def test_memory_stays_bounded_batch_by_batch() -> None:
    alive: set[int] = set()

    class Chunk(bytes):
        def __init__(self, _: bytes) -> None:
            alive.add(id(self))

        def __del__(self) -> None:
            alive.discard(id(self))

    def records() -> Any:
        for _ in range(50_000):
            yield None, Chunk(b"x" * 100)

    most = 0
    for _ in kc.iter_encoded(records()):
        most = max(most, len(alive))
    assert most <= 2


@pytest.mark.parametrize(("kind", "number"), [("abort", 0), ("commit", 1)])
def test_control_batches(kind: Any, number: int) -> None:
    data = kc.control_batch(kind, offset=42, producer_id=7, producer_epoch=3, coordinator_epoch=2, timestamp=1234)
    headers = pa.table(kc.scan(data)).to_pylist()[0]
    assert headers["is_control"]
    assert headers["is_transactional"]
    assert (headers["base_offset"], headers["producer_id"], headers["producer_epoch"]) == (42, 7, 3)
    assert headers["base_sequence"] == -1
    (record,) = kc.iter_records(data, include_control=True)
    assert record.key == bytes([0, 0, 0, number])
    assert record.value == bytes([0, 0, 0, 0, 0, 2])


class TestRefused:
    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            ({"value": [1, 2]}, r"records\.value: .*neither bytes nor text"),
            ({"value": pa.array([1, 1]).dictionary_encode()}, r"records\.value: .*neither bytes nor text"),
            ({"value": ["a"], "offset": pa.array([1]).dictionary_encode()}, r"records\.offset: .*dictionary-encoded"),
            ({"value": ["a"], "offset": ["b"]}, r"records\.offset: .*neither int32 nor int64"),
            ({"value": ["a"], "timestamp": [0.5]}, r"records\.timestamp: "),
            ({"value": ["a"], "headers": [["b"]]}, r"records\.headers: .*structs of key and value"),
            ({"value": ["a"], "headers": [[{"k": "a", "v": b""}]]}, r"records\.headers: .*key and value"),
            ({"value": ["a"], "headers": ["b"]}, r"records\.headers: "),
            ({"other": ["a"]}, "no column is named key or value"),
        ],
    )
    def test_columns_of_the_wrong_type(self, columns: dict[str, Any], words: str) -> None:
        with pytest.raises(kc.EncodeError, match=words):
            kc.encode(pa.table(columns))

    def test_a_column_that_is_no_table(self) -> None:
        with pytest.raises(kc.EncodeError, match="is not a table"):
            kc.encode(pa.array([b"a"]))

    def test_null_rows(self) -> None:
        with pytest.raises(kc.EncodeError, match=r"row is null"):
            kc.encode(pa.array([{"value": b"a"}, None], pa.struct([("value", pa.binary())])))

    def test_null_offsets(self) -> None:
        with pytest.raises(kc.EncodeError, match=r"records\[1\]: null"):
            kc.encode(pa.table({"value": ["a", "b"], "offset": [0, None]}))

    @pytest.mark.parametrize(
        ("offsets", "row"), [([1, 2, 2], 2), ([1, 0], 1), ([-1], 0), ([2**63 - 1], 0), ([*range(500), 3], 500)]
    )
    def test_offsets_that_do_not_increase(self, offsets: list[int], row: int) -> None:
        with pytest.raises(kc.EncodeError, match="offset") as caught:
            kc.encode(pa.table({"value": ["x"] * len(offsets), "offset": offsets}))
        assert caught.value.path == f"records[{row}]"

    @pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.date32(), pa.uint64(), pa.float64(), pa.string()])
    def test_offsets_that_are_no_integers(self, kind: pa.DataType) -> None:
        column = pa.array([1]).cast(pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
        with pytest.raises(kc.EncodeError, match=r"records\.offset: the column is neither int32 nor int64"):
            kc.encode(pa.table({"value": ["a"], "offset": column}))

    def test_columns_of_the_same_name(self) -> None:
        with pytest.raises(kc.EncodeError, match=r"records\.value: duplicate column name"):
            kc.encode(pa.table([["a"], ["b"]], names=["value", "value"]))

    def test_offsets_that_go_back_between_chunks(self) -> None:
        table = pa.table({"value": ["x"] * 4, "offset": [1, 2, 2, 3]})
        with pytest.raises(kc.EncodeError) as caught:
            kc.encode(pa.concat_tables([table.slice(0, 2), table.slice(2)]))
        assert caught.value.path == "records[2]"

    def test_a_null_header_key(self) -> None:
        column = pa.array([[], [{"key": None, "value": b""}]], HEADERS)
        with pytest.raises(kc.EncodeError, match=r"records\[1\]: a header's key is null"):
            kc.encode(pa.table({"value": ["a", "b"], "headers": column}))

    def test_times_that_overflow(self) -> None:
        with pytest.raises(kc.EncodeError, match=r"records\[1\]: a timestamp"):
            kc.encode(pa.table({"value": ["a", "b"], "timestamp": pa.array([0, 2**62], pa.timestamp("s"))}))

    def test_a_record_larger_than_a_batch_may_be(self) -> None:
        # No memory is needed for it: the offsets say 2^31-1 bytes, and sizes are counted before bytes are read.
        batch = lying(pa.binary(), [0, 2**31 - 1])
        with pytest.raises(kc.EncodeError, match=r"records\[0\]: a record exceeds the maximum batch size"):
            kc.encode(batch)

    def test_a_value_longer_than_its_length_field(self) -> None:
        batch = lying(pa.large_binary(), [0, 0, 2**31])
        with pytest.raises(kc.EncodeError, match=r"records\[1\]: a value exceeds"):
            kc.encode(batch)

    @pytest.mark.parametrize("offsets", [[0, 3, 2, 4], [-1, 0, 1, 4], [0, 5, 5, 4], [0, 2**31 - 1, -(2**31), 4]])
    @pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
    def test_damaged_offsets(self, offsets: list[int], kind: pa.DataType) -> None:
        with pytest.raises(kc.EncodeError, match=r"decrease|exceeds"):
            kc.encode(lying(kind, offsets))

    @pytest.mark.parametrize(
        "view", [[-1, 0, 0, 0], [13, 0, 1, 0], [13, 0, -1, 0], [13, 0, 0, 8], [13, 0, 0, -1], [2**31 - 1, 0, 0, 0]]
    )
    def test_damaged_views(self, view: list[int]) -> None:
        buffers = [None, pa.py_buffer(np.array(view, np.int32)), pa.py_buffer(b"x" * 20)]
        column = pa.Array.from_buffers(pa.binary_view(), 1, buffers)
        with pytest.raises(kc.EncodeError, match=r"records\[0\]: .*a view"):
            kc.encode(pa.RecordBatch.from_arrays([column], ["value"]))

    @pytest.mark.parametrize(
        ("records", "words"),
        [
            ([(1, b"")], r"records\[0\]\.key: int is not bytes, str or None"),
            ([(b"", b""), b"ab"], r"records\[1\]: expected a Record or a pair"),
            ([(b"", b"", b"")], r"records\[0\]: expected a Record or a pair"),
            ([{"key": b"", "value": b""}], r"records\[0\]: expected a Record or a pair"),
            ([(b"", "\ud800")], r"records\[0\]\.value: str cannot be encoded as UTF-8"),
            ([(2**63, 0, 0, b"", b"", [])], r"records\[0\]\.offset: 9223372036854775808 does not fit"),
            ([("1", 0, 0, b"", b"", [])], r"records\[0\]\.offset: str is not an integer"),
            ([(0, 1.5, 0, b"", b"", [])], r"records\[0\]\.timestamp: float is not an integer"),
            ([(0, 0, 0, b"", b"", [("a",)])], r"records\[0\]\.headers: a header is not a pair"),
            ([(0, 0, 0, b"", b"", [(None, b"")])], r"records\[0\]\.headers: a header's key is null"),
            ([(0, 0, 0, b"", b"", 7)], r"records\[0\]\.headers: headers must be pairs"),
            (
                [(b"", b""), (0, 0, 0, b"", b"", [])],
                r"records\[1\]: records with and without an offset",
            ),
        ],
    )
    def test_python_records(self, records: list[Any], words: str) -> None:
        with pytest.raises(kc.EncodeError, match=words):
            kc.encode(records)

    @pytest.mark.parametrize("records", [None, 5, b"bytes", "text", {"key": []}])
    def test_what_is_no_records_at_all(self, records: Any) -> None:
        with pytest.raises(TypeError, match="records must be"):
            kc.encode(records)

    @pytest.mark.parametrize(
        "options",
        [
            {"magic": 3},
            {"codec": "brotli"},
            {"codec": 1},
            {"codec": "gzip", "level": 77},
            {"codec": "zstd", "level": "3"},
            {"codec": "lz4", "level": True},
            {"codec": "snappy", "level": 1},
            {"magic": 1, "producer_id": 1},
            {"magic": 0, "timestamp_type": 1},
            {"magic": 1, "is_transactional": True},
            {"base_offset": -1},
            {"base_offset": 2**63 - 1},
            {"base_offset": 1.5},
            {"batch_bytes": 0},
            {"batch_bytes": 2**31},
            {"producer_id": -2},
            {"producer_epoch": 2**15},
            {"base_sequence": 2**31},
            {"timestamp_type": -1},
            {"partition_leader_epoch": 2**31},
        ],
        ids=str,
    )
    def test_options_out_of_range(self, options: dict[str, Any]) -> None:
        for function in (kc.encode, kc.iter_encoded):
            with pytest.raises((TypeError, ValueError)) as caught:
                function([(b"k", b"v")], **options)
            assert not isinstance(caught.value, kc.KafkaCodecError)
            assert next(reversed(options)) in str(caught.value)

    def test_unknown_options(self) -> None:
        for function in (kc.encode, kc.iter_encoded):
            with pytest.raises(TypeError, match="unknown option 'compression'"):
                function([], compression="zstd")  # type: ignore[call-arg]

    def test_offsets_that_run_out(self) -> None:
        with pytest.raises(kc.EncodeError, match=r"records\[1\]: an offset is outside"):
            kc.encode([(b"k", b"v")] * 2, base_offset=2**63 - 2)

    @pytest.mark.parametrize("name", ["offset", "producer_id", "producer_epoch", "timestamp", "coordinator_epoch"])
    @pytest.mark.parametrize("number", [2**80, "1", None])
    def test_numbers_of_control_batches_are_named(self, name: str, number: Any) -> None:
        numbers = {"offset": 0, "producer_id": 1, "producer_epoch": 0, name: number}
        with pytest.raises(ValueError if isinstance(number, int) else TypeError, match=f"^{name} must be"):
            kc.control_batch("commit", **numbers)

    def test_an_unknown_control_batch(self) -> None:
        with pytest.raises(ValueError, match="'abort' or 'commit', not 'rollback'"):
            kc.control_batch("rollback", offset=0, producer_id=1, producer_epoch=0)  # type: ignore[arg-type]

    def test_a_stream_that_fails(self) -> None:
        def batches() -> Any:
            yield pa.record_batch({"value": [b"a"]})
            raise OSError("the disk is gone")

        reader = pa.RecordBatchReader.from_batches(pa.schema({"value": pa.binary()}), batches())
        with pytest.raises(OSError, match="the disk is gone"):
            kc.encode(reader)

    def test_a_stream_read_twice(self) -> None:
        class Once:
            def __init__(self) -> None:
                self.capsule = pa.table({"value": [b"a"]}).__arrow_c_stream__()

            def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
                return self.capsule

        once = Once()
        pa.table(once)
        with pytest.raises(ValueError, match="already been read"):
            kc.encode(once)


def test_everything_imported_is_released() -> None:
    before = pa.total_allocated_bytes()
    table = pa.table({"value": pa.array([b"x" * 100] * 10_000)})
    for _ in range(5):
        kc.encode(table)
        kc.encode(table.to_batches()[0])
    with pytest.raises(kc.EncodeError):
        kc.encode(pa.table({"value": table["value"], "offset": pa.array(np.zeros(10_000, np.int64))}))
    assert pa.total_allocated_bytes() > before
    del table
    assert pa.total_allocated_bytes() <= before
