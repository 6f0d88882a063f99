"""Committed offsets of streams groups, and groups of other kinds with the same name."""

from tests.differential.members import join_fields
from tests.differential.streams_members import StreamsMember, brief, describe, part, source, tasks, topic, topology


def _commit(s, group, t, partition, epoch, member, label, version=9, **options):
    row = {"partition_index": partition, "committed_offset": 5, "committed_metadata": ""}
    names = {"name": t} if version < 10 else {"topic_id": s.ids[t]}
    s.ask("OffsetCommit", version, label=label, retry=(), group_id=group, member_id=member,
          generation_id_or_member_epoch=epoch, topics=[{**names, "partitions": [row]}], **options)  # fmt: skip


def commits(s):
    t, other, g = source(s, partitions=4), source(s, "other"), s.name("g")
    made = topology(part("0", t))
    a, b = StreamsMember(s, g, "a", made), StreamsMember(s, g, "b", made)
    _commit(s, g, t, 0, -1, "", "before-the-group")
    a.start()
    me = s.name("a")
    _commit(s, g, t, 0, 2, me, "right")
    _commit(s, g, t, 0, 2, me, "by-id", 10)
    _commit(s, g, other, 0, 2, me, "other-topic")
    _commit(s, g, t, 0, 2, me, "old-version", 8)
    _commit(s, g, t, 0, 1, me, "old")
    _commit(s, g, t, 0, 3, me, "new")
    _commit(s, g, t, 0, -1, "", "by-nobody")
    _commit(s, g, t, 0, 2, "nobody", "by-somebody")
    b.join()
    a.beat("revokes")
    a.own("has-revoked", active_tasks=tasks(0, 1))
    b.beat("assigned")
    _commit(s, g, t, 0, 2, me, "kept-task-with-old-epoch")
    _commit(s, g, t, 3, 2, me, "lost-task-with-old-epoch")
    _commit(s, g, other, 0, 2, me, "other-topic-with-old-epoch")
    _commit(s, g, t, 0, 1, me, "epoch-before-the-task")
    _commit(s, g, t, 3, 2, s.name("b"), "new-task-with-old-epoch")
    for label, member, epoch in (
        ("right", me, a.epoch), ("old", me, 2), ("nobody", "nobody", 3), ("no-member", None, -1), ("empty", "", -1),
    ):  # fmt: skip
        asked = {"group_id": g, "member_id": member, "member_epoch": epoch, "topics": None}
        s.ask("OffsetFetch", 9, label=label, retry=(), groups=[asked])
    for name in (t, other):
        s.ask("OffsetDelete", 0, label=name.split("-")[0], group_id=g,
              topics=[{"name": name, "partitions": [{"partition_index": 0}]}])  # fmt: skip
    a.leave()
    b.leave()
    s.ask("OffsetDelete", 0, label="of-no-member", group_id=g,
          topics=[{"name": t, "partitions": [{"partition_index": 0}]}])  # fmt: skip
    _commit(s, g, t, 1, -1, "", "of-an-empty-group")
    s.ask("DeleteGroups", 2, groups_names=[g])


def transactional(s):
    t, g, x = source(s, partitions=2), s.name("g"), s.name("x")
    a = StreamsMember(s, g, "a", topology(part("0", t)))
    a.start()
    pid = s.ask("InitProducerId", 4, transactional_id=x, quiet=True, until=lambda p: p.error_code == 0)
    ids = {"transactional_id": x, "producer_id": pid.producer_id, "producer_epoch": pid.producer_epoch}
    s.ask("AddOffsetsToTxn", 3, group_id=g, **ids)
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    topics = [{"name": t, "partitions": [row]}]
    for version in (4, 5):
        for label, member, epoch in (
            ("right", s.name("a"), 2), ("old", s.name("a"), 1), ("new", s.name("a"), 3), ("nobody", "", -1),
            ("somebody", "somebody", 2),
        ):  # fmt: skip
            s.ask("TxnOffsetCommit", version, label=label, retry=(14, 15, 16, 51), group_id=g, topics=topics,
                  member_id=member, generation_id_or_member_epoch=epoch, **ids)  # fmt: skip
    s.ask("EndTxn", 3, committed=True, **ids)
    s.ask("OffsetFetch", 9, groups=[{"group_id": g, "member_id": None, "member_epoch": -1, "topics": None}],
          require_stable=True, until=lambda f: f.groups[0].topics[0].partitions[0].error_code == 0)  # fmt: skip


