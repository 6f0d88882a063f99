"""Streams groups of the embedded broker: topics that it creates, rights, restarts, what `kc.log` reads."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import kafkacodec as kc
from kafkacodec import client
from tests.acl_scripts import Client
from tests.broker_wire import wire_to
from tests.differential.streams_members import ROLES, part, topic, topology

AT_ONCE = {"group.streams.assignment.interval.ms": 0}
RIGHTS = [("group", "words", "read"), ("topic", "lines", "describe"), ("topic", "words-", "describe")]


def words(lines: str = "lines") -> dict[str, Any]:
    """Counts of words: lines are split, and repartitioned by word."""
    return topology(
        part("0", lines, repartition_sink_topics=["words-repartition"]),
        part("1", repartition_source_topics=[topic("words-repartition", retention_ms="-1")],
             state_changelog_topics=[topic("words-changelog", cleanup_policy="compact")]),
    )  # fmt: skip


def beat(wire: Any, epoch: int, made: Any = None, member: str = "a", **fields: Any) -> Any:
    first = {"rebalance_timeout_ms": 60_000, "process_id": member, "topology": made, **{role: [] for role in ROLES}}
    fields = {**(first if epoch == 0 else {}), **fields}
    return wire.ask("StreamsGroupHeartbeat", 1, group_id="words", member_id=member, member_epoch=epoch, **fields)


def level(broker: kc.broker.Broker) -> Any:
    with client.Admin(broker.bootstrap_servers) as admin:
        return admin.describe_features()["streams.version"].finalized


def test_internal_topics_are_created_and_the_feature_turned_on(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, topics={"lines": 3}, config=AT_ONCE) as broker, wire_to(broker) as wire:
        assert level(broker) is None
        joined = beat(wire, 0, words())
        assert ([row.status_code for row in joined.status], joined.active_tasks) == ([3], [])
        ready = beat(wire, joined.member_epoch)
        assert [(row.subtopology_id, row.partitions) for row in ready.active_tasks] == [
            ("0", [0, 1, 2]), ("1", [0, 1, 2]),
        ]  # fmt: skip
        assert level(broker) == 1
        with client.Admin(broker.bootstrap_servers) as admin:
            found = admin.describe_topics(["words-repartition", "words-changelog"])
            assert {name: len(row.partitions) for name, row in found.items()} == dict.fromkeys(found, 3)
            configs = admin.describe_configs([("topic", "words-changelog")])
            assert next(iter(configs.values()))["cleanup.policy"].value == "compact"
    assert stored(tmp_path) == [("lines", [0, 1, 2]), ("words-repartition", [0, 1, 2])]
    with kc.broker.serve(tmp_path, config=AT_ONCE) as broker, wire_to(broker) as wire:
        assert beat(wire, ready.member_epoch).error_code == 0
        assert level(broker) == 1
        with client.Admin(broker.bootstrap_servers) as admin:
            group = admin.describe_streams_groups("words")["words"]
        assert (group.state, len(group.members[0].assignment.active)) == ("Stable", 6)


def stored(data: Path) -> list[tuple[str, list[int]]]:
    """What the only member of the only group has, as its records say."""
    (group,) = kc.log.read_consumer_groups(data)
    (member,) = group.members
    assert (group.group, group.kind, member.topics) == ("words", "streams", ["lines", "words-repartition"])
    return [(owned.topic, owned.partitions) for owned in member.owned]


def test_a_task_of_several_topics_has_the_partitions_that_exist(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, topics={"two": 2, "three": 3}, config=AT_ONCE) as broker, wire_to(broker) as wire:
        beat(wire, 0, topology(part("0", "two", "three")))
    (group,) = kc.log.read_consumer_groups(tmp_path)
    owned = {owned.topic: owned.partitions for owned in group.members[0].owned}
    assert owned == {"two": [0, 1], "three": [0, 1, 2]}


def test_topics_that_cannot_be_created_are_explained() -> None:
    with kc.broker.serve(topics={"lines": 3}, config=AT_ONCE) as broker, wire_to(broker) as wire:
        wrong = topic("words-changelog", cleanup_policy="odd")
        joined = beat(wire, 0, topology(part("0", "lines", state_changelog_topics=[wrong])))
        assert [row.status_code for row in joined.status] == [3]
        assert "words-changelog" in joined.status[0].status_detail
        assert "Creation failed" in joined.status[0].status_detail
        refused = beat(wire, 0, topology(part("0", "__consumer_offsets")))
        assert (refused.error_code, "__consumer_offsets" in refused.error_message) == (130, True)


def test_internal_topics_need_a_right_to_create_them() -> None:
    config = {**AT_ONCE, "super.users": "User:admin"}
    listen = "kafka+sasl://127.0.0.1:0"
    users = {"admin": "secret", "app": "secret"}
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_password": "secret"}
    with kc.broker.serve(topics={"lines": 1}, listen=listen, users=users, config=config, authorizer=True) as broker:

        def allow(*rights: tuple[str, str, str]) -> None:
            with client.Admin(broker.bootstrap_servers, sasl_plain_username="admin", **login) as admin:
                admin.create_acls(
                    [client.Acl(kind, name, "User:app", op, pattern_type="prefixed") for kind, name, op in rights]
                )

        allow(*RIGHTS)
        with closing(Client(broker.bootstrap_servers, "app", "secret")) as wire:
            joined = beat(wire, 0, words())
            missing = "Unauthorized to CREATE on topics words-changelog, words-repartition"
            assert missing in joined.status[0].status_detail
            allow(("topic", "words-", "create"))
            beat(wire, joined.member_epoch)
            assert beat(wire, joined.member_epoch).active_tasks
