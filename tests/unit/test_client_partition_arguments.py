"""Partitions given to clients in another form than a method takes: the error says which form it takes."""

from __future__ import annotations

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.client import TopicPartition

NOBODY = "127.0.0.1:1"
PAIR = ("orders", 0)
APART = "topic and partition are two arguments, 'orders', 0, not a pair of them"
ONE_OF = "partitions are pairs, and ('orders', 0) is one of them: put it into a list, or pass it as one argument"
BY_PARTITION = "must be a dict by (topic, number), not "

CONSUMER = [
    (lambda c: c.seek(PAIR, 1), f"seek(topic, partition, offset): {APART}"),
    (lambda c: c.seek(TopicPartition(*PAIR), offset=1), APART),
    (lambda c: c.seek([PAIR], 1), APART),
    (lambda c: c.position(PAIR), f"position(topic, partition): {APART}"),
    (lambda c: c.position(partition=PAIR), APART),
    (lambda c: c.committed(PAIR), f"committed(topic, partition): {APART}"),
    (lambda c: c.committed([list(PAIR)]), APART),
    (lambda c: c.position("orders"), "position(topic, partition): missing a required argument: 'partition'"),
    (lambda c: c.assign(PAIR), ONE_OF),
    (lambda c: c.assign(TopicPartition(*PAIR)), ONE_OF),
    (lambda c: c.pause(*PAIR), ONE_OF),
    (lambda c: c.resume(*PAIR), ONE_OF),
    (lambda c: c.seek_to_beginning(*PAIR), ONE_OF),
    (lambda c: c.seek_to_end(*PAIR), ONE_OF),
    (lambda c: c.seek_to_timestamp(0, *PAIR), ONE_OF),
    (lambda c: c.beginning_offsets(PAIR), ONE_OF),
    (lambda c: c.end_offsets(PAIR), ONE_OF),
    (lambda c: c.committed_offsets(PAIR), ONE_OF),
    (lambda c: c.pause([PAIR]), "give each pair as an argument of its own"),
    (lambda c: c.assign([list(PAIR)]), "a partition is a pair of topic and number, not ['orders', 0]"),
    (lambda c: c.assign_ranges([PAIR]), f"ranges {BY_PARTITION}list"),
    (lambda c: c.offsets_for_times(PAIR), f"timestamps {BY_PARTITION}tuple"),
    (lambda c: c.commit(PAIR), f"offsets {BY_PARTITION}tuple"),
    (lambda c: c.commit({"orders": 1}), "a partition is a pair of topic and number, not 'orders'"),
    (lambda c: c.partitions_for(PAIR), "a topic must be text, not tuple"),
]

ADMIN = [
    (lambda a: a.list_offsets([PAIR]), f"partitions {BY_PARTITION}list"),
    (lambda a: a.delete_records(PAIR), f"before {BY_PARTITION}tuple"),
    (lambda a: a.alter_group_offsets("g", {"orders": 1}), "a partition is a pair of topic and number, not 'orders'"),
    (lambda a: a.delete_group_offsets("g", PAIR), ONE_OF),
    (lambda a: a.elect_leaders(PAIR), ONE_OF),
    (lambda a: a.describe_producers(PAIR), ONE_OF),
]


@pytest.fixture(scope="module")
def consumer():
    with kc.client.Consumer(bootstrap_servers=NOBODY, group_id="g") as consumer:
        yield consumer


@pytest.mark.parametrize(("call", "text"), CONSUMER)
def test_a_consumer(consumer, call, text):
    with pytest.raises(TypeError) as caught:
        call(consumer)
    assert text in str(caught.value)


@pytest.mark.parametrize(("call", "text"), CONSUMER)
async def test_a_consumer_in_an_event_loop(call, text):
    async with kc.client.aio.Consumer(bootstrap_servers=NOBODY, group_id="g") as consumer:
        with pytest.raises(TypeError) as caught:
            await call(consumer)
    assert text in str(caught.value)


@pytest.mark.parametrize(("call", "text"), ADMIN)
def test_an_admin_client(call, text):
    with kc.client.Admin(NOBODY) as admin, pytest.raises(TypeError) as caught:
        call(admin)
    assert text in str(caught.value)


def test_topics_may_be_in_anything_that_is_iterated_over():
    with kc.client.Consumer(bootstrap_servers=NOBODY) as consumer:
        for topics in (np.array(["a", "b"]), np.array(["a", "b"], object), dict.fromkeys("ab"), iter("ab")):
            consumer.subscribe(topics)
            assert consumer.subscription() == ["a", "b"]
        for none in (np.array([], str), iter(()), ()):
            with pytest.raises(ValueError, match="either topics or a pattern"):
                consumer.subscribe(none)
