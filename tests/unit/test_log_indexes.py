"""Index files, snapshots and checkpoints: real ones compared with Kafka's own reader, damaged ones raise."""

from __future__ import annotations

import base64
import json
import uuid

import numpy as np
import pytest

import kafkacodec as kc
from tests.corpus import ROOT, index_entries

WRITERS = sorted(path.name.removesuffix(".indexes.jsonl.gz") for path in ROOT.glob("expected/logs/*.indexes.jsonl.gz"))
CAMEL = {
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "last_sequence": "lastSequence",
    "last_offset": "lastOffset",
    "offset_delta": "offsetDelta",
    "coordinator_epoch": "coordinatorEpoch",
    "current_txn_first_offset": "currentTxnFirstOffset",
    "first_offset": "firstOffset",
    "last_stable_offset": "lastStableOffset",
}
PARTITION = ROOT / "logs/kraft-4.1.0/txn-0"


def as_dicts(entries):
    return [{CAMEL.get(n, n): int(entry[n]) for n in entries.dtype.names} for entry in entries]


def read_as_sidecar(path):
    """The entries in the form of the sidecar: padding entries are listed, no transaction is null."""
    if path.suffix == ".snapshot":
        entries = as_dicts(kc.log.read_producer_snapshot(path).entries)
        for entry in entries:
            entry["currentTxnFirstOffset"] = (
                entry["currentTxnFirstOffset"] if entry["currentTxnFirstOffset"] >= 0 else None
            )
        return entries
    if path.suffix == ".txnindex":
        return as_dicts(kc.log.read_transaction_index(path).entries)
    if path.suffix == ".index":
        index, unused = kc.log.read_offset_index(path), {"position": 0}
    else:
        index, unused = kc.log.read_time_index(path), {"timestamp": 0}
    return as_dicts(index.entries) + [unused | {"offset": index.base_offset}] * index.padding


@pytest.mark.parametrize("writer", WRITERS)
def test_entries_are_those_of_the_sidecar(writer):
    expected = index_entries(writer)
    assert expected
    for name, entries in expected.items():
        assert read_as_sidecar(ROOT / name) == entries, name


def test_preallocated_index_tells_its_padding():
    live = next((ROOT / "logs").glob("kraft-*-live/preallocated-0"))
    newest = max(live.glob("*.index"))
    index = kc.log.read_offset_index(newest)
    assert index.padding > 8000
    assert len(index) + index.padding == newest.stat().st_size // 8
    assert index["position"].dtype == np.int64


def test_empty_index_has_no_entries(tmp_path):
    path = tmp_path / "00000000000000000007.index"
    path.touch()
    assert len(kc.log.read_offset_index(path)) == 0


@pytest.mark.parametrize(
    ("suffix", "read", "size"),
    [
        (".index", kc.log.read_offset_index, 8),
        (".timeindex", kc.log.read_time_index, 12),
        (".txnindex", kc.log.read_transaction_index, 34),
    ],
)
def test_damaged_index_is_refused_or_cut(tmp_path, suffix, read, size):
    source = next(p for p in sorted(PARTITION.glob(f"*{suffix}")) if p.stat().st_size >= 2 * size)
    data, path = source.read_bytes(), tmp_path / source.name
    whole = read(source)

    path.write_bytes(data[:-1])
    with pytest.raises(kc.CorruptIndex, match="trailing partial index entry") as caught:
        read(path)
    assert caught.value.position == len(data) - size
    assert caught.value.path == str(path)
    cut = read(path, on_error="stop")
    assert cut.entries.tolist() == whole.entries[:-1].tolist()
    assert [type(problem) for problem in cut.problems] == [kc.CorruptIndex]

    path.write_bytes(data[size:] + data[:size])
    with pytest.raises(kc.CorruptIndex, match="out of order"):
        read(path)
    assert 0 < len(read(path, on_error="stop")) < len(whole)


