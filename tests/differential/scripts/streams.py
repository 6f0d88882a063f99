"""Streams groups (KIP-1071): members, their tasks, epochs and ends."""

import time

from tests.differential.streams_members import (
    StreamsMember,
    brief,
    describe,
    part,
    source,
    tasks,
    topic,
    topology,
)

HIDDEN = "status_detail", "partitions"  # which member has which task does not matter


def _configure(s, group, label, name, value):
    entry = {"name": name, "value": value, "config_operation": 0}
    resource = {"resource_type": 32, "resource_name": group, "configs": [entry]}
    s.ask("IncrementalAlterConfigs", 1, label=label, resources=[resource])
    time.sleep(1)  # the coordinator of Apache Kafka learns of it later


def one_member(s):
    t, g = source(s, partitions=2), s.name("g")
    a = StreamsMember(s, g, "a", topology(part("0", t)), 0)
    a.join()
    describe(s, g, "delayed", 0)
    a.beat("assigned", until=lambda h: h.active_tasks)
    a.own()
    describe(s, g, "stable", 0)
    describe(s, s.name("none"), "unknown", 0)
    describe(s, "", "no-name", 0)
    a.leave()
    a.beat("after-leaving", member_epoch=2)
    describe(s, g, "empty", 0)
    s.ask("DeleteGroups", 2, groups_names=[g])
    describe(s, g, "deleted", 0)


def described(s):
    t, g = source(s, partitions=3), s.name("g")
    changelog = topic(s.name("words-changelog"), cleanup_policy="compact")
    a = StreamsMember(
        s, g, "a", topology(part("0", t, state_changelog_topics=[changelog]), epoch=3), 1, rack_id="north",
        client_tags=[{"key": "zone", "value": "z1"}, {"key": "cluster", "value": "c1"}],
        user_endpoint={"host": "localhost", "port": 8080},
        task_offsets=[{"subtopology_id": "0", "partition": 1, "offset": 7}],
        task_end_offsets=[{"subtopology_id": "0", "partition": 1, "offset": 9}],
    )  # fmt: skip
    a.join()
    describe(s, g, "not-ready")
    a.beat("ready", until=lambda h: h.active_tasks)
    a.own(task_offsets=[{"subtopology_id": "0", "partition": 2, "offset": 8}])
    describe(s, g, "whole", include_topology_description=True, include_authorized_operations=True)
    describe(s, g, "version-0", 0)
    a.own("offset-twice", task_offsets=[{"subtopology_id": "0", "partition": 2, "offset": 8}] * 2)
    a.own("knows-endpoints", endpoint_information_epoch=2)
    s.ask("ListGroups", 5, types_filter=["streams"], mine=True)
    s.ask("ListGroups", 5, types_filter=["Streams"], states_filter=["stable"], mine=True)
    s.ask("ListGroups", 5, types_filter=["consumer"], mine=True)
    s.ask("DescribeGroups", 5, groups=[g])
    s.ask("ConsumerGroupDescribe", 0, group_ids=[g])


def refused(s):
    a = StreamsMember(s, s.name("g"), "a", topology(part("0", source(s))), 0)
    changes = {
        "empty-group": {"group_id": ""},
        "empty-member": {"member_id": ""},
        "no-topology": {"topology": None},
        "no-process": {"process_id": None},
        "no-rebalance-timeout": {"rebalance_timeout_ms": -1},
        "active-null": {"active_tasks": None},
        "tasks-null": {"active_tasks": None, "standby_tasks": None, "warmup_tasks": None},
        "tasks-at-first": {"active_tasks": tasks(0)},
        "epoch-minus-5": {"member_epoch": -5},
        "topology-later": {"member_epoch": 4},
        "instance-empty": {"instance_id": ""},
        "rack-empty": {"rack_id": ""},
        "away-without-instance": {"member_epoch": -2, "topology": None},
        "static": {"instance_id": "box"},
    }
    for label, change in changes.items():
        fields = {"group_id": s.name(label), "member_id": s.name("a"), "member_epoch": 0, **a.first, **change}
        s.ask("StreamsGroupHeartbeat", 0, label=label, retry=(), hide=("status_detail",), **fields)
    none = {"group_id": s.name("none"), "member_id": s.name("a")}
    for label, epoch in (("no-group", 3), ("leaves-no-group", -1)):
        s.ask("StreamsGroupHeartbeat", 1, label=label, retry=(), member_epoch=epoch, **none)
    nobody = {"group_id": s.name("static"), "member_id": "nobody"}
    for label, epoch in (("no-member", 3), ("leaves-nobody", -1)):
        s.ask("StreamsGroupHeartbeat", 1, label=label, retry=(), member_epoch=epoch, **nobody)


