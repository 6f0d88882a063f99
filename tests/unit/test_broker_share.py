"""Share groups of the embedded broker: this library's share consumer, restarts, locks, what `kc.log` reads."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import client
from tests.broker_wire import wire_to
from tests.patience import SOON

QUICK = {"group.share.heartbeat.interval.ms": 200}


def explicit(broker: Any, group: str = "g", **options: Any) -> Any:
    return client.ShareConsumer(
        "jobs", bootstrap_servers=broker.bootstrap_servers, group_id=group, share_acknowledgement_mode="explicit",
        **options,
    )  # fmt: skip


def from_the_start(broker: Any, group: str = "g", **settings: str) -> None:
    wanted = {"share.auto.offset.reset": "earliest"} | {name.replace("_", "."): v for name, v in settings.items()}
    with client.Admin(broker.bootstrap_servers) as admin:
        admin.incremental_alter_configs({client.ConfigResource("group", group): wanted})


def read(consumer: Any, count: int) -> dict[bytes, int]:
    """Values, and how often they were delivered; they stay unacknowledged."""
    found: list[Any] = []
    while len(found) < count:
        records = consumer.getmany(SOON)
        assert records, f"{len(found)} of {count} came"
        found += records
    return {record.value: record.delivery_count for record in found}


def say(consumer: Any, count: int, **kinds: str) -> dict[bytes, int]:
    """Read records and acknowledge them, each in its way."""
    found: list[Any] = []
    while len(found) < count:
        records = consumer.getmany(SOON)
        assert records, f"{len(found)} of {count} came"
        for record in records:
            consumer.acknowledge(record, kinds.get(record.value.decode(), "accept"))
        found += records
    assert set(consumer.commit().values()) == {None}
    return {record.value: record.delivery_count for record in found}


def test_released_records_come_again_and_rejected_ones_do_not() -> None:
    with kc.broker.serve(topics=["jobs"], config=QUICK) as broker:
        from_the_start(broker)
        broker.write("jobs", [(None, value) for value in (b"a", b"b", b"c", b"d")])
        with explicit(broker) as consumer:
            assert say(consumer, 4, b="release", c="reject") == dict.fromkeys((b"a", b"b", b"c", b"d"), 1)
            assert say(consumer, 1) == {b"b": 2}
            broker.write("jobs", [(None, b"e")])
            assert say(consumer, 1) == {b"e": 1}
            with client.Admin(broker.bootstrap_servers) as admin:
                found = admin.list_share_group_offsets("g")["jobs", 0]
                assert (found.start_offset, found.lag) == (4, 0)  # as last written, and what is done after that
                assert {name: row.state for name, row in admin.list_groups().items()} == {"g": "Stable"}
                with pytest.raises(kc.ItemErrors):
                    admin.delete_groups(["g"])


def test_a_group_has_its_own_limit_of_deliveries() -> None:
    with kc.broker.serve(topics=["jobs"], config=QUICK) as broker:
        from_the_start(broker)
        broker.write("jobs", [(None, b"a")])
        with explicit(broker) as consumer:
            assert say(consumer, 1, a="release") == {b"a": 1}
            from_the_start(broker, share_delivery_count_limit="2")
            assert say(consumer, 1, a="release") == {b"a": 2}
            broker.write("jobs", [(None, b"b")])
            assert say(consumer, 1) == {b"b": 1}


def test_what_was_said_survives_a_restart(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, topics=["jobs"], config=QUICK) as broker:
        from_the_start(broker)
        broker.write("jobs", [(None, value) for value in (b"a", b"b", b"c")])
        with explicit(broker) as consumer:
            say(consumer, 3, b="release")
            assert read(consumer, 1) == {b"b": 2}
        (group,) = kc.log.read_consumer_groups(tmp_path)
        assert (group.group, group.kind, group.members) == ("g", "share", [])
    with kc.broker.serve(tmp_path, config=QUICK) as broker, explicit(broker) as consumer:
        broker.write("jobs", [(None, b"d")])
        assert read(consumer, 2) == {b"b": 3, b"d": 1}


def test_locks_end_with_the_broker_s_clock() -> None:
    with kc.broker.serve(topics=["jobs"], config=QUICK, clock="manual") as broker:
        from_the_start(broker)
        broker.write("jobs", [(None, b"a")])
        with explicit(broker, "g") as consumer:
            assert read(consumer, 1) == {b"a": 1}
            with explicit(broker, "g") as other:
                assert other.getmany(0.5) == []
                broker.advance(29)
                assert other.getmany(0.5) == []
                broker.advance(2)
                assert read(other, 1) == {b"a": 2}


def test_every_lock_ends_when_it_was_to_end() -> None:
    with kc.broker.serve(topics=["jobs"], clock="manual") as broker, wire_to(broker) as wire:
        from_the_start(broker)
        topic = joined(wire, "m")
        for epoch in range(3):
            broker.write("jobs", [(None, b"a")])
            found = fetch(wire, "m", topic, share_session_epoch=epoch)
            assert acquired(found) == [(epoch, epoch, 1)]
            broker.advance(10)
        for epoch in range(3):  # after 30, 40 and 50 seconds
            found = fetch(wire, "m", topic, share_session_epoch=3 + epoch)
            assert acquired(found) == [(epoch, epoch, 2)]
            broker.advance(10)


def test_a_connection_that_ends_frees_what_it_had() -> None:
    with kc.broker.serve(topics=["jobs"]) as broker:
        from_the_start(broker)
        broker.write("jobs", [(None, b"a")])
        with wire_to(broker) as other:
            with wire_to(broker) as wire:
                topic = joined(wire, "m")
                assert acquired(fetch(wire, "m", topic)) == [(0, 0, 1)]
                joined(other, "n")
                sent = other.send("ShareFetch", 1, **fetching("n", topic))
            assert acquired(other.receive(sent)) == [(0, 0, 2)]


def test_a_session_that_ends_frees_only_what_its_broker_gave() -> None:
    with kc.broker.serve(brokers=2, topics={"jobs": 2}) as broker, ExitStack() as stack:
        from_the_start(broker)
        with client.Producer(broker.bootstrap_servers) as producer:
            for number in (0, 1):
                producer.send("jobs", b"a", partition=number)
        servers = [SimpleNamespace(bootstrap_servers=server) for server in broker.bootstrap_servers.split(",")]
        wires = {number: stack.enter_context(wire_to(server)) for number, server in enumerate(servers, 1)}
        found = wires[1].ask("FindCoordinator", 4, key_type=0, coordinator_keys=["g"])
        topic = joined(wires[found.coordinators[0].node_id], "m")
        first, second = (wires[broker.leader("jobs", number)] for number in (0, 1))
        assert first is not second
        for number, wire in enumerate((first, second)):
            rows = [{"topic_id": topic, "partitions": [{"partition_index": number}]}]
            assert acquired(fetch(wire, "m", topic, topics=rows)) == [(0, 0, 1)]
        member = {"group_id": "g", "member_id": "m", "share_session_epoch": -1}
        assert first.ask("ShareAcknowledge", 1, **member).error_code == 0
        said = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
        rows = [{"topic_id": topic, "partitions": [{"partition_index": 1, "acknowledgement_batches": [said]}]}]
        answer = second.ask("ShareAcknowledge", 1, **member, topics=rows)
        assert [row.error_code for row in answer.responses[0].partitions] == [0]


@pytest.mark.parametrize("stops", [False, True])
def test_what_was_acquired_from_a_leader_is_free_at_the_next(stops: bool) -> None:
    """The clock stands still, so no lock ends. What was released before is known to have been delivered."""
    with kc.broker.serve(brokers=2, topics=["jobs"], clock="manual") as broker, ExitStack() as stack:
        from_the_start(broker)
        for value in (b"a", b"b"):
            broker.write("jobs", [(None, value)])
        servers = [SimpleNamespace(bootstrap_servers=server) for server in broker.bootstrap_servers.split(",")]
        wires = {number: stack.enter_context(wire_to(server)) for number, server in enumerate(servers, 1)}
        before = broker.leader("jobs", 0)
        after = 3 - before
        found = wires[after].ask("FindCoordinator", 4, key_type=0, coordinator_keys=["g"])
        coordinator = found.coordinators[0].node_id
        topic = joined(wires[coordinator], "m")
        assert acquired(fetch(wires[before], "m", topic)) == [(0, 1, 1)]
        said = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [2]}
        rows = [{"topic_id": topic, "partitions": [{"partition_index": 0, "acknowledgement_batches": [said]}]}]
        told = {"group_id": "g", "member_id": "m", "share_session_epoch": 1, "topics": rows}
        assert wires[before].ask("ShareAcknowledge", 1, **told).error_code == 0
        assert acquired(fetch(wires[before], "m", topic, share_session_epoch=2)) == [(0, 0, 2)]
        if stops:
            broker.stop_broker(before)
        else:
            broker.move_leader("jobs", 0, after)
        assert acquired(fetch(wires[after], "n", topic)) == [(0, 0, 2), (1, 1, 1)]


def joined(wire: Any, member: str) -> Any:
    """Join until the topic is assigned; its id."""
    wire.ask("ShareGroupHeartbeat", 1, group_id="g", member_id=member, member_epoch=0, subscribed_topic_names=["jobs"])
    beat = {"group_id": "g", "member_id": member, "subscribed_topic_names": ["jobs"]}
    answer = wire.ask("ShareGroupHeartbeat", 1, member_epoch=0, **beat)
    return answer.assignment.topic_partitions[0].topic_id


def fetching(member: str, topic: Any, **fields: Any) -> dict[str, Any]:
    rows = [{"topic_id": topic, "partitions": [{"partition_index": 0}]}]
    limits = {"max_wait_ms": 20_000, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}
    return {"group_id": "g", "member_id": member, "share_session_epoch": 0, "topics": rows} | limits | fields


def fetch(wire: Any, member: str, topic: Any, **fields: Any) -> Any:
    return wire.ask("ShareFetch", 1, **fetching(member, topic, **fields))


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    rows = [row for topic in answer.responses for part in topic.partitions for row in part.acquired_records]
    return [(row.first_offset, row.last_offset, row.delivery_count) for row in rows]


def test_only_what_was_given_out_is_sent() -> None:
    with kc.broker.serve(topics=["jobs"]) as broker, wire_to(broker) as wire:
        from_the_start(broker)
        for value in (b"a", b"b", b"c"):
            broker.write("jobs", [(None, value)])
        answer = fetch(wire, "m", joined(wire, "m"), max_records=1)
        assert kc.decode(answer.responses[0].partitions[0].records)["value"].tolist() == [b"a"]


def test_a_fetch_of_no_bytes_gets_no_records() -> None:
    with kc.broker.serve(topics=["jobs"]) as broker, wire_to(broker) as wire:
        from_the_start(broker)
        broker.write("jobs", [(None, b"a")])
        topic = joined(wire, "m")
        assert acquired(fetch(wire, "m", topic, max_bytes=0, max_wait_ms=1)) == []
        assert acquired(fetch(wire, "m", topic, share_session_epoch=1)) == [(0, 0, 1)]


def test_a_session_without_partitions_has_nothing_to_wait_for() -> None:
    with kc.broker.serve(topics=["jobs"]) as broker, wire_to(broker) as wire:
        topic = joined(wire, "m")
        assert not fetch(wire, "m", topic, topics=[], max_wait_ms=60_000).responses


def test_a_coordinator_that_refuses_lets_the_partition_be_read_anew() -> None:
    """Offsets that were altered count for those who still read once what they say is refused."""
    with kc.broker.serve(topics=["jobs"]) as broker, wire_to(broker) as wire:
        from_the_start(broker)
        broker.write("jobs", [(None, value) for value in (b"a", b"b", b"c")])
        topic = joined(wire, "m")
        assert acquired(fetch(wire, "m", topic)) == [(0, 2, 1)]
        wire.ask("ShareGroupHeartbeat", 1, group_id="g", member_id="m", member_epoch=-1)
        row = {"partition_index": 0, "start_offset": 1}
        asked = {"group_id": "g", "topics": [{"topic_name": "jobs", "partitions": [row]}]}
        assert wire.ask("AlterShareGroupOffsets", 0, **asked).responses[0].partitions[0].error_code == 0
        said = {"first_offset": 0, "last_offset": 2, "acknowledge_types": [1]}
        rows = [{"topic_id": topic, "partitions": [{"partition_index": 0, "acknowledgement_batches": [said]}]}]
        told = {"group_id": "g", "member_id": "m", "share_session_epoch": 1, "topics": rows}
        assert wire.ask("ShareAcknowledge", 1, **told).responses[0].partitions[0].error_code == 6
        assert acquired(fetch(wire, "m", topic)) == [(1, 2, 1)]


@pytest.mark.parametrize("reset", ["none", "by_duration:x", "by_duration:P", "by_duration:-PT1H", "Earliest"])
def test_where_a_group_cannot_begin(reset: str) -> None:
    with kc.broker.serve() as broker, pytest.raises(kc.ItemErrors) as raised:
        from_the_start(broker, share_auto_offset_reset=reset)
    assert {error.code for error in raised.value.exceptions} == {40}


def test_a_group_begins_some_time_ago() -> None:
    with kc.broker.serve(topics=["jobs"]) as broker, wire_to(broker) as wire:
        from_the_start(broker, share_auto_offset_reset="by_duration:PT1H30M")
        now = int(time.time() * 1000)
        for ago in (7_200_000, 3_600_000):
            broker.write("jobs", [kc.Record(0, now - ago, 0, None, b"a", ())])
        assert acquired(fetch(wire, "m", joined(wire, "m"))) == [(1, 1, 1)]
