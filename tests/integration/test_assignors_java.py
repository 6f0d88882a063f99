"""What the assignors assign, beside Kafka's own."""

from __future__ import annotations

import random

import pytest

from kafkacodec.assignment.assignor import MemberSubscription
from kafkacodec.assignment.assignors import ASSIGNORS
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.assignment.sticky import withhold_moving
from tests.integration import kafka_jvm

pytestmark = pytest.mark.java
CASES = 400


def subscription(name, topics, owned=(), generation=-1, instance=None):
    """A member as its assignor makes it; eager members send what they had in the user data only."""
    data = ASSIGNORS[name]().user_data(topics, owned, generation)
    kept = tuple(owned) if name == "cooperative-sticky" else ()
    return MemberSubscription(tuple(topics), kept, generation if kept else -1, data, instance)


def line(name, counts, members, owned, generation):
    words = [name, ",".join(f"{topic}={count}" for topic, count in counts.items()) or "-"]
    for member, made in members.items():
        places = ",".join(f"{topic}-{number}" for topic, number in owned.get(member, ())) or "-"
        words.append(f"{member}|{made.group_instance_id or '-'}|{generation}|{','.join(made.topics) or '-'}|{places}")
    return " ".join(words)


def parsed(text):
    found = {}
    for word in text.split(" "):
        member, _, places = word.partition("|")
        pairs = (place.rsplit("-", 1) for place in places.split(",") if place != "-")
        found[member] = [TopicPartition(topic, int(number)) for topic, number in pairs]
    return found


def in_java(lines):
    return [parsed(text) for text in kafka_jvm.tool(program="AssignTool", text="\n".join(lines))]


def topics_and_members(rnd, same):
    counts = {f"t{n}": rnd.randrange(1, 9) for n in range(rnd.randrange(1, 6))}
    wanted = [*counts, "missing"]
    names = rnd.sample(["a", "b", "B", "c-1", "c-10", "c-2", "zé", "z\ue000", "z\U0001f600", "Z"], rnd.randrange(1, 8))
    all_of_them = rnd.sample(wanted, rnd.randrange(1, len(wanted) + 1))
    return counts, {
        name: (all_of_them if same else rnd.sample(wanted, rnd.randrange(0, len(wanted) + 1)), static)
        for name, static in zip(names, rnd.choices([None, None, *"xyzw"], k=len(names)), strict=True)
    }


def in_sets(assigned):
    """Without the order of a member's partitions, which means nothing."""
    assert all(len(places) == len(set(places)) for places in assigned.values())
    return {member: set(places) for member, places in assigned.items()}


def test_range_and_round_robin_are_kafkas():
    rnd, cases = random.Random(5), []
    for n in range(CASES):
        counts, members = topics_and_members(rnd, same=n % 3 == 0)
        used = {}
        for name in ("range", "roundrobin"):
            # Two static members of one instance id cannot be.
            made = {
                member: subscription(
                    name, topics, instance=static if used.setdefault(static, member) == member else None
                )
                for member, (topics, static) in members.items()
            }
            cases.append((name, counts, made))
    found = in_java([line(name, counts, made, {}, -1) for name, counts, made in cases])
    for (name, counts, made), expected in zip(cases, found, strict=True):
        assert in_sets(ASSIGNORS[name]().assign(counts, made)) == in_sets(expected)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_the_sticky_assignors_are_kafkas_where_those_do_not_depend_on_hash_codes(name):
    """All members want the same, and had nothing, or what is left after one of them went away and it comes out even."""
    rnd, cases = random.Random(7), []
    for _ in range(CASES):
        counts, members = topics_and_members(rnd, same=True)
        cases.append((counts, {m: subscription(name, topics) for m, (topics, _) in members.items()}, {}, -1))
    for _ in range(CASES):
        count, share = rnd.randrange(2, 7), rnd.randrange(1, 6)
        counts = {"t": count * share}
        names = [f"m{n}" for n in range(count + 1)]
        first = ASSIGNORS[name]().assign(counts, {m: subscription(name, ["t"]) for m in names})
        del first[rnd.choice(names)]
        made = {m: subscription(name, ["t"], places, 3) for m, places in first.items()}
        cases.append((counts, made, first, 3))
    found = in_java([line(name, *case) for case in cases])
    for (counts, made, _, _), expected in zip(cases, found, strict=True):
        assigned = ASSIGNORS[name]().assign(counts, made)
        if name == "cooperative-sticky":
            assigned = withhold_moving(assigned, made)
        assert in_sets(assigned) == in_sets(expected)


def test_a_cooperative_rebalance_moves_as_few_partitions_as_kafkas():
    """Of members that had a balanced assignment, and of which some left and others came.

    Members that want different topics can be made even in several ways, so that only the sums are compared.
    """
    rnd, cases = random.Random(11), []
    name = "cooperative-sticky"
    for n in range(CASES):
        counts, members = topics_and_members(rnd, same=n % 2 == 0)
        made = {m: subscription(name, topics) for m, (topics, _) in members.items()}
        first = ASSIGNORS[name]().assign(counts, made)
        for gone in rnd.sample(list(made), rnd.randrange(len(made))):
            del made[gone], first[gone]
        made = {m: subscription(name, made[m].topics, first[m], 3) for m in made}
        for new in range(rnd.randrange(3)):
            made[f"new{new}"] = subscription(name, rnd.choice(list(members.values()))[0])
        cases.append((counts, made, {m: places for m, places in first.items() if m in made}))
    found = in_java([line(name, counts, made, first, 3) for counts, made, first in cases])
    totals = [0, 0]
    for (counts, made, first), expected in zip(cases, found, strict=True):
        mine = withhold_moving(ASSIGNORS[name]().assign(counts, made), made)
        if len({member.topics for member in made.values()}) == 1:
            assert kept(mine, first) == kept(expected, first)
        totals[0] += kept(mine, first)
        totals[1] += kept(expected, first)
    assert totals[0] >= totals[1]


def kept(assigned, first):
    return sum(len(set(assigned[member]) & set(places)) for member, places in first.items())
