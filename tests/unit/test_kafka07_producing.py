"""What a producer of Kafka 0.7 decides, without I/O: partitions and containers."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07.choosing import Target, choose, java_hash, place_of_key
from kafkacodec.dialects.kafka07.outbox import Outbox
from kafkacodec.dialects.zookeeper import Registry
from kafkacodec.errors import BrokerError, EncodeError

WITHOUT_ABSOLUTE = "polygenelubricants"  # its hash in Java is -2^31


def registry(topics=(), brokers=(0, 1, 2, 10)):
    nodes = {f"/brokers/ids/{broker}": f"c:127.0.0.1:{9000 + broker}" for broker in brokers}
    nodes |= {f"/brokers/topics/{topic}/{broker}": str(count) for topic, broker, count in topics}
    return Registry(nodes)


def drawn(found, topic, key=None, runs=2000):
    draw = random.Random(1).randrange
    return Counter(choose(found, topic, key, draw) for _ in range(runs))


# Hashes that java.lang.String documents by its formula: s[0]*31^(n-1) + ... + s[n-1], as an int
@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("ab", 97 * 31 + 98), ("Aa", 2112), ("BB", 2112), (WITHOUT_ABSOLUTE, -(1 << 31)),
     ("\U0001f600", 0xD83D * 31 + 0xDE00), ("zzzzzz", sum(122 * 31**i for i in range(6)) - (1 << 32))],
)  # fmt: skip
def test_hashes_of_java(text, expected):
    assert java_hash(text) == expected


def test_a_key_belongs_to_one_of_the_partitions_sorted_by_number():
    found = registry([("t", 10, 2), ("t", 2, 3)])
    pairs = [Target(2, 0), Target(2, 1), Target(2, 2), Target(10, 0), Target(10, 1)]
    for key in ("a", "user1", "Aa", "zzzzzz"):
        assert drawn(found, "t", key, 3) == {pairs[abs(java_hash(key)) % 5]: 3}


def test_the_hash_without_absolute_value_fails_unless_nothing_is_left_over():
    with pytest.raises(EncodeError, match="no absolute value"):
        place_of_key(WITHOUT_ABSOLUTE, 3)
    assert place_of_key(WITHOUT_ABSOLUTE, 4) == 0


def test_without_a_key_any_is_drawn_and_partition_0_of_brokers_that_do_not_have_it():
    found = drawn(registry([("t", 1, 3)]), "t")
    assert set(found) == {Target(0, 0), Target(1, 0), Target(1, 1), Target(1, 2), Target(2, 0), Target(10, 0)}
    assert min(found.values()) > 200


@pytest.mark.parametrize("topics", [(), [("t", 1, 0)]])
def test_a_topic_that_no_broker_has_is_partition_0_of_each_in_the_order_of_ids(topics):
    found = registry(topics)
    assert drawn(found, "t", "b", 1) == {Target([0, 1, 2, 10][98 % 4], 0): 1}
    assert set(drawn(found, "t")) == {Target(broker, 0) for broker in (0, 1, 2, 10)}


def test_a_partition_of_a_broker_that_has_gone_is_told():
    found = registry([("t", 7, 1)], brokers=(1,))
    assert choose(found, "t", "key", None) is None
    assert drawn(found, "t") == {Target(1, 0): 2000}  # no key finds one that lives
    with pytest.raises(BrokerError, match="no broker"):
        choose(registry(brokers=()), "t", None, None)


def outbox(**options):
    settings = {"codec": "none", "max_messages": 3, "max_bytes": 10_000, "max_message_size": 100, "linger_ms": 5}
    return Outbox(**{**settings, **options})


def parts(dispatch):
    request = kafka07.decode_request(dispatch.frame)
    found = [request] if isinstance(request, kafka07.ProduceRequest) else request.requests
    values = (kafka07.decode(part.message_set).to_pyarrow().column("value").to_pylist() for part in found)
    return type(request).__name__, [(p.topic, p.partition, v) for p, v in zip(found, values, strict=True)]


def test_messages_of_a_partition_are_one_set_and_of_several_one_request():
    box = outbox(max_messages=100)
    for i, (topic, partition) in enumerate([("t", 0), ("t", 1), ("u", 0), ("t", 0)]):
        assert not box.add(Target(1, partition), topic, b"%d" % i, i, now=0)
    box.add(Target(2, 7), "t", b"x", "x", now=1)
    assert box.take(4.9) == []
    assert box.next_deadline() == 5
    first, second = box.take(6)
    assert (first.broker, first.waiters) == (1, [0, 3, 1, 2])
    assert parts(first) == (
        "MultiProduceRequest", [("t", 0, [b"0", b"3"]), ("t", 1, [b"1"]), ("u", 0, [b"2"])]
    )  # fmt: skip
    assert parts(second) == ("ProduceRequest", [("t", 7, [b"x"])])
    assert box.next_deadline() is None


@pytest.mark.parametrize("options", [{"max_messages": 3}, {"max_messages": 99, "max_bytes": 3 * 11}])
def test_a_number_of_messages_or_bytes_is_enough(options):
    box = outbox(linger_ms=1000, **options)
    assert [box.add(Target(1, 0), "t", b"x", None, now=0) for _ in range(3)] == [False, False, True]
    (dispatch,) = box.take(0)
    assert len(dispatch.waiters) == 3


@pytest.mark.parametrize("codec", ["gzip", "snappy"])
def test_a_set_is_one_container_also_of_one_message(codec):
    for count in (1, 3):
        box = outbox(codec=codec)
        for i in range(count):
            box.add(Target(1, 0), "t", b"x", i, now=0)
        (dispatch,) = box.take(9)
        request = kafka07.decode_request(dispatch.frame)
        outer = kafka07.decode(request.message_set, deep=False, batch_columns=True).to_pyarrow()
        assert outer.column("codec").to_pylist() == [codec]
        assert len(kafka07.decode(request.message_set)) == count


def test_a_container_that_is_too_large_is_cut_and_a_message_that_is_too_large_is_refused():
    box = outbox(codec="gzip", max_messages=99)
    noise = random.Random(5)
    values = [noise.randbytes(size) for size in (40, 30, 200, 20)]
    for value in values:
        box.add(Target(1, 0), "t", value, value, now=0)
    (dispatch,) = box.take(9)
    ((refused, error),) = dispatch.refused
    assert (refused, type(error)) == (values[2], EncodeError)
    request = kafka07.decode_request(dispatch.frame)
    outer = kafka07.decode(request.message_set, deep=False)
    assert all(len(row.value) <= 100 for row in outer)
    assert [bytes(row.value) for row in kafka07.decode(request.message_set)] == [values[0], values[1], values[3]]
    assert dispatch.waiters == [values[0], values[1], values[3]]
    with pytest.raises(EncodeError, match="101 bytes"):
        outbox().add(Target(1, 0), "t", bytes(101), None, now=0)
