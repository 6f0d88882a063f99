"""Share groups (KIP-932): members, deliveries, acknowledgements, sessions, offsets."""

import uuid

from tests.differential.members import Consumer, Member, ShareMember, acquired, join_fields, share_setting, stable
from tests.differential.producers import Producer, finished

ACCEPT, RELEASE, REJECT = 1, 2, 3


def _group(s, *topics, name="g"):
    """A member of a group that reads from the start, assigned to its topics. No steps."""
    g = s.name(name)
    share_setting(s, g, share_auto_offset_reset="earliest")
    m = ShareMember(s, g, "m", *topics)
    m.assigned()
    return m


def joining(s):
    t = s.topic(partitions=3)
    m = ShareMember(s, s.name("g"), "m", t)
    m.join()
    m.heartbeat(label="assigned", until=lambda h: h.error_code or (h.assignment and h.assignment.topic_partitions))
    m.heartbeat(label="nothing-new")
    s.ask("ShareGroupDescribe", 1, group_ids=[m.group])
    s.ask("ShareGroupDescribe", 1, group_ids=[m.group, s.name("none")], include_authorized_operations=True, label="two")
    for kind in ("share", "Share", "consumer"):
        s.ask("ListGroups", 5, mine=True, types_filter=[kind], pick=lambda a: a["groups"], label=kind)
    s.ask("ListGroups", 3, mine=True, pick=lambda a: a["groups"])
    s.ask("DescribeGroups", 6, groups=[m.group], label="as-a-classic-one")
    s.ask("ConsumerGroupDescribe", 1, group_ids=[m.group], label="as-a-consumer-group")
    s.ask("DeleteGroups", 2, groups_names=[m.group], label="with-a-member")
    m.leave()
    m.heartbeat(label="after-leaving", retry=())
    s.ask("ShareGroupDescribe", 1, group_ids=[m.group], label="empty")
    s.ask("DeleteGroups", 2, groups_names=[m.group], label="empty")
    s.ask("ShareGroupDescribe", 1, group_ids=[m.group], label="deleted")


def joining_refused(s):
    t = s.topic()
    good = {"group_id": s.name("g"), "member_id": "m", "member_epoch": 0, "subscribed_topic_names": [t]}
    changes = {
        "empty-group": {"group_id": ""},
        "empty-member": {"member_id": ""},
        "no-topics": {"subscribed_topic_names": None},
        "empty-topics": {"subscribed_topic_names": []},
        "empty-rack": {"rack_id": ""},
        "epoch-5": {"member_epoch": 5},
        "epoch-minus-2": {"member_epoch": -2},
        "unknown-member-leaves": {"member_id": "nobody", "member_epoch": -1},
        "unknown-member-epoch-3": {"member_id": "nobody", "member_epoch": 3},
        "unknown-group-leaves": {"group_id": s.name("none"), "member_epoch": -1},
        "unknown-topic": {"member_id": "n", "subscribed_topic_names": [s.name("none")]},
    }
    for label, change in changes.items():
        s.ask("ShareGroupHeartbeat", 1, label=label, retry=(), **{**good, **change})


def other_kinds_of_group(s):
    t = s.topic()
    m = _group(s, t)
    s.ask("JoinGroup", 7, label="classic-join", retry=(), **join_fields(m.group))
    Consumer(s, m.group, "c", t).join(label="consumer-joins", retry=())
    s.ask("OffsetFetch", 7, group_id=m.group, topics=None, retry=(), label="offsets")
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    s.ask("OffsetCommit", 8, group_id=m.group, topics=[{"name": t, "partitions": [row]}], retry=(), label="commit")
    (old,) = stable(s, s.name("classic"), "x", topics=(t,))
    ShareMember(s, old.group, "y", t).join(label="in-a-classic-group", retry=())
    new = Consumer(s, s.name("new"), "z", t)
    new.join(quiet=True)
    ShareMember(s, new.group, "y", t).join(label="in-a-consumer-group", retry=())
    ShareMember(s, old.group, "y", t).fetch((t, 0), label="fetch-for-a-classic-group")


def accept(s):
    t = s.topic()
    s.produce(t, b"a", b"b")
    s.produce(t, b"c", at=2)
    m = _group(s, t)
    m.until_acquired((t, 0), count=3)
    m.fetch(label="nothing-left")
    m.acknowledge({(t, 0): [(0, 2, [ACCEPT])]})
    s.produce(t, b"d", at=3)
    m.until_acquired(label="next", pick=acquired)
    m.fetch(acks={(t, 0): [(3, 3, [ACCEPT])]}, label="acknowledged-in-a-fetch")
    s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": m.group, "topics": None}])


