"""Encoded records are decoded to the same records, for any division into chunks and batches."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
from hypothesis import given, strategies as st

import kafkacodec as kc

content = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=5), content), max_size=4)
times = st.none() | st.integers(-(2**62), 2**62).filter(lambda t: t != -1)
steps = st.integers(1, 5) | st.integers(1, 2**32)
rows = st.lists(st.tuples(steps, times, content, content, headers), max_size=60)

KINDS = [pa.binary(), pa.large_binary(), pa.binary_view()]
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def numbered(drawn: list[Any]) -> list[Any]:
    """Rows shaped like Record, with the steps added up to offsets."""
    offset, result = -1, []
    for step, time, key, value, pairs in drawn:
        offset += step
        result.append((offset, time, 0, key, value, pairs))
    return result


def table(records: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table(
        {
            "offset": pa.array([r[0] for r in records], pa.int64()),
            "timestamp": pa.array([r[1] for r in records], pa.timestamp("ms", "UTC")),
            "key": pa.array([r[3] for r in records], kind),
            "value": pa.array([r[4] for r in records], kind),
            "headers": pa.array([[{"key": k, "value": v} for k, v in r[5]] for r in records], PAIRS),
        }
    )


@given(rows, st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]), st.integers(1, 3000), st.sampled_from(KINDS))
def test_what_is_encoded_is_decoded(drawn: list[Any], codec: str, batch_bytes: int, kind: pa.DataType) -> None:
    records = numbered(drawn)
    data = kc.encode(records, codec=codec, batch_bytes=batch_bytes)
    assert [(*r[:5], list(r.headers)) for r in kc.iter_records(data)] == records
    assert kc.encode(table(records, kind), codec=codec, batch_bytes=batch_bytes) == data
    for size, count in zip(*(kc.scan(data)[c].tolist() for c in ("size_in_bytes", "count")), strict=True):
        assert codec != "none" or size <= batch_bytes or count == 1


@given(rows, st.lists(st.integers(0, 60), max_size=5), st.integers(1, 3000), st.sampled_from(KINDS))
def test_chunks_leave_no_trace(drawn: list[Any], cuts: list[int], batch_bytes: int, kind: pa.DataType) -> None:
    whole = table(numbered(drawn), kind)
    edges = [0, *sorted(min(c, len(whole)) for c in cuts), len(whole)]
    parts = [whole.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    chunked = pa.Table.from_batches([b for p in parts for b in p.to_batches()], whole.schema)
    data = kc.encode(whole, batch_bytes=batch_bytes)
    assert kc.encode(chunked, batch_bytes=batch_bytes) == data
    assert b"".join(b.data for b in kc.iter_encoded(chunked, batch_bytes=batch_bytes)) == data
