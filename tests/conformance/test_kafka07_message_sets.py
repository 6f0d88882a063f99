"""Message sets and segments of Kafka 0.6/0.7, compared with the results of Kafka 0.7.2."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kafkacodec.dialects import kafka07
from kafkacodec.errors import (
    CorruptRecord,
    CrcMismatch,
    DecodeError,
    Truncated,
    UnsupportedCodec,
    UnsupportedMagic,
)
from tests.dialect_vectors import ROOT, names, rows

GOOD = rows("kafka07/messages")
BAD = [v for v in rows("kafka07/bad") if v["layer"] == "reader"]
SEGMENTS = rows("kafka07/segments/index")


def read(data: bytes, **options: Any) -> list[dict[str, Any]]:
    table = kafka07.decode(data, batch_columns=True, on_error="stop", **options).to_pyarrow().to_pylist()
    for row in table:
        assert (row["timestamp"], row["timestamp_type"], row["key"], row["headers"]) == (None, -1, None, [])
    return table


def check_shallow(got: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    assert len(got) == len(want)
    for mine, real in zip(got, want, strict=True):
        assert mine["value"] == base64.b64decode(real["payload"])
        assert (mine["offset"], mine["next_offset"]) == (real["offset"], real["next_offset"])
        assert mine["magic"] == real["magic"]
        if real["codec"] is not None and not real["codec"].startswith("unknown"):
            assert mine["codec"] == real["codec"]


def check_deep(got: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    assert [m["value"] for m in got] == [base64.b64decode(m["payload"]) for m in want]
    assert [m["next_offset"] for m in got] == [m["next_offset"] for m in want]
    assert [m["magic"] for m in got] == [m["magic"] for m in want]


@pytest.mark.parametrize("vector", GOOD, ids=names(GOOD))
def test_message_sets(vector: dict[str, Any]) -> None:
    data, start = bytes.fromhex(vector["hex"]), vector["initial_offset"]
    check_deep(read(data, initial_offset=start), vector["deep"])
    shallow = read(data, initial_offset=start, deep=False)
    check_shallow(shallow, vector["shallow"])
    if vector["deep_error"] is not None:
        with pytest.raises(Truncated):
            kafka07.decode(data, initial_offset=start)
        return
    assert kafka07.decode(data, initial_offset=start, columns=()).consumed == vector["valid_bytes"]
    offsets = {m["offset"] for m in vector["shallow"]}
    assert {m["offset"] for m in read(data, initial_offset=start)} <= offsets


@pytest.mark.parametrize("vector", GOOD, ids=names(GOOD))
def test_what_was_decoded_is_encoded_to_the_same(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    plain = [m for m in vector["shallow"] if m["codec"] == "none" and not m["attributes"]]
    for message in plain:
        at = message["offset"] - vector["initial_offset"]
        again = kafka07.encode_messages([base64.b64decode(message["payload"])], magic=message["magic"])
        assert again == data[at : at + len(again)]


# The exception with which the real reader stops, and ours.
ERRORS = {
    "InvalidMessageSizeException": (CorruptRecord, Truncated),
    "InvalidMessageException": (CrcMismatch,),
    "UnknownMagicByteException": (UnsupportedMagic,),
    "UnknownCodecException": (UnsupportedCodec,),
    "IndexOutOfBoundsException": (CorruptRecord,),
    "ZipException": (CorruptRecord,),
    "EOFException": (CorruptRecord, Truncated),
    "IOException": (CorruptRecord, Truncated),
}
# Trailing zeros are the end, as in a preallocated file. Of the real readers, only that of buffers rejects them.
LENIENT = "length-zero"


@pytest.mark.parametrize("vector", BAD, ids=names(BAD))
def test_bad_message_sets(vector: dict[str, Any]) -> None:
    data, start = bytes.fromhex(vector["hex"]), vector["initial_offset"]
    real = vector["real"]["deep"]
    name = vector["name"].partition("@")[0]
    result = kafka07.decode(data, initial_offset=start, on_error="stop")
    got = result.to_pyarrow().column("value").to_pylist()
    want = [base64.b64decode(m["payload"]) for m in real["messages"]]
    if real["error"] is None:
        assert got == want
        assert not result.problems
        return
    # The messages before a fault inside a compressed message are kept; the real reader drops all of them.
    assert got[: len(want)] == want
    if name == LENIENT:
        assert not result.problems
        return
    (problem,) = result.problems
    assert isinstance(problem.exception, ERRORS[real["error"]["class"].rpartition(".")[2]])
    with pytest.raises(DecodeError) as caught:
        kafka07.decode(data, initial_offset=start)
    assert caught.value.position is not None


@pytest.mark.parametrize("entry", SEGMENTS, ids=lambda e: e["file"])
def test_segments(entry: dict[str, Any]) -> None:
    data = (ROOT / "kafka07" / entry["file"]).read_bytes()
    start = entry["start_offset"]
    got = read(data, initial_offset=start, deep=False, verify_crc=False)
    check_shallow(got, entry["entries"])
    assert (got[-1]["next_offset"] if got else start) == entry["end_offset"]
    recovery = entry.get("recovery")
    if recovery is None:
        assert kafka07.valid_bytes(data) == len(data)
    elif "error" in recovery:
        with pytest.raises(UnsupportedMagic):
            kafka07.valid_bytes(data)
    else:
        assert kafka07.valid_bytes(data) == recovery["size_kept"]
