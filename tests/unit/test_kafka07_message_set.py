"""Options, limits and errors of Kafka 0.6/0.7 message sets."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07 import _decoder as _decoder07
from kafkacodec.errors import CorruptRecord, CrcMismatch, LimitExceeded, UnsupportedCodec
from kafkacodec.records.compression import compress

GZIP = 1


def wrapped(inner: bytes, codec: int = GZIP) -> bytes:
    return _decoder07.encode_message(compress(codec, inner, magic=1), 1, codec)


def test_any_buffer_is_read_in_place(tmp_path: Path) -> None:
    data = kafka07.encode_messages([b"a", b"bc"])
    path = tmp_path / "0.kafka"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for buffer in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), mapped):
            columns = kafka07.decode(buffer)
            assert columns.to_pyarrow().column("value").to_pylist() == [b"a", b"bc"]
            del columns


def test_only_what_is_asked_for_is_built() -> None:
    data = kafka07.encode_messages([b"a"], codec="snappy")
    assert kafka07.decode(data).column_names == list(kafka07.COLUMNS)
    assert kafka07.decode(data, columns=["next_offset"]).column_names == ["next_offset"]
    assert kafka07.decode(data, columns=["value"], batch_columns=True).column_names == ["value", "magic", "codec"]
    assert kafka07.decode(data, columns=()).consumed == len(data)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["row"]},
        {"on_error": "ignore"},
        {"initial_offset": -1},
        {"initial_offset": (1 << 63) - 1},
        {"max_decompressed_bytes": -1},
    ],
)
def test_wrong_options(options: Any) -> None:
    with pytest.raises(ValueError):
        kafka07.decode(kafka07.encode_messages([b"a"]), **options)


def test_wrong_chunk_sizes() -> None:
    with pytest.raises(ValueError):
        kafka07.iter_columns(b"", max_rows=0)


def test_chunks_end_between_outermost_messages() -> None:
    packed = kafka07.encode_messages([b"x"] * 5, codec="gzip")
    data = kafka07.encode_messages([b"a", b"b"]) + packed + kafka07.encode_messages([b"c"])
    chunks = list(kafka07.iter_columns(data, max_rows=3))
    assert [len(chunk) for chunk in chunks] == [7, 1]
    assert chunks[0].consumed == 2 * 11 + len(packed)


def test_one_limit_holds_for_all_inside_a_compressed_message() -> None:
    inner = kafka07.encode_messages([b"x" * 10_000])
    with pytest.raises(LimitExceeded):
        kafka07.decode(wrapped(inner), max_decompressed_bytes=10_000)
    twice = wrapped(wrapped(inner) + wrapped(inner))
    assert len(kafka07.decode(twice, max_decompressed_bytes=25_000)) == 2
    with pytest.raises(LimitExceeded):
        kafka07.decode(twice, max_decompressed_bytes=15_000)
    # The limit applies to each outermost message.
    assert len(kafka07.decode(wrapped(inner) * 3, max_decompressed_bytes=10_100)) == 3


def test_compressed_messages_inside_one_another_are_bounded() -> None:
    data = kafka07.encode_messages([b"x"])
    for _ in range(8):
        data = wrapped(data)
    assert kafka07.decode(data)["next_offset"].tolist() == [len(data)]
    with pytest.raises(LimitExceeded):
        kafka07.decode(wrapped(data))
    rest = kafka07.encode_messages([b"y"])
    result = kafka07.decode(wrapped(data) + rest, on_error="skip")
    assert result.to_pyarrow().column("value").to_pylist() == [b"y"]
    assert result.consumed == len(wrapped(data) + rest)


def test_faults_are_listed_with_their_bytes() -> None:
    good, other = kafka07.encode_messages([b"good"]), kafka07.encode_messages([b"other"])
    bad = good[:-1] + b"?"
    result = kafka07.decode(good + bad + other, initial_offset=50, on_error="skip")
    assert result.to_pyarrow().column("value").to_pylist() == [b"good", b"other"]
    (problem,) = result.problems
    assert (problem.position, problem.base_offset, problem.size_in_bytes) == (14, 64, 14)
    assert isinstance(problem.exception, CrcMismatch)
    assert kafka07.decode(good + bad, verify_crc=False).to_pyarrow().column("value").to_pylist() == [b"good", b"goo?"]
    result = kafka07.decode(good + b"\x80\0\0\0" + other, on_error="skip")
    assert [type(p.exception) for p in result.problems] == [CorruptRecord]
    assert result.problems[0].base_offset is None


def test_shallow_reading_opens_nothing() -> None:
    unknown = _decoder07.encode_message(b"?", 1, 3)
    columns = kafka07.decode(unknown + wrapped(b""), deep=False, batch_columns=True)
    assert columns.to_pyarrow().column("codec").to_pylist() == ["unknown", "gzip"]
    with pytest.raises(UnsupportedCodec):
        kafka07.decode(unknown)


def test_what_cannot_be_encoded() -> None:
    for options in ({"magic": 2}, {"magic": 0, "codec": "gzip"}, {"codec": "lz4"}, {"codec": "zstd"}):
        with pytest.raises(ValueError, match="unknown"):
            kafka07.encode_messages([b"a"], **options)  # type: ignore[arg-type]
    assert kafka07.encode_messages([], codec="gzip") == b""
