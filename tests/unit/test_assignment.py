"""The arithmetic of dividing partitions: against dealing them one by one."""

import itertools
import random

import kafkacodec as kc
from kafkacodec.assignment.dividing import assign_range, assign_round_robin, deal
from kafkacodec.assignment.partitions import TopicPartition, in_order


def one_by_one(topics, members):
    """As Kafka's RoundRobinAssignor: a circle of members, who are passed over if they do not want the topic."""
    dealt = {member: [] for member in members}
    circle = itertools.cycle(members)
    for partitions, wanting in topics:
        for partition in partitions if wanting else ():
            dealt[next(member for member in circle if member in wanting)].append(partition)
    return dealt


def test_dealing_is_the_same_as_one_by_one():
    rng = random.Random(7)
    for _ in range(500):
        members = [f"m{n}" for n in range(rng.randint(1, 6))]
        topics = [
            (range(rng.randint(0, 12)), [member for member in members if rng.random() < 0.6])
            for _ in range(rng.randint(0, 5))
        ]
        assert deal(topics, members) == one_by_one(topics, members), (topics, members)


def test_strategies_without_members_or_partitions():
    for assign in (assign_range, assign_round_robin):
        assert assign([1, 2], []) == {}
        assert assign([], ["a", "b"]) == {"a": [], "b": []}
        assert assign(range(2), ["a", "b", "c"]) == {"a": [0], "b": [1], "c": []}
    assert assign_range(range(5), ["a", "b"]) == {"a": [0, 1, 2], "b": [3, 4]}
    assert assign_round_robin(range(5), ["a", "b"]) == {"a": [0, 2, 4], "b": [1, 3]}


def test_a_partition():
    assert kc.client.TopicPartition is TopicPartition
    assert in_order([("b", 0), ("a", 10), ("a", 2)]) == (("a", 2), ("a", 10), ("b", 0))
    assert str(TopicPartition("a", 2)) == "a-2"
