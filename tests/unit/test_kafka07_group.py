"""What a consumer of Kafka 0.7 decides, without I/O: its share of the partitions, what it fetches and commits."""

from __future__ import annotations

import pytest

from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07 import (
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    OffsetsRequest,
    OffsetsResponse,
    _decoder,
)
from kafkacodec.dialects.kafka07.fetching import Begun, Chunk, Failed, Fetches
from kafkacodec.dialects.kafka07.positions import Place, Positions
from kafkacodec.dialects.kafka07.rebalance import (
    Claim,
    Member,
    Read,
    ReadOffsets,
    Release,
    Start,
    Stop,
    Wait,
    rebalance,
)
from kafkacodec.dialects.zookeeper import Registry, Static, Whitelist
from kafkacodec.errors import (
    BrokerError,
    ConnectionFailed,
    CrcMismatch,
    DecodeError,
    LimitExceeded,
)
from kafkacodec.records.compression import compress

A, B = Place("t", 1, 0), Place("t", 1, 1)


def tree(members, topics, brokers=(1, 2), **more):
    nodes = {f"/brokers/ids/{b}": f"x:127.0.0.1:{b}" for b in brokers}
    nodes |= {f"/brokers/topics/{t}/{b}": str(n) for t, b, n in topics}
    nodes |= {f"/consumers/g/ids/{name}": content for name, content in members.items()}
    return Registry({**nodes, **more})


def member(name="g_a", subscription=None):
    return Member("g", name, subscription or Static({"t": 1}))


class World:
    """Answers the steps of a rebalance, and notes them."""

    def __init__(self, registry, offsets=None, taken=()):
        self.registry, self.offsets, self.taken, self.steps = registry, offsets or {}, set(taken), []

    def answer(self, step):
        self.steps.append(step)
        match step:
            case Read():
                return self.registry
            case ReadOffsets(places):
                return {place: self.offsets.get(place) for place in places}
            case Claim(node):
                return node.path not in self.taken
        return None

    def run(self, member, retries=4):
        steps = rebalance(member, retries=retries, backoff_ms=2000)
        try:
            step = next(steps)
            while True:
                step = steps.send(self.answer(step))
        except StopIteration:
            return [type(step).__name__ for step in self.steps]


def test_a_rebalance_reads_stops_releases_claims_and_starts():
    world = World(tree({"g_a": '{"t": 1}'}, [("t", 1, 2), ("t", 2, 1)]), {A: 5})
    who = member()
    assert world.run(who) == ["Read", "Stop", "Release", "Claim", "Claim", "Claim", "ReadOffsets", "Start"]
    assert [node.path for node in who.owned] == [f"/consumers/g/owners/t/{p}" for p in ("1-0", "1-1", "2-0")]
    assert {node.data for node in who.owned} == {"g_a-0"}
    assert world.steps[-1] == Start({A: 5, B: None, Place("t", 2, 0): None})
    again = World(world.registry, {})
    again.run(who)
    assert again.steps[2] == Release(who.owned)


def test_shares_are_those_that_every_member_of_0_7_computes():
    members = {"g_a": '{ "t": 2 }', "g_b": '{"t": 1,"u": 1}', "g_c": "{}", "g_d": "*1*t|v"}
    registry = tree(members, [("t", 2, 2), ("t", 10, 3), ("u", 2, 1)])
    found = {}
    for name, subscription in (
        ("g_a", Static({"t": 2})), ("g_b", Static({"t": 1, "u": 1})), ("g_d", Whitelist("t|v", 1))
    ):  # fmt: skip
        for node in member(name, subscription).share(registry):
            found[node.topic, f"{node.broker_id}-{node.partition}"] = node.thread
    # 10-0, 10-1, 10-2, 2-0, 2-1 among g_a-0, g_a-1, g_b-0, g_d-0, as text
    assert found == {
        ("t", "10-0"): "g_a-0", ("t", "10-1"): "g_a-0", ("t", "10-2"): "g_a-1", ("t", "2-0"): "g_b-0",
        ("t", "2-1"): "g_d-0", ("u", "2-0"): "g_b-0",
    }  # fmt: skip


def test_a_conflict_frees_what_was_claimed_and_waits():
    world = World(tree({"g_a": '{"t":1}'}, [("t", 1, 3)]), taken=["/consumers/g/owners/t/1-1"])
    who = member()
    with pytest.raises(BrokerError, match="2 tries: /consumers/g/owners/t/1-1 is still owned"):
        world.run(who, retries=2)
    once = ["Read", "Stop", "Release", "Claim", "Claim", "Release", "Wait"]
    assert [type(step).__name__ for step in world.steps] == once * 2
    assert [node.path for node in world.steps[5].nodes] == ["/consumers/g/owners/t/1-0"]
    assert world.steps[6] == Wait(2000, "/consumers/g/owners/t/1-1 is still owned by another member")
    assert who.owned == ()


