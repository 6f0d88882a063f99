"""Signatures show every option with its default, for help() and editors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.dialects import kafka07
from tests.corpus import ROOT

RECORDS = [(b"key %d" % i, b"value" * i) for i in range(40)]
DATA = kc.encode(RECORDS, codec="gzip", batch_bytes=300)
LOG = ROOT / "logs/kraft-4.1.0"
SEGMENT = LOG / "txn-0/00000000000000000000.log"


def rows(result: Any) -> Any:
    """Something that can be compared."""
    if isinstance(result, bytes):
        return result
    if hasattr(result, "__arrow_c_stream__"):
        return pa.table(result).to_pylist()
    if hasattr(result, "__arrow_c_array__"):
        return pa.array(result).to_pylist()
    if isinstance(result, (kc.Record, kc.EncodedBatch)):
        return result
    return [rows(part) for part in result]


def response() -> messages.FetchResponse:
    partition = messages.FetchResponse.PartitionData(partition_index=1, records=DATA)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    return messages.FetchResponse(responses=[topic])


def table() -> pa.Table:
    return pa.table({"row": [0, 0, 1], "value": [b"a", b"b", b"c"]})


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "decode": (kc.decode, (DATA,)),
    "iter_columns": (kc.iter_columns, (DATA,)),
    "iter_records": (kc.iter_records, (DATA,)),
    "decode_batches": (kc.decode_batches, (pa.array([DATA, None, DATA]),)),
    "encode": (kc.encode, (RECORDS,)),
    "iter_encoded": (kc.iter_encoded, (RECORDS,)),
    "encode_rows": (kc.encode_rows, (table(),)),
    "fetch_to_columns": (protocol.fetch_to_columns, (response(),)),
    "kafka07.decode": (kafka07.decode, (kafka07.encode_messages([b"a", b"b"]),)),
    "kafka07.iter_columns": (kafka07.iter_columns, (kafka07.encode_messages([b"a", b"b"]),)),
    "Segment.read": (kc.log.Segment(SEGMENT).read, ()),
    "SegmentRange.read": (kc.log.Segment(SEGMENT).ranges()[0].read, ()),
    "Partition.read": (kc.log.Partition(SEGMENT.parent).read, ()),
    "LogDirectory.read": (kc.log.LogDirectory(LOG).read, ("txn", 0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_shown_defaults_are_those_of_the_call(name: str) -> None:
    call, arguments = CALLS[name]
    shown = list(inspect.signature(call).parameters.values())
    assert not any(p.kind is p.VAR_KEYWORD for p in shown)
    options = {p.name: p.default for p in shown if p.kind is p.KEYWORD_ONLY}
    assert len(options) >= 6
    assert not any(default is inspect.Parameter.empty for default in options.values())
    assert rows(call(*arguments, **options)) == rows(call(*arguments))


@pytest.mark.parametrize("name", CALLS)
def test_other_options_are_unknown(name: str) -> None:
    call, arguments = CALLS[name]
    with pytest.raises(TypeError):
        rows(call(*arguments, no_such_option=1))


def test_a_writer_has_the_options_of_batches(tmp_path: Path) -> None:
    with kc.log.LogWriter(tmp_path, "t", 0) as writer:
        shown = inspect.signature(writer.write).parameters
        assert list(shown) == ["records", "codec", "level", "batch_bytes", "timestamp_type"]
        assert writer.write(RECORDS, **{name: shown[name].default for name in list(shown)[1:]}) == len(RECORDS)