def test_index_name_must_be_an_offset(tmp_path):
    (tmp_path / "copy.index").write_bytes(bytes(8))
    with pytest.raises(kc.CorruptIndex, match="twenty digits"):
        kc.log.read_offset_index(tmp_path / "copy.index")
    with pytest.raises(FileNotFoundError):
        kc.log.read_offset_index(tmp_path / "00000000000000000000.index")
    with pytest.raises(ValueError, match="on_error"):
        kc.log.read_offset_index(tmp_path / "copy.index", on_error="skip")


def test_every_damaged_byte_of_a_snapshot_is_noticed(tmp_path):
    source = max(PARTITION.glob("*.snapshot"))
    data, path = source.read_bytes(), tmp_path / source.name
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises((kc.CrcMismatch, kc.UnsupportedVersion)):
            kc.log.read_producer_snapshot(path)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(kc.DecodeError):
            kc.log.read_producer_snapshot(path)


def test_leader_epochs(tmp_path):
    assert kc.log.read_leader_epochs(PARTITION / "leader-epoch-checkpoint") == [(0, 0)]
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n2\n3 0\n5 120\n")
    assert kc.log.read_leader_epochs(path) == [kc.log.LeaderEpoch(3, 0), kc.log.LeaderEpoch(5, 120)]
    path.write_text("")
    assert kc.log.read_leader_epochs(path) == []


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("0\n", kc.Truncated, "count line"),
        ("1\n0\n", kc.UnsupportedVersion, "version 1"),
        ("0\n2\n1 0\n", kc.CorruptRecord, "expected 2 entries, found 1"),
        ("0\n1\n1 0 7\n", kc.CorruptRecord, "line 3: expected 2 fields"),
        ("0\n1\n1 x\n", kc.CorruptRecord, "invalid number"),
        ("0\n1\n1 ²\n", kc.CorruptRecord, "invalid number"),
        ("0\n2\n2 0\n1 9\n", kc.CorruptRecord, "must increase"),
        ("0\n9" + "9" * 5000 + "\n", kc.CorruptRecord, "invalid number"),
    ],
)
def test_damaged_checkpoint_is_refused(tmp_path, text, error, reason):
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    with pytest.raises(error, match=reason):
        kc.log.read_leader_epochs(path)


def test_checkpoint_that_is_not_text(tmp_path):
    path = tmp_path / "replication-offset-checkpoint"
    path.write_bytes(b"0\n\xff\n")
    with pytest.raises(kc.CorruptRecord, match="text") as caught:
        kc.log.read_checkpoint(path)
    assert caught.value.position == 2


@pytest.mark.parametrize("writer", ["v0-0.9.0.1", "kraft-4.1.0"])
def test_offset_checkpoints(writer):
    offsets = kc.log.read_checkpoint(ROOT / "logs" / writer / "replication-offset-checkpoint")
    lines = (ROOT / "logs" / writer / "replication-offset-checkpoint").read_text().split("\n")[2:-1]
    assert [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()] == lines


def test_partition_metadata(tmp_path):
    name = "kraft-4.1.0/none-0/partition.metadata"
    text = (ROOT / "logs" / name).read_text().split("topic_id: ")[1].strip()
    assert kc.log.read_topic_id(ROOT / "logs" / name).bytes == base64.urlsafe_b64decode(text + "==")
    path = tmp_path / "partition.metadata"
    path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert kc.log.read_topic_id(path) == uuid.UUID(int=1)
    for text, error in [("version: 9\n", kc.UnsupportedVersion), ("version: 0\ntopic_id: AA", kc.CorruptRecord)]:
        path.write_text(text)
        with pytest.raises(error):
            kc.log.read_topic_id(path)


def test_meta_properties():
    properties = kc.log.read_properties(ROOT / "logs/kraft-4.1.0/meta.properties")
    assert (properties["node.id"], properties["version"]) == ("1", "1")
    assert json.dumps(properties)
