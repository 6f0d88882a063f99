"""OffsetCommit, OffsetFetch, OffsetDelete."""

import uuid

from tests.differential.members import Member, in_state, stable


def _commit(s, group, topic, offset, *, version=8, partition=0, **options):
    """Fields of the partition: metadata, leader_epoch, time; the rest are the request's or `ask`'s."""
    names = {"metadata": "committed_metadata", "leader_epoch": "committed_leader_epoch", "time": "commit_timestamp"}
    row = {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
    row.update({names[key]: options.pop(key) for key in list(options) if key in names})
    entry = {**s.key(topic, version > 9), "partitions": [row]}
    return s.ask("OffsetCommit", version, group_id=group, topics=[entry], **options)


def _fetch(s, group, topics=None, *, version=7, **options):
    """topics: {name: partitions}, or None for all."""
    if version < 8:
        rows = None if topics is None else [{"name": t, "partition_indexes": list(p)} for t, p in topics.items()]
        return s.ask("OffsetFetch", version, group_id=group, topics=rows, **options)
    rows = (
        None if topics is None else [{**s.key(t, version > 9), "partition_indexes": list(p)} for t, p in topics.items()]
    )
    who = {key: options.pop(key) for key in ("member_id", "member_epoch") if key in options}
    return s.ask("OffsetFetch", version, groups=[{"group_id": group, "topics": rows, **who}], **options)


def versions(s):
    t = s.topic(partitions=2)
    for version in range(2, 11):
        _commit(
            s,
            s.name("g"),
            t,
            version * 10,
            version=version,
            metadata=f"v{version}",
            **({"leader_epoch": 0} if version > 5 else {}),
        )
        _fetch(s, s.name("g"), {t: [0, 1]}, version=max(1, version))
    _fetch(s, s.name("g"), {t: [0, 1]}, version=1)
    _fetch(s, s.name("g"), version=2, label="all")


def leader_epochs(s):
    t = s.topic()
    _commit(s, s.name("g"), t, 5, leader_epoch=7, metadata="seven")
    for version in (4, 5, 7, 8, 9):
        _fetch(s, s.name("g"), {t: [0]}, version=version)
    _commit(s, s.name("g"), t, 6, leader_epoch=-1)
    _fetch(s, s.name("g"), {t: [0]}, label="none")
    _commit(s, s.name("g"), t, 6, leader_epoch=-5, label="minus-5")
    _fetch(s, s.name("g"), {t: [0]}, label="minus-5")


def _sizes(a):
    return [[row["committed_offset"], row["metadata"] and len(row["metadata"])] for row in a["topics"][0]["partitions"]]


def metadata(s):
    t = s.topic()
    for label, text in {"null": None, "empty": "", "text": "größe", "4096": "x" * 4096, "4097": "x" * 4097}.items():
        _commit(s, s.name("g"), t, 5, metadata=text, label=label)
        _fetch(s, s.name("g"), {t: [0]}, label=label, pick=_sizes)


def numbers(s):
    t = s.topic()
    for offset in (0, 9_223_372_036_854_775_807, -1, -2):
        _commit(s, s.name("g"), t, offset, label=f"offset-{offset}")
        _fetch(s, s.name("g"), {t: [0]}, label=f"offset-{offset}")
    _fetch(s, s.name("g"), label="all")


def unknown_places(s):
    t = s.topic()
    s.ids["nowhere"] = uuid.UUID(int=31)
    g = s.name("g")
    _commit(s, g, s.name("none"), 1, retry=(), label="topic")
    _commit(s, g, t, 1, partition=9, retry=(), label="partition-9")
    _commit(s, g, t, 1, partition=-1, retry=(), label="partition-minus-1")
    _commit(s, g, "a/b", 1, retry=(), label="bad-name")
    _commit(s, g, "nowhere", 1, version=10, retry=(), label="id")
    _fetch(s, g, {s.name("none"): [0], t: [9, -1]}, label="nothing-there")
    _fetch(s, g, {"nowhere": [0]}, version=10, label="id")
    _fetch(s, s.name("nobody"), {t: [0]}, label="unknown-group")
    _fetch(s, s.name("nobody"), label="unknown-group-all")
    _fetch(s, s.name("nobody"), {t: [0]}, version=8, label="unknown-group")
    s.ask("OffsetCommit", 8, group_id=g, topics=[], label="no-topics")
    s.ask("OffsetCommit", 8, group_id=g, topics=[{"name": t, "partitions": []}], label="no-partitions")
    _fetch(s, g, {}, label="no-topics")
    s.ask("DescribeGroups", 5, groups=[g], label="no-group-was-made")


def empty_group_id(s):
    t = s.topic()
    _commit(s, "", t, 77, label="empty")
    _fetch(s, "", {t: [0]}, label="empty")
    for version in (5, 6):
        s.ask("DescribeGroups", version, label="empty-name", groups=[""])
    s.ask("OffsetDelete", 0, group_id="", topics=[{"name": t, "partitions": [{"partition_index": 0}]}], label="empty")


def several(s):
    a, b = s.topic("a", 3), s.topic("b")
    rows = [{"partition_index": n, "committed_offset": n + 5, "committed_metadata": f"m{n}"} for n in range(4)]
    topics = [
        {"name": a, "partitions": rows},
        {"name": b, "partitions": rows[:1]},
        {"name": s.name("none"), "partitions": rows[:1]},
    ]
    s.ask("OffsetCommit", 8, group_id=s.name("g"), topics=topics, retry=())
    _fetch(s, s.name("g"), label="all")
    _fetch(s, s.name("g"), version=9, label="all")
    _fetch(s, s.name("g"), {a: [2, 0], b: [0, 1]}, label="some")
    twice = [{"partition_index": 0, "committed_offset": n, "committed_metadata": ""} for n in (50, 60)]
    s.ask("OffsetCommit", 8, group_id=s.name("g"), topics=[{"name": b, "partitions": twice}], label="partition-twice")
    _fetch(s, s.name("g"), {b: [0]}, label="partition-twice")


def several_groups(s):
    t = s.topic()
    one, two = s.name("one"), s.name("two")
    _commit(s, one, t, 1)
    _commit(s, two, t, 2)
    groups = [
        {"group_id": one, "topics": None},
        {"group_id": two, "topics": [{"name": t, "partition_indexes": [0, 1]}]},
        {"group_id": s.name("none"), "topics": None},
    ]
    s.ask("OffsetFetch", 8, groups=groups)
    s.ask("OffsetFetch", 9, groups=groups, require_stable=True, label="stable")
    s.ask("OffsetFetch", 8, groups=[{"group_id": one, "topics": []}], label="no-topics")
    if s.server.serves("ConsumerGroupHeartbeat", 1):  # 3.9 never answers
        s.ask("OffsetFetch", 8, groups=[], label="none")


def members_only(s):
    t = s.topic()
    (m,) = stable(s, s.name("g"), "a", topics=(t,))
    mine = {"generation_id_or_member_epoch": m.generation, "member_id": m.id}
    _commit(s, m.group, t, 1, label="right", **mine)
    for version in (2, 5, 7, 9):
        _commit(s, m.group, t, 2, version=version, label="right", **mine)
    _commit(s, m.group, t, 9, label="other-generation", retry=(), **{**mine, "generation_id_or_member_epoch": 55})
    _commit(s, m.group, t, 9, label="lower-generation", retry=(), **{**mine, "generation_id_or_member_epoch": 0})
    _commit(s, m.group, t, 9, label="other-member", retry=(), **{**mine, "member_id": "nobody"})
    _commit(s, m.group, t, 9, label="no-member", retry=(), **{**mine, "member_id": ""})
    _commit(s, m.group, t, 9, label="simple", retry=())
    _commit(s, m.group, t, 9, label="minus-1-and-member", retry=(), member_id=m.id)
    _commit(s, m.group, t, 9, label="other-instance", retry=(), group_instance_id="box", **mine)
    _commit(s, s.name("none"), t, 9, label="generation-of-an-unknown-group", retry=(), **mine)
    _fetch(s, m.group, {t: [0]})
    m.leave()
    _commit(s, m.group, t, 10, label="simple-when-empty", retry=())
    _commit(s, m.group, t, 11, label="member-that-left", retry=(), **mine)
    _fetch(s, m.group, {t: [0]}, label="at-last")


def during_a_rebalance(s):
    t = s.topic()
    (m,) = stable(s, s.name("g"), "a", topics=(t,))
    other = Member(s, m.group, "b", topics=(t,))
    coming = other.start_joining()
    in_state(s, m.group, "PreparingRebalance")
    _commit(s, m.group, t, 3, label="preparing", retry=(), generation_id_or_member_epoch=m.generation, member_id=m.id)
    m.joined(m.start_joining(), quiet=True)
    other.joined(coming, quiet=True)
    _commit(s, m.group, t, 4, label="completing", retry=(), generation_id_or_member_epoch=m.generation, member_id=m.id)
    _commit(
        s,
        m.group,
        t,
        4,
        label="completing-old-generation",
        retry=(),
        generation_id_or_member_epoch=m.generation - 1,
        member_id=m.id,
    )
    _fetch(s, m.group, {t: [0]})


def retention(s):
    t = s.topic(partitions=2)
    g = s.name("g")
    _commit(s, g, t, 5, version=2, retention_time_ms=10 * 86_400_000, label="ten-days")
    _commit(s, g, t, 6, version=4, partition=1, retention_time_ms=-1, label="default")
    _fetch(s, g)


def delete(s):
    t = s.topic(partitions=3)
    g = s.name("g")
    for n in range(3):
        _commit(s, g, t, n + 1, partition=n)

    def remove(group, topic, *partitions, **options):
        return s.ask(
            "OffsetDelete",
            0,
            group_id=group,
            topics=[{"name": topic, "partitions": [{"partition_index": p} for p in partitions]}],
            **options,
        )

    remove(g, t, 0)
    _fetch(s, g, label="one-gone")
    remove(g, t, 0, label="again")
    remove(g, t, 7, label="unknown-partition")
    remove(g, s.name("none"), 0, label="unknown-topic")
    remove(s.name("nobody"), t, 0, label="unknown-group")
    s.ask("OffsetDelete", 0, group_id=g, topics=[], label="no-topics")
    remove(g, t, 1, 2, label="the-rest")
    _fetch(s, g, label="none-left")
    s.ask("DescribeGroups", 5, groups=[g], label="after-the-last-offset")


def delete_of_subscribed(s):
    t, u = s.topic("t"), s.topic("u")
    (m,) = stable(s, s.name("g"), "a", topics=(t,))
    for topic in (t, u):
        _commit(s, m.group, topic, 3, generation_id_or_member_epoch=m.generation, member_id=m.id)
    rows = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in (t, u)]
    s.ask("OffsetDelete", 0, group_id=m.group, topics=rows)
    _fetch(s, m.group)
    m.leave()
    s.ask("OffsetDelete", 0, group_id=m.group, topics=rows, label="after-leaving")
    _fetch(s, m.group, label="after-leaving")