def release_and_reject(s):
    t = s.topic()
    s.produce(t, b"0", b"1", b"2", b"3")
    m = _group(s, t)
    m.until_acquired((t, 0), count=4, pick=acquired, label="all")
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT]), (1, 1, [RELEASE]), (2, 2, [REJECT]), (3, 3, [RELEASE])]})
    m.until_acquired(count=2, label="the-released", pick=acquired)
    m.acknowledge({(t, 0): [(1, 3, [ACCEPT, 0, ACCEPT])]}, label="with-a-gap")
    m.acknowledge({(t, 0): [(1, 1, [ACCEPT]), (3, 3, [ACCEPT])]}, label="both")
    m.fetch(label="nothing-left", pick=acquired)


def deliveries(s):
    t = s.topic()
    s.produce(t, b"a", b"b")
    m = _group(s, t)
    for n in range(3):
        m.until_acquired(*([] if n else [(t, 0)]), count=2, label=f"delivery-{n + 1}", pick=acquired)
        m.acknowledge({(t, 0): [(0, 1, [RELEASE])]}, label=f"delivery-{n + 1}")
    m.until_acquired(label="delivery-4", pick=acquired)
    m.acknowledge({(t, 0): [(0, 1, [RELEASE])]}, label="both-of-them")
    m.acknowledge({(t, 0): [(0, 0, [RELEASE])]}, label="the-first")
    m.until_acquired(label="delivery-5", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [RELEASE])]}, label="the-first-again")
    m.until_acquired(label="the-second", pick=acquired)
    m.acknowledge({(t, 0): [(1, 1, [ACCEPT])]}, label="the-second")
    s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": m.group, "topics": None}])


def limits(s):
    t = s.topic()
    for n in range(3):
        s.produce(t, b"a", b"b", b"c", at=3 * n)
    m = _group(s, t)
    m.until_acquired((t, 0), label="at-most-one-record", max_records=1, pick=acquired)
    m.until_acquired(label="at-most-four-records", max_records=4, pick=acquired)
    m.fetch(label="nothing-left", pick=acquired)
    m.acknowledge({(t, 0): [(0, 8, [RELEASE])]})
    m.until_acquired(label="batches-of-two", batch_size=2, pick=acquired)
    m.fetch(label="no-records", max_records=0, pick=acquired)
    m.fetch(label="no-batch-size", batch_size=0, pick=acquired)


def acknowledge_refused(s):
    t = s.topic()
    s.produce(t, b"0", b"1", b"2", b"3")
    m = _group(s, t)
    m.until_acquired((t, 0), count=4, pick=acquired)
    asked = {
        "beyond-the-end": [(4, 5, [ACCEPT])],
        "partly-beyond": [(3, 6, [ACCEPT])],
        "type-4": [(0, 0, [4])],
        "type-9": [(0, 0, [9])],
        "type-minus-1": [(0, 0, [-1])],
        "no-types": [(0, 0, [])],
        "too-many-types": [(0, 0, [ACCEPT, ACCEPT])],
        "too-few-types": [(0, 2, [ACCEPT, ACCEPT])],
        "backwards": [(1, 0, [ACCEPT])],
        "overlapping": [(0, 1, [ACCEPT]), (1, 2, [ACCEPT])],
        "falling": [(2, 2, [ACCEPT]), (0, 0, [ACCEPT])],
    }
    for label, rows in asked.items():
        m.acknowledge({(t, 0): rows}, label=label)
    m.acknowledge({(t, 0): [(0, 3, [ACCEPT])]}, label="right")
    m.acknowledge({(t, 0): [(0, 3, [ACCEPT])]}, label="again")
    m.acknowledge({(t, 7): [(0, 3, [ACCEPT])]}, label="unknown-partition")
    s.ids["nowhere"] = uuid.UUID(int=41)
    m.acknowledge({("nowhere", 0): [(0, 3, [ACCEPT])]}, label="unknown-topic")


def sessions(s):
    t = s.topic(partitions=2)
    s.produce(t, b"a")
    m = _group(s, t)
    m.until_acquired((t, 0), label="first", pick=acquired)
    m.fetch(quiet=True)
    epoch = m.session
    m.fetch(session=epoch + 1, label="epoch-too-high")
    m.fetch(session=epoch - 1, label="epoch-repeated")
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, session=epoch + 5, label="epoch-too-high")
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, session=0, label="new-session")
    m.fetch((t, 1), label="one-more-partition", pick=acquired)
    s.produce(t, b"b", partition=1)
    m.until_acquired(label="of-the-new-one", pick=acquired)
    m.fetch(forgotten=[(t, 1)], label="forgotten", pick=acquired)
    m.fetch(session=-1, label="closed")
    m.fetch(session=5, label="after-it-was-closed")
    m.until_acquired((t, 0), session=0, label="new", pick=acquired)
    m.fetch((t, 0), acks={(t, 0): [(0, 0, [ACCEPT])]}, session=0, label="new-with-acknowledgements")


