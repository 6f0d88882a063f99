"""Log directories of Kafka 0.7, as a real broker left them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import kafkacodec as kc
from tests.dialect_vectors import rows

ROOT = Path(__file__).parents[1] / "data/dialects/kafka07/segments"
BROKERS = [ROOT / "broker-0", ROOT / "broker-1"]


def expected(path):
    base = int(path.stem)
    return kc.dialects.kafka07.decode(path.read_bytes(), initial_offset=base)


@pytest.mark.parametrize("broker", BROKERS, ids=lambda path: path.name)
def test_partitions_read_as_their_segments_decode(broker):
    log = kc.log.LogDirectory(broker)
    assert log.topics
    for topic in log.topics:
        for partition in log.partitions(topic):
            assert partition.is_kafka07
            whole = [expected(path) for path in sorted(Path(partition.path).glob("*.kafka"))]
            chunks = list(log.read(topic, partition.partition))
            assert chunks[0].column_names == list(kc.decode(b"").column_names)
            got = np.concatenate([chunk["offset"] for chunk in chunks])
            assert got.tolist() == np.concatenate([chunk["offset"] for chunk in whole]).tolist()
            report = partition.verify()
            assert report.clean, str(report)
            assert report.num_records == len(got)


def test_start_by_offset_in_a_later_segment():
    partition = kc.log.LogDirectory(ROOT / "broker-0").partition("rolling", 0)
    assert len(partition.segments) > 2
    later = expected(Path(partition.segments[2].path))["offset"]
    got = np.concatenate([chunk["offset"] for chunk in partition.read(start_offset=int(later[0]))])
    assert got[: len(later)].tolist() == later.tolist()
    assert partition.offset_of_timestamp(0) is None
    assert partition.end_offset() > later[-1]


def test_an_end_offset_inside_a_message_includes_it():
    """The broker's consumer saw the offsets in the index beside the segments."""
    entries = [e for e in rows("kafka07/segments/index") if e.get("topic") == "short" and not e["error"]]
    offsets = sorted({m["offset"] for e in entries for m in e["entries"]})
    partition = kc.log.LogDirectory(ROOT / "broker-0").partition("short", 0)
    for end in [n for offset in offsets[1:6] for n in (offset - 1, offset, offset + 1)]:
        for start in offsets[:3]:
            got = np.concatenate([c["offset"] for c in partition.read(start_offset=start, end_offset=end)]).tolist()
            assert sorted(set(got)) == [n for n in offsets if start <= n < end]


def test_positions_count_from_the_start_of_the_file():
    (path,) = (ROOT / "damaged/bad-crc-in-the-middle").glob("*.kafka")
    (entry,) = [e for e in rows("kafka07/segments/index") if f"{path.parent.name}/{path.name}" in e["file"]]
    (damaged,) = [m["offset"] for m in entry["entries"] if not m["valid"]]
    partition = kc.log.Partition(path.parent)
    for start in (None, entry["entries"][1]["offset"], damaged):
        with pytest.raises(kc.CrcMismatch) as raised:
            list(partition.read(start_offset=start))
        (problem,) = [p for c in partition.read(start_offset=start, on_error="skip") for p in c.problems]
        assert isinstance(problem.exception, kc.CrcMismatch)
        assert [raised.value.position, problem.position, problem.exception.position] == [damaged] * 3


def test_damage_is_placed_in_the_file(tmp_path):
    source = ROOT / "damaged/bad-crc-in-the-middle/00000000000000000000.kafka"
    path = tmp_path / "t-0" / source.name
    path.parent.mkdir()
    shutil.copyfile(source, path)
    partition = kc.log.Partition(path.parent)
    with pytest.raises(kc.CrcMismatch, match=r"00000\.kafka"):
        list(partition.read())
    report = partition.verify()
    assert [f.kind for f in report.findings if f.level == "error"] == ["damaged"]
    kept = list(partition.read(on_error="skip"))
    assert sum(len(chunk.problems) for chunk in kept) == 1
    with pytest.raises(kc.UnsupportedMagic, match="no batches"):
        partition.segments[0].scan()
    assert not kc.log.recover(tmp_path / "t-0", tmp_path / "saved").ok
