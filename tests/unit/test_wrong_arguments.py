"""Wrong arguments raise ValueError or TypeError: DecodeError and EncodeError are for data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import log, messages, protocol
from kafkacodec.dialects import kafka07, line, rewrite
from tests.corpus import ROOT

SEGMENT = ROOT / "logs/kraft-4.1.0/txn-0/00000000000000000000.log"
DATA = kc.encode([(b"key", b"value")] * 3)
OLD = kafka07.encode_messages([b"payload"])
WRONG = [-1, -(1 << 70), 1.5, "word", b"bytes", [], object()]

DECODE = ("columns", "on_error", "max_decompressed_bytes")
CHUNKS = ("max_rows", "max_bytes", "start_position", "end_position")
ENCODE = (
    "magic", "codec", "level", "base_offset", "batch_bytes", "producer_id", "producer_epoch", "base_sequence",
    "timestamp_type", "partition_leader_epoch",
)  # fmt: skip

# A function, options that are right, and those that are tried with values that are wrong.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = {
    "decode": (lambda **options: kc.decode(DATA, **options), {}, (*DECODE, "max_total_bytes")),
    "iter_columns": (lambda **options: kc.iter_columns(DATA, **options), {}, (*DECODE, *CHUNKS)),
    "decode_batches": (lambda **options: kc.decode_batches(pa.array([DATA]), **options), {}, DECODE),
    "scan": (lambda **options: kc.scan(DATA, **options), {}, ("columns", "on_error", "max_batches", "start_position")),
    "encode": (lambda **options: kc.encode([(b"key", b"value")], **options), {}, ENCODE),
    "iter_encoded": (lambda **options: kc.iter_encoded([(b"key", b"value")], **options), {}, ENCODE),
    "encode_rows": (
        lambda **options: kc.encode_rows(pa.table({"row": [0], "value": [b"v"]}), **options),
        {},
        (*ENCODE, "num_rows", "max_total_bytes"),
    ),
    "control_batch": (
        lambda **options: kc.control_batch("commit", **options),
        {"offset": 1, "producer_id": 1, "producer_epoch": 1},
        ("offset", "producer_id", "producer_epoch"),
    ),
    "partition": (lambda **options: kc.partition([b"key"], **options), {"num_partitions": 3}, ("num_partitions",)),
    "crc32c": (lambda **options: kc.crc32c(DATA, **options), {}, ("value",)),
    "Segment.read": (log.Segment(SEGMENT).read, {}, (*DECODE, *CHUNKS)),
    "Segment.scan": (log.Segment(SEGMENT).scan, {}, ("columns", "on_error", "max_batches", "start_position")),
    "Segment.ranges": (log.Segment(SEGMENT).ranges, {}, ("max_bytes",)),
    "Partition.read": (log.Partition(SEGMENT.parent).read, {}, (*DECODE, "isolation_level", "gaps", "max_rows")),
    "kafka07.decode": (lambda **options: kafka07.decode(OLD, **options), {}, (*DECODE, "initial_offset")),
    "kafka07.encode_messages": (
        lambda **options: kafka07.encode_messages([b"payload"], **options), {}, ("magic", "codec")
    ),
    "split_frames": (lambda **options: protocol.split_frames(b"\0\0\0\1a", **options), {}, ("max_size",)),
    "fetch_to_columns": (
        lambda **options: protocol.fetch_to_columns(messages.FetchResponse(), **options),
        {},
        (*DECODE, "isolation_level"),
    ),
}  # fmt: skip


def begun(result: Any) -> None:
    """Options of generators are looked at when they begin."""
    if hasattr(result, "__next__"):
        list(itertools.islice(result, 3))


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, call in CALLS.items() for option in call[2]])
def test_a_wrong_option(name: str, option: str) -> None:
    call, right, _ = CALLS[name]
    for value in WRONG:
        if value == -1 and option in ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"):
            continue  # says that there is none
        if value == [] and option == "columns":
            continue
        if isinstance(value, int) and option == "level":
            continue  # "none" has no levels, which the next test shows
        with pytest.raises((ValueError, TypeError)) as caught:
            begun(call(**{**right, option: value}))
        assert not isinstance(caught.value, kc.KafkaCodecError), (name, option, value)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("crc32c", "split_frames", "control_batch")])
def test_an_unknown_option(name: str) -> None:
    call, right, _ = CALLS[name]
    with pytest.raises(TypeError, match="compression"):
        list(call(**right, compression="zstd"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: kc.encode([], codec="none", level=3), ValueError),
        (lambda: kc.decode("text"), TypeError),
        (lambda: kc.encode(5), TypeError),
        (lambda: kc.decode_batches([DATA]), TypeError),
        (lambda: kc.decode_batches(pa.array([1])), TypeError),
        (lambda: kc.partition(pa.array([1.5]), 3), TypeError),
        (lambda: kc.split_confluent(pa.array([1.5])), TypeError),
        (lambda: protocol.encode_request(5, 1, 1, ""), TypeError),  # type: ignore[arg-type]
        (lambda: messages.MetadataRequest.from_dict([]), TypeError),  # type: ignore[arg-type]
        (lambda: rewrite.Heartbeat.from_dict(None), TypeError),  # type: ignore[arg-type]
        (lambda: line.parse_request(b"V1|1|LIST|"), TypeError),  # type: ignore[arg-type]
        (lambda: line.parse_response(None), TypeError),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert not isinstance(caught.value, kc.KafkaCodecError)


def test_a_topic_is_text(tmp_path):
    with pytest.raises(TypeError, match=r"^topic must be text, not int$"):
        kc.log.LogWriter(tmp_path, 0, "t")  # type: ignore[arg-type]
