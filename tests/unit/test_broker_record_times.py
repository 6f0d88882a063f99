"""Largest timestamps that a producer writes into a batch's header, as Apache Kafka 4.4.0 answers them.

Those of keys, and some of topics with LogAppendTime and of largest timestamps far ahead, follow from its LogValidator.
"""

from __future__ import annotations

import pytest

from kafkacodec import Record, encode, scan
from kafkacodec.broker.topics.batches import Produced, Refused, accept
from kafkacodec.broker.topics.configs import TopicConfig
from kafkacodec.errors import INVALID_RECORD, INVALID_TIMESTAMP
from kafkacodec.records._crc import crc32c

NOW = 1_790_000_000_000
FAR = NOW + 7_200_000  # message.timestamp.after.max.ms is an hour
CODECS = ("none", "gzip")
BY_PRODUCER = TopicConfig({}, {})
BY_BROKER = TopicConfig({"message.timestamp.type": "LogAppendTime"}, {})
COMPACTED = TopicConfig({"cleanup.policy": "compact"}, {})
VERSION = 9


def batch(times, claimed, codec, *, is_append_time=False, keys=(b"k", b"k")):
    """A batch whose header claims a largest timestamp."""
    records = [Record(i, time, 0, key, b"value", ()) for i, (time, key) in enumerate(zip(times, keys, strict=True))]
    made = bytearray(encode(records, codec=codec))
    if is_append_time:
        made[22] |= 8
    made[35:43] = claimed.to_bytes(8, "big", signed=True)
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    return bytes(made)


def header(found):
    """The largest timestamp that is stored, and whether it is the time of the append; the checksum is right."""
    assert isinstance(found, Produced)
    data = bytes(found.data)
    assert crc32c(data[21:]) == int.from_bytes(data[17:21], "big")
    assert scan(data)["last_offset"].tolist() == [1]
    largest = int.from_bytes(data[35:43], "big", signed=True)
    assert largest == found.max_timestamp
    return largest, bool(data[22] & 8)


def refused(found):
    assert isinstance(found, Refused)
    return found.code, [number for number, _ in found.records]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("claimed", [NOW, -1, FAR])
def test_a_record_far_ahead_is_refused_whatever_the_header_claims(codec, claimed):
    data = memoryview(batch((NOW, FAR), claimed, codec))
    assert refused(accept(data, BY_PRODUCER, VERSION, NOW)) == (INVALID_TIMESTAMP, [1])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("times", "claimed", "stored"),
    [
        ((NOW - 5000, NOW), FAR, NOW),
        ((NOW - 5000, NOW), NOW - 9000, NOW),
        ((NOW - 5000, NOW - 4000), NOW, NOW - 4000),
        ((NOW - 5000, NOW - 4000), -1, NOW - 4000),
        ((-1, -1), NOW, -1),
        ((NOW - 5000, NOW), NOW, NOW),
    ],
)
def test_the_header_gets_the_largest_timestamp_of_the_records(codec, times, claimed, stored):
    data = memoryview(batch(times, claimed, codec))
    found = accept(data, BY_PRODUCER, VERSION, NOW)
    assert header(found) == (stored, False)
    assert (found.data is data) == (claimed == stored)  # a right header costs no copy


@pytest.mark.parametrize("codec", CODECS)
def test_the_time_of_the_append_that_a_producer_claims(codec):
    times = NOW - 5000, NOW - 4000
    near, far, none = (
        memoryview(batch(times, claimed, codec, is_append_time=True)) for claimed in (NOW - 4000, FAR, -1)
    )
    assert header(accept(near, BY_PRODUCER, VERSION, NOW)) == (NOW - 4000, False)
    assert refused(accept(far, BY_PRODUCER, VERSION, NOW)) == (INVALID_TIMESTAMP, [0, 1])
    assert refused(accept(none, BY_PRODUCER, VERSION, NOW)) == (INVALID_TIMESTAMP, [0, 1])
    for data in (near, far, none):
        assert refused(accept(data, BY_BROKER, VERSION, NOW)) == (INVALID_TIMESTAMP, [0, 1])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("claimed", [NOW, FAR, -1])
def test_the_broker_s_time_replaces_all(codec, claimed):
    found = accept(memoryview(batch((NOW, FAR), claimed, codec)), BY_BROKER, VERSION, NOW + 7)
    assert header(found) == (NOW + 7, True)
    assert found.append_time == NOW + 7


@pytest.mark.parametrize("codec", CODECS)
def test_errors_of_keys_and_of_times(codec):
    data = memoryview(batch((NOW, FAR), NOW, codec, keys=(None, b"k")))
    assert refused(accept(data, COMPACTED, VERSION, NOW)) == (INVALID_TIMESTAMP, [0, 1])
    data = memoryview(batch((NOW, NOW), NOW, codec, keys=(b"k", None)))
    assert refused(accept(data, COMPACTED, VERSION, NOW)) == (INVALID_RECORD, [1])
