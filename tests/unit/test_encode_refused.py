"""Records and options that kc.encode refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafkacodec as kc


def lying(kind: pa.DataType, offsets: list[int]) -> pa.RecordBatch:
    """A batch whose offsets were changed after pyarrow had checked them."""
    memory = np.zeros(len(offsets), np.int32 if kind == pa.binary() else np.int64)
    column = pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(memory), pa.py_buffer(b"abcd")])
    batch = pa.RecordBatch.from_arrays([column], ["value"])
    memory[:] = offsets
    return batch


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
        ({"offset": [1]}, "no column is named key or value"),
        ({"other": ["a"]}, r"records\.other: unknown column; columns are key, value, timestamp, headers, offset$"),
        ({"key": ["a"], "valeu": ["b"]}, r"records\.valeu: unknown column; did you mean 'value'\?$"),
        ({"key": ["a"], "value": ["b"], "header": [[]]}, r"records\.header: unknown column; did you mean 'headers'\?$"),
    ],
)
def test_columns_of_the_wrong_type(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(kc.EncodeError, match=words):
        kc.encode(pa.table(columns))


def test_a_column_that_is_no_table() -> None:
    with pytest.raises(kc.EncodeError, match="is not a table"):
        kc.encode(pa.array([b"a"]))


def test_null_rows() -> None:
    with pytest.raises(kc.EncodeError, match=r"row is null"):
        kc.encode(pa.array([{"value": b"a"}, None], pa.struct([("value", pa.binary())])))


def test_null_offsets() -> None:
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: null"):
        kc.encode(pa.table({"value": ["a", "b"], "offset": [0, None]}))


@pytest.mark.parametrize(
    ("offsets", "row"), [([1, 2, 2], 2), ([1, 0], 1), ([-1], 0), ([2**63 - 1], 0), ([*range(500), 3], 500)]
)
def test_offsets_that_do_not_increase(offsets: list[int], row: int) -> None:
    with pytest.raises(kc.EncodeError, match="offset") as caught:
        kc.encode(pa.table({"value": ["x"] * len(offsets), "offset": offsets}))
    assert caught.value.path == f"records[{row}]"


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.date32(), pa.uint64(), pa.float64(), pa.string()])
def test_offsets_that_are_no_integers(kind: pa.DataType) -> None:
    column = pa.array([1]).cast(pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    with pytest.raises(kc.EncodeError, match=r"records\.offset: the column is neither int32 nor int64"):
        kc.encode(pa.table({"value": ["a"], "offset": column}))


def test_columns_of_the_same_name() -> None:
    with pytest.raises(kc.EncodeError, match=r"records\.value: duplicate column name"):
        kc.encode(pa.table([["a"], ["b"]], names=["value", "value"]))


def test_offsets_that_go_back_between_chunks() -> None:
    table = pa.table({"value": ["x"] * 4, "offset": [1, 2, 2, 3]})
    with pytest.raises(kc.EncodeError) as caught:
        kc.encode(pa.concat_tables([table.slice(0, 2), table.slice(2)]))
    assert caught.value.path == "records[2]"


def test_a_null_header_key() -> None:
    column = pa.array(
        [[], [{"key": None, "value": b""}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: a header's key is null"):
        kc.encode(pa.table({"value": ["a", "b"], "headers": column}))


def test_times_that_overflow() -> None:
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: a timestamp"):
        kc.encode(pa.table({"value": ["a", "b"], "timestamp": pa.array([0, 2**62], pa.timestamp("s"))}))


@pytest.mark.parametrize("column", [pa.array([None, -1], pa.timestamp("ms")), pa.array([0, -1000], pa.timestamp("us"))])
def test_the_time_that_means_none(column):
    """It would be read as null. As a number, -1 says that there is no timestamp."""
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: 1969-12-31 23:59:59.999 is the mark for no timestamp"):
        kc.encode(pa.table({"value": ["a", "b"], "timestamp": column}))
    data = kc.encode(pa.table({"value": ["a", "b"], "timestamp": pa.array([0, -1], pa.int64())}))
    assert [record.timestamp for record in kc.iter_records(data)] == [0, None]


def test_a_record_larger_than_a_batch_may_be() -> None:
    # No memory is needed for it: the offsets say 2^31-1 bytes, and sizes are counted before bytes are read.
    batch = lying(pa.binary(), [0, 2**31 - 1])
    with pytest.raises(kc.EncodeError, match=r"records\[0\]: a record exceeds the maximum batch size"):
        kc.encode(batch)


def test_a_value_longer_than_its_length_field() -> None:
    batch = lying(pa.large_binary(), [0, 0, 2**31])
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: a value exceeds"):
        kc.encode(batch)


@pytest.mark.parametrize("offsets", [[0, 3, 2, 4], [-1, 0, 1, 4], [0, 5, 5, 4], [0, 2**31 - 1, -(2**31), 4]])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_damaged_offsets(offsets: list[int], kind: pa.DataType) -> None:
    with pytest.raises(kc.EncodeError, match=r"decrease|exceeds"):
        kc.encode(lying(kind, offsets))


@pytest.mark.parametrize(
    "view", [[-1, 0, 0, 0], [13, 0, 1, 0], [13, 0, -1, 0], [13, 0, 0, 8], [13, 0, 0, -1], [2**31 - 1, 0, 0, 0]]
)
def test_damaged_views(view: list[int]) -> None:
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
def test_python_records(records: list[Any], words: str) -> None:
    with pytest.raises(kc.EncodeError, match=words):
        kc.encode(records)


@pytest.mark.parametrize("records", [None, 5, b"bytes", "text", {"key": []}])
def test_what_is_no_records_at_all(records: Any) -> None:
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
        {"first_offset": 5},
        {"first_offset": 5, "last_offset": 4},
        {"first_offset": -1, "last_offset": 4},
        {"first_offset": 5, "last_offset": 2**63 - 1},
        {"magic": 1, "last_offset": 9, "first_offset": 5},
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
def test_options_out_of_range(options: dict[str, Any]) -> None:
    for function in (kc.encode, kc.iter_encoded):
        with pytest.raises((TypeError, ValueError)) as caught:
            function([(b"k", b"v")], **options)
        assert not isinstance(caught.value, kc.KafkaCodecError)
        assert next(reversed(options)) in str(caught.value)


@pytest.mark.parametrize(
    ("offsets", "first", "last", "error"),
    [
        ([9], 10, 20, r"records\[0\]: an offset is below first_offset: got 9, limit 10"),
        ([10, 21], 10, 20, r"records\[1\]: an offset is above last_offset: got 21, limit 20"),
        ([10, 10], 10, 20, r"records\[1\]: offsets must increase from one record to the next: got 10, limit 11"),
        ([2**31 + 10], 10, 2**32, r"records\[0\]: a batch cannot span 2\^31 offsets from first_offset on"),
        ([12], 10, 2**31 + 10, r"records: a batch cannot span 2\^31 offsets up to last_offset"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_records_outside_the_range(offsets: list[int], first: int, last: int, error: str, threads: int) -> None:
    table = pa.table({"offset": offsets, "value": [b"v"] * len(offsets)})
    for function in (kc.encode, lambda *a, **options: list(kc.iter_encoded(*a, **options))):
        for codec in ("none", "zstd"):
            with pytest.raises(kc.EncodeError, match=error):
                function(table, first_offset=first, last_offset=last, codec=codec, threads=threads)


def test_a_range_without_records_that_no_batch_can_span() -> None:
    for function in (kc.encode, lambda *a, **options: list(kc.iter_encoded(*a, **options))):
        with pytest.raises(kc.EncodeError, match="a batch cannot span 2"):
            function([], first_offset=1, last_offset=2**31 + 1)
    with pytest.raises(ValueError, match="last_offset must be from 1 to 2147483648, not 2147483649"):
        kc.empty_batch(1, 2**31 + 1)


def test_rows_have_no_common_range() -> None:
    with pytest.raises(TypeError, match="2 unknown options: 'first_offset'"):
        kc.encode_rows(pa.table({"row": [0]}), first_offset=1, last_offset=2)  # type: ignore[call-arg]


def test_unknown_options() -> None:
    for function in (kc.encode, kc.iter_encoded):
        with pytest.raises(TypeError, match="unknown option 'compression'"):
            function([], compression="zstd")  # type: ignore[call-arg]


def test_offsets_that_run_out() -> None:
    with pytest.raises(kc.EncodeError, match=r"records\[1\]: an offset is outside"):
        kc.encode([(b"k", b"v")] * 2, base_offset=2**63 - 2)


@pytest.mark.parametrize("name", ["offset", "producer_id", "producer_epoch", "timestamp", "coordinator_epoch"])
@pytest.mark.parametrize("number", [2**80, "1", None])
def test_numbers_of_control_batches_are_named(name: str, number: Any) -> None:
    numbers = {"offset": 0, "producer_id": 1, "producer_epoch": 0, name: number}
    with pytest.raises(ValueError if isinstance(number, int) else TypeError, match=f"^{name} must be"):
        kc.control_batch("commit", **numbers)


def test_an_unknown_control_batch() -> None:
    with pytest.raises(ValueError, match="'abort' or 'commit', not 'rollback'"):
        kc.control_batch("rollback", offset=0, producer_id=1, producer_epoch=0)  # type: ignore[arg-type]


def test_a_stream_that_fails() -> None:
    def batches() -> Any:
        yield pa.record_batch({"value": [b"a"]})
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"value": pa.binary()}), batches())
    with pytest.raises(OSError, match="the disk is gone"):
        kc.encode(reader)


def test_a_stream_read_twice() -> None:
    class Once:
        def __init__(self) -> None:
            self.capsule = pa.table({"value": [b"a"]}).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.capsule

    once = Once()
    pa.table(once)
    with pytest.raises(ValueError, match="already been read"):
        kc.encode(once)