def two_members(s):
    t, g = source(s, partitions=4), s.name("g")
    made = topology(part("0", t))
    a, b = StreamsMember(s, g, "a", made), StreamsMember(s, g, "b", made)
    a.start()
    b.join()
    describe(s, g, "b-waits", pick=brief)
    a.beat("told-to-revoke")
    a.own("still-owns")
    describe(s, g, "revoking", pick=brief)
    a.beat("has-revoked", active_tasks=tasks(0, 1), standby_tasks=[], warmup_tasks=[])
    b.beat("gets-the-rest")
    b.own()
    describe(s, g, "stable", pick=brief)
    b.leave()
    a.beat("b-has-left")
    a.beat("has-all-again")
    describe(s, g, "alone", pick=brief)
    a.leave()
    describe(s, g, "empty", pick=brief)
    a.join("again")
    describe(s, g, "waits-again", pick=brief)


def soon_again(s):
    t, g = source(s, partitions=2), s.name("g")
    _configure(s, g, "", "streams.assignment.interval.ms", "15000")
    made = topology(part("0", t))
    a, b = StreamsMember(s, g, "a", made), StreamsMember(s, g, "b", made)
    a.start()
    b.join("within-the-interval")
    describe(s, g, "assigning", pick=brief)


def fenced(s):
    t, g = source(s, partitions=2), s.name("g")
    a = StreamsMember(s, g, "a", topology(part("0", t)))
    a.start()
    a.beat("old", member_epoch=1)
    a.beat("old-with-tasks", member_epoch=1, active_tasks=tasks(0), standby_tasks=[], warmup_tasks=[])
    a.beat("older-with-tasks", member_epoch=a.epoch - 2 or -7, **a.tasks)
    a.beat("old-with-another-task", member_epoch=1, active_tasks=tasks(0), standby_tasks=tasks(1), warmup_tasks=[])
    a.beat("new", member_epoch=7)
    a.own("no-such-task", active_tasks=tasks(0, 1, 2))
    a.own("no-such-part", active_tasks=tasks(0, of="9"))
    a.beat("one-kind-of-tasks", active_tasks=tasks(0))
    a.join("again")
    a.join("with-another-rack", rack_id="south")
    describe(s, g, "raised", pick=brief)


def shutdown(s):
    t, g = source(s, partitions=2), s.name("g")
    made = topology(part("0", t))
    a, b = StreamsMember(s, g, "a", made), StreamsMember(s, g, "b", made)
    a.start()
    b.join()
    a.beat("asks-all-to-stop", shutdown_application=True)
    b.beat("is-told")
    a.leave()
    b.beat("is-told-still")
    b.leave()
    b.join("new-start")


def shutdown_leaving(s):
    t, g = source(s, partitions=1), s.name("g")
    made = topology(part("0", t))
    a, b = StreamsMember(s, g, "a", made), StreamsMember(s, g, "b", made)
    a.start()
    b.join()
    a.leave(shutdown_application=True)
    b.beat("is-told")


def shutdown_at_first(s):
    t, g = source(s, partitions=2), s.name("g")
    a = StreamsMember(s, g, "a", topology(part("0", t)))
    a.join(shutdown_application=True)
    a.beat("is-told")


