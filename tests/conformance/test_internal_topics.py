"""Committed offsets, groups and cluster metadata from real brokers' disks, against plain readings of the same records.

The expected values come from the keys and values that Kafka's own reader gave for these files, taken apart here by
hand: the old forms of offset commits are a few integers and strings.
"""

import base64
import gzip
import json
import shutil
import struct

import pytest

from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.groups import read_committed_offsets, read_consumer_groups
from tests.corpus import ROOT

WRITERS = ["kraft-3.9.1", "kraft-4.1.0", "v0-0.9.0.1", "v1-0.10.2.2", "v2-0.11.0.3", "v2-2.8.2"]


def string(data, at):
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


def commit_key(key):
    """(group, topic, partition) of an offset commit's key, else None."""
    (kind,) = struct.unpack_from(">h", key)
    if kind not in (0, 1):
        return None
    group, at = string(key, 2)
    topic, at = string(key, at)
    return group, topic, *struct.unpack_from(">i", key, at)


def commit_value(value):
    """(offset, leader epoch, metadata, commit time, expiry) of the value's versions 0 to 4."""
    version, offset = struct.unpack_from(">hq", value)
    at, epoch, expiry = 10, -1, -1
    if version >= 3:
        (epoch,) = struct.unpack_from(">i", value, at)
        at += 4
    if version == 4:  # a short compact string: one byte of length plus one
        metadata, at = value[at + 1 : at + value[at]].decode(), at + value[at]
    else:
        metadata, at = string(value, at)
    (committed,) = struct.unpack_from(">q", value, at)
    if version == 1:
        (expiry,) = struct.unpack_from(">q", value, at + 8)
    assert version in (0, 1, 2, 3, 4)
    return offset, epoch, metadata, committed, expiry


def records_of(writer, topic):
    with gzip.open(ROOT / "expected" / "logs" / f"{writer}.records.jsonl.gz", "rt") as lines:
        for line in lines:
            record = json.loads(line)
            if f"/{topic}-" in record["file"] and "control" not in record and record["key"] is not None:
                yield record


def expected_offsets(writer):
    """(offset, leader epoch, metadata, commit time, expiry) by (group, topic, partition)."""
    expected = {}
    for record in records_of(writer, "__consumer_offsets"):
        key = commit_key(base64.b64decode(record["key"]))
        if key is None:
            continue
        expected.pop(key, None)
        if record["value"] is not None:
            expected[key] = commit_value(base64.b64decode(record["value"]))
    return expected


@pytest.mark.parametrize("writer", WRITERS)
def test_committed_offsets(writer):
    found = read_committed_offsets(ROOT / "logs" / writer)
    assert {tuple(commit[:3]): tuple(commit[3:]) for commit in found} == expected_offsets(writer)
    assert len(found) >= 9
    assert found == sorted(found)


@pytest.mark.parametrize("writer", WRITERS)
def test_groups(writer):
    names = set()
    for record in records_of(writer, "__consumer_offsets"):
        key = base64.b64decode(record["key"])
        if struct.unpack_from(">h", key) == (2,):
            name, _ = string(key, 2)
            (names.discard if record["value"] is None else names.add)(name)
    found = read_consumer_groups(ROOT / "logs" / writer)
    classic = {group.group: group for group in found if group.kind == "classic"}
    newer = {group.group for group in found} - set(classic)
    committed = {group for group, _, _ in expected_offsets(writer)} - newer
    assert set(classic) == names | committed
    assert {name for name, group in classic.items() if group.generation or group.members} <= names


def test_members_and_their_topics():
    (group, *_) = read_consumer_groups(ROOT / "logs" / "v0-0.9.0.1")
    assert group.protocol_type == "consumer"
    assert [member.topics for member in group.members] == [["gzip"]]
    assert group.leader == group.members[0].member_id


def test_cluster_metadata():
    found = read_cluster_metadata(ROOT / "logs" / "kraft-4.1.0")
    on_disk = {path.name.rpartition("-")[0] for path in (ROOT / "logs" / "kraft-4.1.0").glob("*-[0-9]")}
    assert on_disk - {"__cluster_metadata"} <= set(found.topics)
    assert found.configs["topic:compact-none"]["cleanup.policy"] == "compact"
    assert found.features["metadata.version"] == 27
    assert list(found.brokers) == [1]
    partition = found.topics["none"]["partitions"][0]
    assert partition["replicas"] == [1]


def test_cluster_metadata_with_and_without_snapshots(tmp_path):
    """Each snapshot and the log after it are the whole log."""
    source = ROOT / "logs" / "kraft-4.1.0" / "__cluster_metadata-0"
    whole = read_cluster_metadata(source.parent)
    snapshots = sorted(path.name for path in source.glob("*.checkpoint"))
    assert len(snapshots) == 4
    for kept in [None, *snapshots]:
        gone = set(snapshots) - {kept}
        copy = tmp_path / str(kept) / source.name
        shutil.copytree(source, copy, ignore=lambda _, names, gone=gone: gone & set(names))
        assert read_cluster_metadata(copy.parent) == whole


def test_no_metadata_log(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_cluster_metadata(tmp_path)
