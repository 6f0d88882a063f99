"""Memory use of hostile bodies, and references after errors."""

import ctypes
import gc

import pytest

import kafkacodec as kc
from kafkacodec import messages
from tests.fuzz.messages import BYTES_PER_BYTE, Input, check_memory
from tests.leaks import assert_no_leak, assert_takes_less
from tests.protocol_vectors import vectors


def test_counts_are_bounded_by_the_bytes_left():
    for count in (2**31 - 1, 2**28, 10**6):
        with pytest.raises(kc.Truncated) as caught:
            messages.MetadataResponse.decode(bytes(4) + count.to_bytes(4, "big") + bytes(100), 3)
        assert caught.value.path == "brokers"


def test_hostile_bodies_take_little_memory():
    for vector in vectors("bad"):
        check_memory(Input.of(vector))


def test_what_others_allocate_by_chance_is_no_memory_of_the_work():
    others = iter([1 << 20, 0])
    assert_takes_less(1 << 16, lambda: bytes(next(others)))
    with pytest.raises(AssertionError, match="each round took"):
        assert_takes_less(1 << 16, lambda: bytes(1 << 20))


def test_the_densest_messages():
    """Arrays with elements of one or two bytes."""
    body = bytes(4) + (2000).to_bytes(4, "big") + b"\0\0" * 2000 + bytes(3)

    def decode():
        assert len(messages.MetadataRequest.decode((2000).to_bytes(4, "big") + b"\0\0" * 2000, 0).topics) == 2000

    assert_takes_less(BYTES_PER_BYTE * len(body), decode)


def test_no_references_are_lost():
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders" * 10)])
    body = request.encode(12)

    def work():
        for _ in range(200):
            decoded = messages.MetadataRequest.decode(body, 12)
            decoded.encode(12)
            for damaged in (body[:-1], body + b"\0", b"\xff" * 9):
                with pytest.raises(kc.DecodeError):
                    messages.MetadataRequest.decode(damaged, 12)
            decoded.topics[0].name = 5
            with pytest.raises(kc.EncodeError):
                decoded.encode(12)

    assert_no_leak(work)


def test_structs_nested_beyond_the_stack():
    outer = None
    for _ in range(1_000_000):
        outer = messages.HeartbeatRequest(group_id=outer)
    del outer


def test_a_list_that_changes_while_it_is_encoded():
    class Shrinking:
        def __index__(self):
            nodes.clear()
            return 1

    nodes = [Shrinking(), 2, 3]
    partition = messages.MetadataResponse.MetadataResponsePartition(replica_nodes=nodes)
    topic = messages.MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition])
    with pytest.raises(kc.EncodeError, match="changed while it was encoded"):
        messages.MetadataResponse(topics=[topic]).encode(1)


def test_a_struct_that_is_replaced_while_it_is_encoded():
    class Replacing:
        def __index__(self):
            message.assignment = None
            gc.collect()
            return 1

    part = messages.ConsumerGroupHeartbeatResponse
    own = part.TopicPartitions(partitions=[Replacing(), 2])
    message = part(assignment=part.Assignment(topic_partitions=[own]))
    assert part.decode(message.encode(0), 0).assignment.topic_partitions[0].partitions == [1, 2]


class Raising:
    """An integer whose conversion raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error


HUGE = (ctypes.c_ubyte * (1 << 46)).from_address(0)  # exports 64 TiB, more than any memory to copy to


@pytest.mark.parametrize("error", [MemoryError("none left"), KeyboardInterrupt("now")])
def test_what_says_nothing_about_the_value_is_not_made_an_encode_error(error: BaseException) -> None:
    message = messages.MetadataResponse(throttle_time_ms=Raising(error))
    with pytest.raises(type(error), match=str(error)):
        message.encode(9)
    with pytest.raises(kc.EncodeError, match="int32"):
        messages.MetadataResponse(throttle_time_ms=Raising(ArithmeticError())).encode(9)


def test_no_memory_for_an_unknown_tagged_field() -> None:
    with pytest.raises(MemoryError):
        messages.MetadataRequest(unknown_tagged_fields={9: HUGE}).encode(9)
    with pytest.raises(kc.EncodeError, match="for tags from"):
        messages.MetadataRequest(unknown_tagged_fields={9: object()}).encode(9)
