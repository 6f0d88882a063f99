"""Segments moved to other offsets in place: nothing but base offsets and leader epochs changes."""

import struct

import pytest

import kafkacodec as kc
from kafkacodec.log.writing.renumber import renumber_segment
from tests.corpus import segments

HEAD = struct.Struct(">qii")
SEGMENTS = [s for s in segments(writer="kraft-4.1.0") if s.error is None and s.expected.batches][::7]


def moved(data: bytes, batches, by: int, leader_epoch: int) -> bytes:
    """The same by hand, from what Kafka's own reader says of the batches."""
    out = bytearray(data)
    for batch in batches:
        head = HEAD.pack(batch["baseOffset"] + by, batch["sizeInBytes"] - 12, leader_epoch)
        out[batch["position"] : batch["position"] + HEAD.size] = head
    return bytes(out)


@pytest.mark.parametrize("sample", SEGMENTS, ids=str)
def test_segments_of_kafka(sample, tmp_path):
    path, batches = tmp_path / "segment.log", sample.expected.batches
    last = batches[-1]
    size = last["position"] + last["sizeInBytes"]
    data = sample.data()[:size]
    path.write_bytes(data)
    assert renumber_segment(str(path), by=1_000_000, leader_epoch=7) == last["lastOffset"] + 1_000_001
    assert path.read_bytes() == moved(data, batches, 1_000_000, 7)
    headers = kc.scan(path.read_bytes())
    assert headers["crc_ok"].all()
    assert headers["last_offset"].tolist() == [batch["lastOffset"] + 1_000_000 for batch in batches]
    assert renumber_segment(str(path), by=-1_000_000, leader_epoch=0) == last["lastOffset"] + 1
    assert path.read_bytes() == moved(data, batches, 0, 0)


def test_more_batches_than_are_changed_at_once(tmp_path):
    path = tmp_path / "segment.log"
    path.write_bytes(kc.encode([(None, b"%d" % i) for i in range(3000)], batch_bytes=1))
    assert renumber_segment(str(path), by=50, leader_epoch=3) == 3050
    headers = kc.scan(path.read_bytes())
    assert headers["base_offset"].tolist() == list(range(50, 3050))
    assert set(headers["partition_leader_epoch"].tolist()) == {3}


def test_what_cannot_be_moved(tmp_path):
    path = tmp_path / "segment.log"
    path.write_bytes(b"")
    assert renumber_segment(str(path), by=5, leader_epoch=0) == 5
    batch = kc.encode([(b"key", b"value")])
    path.write_bytes(batch + batch[:-1])
    with pytest.raises(kc.Truncated, match=r"segment\.log: partial batch") as caught:
        renumber_segment(str(path), by=1, leader_epoch=0)
    assert caught.value.position == len(batch)
    path.write_bytes(kc.encode([(b"key", b"value")], magic=1))
    with pytest.raises(kc.UnsupportedMagic):
        renumber_segment(str(path), by=1, leader_epoch=0)
    path.write_bytes(batch)
    with pytest.raises(kc.EncodeError, match="an offset is outside"):
        renumber_segment(str(path), by=-1, leader_epoch=0)
    assert path.read_bytes() == batch
    with pytest.raises(FileNotFoundError, match="none"):
        renumber_segment(str(tmp_path / "none.log"), by=1, leader_epoch=0)