@pytest.mark.parametrize(
    "broken",
    [
        {"/consumers/g/ids/g_x": '{"t": 1.0}'},
        {"/consumers/g/ids/g_x": '{"t": "1"}'},
        {"/consumers/g/ids/g_x": '{"t": 0}'},
        {"/consumers/g/ids/g_x": '{"t": 1,}'},
        {"/consumers/g/ids/g_x": ""},
        {"/brokers/topics/t/3": " 2"},
    ],
)
def test_a_node_on_which_all_must_agree_and_that_nobody_can_read_fails_every_try(broken):
    world = World(tree({"g_a": '{"t":1}'}, [("t", 1, 1)], **broken))
    with pytest.raises(BrokerError, match=r"not an integer|invalid"):
        world.run(member(), retries=1)
    assert [type(step).__name__ for step in world.steps] == ["Read", "Stop", "Release", "Stop", "Wait"]


def test_nodes_of_other_groups_and_topics_do_no_harm():
    broken = {
        "/consumers/h/ids/x": "?",
        "/brokers/topics/u/1": "?",
        "/brokers/ids/7": "h:1 ",
        "/brokers/ids/8": "a:b:9:c",
    }
    world = World(tree({"g_a": '{"t":1}'}, [("t", 1, 1)], **broken))
    assert world.run(member())[-1] == "Start"
    assert world.registry.brokers[8].port == 9


def test_a_topic_without_partitions_or_not_there_yet_is_fine():
    for topics in ([], [("t", 1, 0)]):
        world = World(tree({"g_a": '{"t":1}'}, topics))
        assert world.run(member())[-1] == "Start"
        assert world.steps[-1] == Start({})


def test_more_threads_than_partitions_leave_the_last_ones_without():
    registry = tree({"g_a": '{"t":1}', "g_b": '{"t":1}'}, [("t", 1, 1)])
    assert len(member("g_a").share(registry)) == 1
    assert member("g_b").share(registry) == ()


def test_a_lost_connection_is_a_failed_try():
    steps = rebalance(member(), retries=2, backoff_ms=1)
    assert isinstance(next(steps), Read)
    assert isinstance(steps.throw(ConnectionFailed("gone", sent=True)), Stop)
    assert steps.send(None) == Wait(1, "gone")
    assert isinstance(steps.send(None), Read)


def test_a_committed_offset_that_is_no_number_gives_everything_back():
    steps = rebalance(member(), retries=1, backoff_ms=1)
    world = World(tree({"g_a": '{"t":1}'}, [("t", 1, 1)]))
    step = next(steps)
    while not isinstance(step, ReadOffsets):
        step = steps.send(world.answer(step))
    step = steps.throw(DecodeError("' 5' is not an integer"))
    assert [node.path for node in step.nodes] == ["/consumers/g/owners/t/1-0"]


# Positions


def test_what_was_handed_out_is_consumed_when_the_next_is_asked_for():
    positions = Positions()
    positions.assign({A: 10, B: None})
    assert (positions.next_offset(A), positions.next_offset(B), positions.to_commit()) == (10, None, {})
    positions.begin(B, 0)
    assert positions.to_commit() == {B: 0}  # a start is committed, too
    positions.hand_out(A, 30)
    assert (positions.next_offset(A), positions.to_commit()) == (30, {B: 0})
    positions.consume()
    assert positions.to_commit() == {A: 30, B: 0}
    positions.committed(A, 30)
    assert positions.to_commit() == {B: 0}


def test_a_partition_that_is_kept_goes_on_and_one_that_others_read_meanwhile_does_not():
    positions = Positions()
    positions.assign({A: 10, B: 10})
    for place in (A, B):
        positions.hand_out(place, 30)
    positions.assign({A: 10, B: 50})
    assert (positions.next_offset(A), positions.next_offset(B)) == (30, 50)
    positions.assign({})
    assert positions.places == []
    positions.assign({A: 10, B: 50})
    assert (positions.next_offset(A), positions.next_offset(B)) == (30, 50)


# Fetching

SET = kafka07.encode_messages([b"a", b"bc"])


def fetches(offsets, **options):
    settings = {"reset": "smallest", "fetch_size": 1000, "max_fetch_size": 2000, **options}
    return Fetches(offsets, offsets.get, **settings)