def shutdown_of_a_static_member(s):
    for others in (False, True):
        t, g = source(s, f"t-{others}", partitions=2), s.name(f"g-{others}")
        made = topology(part("0", t))
        a = StreamsMember(s, g, f"a-{others}", made, instance_id="box")
        a.start()
        if others:
            b = StreamsMember(s, g, "b", made)
            b.join()
        a.beat("asks-all-to-stop", shutdown_application=True)
        a.leave("away", -2)
        c = StreamsMember(s, g, f"c-{others}", made, instance_id="box", process_id=a.first["process_id"])
        c.join("in-its-place")
        c.beat("is-told")
        if others:
            b.beat("is-told")
        c.leave("away", -2)
        c.join("returns-itself", shutdown_application=True)
        c.beat("is-told-again")
        d = StreamsMember(s, g, f"d-{others}", made, instance_id="box", process_id=a.first["process_id"])
        c.leave("away-again", -2)
        d.join("in-its-place-and-asks", shutdown_application=True)
        d.beat("is-told")
        d.leave("for-good", -1)
        d.join("new-start")


def static_members(s):
    t, g = source(s, partitions=2), s.name("g")
    made = topology(part("0", t))
    a = StreamsMember(s, g, "a", made, instance_id="box")
    b = StreamsMember(s, g, "b", made, instance_id="box")
    a.start()
    b.join("unreleased")
    b.beat("fenced", member_epoch=2)
    a.beat("unknown-instance", instance_id="other")
    a.leave("away", -2)
    describe(s, g, "away", pick=brief)
    b.join("in-its-place", process_id=a.first["process_id"])
    b.own()
    describe(s, g, "replaced", pick=brief)
    a.beat("fenced-now", member_epoch=2)
    a.leave("fenced-leaving", -1)
    b.leave("away", -2)
    b.join("returns-itself")
    b.leave("for-good", -1)
    describe(s, g, "empty", pick=brief)


def standby(s):
    t, g = source(s, partitions=2), s.name("g")
    _configure(s, g, "one-copy", "streams.num.standby.replicas", "1")
    made = topology(part("0", t, state_changelog_topics=[topic(s.name("state-changelog"))]))
    a, b = StreamsMember(s, g, "a", made), StreamsMember(s, g, "b", made)
    a.start()
    describe(s, g, "alone", pick=brief)
    b.join()
    a.beat("revokes")
    a.own("has-revoked", active_tasks=tasks(0))
    b.beat("has-a-task-and-a-copy")
    b.own()
    a.beat("has-a-task-and-a-copy")
    a.own()
    describe(s, g, "both", pick=brief)
    b.leave()
    a.beat("promoted")
    a.own()
    describe(s, g, "alone-again", pick=brief)
    for label, value in (("many", "3"), ("word", "some"), ("no-copy", "0")):
        _configure(s, g, label, "streams.num.standby.replicas", value)
    before = a.epoch
    a.beat("another-number-of-copies", until=lambda h: h.member_epoch > before)


def one_process(s):
    made = topology(part("0", source(s, partitions=2)))
    g = s.name("g")
    a = StreamsMember(s, g, "a", made, process_id="one")
    b = StreamsMember(s, g, "b", made, process_id="one")
    a.join()
    b.join()
    for member in (a, b):
        member.beat("assigned", until=lambda h: h.active_tasks, hide=HIDDEN)
        member.own()
    describe(s, g, "a-task-each", pick=brief, hide=("partitions",))


def tags(s):
    t, g = source(s), s.name("g")
    _configure(s, g, "", "streams.rack.aware.assignment.tags", "zone,cluster")
    a = StreamsMember(s, g, "a", topology(part("0", t)), client_tags=[{"key": "zone", "value": "1"}])
    a.join()
    a.beat("assigned", until=lambda h: h.active_tasks)
    a.version = 0
    a.beat("old-version")


def endpoints(s):
    t, g = source(s, partitions=4), s.name("g")
    made = topology(part("0", t))
    a = StreamsMember(s, g, "a", made, user_endpoint={"host": "a", "port": 1})
    b = StreamsMember(s, g, "b", made, user_endpoint={"host": "b", "port": 2})
    a.join()
    b.join()
    for member in (a, b):
        member.beat("assigned", until=lambda h: h.active_tasks, hide=HIDDEN)
    a.beat("knows-none", hide=HIDDEN)
    a.beat("knows-one", hide=HIDDEN, endpoint_information_epoch=1)
    a.beat("moves", hide=HIDDEN, user_endpoint={"host": "c", "port": 3})
    a.beat("knows-all", hide=HIDDEN, endpoint_information_epoch=4)
    b.join("without", hide=HIDDEN, user_endpoint=None)