def sessions_of_others(s):
    t = s.topic()
    m = _group(s, t)
    m.fetch((t, 0), member_id="", label="empty-member", session=0)
    m.fetch((t, 0), group_id="", label="empty-group", session=0)
    m.fetch((t, 0), member_id=s.name("nobody"), label="unknown-member", session=0, pick=acquired)
    m.fetch((t, 0), member_id=s.name("nobody"), label="unknown-member-epoch-3", session=3)
    m.fetch((t, 0), group_id=s.name("none"), label="unknown-group", session=0, pick=acquired)
    s.ids["nowhere"] = uuid.UUID(int=42)
    m.fetch(("nowhere", 0), label="unknown-topic", session=0)
    m.fetch((t, 9), label="unknown-partition", session=0)


def two_members(s):
    t = s.topic()
    for at in (0, 2):
        s.produce(t, b"a", b"b", at=at)
    m = _group(s, t)
    n = ShareMember(s, m.group, "n", t)
    n.assigned()
    m.until_acquired((t, 0), max_records=1, label="m", pick=acquired)
    n.until_acquired((t, 0), label="n", pick=acquired)
    n.acknowledge({(t, 0): [(0, 1, [ACCEPT])]}, label="of-the-other")
    n.acknowledge({(t, 0): [(2, 3, [ACCEPT])]}, label="its-own")
    m.fetch(session=-1, label="closes", pick=acquired)
    n.until_acquired(label="gets-what-the-other-had", pick=acquired)
    s.ask("ShareGroupDescribe", 1, group_ids=[m.group], hide=("group_epoch", "assignment_epoch", "member_epoch"))


def from_the_end(s):
    t = s.topic()
    s.produce(t, b"before")
    m = ShareMember(s, s.name("g"), "m", t)
    m.assigned()
    m.fetch((t, 0), quiet=True)
    m.fetch(quiet=True)
    s.ask(
        "DescribeShareGroupOffsets", 0, groups=[{"group_id": m.group, "topics": [{"topic_name": t, "partitions": [0]}]}]
    )
    s.produce(t, b"after", at=1)
    m.until_acquired(label="after", pick=acquired)


def offsets(s):
    t, u = s.topic("t", 2), s.topic("u")
    s.produce(t, b"a", b"b", b"c")
    m = _group(s, t)
    m.until_acquired((t, 0), (t, 1), count=3, pick=acquired)

    def describe(label, topics, version=0, **options):
        return s.ask(
            "DescribeShareGroupOffsets",
            version,
            groups=[{"group_id": m.group, "topics": topics}],
            label=label,
            **options,
        )

    def alter(label, topic, *rows):
        parts = [{"partition_index": p, "start_offset": offset} for p, offset in rows]
        return s.ask(
            "AlterShareGroupOffsets",
            0,
            group_id=m.group,
            topics=[{"topic_name": topic, "partitions": parts}],
            label=label,
            retry=(),
        )

    def delete(label, *topics):
        return s.ask(
            "DeleteShareGroupOffsets",
            0,
            group_id=m.group,
            topics=[{"topic_name": topic} for topic in topics],
            label=label,
            retry=(),
        )

    describe(
        "some",
        [
            {"topic_name": t, "partitions": [0, 1]},
            {"topic_name": s.name("none"), "partitions": [0]},
            {"topic_name": u, "partitions": [0]},
        ],
    )
    alter("with-a-member", t, (0, 2))
    delete("with-a-member", t)
    m.acknowledge({(t, 0): [(0, 1, [ACCEPT]), (2, 2, [RELEASE])]})
    describe("moved", None)
    describe("with-the-lag", None, version=1, hide=("lag",))
    m.fetch(session=-1, quiet=True)
    m.leave()
    alter("back-to-0", t, (0, 0))
    describe("back-to-0", [{"topic_name": t, "partitions": [0]}])
    alter("unknown-topic", s.name("none"), (0, 0))
    alter("other-topic", u, (0, 0))
    describe("other-topic", [{"topic_name": u, "partitions": [0]}])
    delete("one-and-unknown", t, s.name("none"))
    describe("deleted", None)
    s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": s.name("none"), "topics": None}], label="unknown-group")
    s.ask(
        "AlterShareGroupOffsets",
        0,
        group_id=s.name("none"),
        topics=[{"topic_name": t, "partitions": [{"partition_index": 0, "start_offset": 0}]}],
        label="unknown-group",
        retry=(),
    )
    s.ask(
        "DeleteShareGroupOffsets",
        0,
        group_id=s.name("none"),
        topics=[{"topic_name": t}],
        label="unknown-group",
        retry=(),
    )
    s.ask("DeleteGroups", 2, groups_names=[m.group])