def answer(*parts):
    return MultiFetchResponse(0, [FetchResponse(*part) for part in parts])


def test_a_round_asks_for_every_partition_and_for_unknown_positions_first():
    offsets = {A: None, B: 7}
    machine = fetches(offsets)
    request = machine.next(())
    assert request == OffsetsRequest("t", 0, -2, 1)
    assert machine.answered(request, OffsetsResponse(0, (3,))) == [Begun(A, 3, False)]
    offsets[A] = 3
    request = machine.next(())
    assert request == MultiFetchRequest([FetchRequest("t", 0, 3, 1000), FetchRequest("t", 1, 7, 1000)])
    (chunk,) = machine.answered(request, answer((0, SET + SET[:5]), (0, b"")))
    assert (chunk.place, chunk.following, [bytes(row.value) for row in chunk.columns]) == (
        A,
        3 + len(SET),
        [b"a", b"bc"],
    )
    assert not machine.is_idle
    assert [part.partition for part in machine.next([A]).requests] == [1]
    assert fetches({A: None}, reset="largest").next(()) == OffsetsRequest("t", 0, -1, 1)


def test_it_is_idle_when_nobody_had_anything():
    machine = fetches({A: 0, B: 0})
    request = machine.next(())
    assert machine.answered(request, answer((0, b""), (0, b""))) == []
    assert machine.is_idle


def test_an_offset_out_of_range_is_reset_a_round_later():
    machine = fetches({A: 99})
    request = machine.next(())
    assert machine.answered(request, answer((1, b""))) == []
    assert not machine.is_idle
    request = machine.next(())
    assert request == OffsetsRequest("t", 0, -2, 1)
    assert machine.answered(request, OffsetsResponse(0, (40,))) == [Begun(A, 40, True)]
    machine = fetches({A: 99}, reset="none")
    (failed,) = machine.answered(machine.next(()), answer((1, b"")))
    assert isinstance(failed, Failed)
    assert machine.next(()) is None


def test_a_message_that_does_not_fit_is_asked_for_with_its_size():
    machine = fetches({A: 0}, fetch_size=8)
    big = kafka07.encode_messages([bytes(500)])
    for size, sent in ((8, big[:8]), (len(big), big)):
        request = machine.next(())
        assert request.requests[0].max_size == size
        found = machine.answered(request, answer((0, sent)))
        assert not machine.is_idle
    assert found[0].following == len(big)
    assert machine.next(()).requests[0].max_size == 8
    machine = fetches({A: 0}, fetch_size=3)  # not even its length: a client of 0.7 asks again forever
    machine.answered(machine.next(()), answer((0, big[:3])))
    assert machine.next(()).requests[0].max_size == 7
    machine = fetches({A: 0}, max_fetch_size=400, fetch_size=8)
    (failed,) = machine.answered(machine.next(()), answer((0, big[:8])))
    assert isinstance(failed.error, LimitExceeded)


def test_damage_fails_its_partition_after_what_is_before_it_and_no_other():
    bad = bytearray(SET)
    bad[-1] ^= 1
    offsets = {A: 0, B: 0}
    machine = fetches(offsets)
    one, other = machine.answered(machine.next(()), answer((0, bytes(bad)), (0, SET)))
    assert ([bytes(r.value) for r in one.columns], one.following, len(other.columns)) == ([b"a"], 11, 2)
    offsets[A] = 11
    request = machine.next(())
    order = [part.partition for part in request.requests]
    parts = {0: (0, bytes(bad[11:])), 1: (3, b"")}
    failed = machine.answered(request, answer(*(parts[p] for p in order)))
    assert {one.place: type(one.error) for one in failed} == {A: CrcMismatch, B: BrokerError}


def test_an_answer_has_limits():
    places = [Place("t", 1, i) for i in range(100)]
    machine = fetches(dict.fromkeys(places, 0), fetch_size=1 << 20, max_fetch_size=1 << 20)
    seen = set()
    for _ in range(2):
        assert not machine.is_idle
        request = machine.next(())
        assert sum(part.max_size for part in request.requests) <= 64 << 20
        seen |= {part.partition for part in request.requests}
        machine.answered(request, answer(*[(0, b"")] * len(request.requests)))
    assert seen == set(range(100))
    assert machine.is_idle


def test_a_container_of_nothing_is_passed_over():
    machine = fetches({A: 0})
    empty = _decoder.encode_message(compress(1, b"", magic=1), 1, 1)
    (chunk,) = machine.answered(machine.next(()), answer((0, empty)))
    assert isinstance(chunk, Chunk)
    assert (len(chunk.columns), chunk.following) == (0, len(empty))
