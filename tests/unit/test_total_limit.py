"""`max_total_bytes`: functions that return one table respect the limit, however well data compresses."""

from functools import cache

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.errors import CorruptRecord, LimitExceeded
from kafkacodec.messages import FetchResponse
from kafkacodec.protocol import fetch_to_columns

MIB = 1 << 20
Topic = FetchResponse.FetchableTopicResponse
Partition = FetchResponse.PartitionData


@cache
def bomb(records: int = 50_000, value: bytes | None = None) -> bytes:
    """A batch of `records` equal records in much fewer bytes."""
    made = [kc.Record(i, 0, 0, None, value, ()) for i in range(records)]
    return kc.encode(made, codec="zstd", batch_bytes=1 << 30)


def fetched(*partitions: bytes, topic: str = "t") -> FetchResponse:
    made = [Partition(partition_index=i, records=records) for i, records in enumerate(partitions)]
    return FetchResponse(responses=[Topic(topic=topic, partitions=made)])


@cache
def small_messages(count: int) -> bytes:
    """Messages of magic 0 without key and value: the smallest batches."""
    return kc.encode([(None, None)] * count, magic=0, batch_bytes=1)


CALLS = {
    "decode": lambda data, **options: kc.decode(data, **options),
    "decode of views": lambda data, **options: kc.decode(data, layout="view", **options),
    "decode in threads": lambda data, **options: kc.decode(data, threads=3, **options),
    "decode with batch columns": lambda data, **options: kc.decode(data, batch_columns=True, **options),
    "decode_batches": lambda data, **options: kc.decode_batches(pa.array([data, data]), **options),
    "fetch_to_columns": lambda data, **options: fetch_to_columns(fetched(data, data), **options),
}


@pytest.mark.parametrize("on_error", ["raise", "stop", "skip"])
@pytest.mark.parametrize("name", CALLS)
def test_a_table_that_would_pass_the_limit_is_refused(name, on_error):
    data = bomb() * 20  # 40 MB of columns at least
    with pytest.raises(LimitExceeded, match="max_total_bytes") as caught:
        CALLS[name](data, max_total_bytes=4 * MIB, on_error=on_error)
    assert caught.value.position is not None
    assert "iter_columns" in str(caught.value)


@pytest.mark.parametrize("name", CALLS)
def test_a_limit_that_suffices_changes_nothing(name):
    data = bomb() * 3
    whole = CALLS[name](data)
    assert CALLS[name](data, max_total_bytes=3 * whole.nbytes).to_pyarrow() == whole.to_pyarrow()