def transactions(s):
    t, p = s.topic(), Producer(s)
    s.produce(t, b"plain")
    p.init()
    p.add(t)
    p.produce(t, b"aborted")
    p.end(False)
    finished(s, t, 3)
    p.add(t)
    p.produce(t, b"committed")
    p.end()
    finished(s, t, 5)
    m = _group(s, t)
    m.until_acquired((t, 0), count=3, label="uncommitted", pick=acquired)
    g = s.name("strict")
    share_setting(s, g, share_isolation_level="read_committed", share_auto_offset_reset="earliest")
    n = ShareMember(s, g, "n", t)
    n.assigned()
    n.until_acquired((t, 0), count=2, label="committed", pick=acquired)


def after_delete_records(s):
    t = s.topic()
    for n in range(4):
        s.produce(t, b"%d" % n, at=n)
    m = _group(s, t)
    m.until_acquired((t, 0), label="two", max_records=2, pick=acquired)
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": 3}]}])
    m.until_acquired(label="the-last", pick=acquired)


def renewed(s):
    t = s.topic()
    s.produce(t, b"a")
    m = _group(s, t)
    m.until_acquired((t, 0), label="one", pick=acquired)
    for label, fields in (("renewed", {"is_renew_ack": True}), ("renewed-without-saying-so", {})):
        m.acknowledge({(t, 0): [(0, 0, [4])]}, version=2, label=label, **fields)
    m.fetch(
        version=2,
        acks={(t, 0): [(0, 0, [4])]},
        is_renew_ack=True,
        label="renewed-in-a-fetch",
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=0,
        max_records=0,
    )
    m.fetch(version=2, acks={(t, 0): [(0, 0, [4])]}, is_renew_ack=True, label="renewed-and-more-wanted")
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, label="accepted")
    s.produce(t, b"b", b"c", b"d", at=1)
    m.until_acquired(version=2, share_acquire_mode=1, max_records=2, label="not-one-record-more", pick=acquired)


def member_of_nothing(s):
    m = Member(s, s.name("g"), "x")
    m.join(quiet=True)
    s.ask(
        "ShareAcknowledge",
        1,
        group_id=m.group,
        member_id="x",
        share_session_epoch=1,
        topics=[],
        label="without-a-session",
        retry=(),
    )
    s.ask(
        "ShareAcknowledge",
        1,
        group_id=m.group,
        member_id="x",
        share_session_epoch=-1,
        topics=[],
        label="final-without-a-session",
        retry=(),
    )


def long_ids(s):
    t = s.topic()
    for size in (36, 37):
        member = "y" * size
        for epoch in (0, 1, -1):
            who = {"member_id": member, "member_epoch": epoch, "subscribed_topic_names": [t]}
            label = f"{size}-{epoch}"
            s.ask("ShareGroupHeartbeat", 1, label=label, group_id=s.name(f"g{size}"), retry=(),
                  hide=("member_epoch",), **who)  # fmt: skip
            for api in ("ShareFetch", "ShareAcknowledge"):
                fields = {"member_id": member, "share_session_epoch": epoch, "topics": [], "retry": ()}
                s.ask(api, 1, label=label, group_id=s.name("h"), **fields)
                s.ask(api, 1, label=f"{label}-no-group", group_id=None, **fields)


def offsets_of_repeated_topics(s):
    t, none = s.topic("t", 2), s.name("none")
    asked: dict[str, list[tuple[str, list[int]]]] = {
        "repeated": [(t, [0]), (none, [0]), (t, [1, 0])],
        "no-partitions": [(t, [])],
        "unknown": [(none, [0])],
        "unknown-without-partitions": [(none, [])],
        "none": [],
    }
    for group in (s.name("nobody"), ""):
        for label, topics in asked.items():
            rows = [{"topic_name": name, "partitions": numbers} for name, numbers in topics]
            s.ask("DescribeShareGroupOffsets", 1, label=f"{label}-{'named' if group else 'unnamed'}", retry=(),
                  groups=[{"group_id": group, "topics": rows}])  # fmt: skip


def offsets_of_unknown_partitions(s):
    t = s.topic("t", 2)
    for version in (0, 1):
        rows = [{"topic_name": t, "partitions": [0, 7, 2]}]
        s.ask("DescribeShareGroupOffsets", version, groups=[{"group_id": s.name("nobody"), "topics": rows}])
