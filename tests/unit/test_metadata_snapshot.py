"""Snapshots of the metadata are those that Apache Kafka has made of the same logs."""

from __future__ import annotations

import itertools

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.log.state.metadata_snapshot import encode_metadata_snapshot
from kafkacodec.messages.stored import decode_control_record, decode_metadata_record, encode_metadata_record
from tests import corpus

DIRECTORY = corpus.ROOT / "logs" / "kraft-4.1.0" / "__cluster_metadata-0"
ENDS = (193, 236, 278, 337)


def snapshot(end):
    return (DIRECTORY / f"{end:020}-0000000001.checkpoint").read_bytes()


def log(begin, end):
    """The batches of the log between two offsets at which Kafka has made snapshots."""
    data = b"".join(path.read_bytes() for path in sorted(DIRECTORY.glob("*.log")))
    heads = kc.scan(data)
    return b"".join(
        data[row.position : row.position + row.size_in_bytes] for row in heads if begin <= row.base_offset < end
    )


def contents(data):
    """The records of a snapshot as values that can be compared, and its control records."""
    records, controls = [], []
    for record in kc.iter_records(data, include_control=True):
        if record.key is None:
            found = decode_metadata_record(record.value)
            if hasattr(found, "features"):  # in no order
                found.features.sort(key=lambda feature: feature.name)
            records.append(repr((type(found).__name__, found.to_dict())))
        else:
            controls.append(decode_control_record(record.key, record.value))
    return sorted(records), controls


@pytest.mark.parametrize("end", ENDS)
def test_a_snapshot_of_the_whole_log_has_the_records_of_Kafkas(end):
    made = encode_metadata_snapshot([log(0, end)], 1)
    assert contents(made)[0] == contents(snapshot(end))[0]


@pytest.mark.parametrize(("before", "end"), list(itertools.pairwise(ENDS)))
def test_a_snapshot_of_one_and_what_follows_has_the_records_of_Kafkas(before, end):
    made = encode_metadata_snapshot([snapshot(before), log(before, end)], 1)
    assert contents(made)[0] == contents(snapshot(end))[0]
    ours, theirs = contents(made)[1], contents(snapshot(end))[1]
    assert [one.type for one in ours] == [one.type for one in theirs]
    assert ours[0].value.last_contained_log_timestamp == theirs[0].value.last_contained_log_timestamp


def test_the_level_of_metadata_version_is_first():
    levels = [messages.FeatureLevelRecord(name=name, feature_level=1) for name in ("a", "metadata.version")]
    made = encode_metadata_snapshot([batch(*levels)], 1)
    values = [record.value for record in kc.iter_records(made)]
    assert [decode_metadata_record(value).name for value in values] == ["metadata.version", "a"]


def test_what_was_removed_is_left_out():
    """The types of which the log of a real broker has none."""
    user = {"name": "u", "mechanism": 1}
    quota = {"entity": [messages.ClientQuotaRecord.EntityData(entity_type="user", entity_name="u")], "key": "k"}
    made = [
        messages.UserScramCredentialRecord(**user, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096),
        messages.RemoveUserScramCredentialRecord(**user),
        messages.ClientQuotaRecord(**quota, value=1.0),
        messages.ClientQuotaRecord(**quota, remove=True),
        messages.DelegationTokenRecord(token_id="t"),
        messages.RemoveDelegationTokenRecord(token_id="t"),
        messages.ConfigRecord(resource_type=4, resource_name="", name="n", value="1"),
        messages.ConfigRecord(resource_type=4, resource_name="", name="n", value=None),
    ]
    assert contents(encode_metadata_snapshot([batch(*made)], 1))[0] == []


def test_there_is_no_snapshot_of_what_is_unknown():
    known = encode_metadata_record(messages.NoOpRecord(), 0)
    unknown = known[:1] + bytes([99]) + known[2:]
    assert encode_metadata_snapshot([kc.encode([(None, known)])], 1) is not None
    assert encode_metadata_snapshot([kc.encode([(None, known), (None, unknown)])], 1) is None


def batch(*records):
    return kc.encode([(None, encode_metadata_record(record, 0)) for record in records])
