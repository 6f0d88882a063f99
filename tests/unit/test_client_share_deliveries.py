"""Records of a share group between the reader and the application."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.share_reader import ShareReader
from kafkacodec.client.groups.share_records import ShareFetched
from kafkacodec.client.groups.share_session import AcknowledgeType, Acquired, Run, ShareSession
from kafkacodec.client.sharing.deliveries import Deliveries
from kafkacodec.client.sharing.settings import ShareConsumerSettings

PLACE = TopicPartition("t", 0)
GAP, RELEASE, ACCEPT = AcknowledgeType.GAP, AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT


def deliveries(records, *acquired, **options):
    reader = ShareReader(Cluster([("a", 1)]), lambda: GroupMetadata("g", 1, "m"), implicit=False)
    reader._sessions[1] = session = ShareSession(epoch=1)
    reader._fetched.append(ShareFetched(PLACE, records, tuple(Acquired(*run) for run in acquired), 1, None))
    found = Deliveries(reader, ShareConsumerSettings(bootstrap_servers="a", group_id="g", **options))
    found.take()
    return found, session.acknowledging


def batches():
    return [kc.encode([(None, b"%d" % n)], base_offset=n) for n in range(4)]


def test_only_what_was_acquired_is_given():
    found, said = deliveries(b"".join(batches()), (1, 2, 3))
    assert [(r.offset, r.value, r.delivery_count) for r in found.next(9)] == [(1, b"1", 3), (2, b"2", 3)]
    assert said == {}
    found.processed()
    assert said == {PLACE: [Run(1, 1, ACCEPT), Run(2, 2, ACCEPT)]}


def test_offsets_without_a_record_are_gaps():
    found, said = deliveries(batches()[0] + batches()[3], (0, 5, 1))
    assert [r.offset for r in found.next(9)] == [0, 3]
    assert said == {PLACE: [Run(1, 2, GAP), Run(4, 5, GAP)]}


def test_what_cannot_be_read_is_released_and_reported():
    parts = batches()
    damaged = bytearray(parts[2])
    damaged[-1] ^= 1
    found, said = deliveries(parts[0] + parts[1] + damaged + parts[3], (0, 3, 1))
    assert said == {PLACE: [Run(2, 2, RELEASE)]}
    assert [r.offset for r in found.next(9)] == [0, 1, 3]
    assert found.ready
    with pytest.raises(kc.CrcMismatch, match="t-0") as caught:
        found.raise_error()
    assert caught.value.__notes__ == ["the acquired records from offset 2 that cannot be read were released"]
    assert not found.ready


def test_a_batch_larger_than_the_limit():
    parts = [*batches()[:1], kc.encode([(None, bytes(5000))], base_offset=1, codec="zstd")]
    found, said = deliveries(b"".join(parts), (0, 1, 1), max_decompressed_bytes=5000)
    assert said == {PLACE: [Run(1, 1, RELEASE)]}
    assert [r.offset for r in found.next(9)] == [0]
    with pytest.raises(kc.LimitExceeded, match=r"t-0: .* limit of 5000 bytes: raise max_decompressed_bytes"):
        found.raise_error()
    found, said = deliveries(b"".join(parts), (0, 1, 1), max_decompressed_bytes=6000)
    assert [r.offset for r in found.next(9)] == [0, 1]


def test_a_broker_that_gives_more_offsets_than_there_can_be():
    found, said = deliveries(b"", (0, 2**62, 1))
    assert not found.ready
    assert said == {PLACE: [Run(0, 2**62, GAP)]}


def test_what_a_member_has_lost_is_not_given_and_needs_no_acknowledgement():
    found, _ = deliveries(b"".join(batches()), (0, 3, 1), share_acknowledgement_mode="explicit")
    first, second = found.next(2)
    with pytest.raises(kc.LocalProtocolError, match="2 records are not acknowledged"):
        found.processed()
    found._reader._lose(1, kc.ConnectionFailed("gone", sent=True), 0)
    found.take()
    assert not found.ready  # 2 and 3 were not given before
    with pytest.raises(kc.LocalProtocolError, match="does not wait"):
        found.acknowledge(first, "accept")
    found.processed()
    with pytest.raises(kc.LocalProtocolError, match="does not wait"):
        found.acknowledge(second, "accept")


def test_what_is_no_record_is_refused():
    found, _ = deliveries(b"".join(batches()), (0, 3, 1))
    with pytest.raises(TypeError, match="record must be a record of a share consumer, not str"):
        found.acknowledge("j0", "accept")
    with pytest.raises(ValueError, match="accept, release, reject or renew, not 'ok'"):
        found.acknowledge(found.next(1)[0], "ok")