def other_kinds(s):
    t = source(s)
    made = topology(part("0", t))
    streams = StreamsMember(s, s.name("streams"), "a", made)
    streams.start()
    empty = StreamsMember(s, s.name("empty"), "a", made)
    empty.join()
    empty.leave()
    for group in ("streams", "empty"):
        name = s.name(group)
        s.ask("ConsumerGroupHeartbeat", 0, label=group, retry=(), group_id=name, member_id="", member_epoch=0,
              rebalance_timeout_ms=9000, subscribed_topic_names=[t], topic_partitions=[])  # fmt: skip
        s.ask("ShareGroupHeartbeat", 1, label=group, retry=(), group_id=name, member_id=s.name("m"), member_epoch=0,
              subscribed_topic_names=[t])  # fmt: skip
        s.ask("Heartbeat", 3, label=group, retry=(), group_id=name, generation_id=1, member_id="m")
        s.ask("SyncGroup", 3, label=group, retry=(), group_id=name, generation_id=1, member_id="m")
        s.ask("LeaveGroup", 3, label=group, retry=(), group_id=name, members=[{"member_id": "m"}])
        s.ask("JoinGroup", 3, label=f"{group}-known", retry=(), **join_fields(name, "m", (t,)))
    s.ask("JoinGroup", 3, label="streams", retry=(), **join_fields(s.name("streams"), topics=(t,)))
    s.ask("JoinGroup", 3, label="empty", **join_fields(s.name("empty"), topics=(t,)))
    describe(s, s.name("empty"), "classic-now")
    empty.join("classic")


def of_others(s):
    t = source(s)
    made = topology(part("0", t))
    for kind in ("consumer", "share"):
        api = "ConsumerGroupHeartbeat" if kind == "consumer" else "ShareGroupHeartbeat"
        version = 0 if kind == "consumer" else 1
        more = {"rebalance_timeout_ms": 9000, "topic_partitions": []} if kind == "consumer" else {}
        member = "" if kind == "consumer" else s.name("m")
        found = s.ask(api, version, quiet=True, group_id=s.name(kind), member_id=member, member_epoch=0,
                      subscribed_topic_names=[t], **more, until=lambda h: h.error_code == 0)  # fmt: skip
        StreamsMember(s, s.name(kind), kind, made).join("")
        StreamsMember(s, s.name(kind), kind, made).leave("leaves-it")
        s.ask(api, version, quiet=True, group_id=s.name(kind), member_id=found.member_id, member_epoch=-1)
        StreamsMember(s, s.name(kind), kind, made).join("empty")
        describe(s, s.name(kind), kind)
    offsets = s.name("offsets")
    _commit(s, offsets, t, 0, 5, "", "no-group")
    _commit(s, offsets, t, 0, -1, "", "group-of-offsets")
    found = StreamsMember(s, offsets, "c", made)
    found.join("of-offsets")
    s.ask("OffsetFetch", 9, groups=[{"group_id": offsets, "member_id": None, "member_epoch": -1, "topics": None}])
    describe(s, offsets, "of-offsets", pick=brief)


def state_is_kept(s):
    """A changelog topic that exists with the right partitions is taken as it is."""
    t, g = source(s, partitions=2), s.name("g")
    changelog = source(s, "kept-changelog", 2)
    a = StreamsMember(s, g, "a", topology(part("0", t, state_changelog_topics=[topic(changelog)])))
    a.start()
    describe(s, g, pick=brief)