def delete_for_other_protocols(s):
    t = s.topic()
    (m,) = stable(s, s.name("g"), "a", protocols={"p": b"x"}, protocol_type="connect")
    _commit(s, m.group, t, 3, generation_id_or_member_epoch=m.generation, member_id=m.id)
    s.ask("OffsetDelete", 0, group_id=m.group, topics=[{"name": t, "partitions": [{"partition_index": 0}]}])


def topic_deleted(s):
    t, u = s.topic("t"), s.topic("u")
    g = s.name("g")
    _commit(s, g, t, 3)
    _commit(s, g, u, 4)
    s.ask("DeleteTopics", 6, topics=[{"name": t}])
    _fetch(s, g, label="one-left", until=lambda a: len(a.topics) < 2)
    s.ask(
        "Metadata",
        9,
        topics=[{"name": t}],
        allow_auto_topic_creation=False,
        quiet=True,
        retry=(),
        until=lambda m: m.topics[0].error_code,
    )
    _commit(s, g, t, 5, retry=(), label="topic-gone")


def by_topic_id(s):
    t = s.topic()
    g = s.name("g")
    _commit(s, g, t, 44, version=10, metadata="by id")
    _fetch(s, g, {t: [0, 1]}, version=10)
    _fetch(s, g, version=10, label="all")
    _commit(s, g, t, 45, version=9, label="by-name")
    _fetch(s, g, version=10, label="all-again", pick=lambda a: [len(g["topics"]) for g in a["groups"]])