def test_a_limit_bounds_what_is_given():
    data = bomb(100, b"x" * 100) * 100
    whole = kc.decode(data)
    with pytest.raises(LimitExceeded):
        kc.decode(data, max_total_bytes=whole.nbytes - 1)
    # Columns have room for one batch more than they hold, and some so that they need not grow for each.
    assert len(kc.decode(data, max_total_bytes=whole.nbytes * 5 // 4)) == 10_000


def test_the_topic_stands_in_every_row():
    topic = "t" * 200
    with pytest.raises(LimitExceeded, match="max_total_bytes") as caught:
        fetch_to_columns(fetched(bomb(), topic=topic), columns=("topic",), max_total_bytes=8 * MIB)
    assert topic in caught.value.path
    assert len(fetch_to_columns(fetched(bomb(), topic=topic), columns=("topic",), max_total_bytes=16 * MIB)) == 50_000


def test_headers_count():
    record = kc.Record(0, 0, 0, None, None, (("", None),) * 100_000)
    data = kc.encode([record], codec="zstd") * 10
    with pytest.raises(LimitExceeded, match="max_total_bytes"):
        kc.decode(data, columns=("headers",), max_total_bytes=4 * MIB)
    chunks = list(kc.iter_columns(data, columns=("headers",), max_bytes=1 * MIB))
    assert [len(chunk) for chunk in chunks] == [2] * 5  # 800 KB a record


def test_columns_that_nobody_wants_cost_nothing():
    assert len(kc.decode(bomb() * 10, columns=(), max_total_bytes=0)) == 500_000


def test_messages_of_kafka07():
    data = kafka07.encode_messages([b""] * 100_000, codec="gzip")
    for on_error in ("raise", "stop", "skip"):
        with pytest.raises(LimitExceeded, match=r"max_total_bytes.*kafka07\.iter_columns"):
            kafka07.decode(data * 10, max_total_bytes=4 * MIB, on_error=on_error)
        with pytest.raises(LimitExceeded) as caught:
            kafka07.decode(data * 10, max_total_bytes=16 * MIB, on_error=on_error)
        assert caught.value.position > 0
        assert caught.value.position % len(data) == 0
    assert len(kafka07.decode(data, max_total_bytes=64 * MIB)) == 100_000


def test_headers_of_batches():
    data = small_messages(100_000)
    for on_error in ("raise", "stop"):
        with pytest.raises(LimitExceeded, match=r"max_total_bytes.*max_batches"):
            kc.scan(data, max_total_bytes=4 * MIB, on_error=on_error)
    narrow = kc.scan(data, columns=("position", "crc_ok"), max_total_bytes=4 * MIB)
    assert narrow.column_names == ["position", "crc_ok"]
    assert len(narrow) == 100_000
    assert narrow.nbytes < 10 * len(narrow)
    piece = kc.scan(data, max_batches=10_000, max_total_bytes=4 * MIB)
    assert piece.consumed == 10_000 * 26
    assert kc.scan(data[:2600]).nbytes < 100 * 110


def test_scan_knows_its_columns():
    with pytest.raises(ValueError, match="unknown column 'offset'; columns are position, "):
        kc.scan(b"", columns=("offset",))
    with pytest.raises(TypeError, match="list of names"):
        kc.scan(b"", columns="position")


def test_a_segment_is_scanned_within_the_limit(tmp_path):
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(small_messages(50_000))
    segment = kc.log.Segment(path)
    with pytest.raises(LimitExceeded, match="max_total_bytes"):
        segment.scan(max_total_bytes=MIB)
    assert len(segment.scan(columns=("position",), max_total_bytes=MIB)) == 50_000
    first = segment.scan(max_batches=3)
    assert segment.scan(start_position=first.consumed, max_batches=1)["position"][0] == 3 * 26


NUMBERS = {
    "max_total_bytes": lambda value: kc.decode(b"", max_total_bytes=value),
    "max_decompressed_bytes": lambda value: kc.decode(b"", max_decompressed_bytes=value),
    "threads": lambda value: kc.decode(b"", threads=min(value, 4) if isinstance(value, int) else value),
    "max_rows": lambda value: list(kc.iter_columns(b"", max_rows=value)),
    "max_bytes": lambda value: list(kc.iter_columns(b"", max_bytes=value)),
    "start_position": lambda value: list(kc.iter_columns(b"", start_position=value)),
    "end_position": lambda value: list(kc.iter_columns(b"", end_position=value)),
    "max_batches": lambda value: kc.scan(b"", max_batches=value),
    "start_position of scan": lambda value: kc.scan(b"", start_position=value),
    "end_position of scan": lambda value: kc.scan(b"", end_position=value),
    "max_total_bytes of scan": lambda value: kc.scan(b"", max_total_bytes=value),
    "max_total_bytes of blobs": lambda value: kc.decode_batches(pa.array([b""]), max_total_bytes=value),
    "max_total_bytes of a fetch": lambda value: fetch_to_columns(fetched(b""), max_total_bytes=value),
    "max_total_bytes of kafka07": lambda value: kafka07.decode(b"", max_total_bytes=value),
    "max_decompressed_bytes of kafka07": lambda value: kafka07.decode(b"", max_decompressed_bytes=value),
    "max_rows of kafka07": lambda value: list(kafka07.iter_columns(b"", max_rows=value)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_checked(name):
    call = NUMBERS[name]
    call(1 << 70)  # bounds nothing
    with pytest.raises(ValueError, match=name.partition(" ")[0]):
        call(-1)
    for wrong in ("1", 1.5, b"1"):
        with pytest.raises(TypeError, match="integer"):
            call(wrong)


@pytest.mark.parametrize("name", ["start_offset", "end_offset"])
def test_offsets_may_lie_anywhere(name):
    data = kc.encode([(b"k", b"v")])
    for number, rows in ((1 << 70, name == "end_offset"), (-(1 << 70), name == "start_offset")):
        assert len(kc.decode(data, **{name: number})) == rows
    with pytest.raises(TypeError):
        kc.decode(data, **{name: "1"})


def test_iterating_calls_have_no_such_limit():
    with pytest.raises(TypeError, match="max_total_bytes"):
        list(kc.iter_columns(b"", max_total_bytes=1))  # type: ignore[call-arg]


def test_damage_is_still_passed_over_within_the_limit():
    good = kc.encode([(b"k", b"v")])
    bad = bytearray(good)
    bad[-1] ^= 1
    kept = kc.decode(good + bytes(bad) + good, on_error="skip", max_total_bytes=MIB)
    assert len(kept) == 2
    assert isinstance(kept.problems[0].exception, CorruptRecord)
