"""Keys and values as views: on every golden file, sound or damaged, the content of the copied layout."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import Sample, blobs, copied, log_directories, segments

KINDS = ["builder", "cut", "fetch", "foreign", "corrupt"]


def same(views: kc.RecordColumns, copies: kc.RecordColumns) -> bool:
    assert views.consumed == copies.consumed
    assert [str(p) for p in views.problems] == [str(p) for p in copies.problems]
    return bool(copied(views).equals(pa.table(copies)))


def check(sample: Sample, **options: Any) -> None:
    data = sample.data()
    copies = kc.decode(data, include_control=True, batch_columns=True, **options)
    views = kc.decode(data, include_control=True, batch_columns=True, layout="view", **options)
    assert {kind for name, kind in views.schema if name in ("key", "value")} == {"binary_view"}
    assert same(views, copies)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_record_set(kind: str, on_error: str) -> None:
    samples = blobs(kind)
    assert samples
    for sample in samples:
        check(sample, on_error=on_error)


def test_every_segment() -> None:
    for sample in segments():
        check(sample, on_error="stop")


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["view", "auto"])
def test_every_log(layout: Any) -> None:
    """Through files, mapped or not, read as a consumer of committed records does; a range of offsets in the middle."""
    read = 0
    for directory in log_directories():
        for partition in kc.log.LogDirectory(directory).all_partitions:
            if not partition.is_kafka07:
                read += compare_readings(partition, layout)
    assert read > 1000


def compare_readings(partition: kc.log.Partition, layout: Any) -> int:
    options: dict[str, Any] = {"gaps": "accept", "on_error": "skip", "isolation_level": "read_committed"}
    copies = [pa.table(chunk) for chunk in partition.read(**options)]
    if not copies:
        return 0
    whole = pa.concat_tables(copies)
    for mapped in (False, True):
        chunks = list(partition.read(layout=layout, mapped=mapped, **options))
        assert len({chunk.schema for chunk in chunks}) == 1
        assert pa.concat_tables(map(copied, chunks)).equals(whole)
    if len(whole) > 2:
        options |= {"start_offset": whole["offset"][1].as_py(), "end_offset": whole["offset"][-1].as_py()}
        copies = [pa.table(chunk) for chunk in partition.read(**options)]
        chunks = list(partition.read(layout=layout, **options))
        assert pa.concat_tables(map(copied, chunks)).equals(pa.concat_tables(copies))
    return len(whole)
