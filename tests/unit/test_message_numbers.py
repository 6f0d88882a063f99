"""Numbers of decoded messages are exact, also in reused memory."""

import gc
import random
import sys

import pytest

import kafkacodec as kc

Fetch = kc.messages.FetchResponse
Part = Fetch.PartitionData
EDGES = [
    *(
        sign * (1 << bits) + step
        for bits in (7, 8, 15, 16, 29, 30, 31, 32, 59, 60, 62)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    ),
    *range(-7, 8),
    *range(250, 262),
    2**63 - 1,
    -(2**63),
]


def response(offsets):
    parts = [Part(partition_index=i, high_watermark=offset, records=None) for i, offset in enumerate(offsets)]
    return Fetch(responses=[Fetch.FetchableTopicResponse(topic="t", partitions=parts)])


def offsets_in(body, version=4):
    return [part.high_watermark for part in Fetch.decode(body, version).responses[0].partitions]


@pytest.mark.parametrize("version", [4, 12])
def test_every_size_of_number(version):
    for _ in range(3):  # the second reuses the memory of the first
        assert offsets_in(response(EDGES).encode(version), version) == EDGES


def test_numbers_outlive_their_message():
    source = random.Random(3)
    kept = []
    for _ in range(20):
        offsets = [source.randint(-(2**40), 2**40) // source.choice([1, 2**9, 2**20, 2**31]) for _ in range(300)]
        found = offsets_in(response(offsets).encode(4))
        kept.append((found[::3], offsets[::3]))
    gc.collect()
    assert all(found == offsets for found, offsets in kept)
    assert {number: str(number) for found, _ in kept for number in found} == {n: str(n) for _, ns in kept for n in ns}


def test_what_was_set_is_let_go_of_too():
    number = int("123456789")
    references = sys.getrefcount(number)
    for _ in range(50):
        part = Part(high_watermark=number, last_stable_offset=int("987654321"), log_start_offset=True)
        part.high_watermark = part.high_watermark
        del part
        offsets_in(response([5_000_000, -5_000_000]).encode(4))
    assert number == 123456789
    assert sys.getrefcount(number) == references


@pytest.mark.parametrize(
    ("cls", "field", "bits", "low"),
    [
        (Part, "partition_index", 32, -(2**31)),
        (Part, "error_code", 16, -(2**15)),
        (Part, "high_watermark", 64, -(2**63)),
    ],
)
def test_the_ends_of_each_range(cls, field, bits, low):
    for value in (low, low + 2**bits - 1):
        body = response([0])
        setattr(body.responses[0].partitions[0], field, value)
        assert getattr(Fetch.decode(body.encode(4), 4).responses[0].partitions[0], field) == value
    for value in (low - 1, low + 2**bits, True, 1.0, None, "1"):
        body = response([0])
        setattr(body.responses[0].partitions[0], field, value)
        with pytest.raises(kc.EncodeError, match=f"expected an int{bits}") as caught:
            body.encode(4)
        assert caught.value.path == f"responses[0].partitions[0].{field}"


def test_truncated_numbers_tell_how_many_bytes_are_missing():
    body = kc.messages.InitProducerIdResponse(producer_id=7, producer_epoch=1).encode(0)
    for end in range(6, 14):
        with pytest.raises(kc.Truncated, match=f"an int64 needs 8 bytes, {end - 6} left") as caught:
            kc.messages.InitProducerIdResponse.decode(body[:end], 0)
        assert caught.value.position == 6
        assert caught.value.path == "producer_id"