def with_epochs_of_unknown_members(s):
    t = s.topic()
    _commit(s, s.name("g"), t, 5)
    _fetch(s, s.name("g"), {t: [0]}, version=9, member_id="nobody", member_epoch=3, label="classic-group-other-member")
    _fetch(s, s.name("none"), {t: [0]}, version=9, member_id="nobody", member_epoch=3, label="unknown-group")
    _fetch(s, s.name("g"), {t: [0]}, version=9, member_id=None, member_epoch=-1, label="as-an-admin")


def repeated_topics(s):
    t, none = s.topic(partitions=3), s.name("none")
    (m,) = stable(s, s.name("g"), "a", topics=(t,))
    who = {"generation_id_or_member_epoch": m.generation, "member_id": m.id}

    def entry(name, *partitions):
        rows = [{"partition_index": n, "committed_offset": 3, "committed_metadata": ""} for n in partitions]
        return {"name": name, "partitions": rows}

    asked = {
        "known": [entry(t, 0, 0), entry(t, 1)],
        "and-unknown": [entry(t, 0), entry(none, 0), entry(t, 1, 7), entry(none, 1)],
        "empty": [entry(t), entry(none), entry("")],
    }
    for label, topics in asked.items():
        s.ask("OffsetCommit", 8, label=label, group_id=m.group, topics=topics, retry=(), **who)
        s.ask("OffsetCommit", 8, label=f"{label}-refused", group_id=m.group, topics=topics, retry=())
        rows = [
            {"name": one["name"], "partitions": [{"partition_index": p["partition_index"]} for p in one["partitions"]]}
            for one in topics
        ]
        for group in (m.group, s.name("nobody")):
            s.ask("OffsetDelete", 0, label=label, group_id=group, topics=rows, retry=())
    _fetch(s, m.group)


def endless_retention(s):
    t = s.topic()
    for days in (2**63 - 1, -2, 0, -(2**63)):
        _commit(s, s.name(f"g{days}"), t, 5, version=2, retention_time_ms=days, label=f"{days}")
