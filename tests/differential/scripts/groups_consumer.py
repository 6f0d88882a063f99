"""Groups of the consumer protocol (KIP-848)."""

import time
import uuid

from tests.differential.members import Consumer, Member, assignment, known, settle, shares, sizes, stable


def _pause():
    time.sleep(1.2)  # longer than a broker may hold a new assignment back


def _describe(s, group, version=1, **options):
    return s.ask("ConsumerGroupDescribe", version, group_ids=[group], **options)


def one_member(s):
    t = s.topic(partitions=3)
    a = Consumer(s, known(s, s.name("g"), t), "a", t)
    a.join()
    a.beat(label="knows-it", report=True)
    a.beat(label="nothing-new")
    for version in (0, 1):
        _describe(s, a.group, version)
    s.ask(
        "ConsumerGroupDescribe",
        1,
        group_ids=[a.group],
        include_authorized_operations=True,
        label="operations",
        pick=lambda a: a["groups"][0]["authorized_operations"],
    )
    s.ask("ListGroups", 5, mine=True, pick=lambda a: a["groups"])
    s.ask("DescribeGroups", 5, groups=[a.group], label="as-a-classic-one")
    s.ask("DescribeGroups", 6, groups=[a.group], label="as-a-classic-one")
    a.leave()
    _describe(s, a.group, label="empty")
    a.beat(label="after-leaving")
    s.ask("DeleteGroups", 2, groups_names=[a.group])
    _describe(s, a.group, label="deleted")


def ids_by_the_broker(s):
    t = s.topic()
    g = known(s, s.name("g"), t)
    one = s.ask(
        "ConsumerGroupHeartbeat",
        0,
        group_id=g,
        member_id="",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[t],
        topic_partitions=[],
    )
    s.ask("ConsumerGroupHeartbeat", 0, group_id=g, member_id=one.member_id, member_epoch=one.member_epoch, label="next")
    s.note("length", len(one.member_id))
    s.ask("ConsumerGroupHeartbeat", 0, group_id=g, member_id=one.member_id, member_epoch=-1, label="leaves")


def refused(s):
    t = s.topic()
    g = known(s, s.name("g"), t)
    good = {
        "group_id": g,
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": [t],
        "topic_partitions": [],
    }
    changes = {
        "empty-group": {"group_id": ""},
        "blank-group": {"group_id": "  "},
        "empty-member": {"member_id": ""},
        "no-rebalance-timeout": {"rebalance_timeout_ms": -1},
        "rebalance-timeout-0": {"rebalance_timeout_ms": 0},
        "owned-null": {"topic_partitions": None},
        "owned-some": {"topic_partitions": [{"topic_id": s.ids[t], "partitions": [0]}]},
        "no-topics": {"subscribed_topic_names": None},
        "empty-topics": {"subscribed_topic_names": []},
        "empty-instance": {"instance_id": ""},
        "empty-rack": {"rack_id": ""},
        "empty-assignor": {"server_assignor": ""},
        "unknown-assignor": {"server_assignor": "best"},
        "epoch-3-of-nobody": {"member_epoch": 3},
        "leaves-nobody": {"member_epoch": -1},
        "epoch-minus-2-without-instance": {"member_epoch": -2},
        "epoch-minus-3": {"member_epoch": -3},
        "bad-pattern": {"subscribed_topic_names": None, "subscribed_topic_regex": "("},
    }
    for label, change in changes.items():
        s.ask("ConsumerGroupHeartbeat", 1, label=label, retry=(), **{**good, **change})
    _describe(s, g)


def refused_members(s):
    t, u = s.topic("t"), s.topic("u")
    a = Consumer(s, known(s, s.name("g"), t, u), "a", t)
    a.join(quiet=True)
    _pause()
    a.beat(report=True, quiet=True, subscribed_topic_names=[t, u])
    a.beat(report=True, quiet=True)
    epoch = a.epoch
    a.beat(member_epoch=epoch + 1, label="epoch-too-high", retry=())
    a.beat(member_epoch=epoch - 1, label="epoch-before", retry=())
    a.beat(
        member_epoch=epoch - 1,
        label="epoch-before-owning-the-same",
        retry=(),
        topic_partitions=[{"topic_id": s.ids[t], "partitions": [0]}],
    )
    a.beat(
        member_epoch=epoch - 1,
        label="epoch-before-owning-more",
        retry=(),
        topic_partitions=[{"topic_id": s.ids[t], "partitions": [0, 1]}],
    )
    a.beat(member_id="nobody", label="unknown-member", retry=())
    a.beat(group_id=s.name("none"), label="unknown-group", retry=())
    again = {**a.fields(member_epoch=0), "topic_partitions": [], **a.joining}
    a.took(s.ask("ConsumerGroupHeartbeat", 1, on="a", label="rejoins-with-0", **again))
    _pause()
    a.beat(subscribed_topic_names=[], label="gives-all-up", until=lambda h: h.assignment is not None)
    a.beat(server_assignor="best", label="unknown-assignor")
    _describe(s, s.name("none"), label="unknown")
    _describe(s, "", label="empty")
    s.ask("ConsumerGroupDescribe", 1, group_ids=[], label="none")
    s.ask("ConsumerGroupDescribe", 1, group_ids=[s.name("x"), s.name("x")], label="twice")


def handover(s):
    t = s.topic(partitions=4)
    g = known(s, s.name("g"), t)
    a, b = Consumer(s, g, "a", t), Consumer(s, g, "b", t)
    a.join()
    a.beat(report=True, label="owns-all")
    _pause()
    b.join()
    a.beat(label="told-to-give-up")
    b.beat(label="waits", report=True)
    _describe(s, a.group, label="in-between")
    a.beat(label="still-holds-all", topic_partitions=[{"topic_id": s.ids[t], "partitions": [0, 1, 2, 3]}])
    a.beat(label="has-given-up", report=True)
    b.beat(label="gets-its-share")
    b.beat(report=True, label="owns-its-share")
    _describe(s, a.group, label="stable")
    _pause()
    b.leave()
    a.beat(label="gets-all-back", until=lambda h: h.assignment is not None)
    a.beat(report=True, label="owns-all-again")


def joins_at_once(s):
    t = s.topic(partitions=6)
    g = known(s, s.name("g"), t)
    members = [Consumer(s, g, name, t) for name in ("a", "b", "c")]
    for m in members:
        m.join(quiet=True)
    settle(s, members[0].group, *members)
    sizes(s, "three", *members)
    members[1].leave()
    settle(s, members[0].group, members[0], members[2])
    sizes(s, "two", members[0], members[2])


def range_assignor(s):
    t, u = s.topic("t", 3), s.topic("u", 3)
    g = known(s, s.name("g"), t, u)
    a, b = (Consumer(s, g, name, t, u, server_assignor="range") for name in ("a", "b"))
    for m in (a, b):
        m.join(quiet=True)
    settle(s, a.group, a, b)
    shares(s, "two", a, b)
    _describe(s, a.group, pick=lambda x: x["groups"][0]["assignor_name"])
    c = Consumer(s, a.group, "aa", t, server_assignor="range")
    c.join(quiet=True)
    settle(s, a.group, a, b, c)
    shares(s, "one-more-with-one-topic", a, b, c)


def assignor_by_vote(s):
    t = s.topic(partitions=2)
    g = known(s, s.name("g"), t)
    a = Consumer(s, g, "a", t)
    b = Consumer(s, g, "b", t, server_assignor="range")
    for m in (a, b):
        m.join(quiet=True)
    settle(s, a.group, a, b)
    _describe(s, a.group, pick=lambda x: x["groups"][0]["assignor_name"])
    shares(s, "two", a, b)


def different_topics(s):
    t, u = s.topic("t", 3), s.topic("u")
    g = known(s, s.name("g"), t, u)
    a, b = Consumer(s, g, "a", t), Consumer(s, g, "b", u)
    for m in (a, b):
        m.join(quiet=True)
    settle(s, a.group, a, b)
    shares(s, "one-each", a, b)
    b.beat(subscribed_topic_names=[t, u], quiet=True)
    settle(s, a.group, a, b)
    s.note("sizes", sorted(sum(map(len, m.owned.values())) for m in (a, b)))
    _describe(s, a.group, hide=("assignment", "target_assignment"))


def unknown_topic(s):
    missing = s.name("later")
    a = Consumer(s, s.name("g"), "a", missing)
    a.join()
    a.beat(label="nothing", report=True)
    s.topic("later", 2)
    a.beat(label="topic-made", until=lambda h: h.assignment is not None)
    _pause()
    a.beat(report=True, quiet=True)
    s.ask("CreatePartitions", 3, topics=[{"name": missing, "count": 3, "assignments": None}])
    a.beat(label="one-more-partition", until=lambda h: h.assignment is not None)
    _pause()
    a.beat(report=True, quiet=True)
    s.ask("DeleteTopics", 6, topics=[{"name": missing}])
    a.beat(label="topic-deleted", until=lambda h: h.assignment is not None)


def patterns(s):
    t = s.topic("p1", 2)
    a = Consumer(s, s.name("g"), "a", subscribed_topic_names=None, subscribed_topic_regex="p[0-9]-" + s.token)
    a.join(quiet=True)
    a.beat(label="matched", until=lambda h: h.assignment is not None and h.assignment.topic_partitions, wait=15)
    settle(s, a.group, a)
    _describe(s, a.group)
    b = Consumer(s, known(s, s.name("h"), t), "b", t, subscribed_topic_regex="")
    b.join(label="empty-pattern")
    a.beat(
        subscribed_topic_regex="nothing-like-it",
        label="other-pattern",
        until=lambda h: h.assignment is not None and not h.assignment.topic_partitions,
    )


def static_members(s):
    t = s.topic(partitions=2)
    g = known(s, s.name("g"), t)
    a = Consumer(s, g, "a", t, instance_id="box")
    a.join()
    a.beat(report=True)
    b = Consumer(s, g, "b", t, instance_id="box")
    b.join(label="in-use")
    a.leave(-2, label="leaves-for-a-while", fields={"instance_id": "box"})
    _describe(s, g, label="away")
    b.join(label="takes-over")
    b.beat(report=True, label="after-taking-over")
    a.beat(label="old-member", instance_id="box")
    _describe(s, g, label="taken-over")
    b.beat(instance_id="other", label="other-instance")
    b.leave(-2, label="without-instance")
    b.leave(-1, label="for-good", fields={"instance_id": "box"})
    _describe(s, g, label="gone")


def too_slow_to_give_up(s):
    t = s.topic(partitions=2)
    g = known(s, s.name("g"), t)
    a = Consumer(s, g, "a", t, rebalance_timeout_ms=800)
    b = Consumer(s, g, "b", t)
    a.join(quiet=True)
    a.beat(report=True, quiet=True)
    _pause()
    b.join(quiet=True)
    a.beat(label="told-to-give-up")
    a.beat(label="put-out", until=lambda h: h.error_code, retry=())
    settle(s, a.group, b)
    shares(s, "the-other-has-all", b)


def offsets(s):
    t = s.topic()
    a = Consumer(s, known(s, s.name("g"), t), "a", t)
    a.join(quiet=True)
    a.beat(report=True, quiet=True)

    def commit(version, offset, epoch, member, label, **options):
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        s.ask(
            "OffsetCommit",
            version,
            group_id=a.group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            label=label,
            retry=(),
            topics=[{"name": t, "partitions": [row]}],
            **options,
        )

    def fetch(version, epoch, member, label):
        who = {"member_id": member, "member_epoch": epoch} if version > 8 else {}
        s.ask(
            "OffsetFetch",
            version,
            label=label,
            retry=(),
            groups=[{"group_id": a.group, "topics": [{"name": t, "partition_indexes": [0]}], **who}],
        )

    commit(9, 5, a.epoch, a.id, "right")
    commit(9, 6, a.epoch - 1, a.id, "epoch-too-low")
    commit(9, 6, a.epoch + 1, a.id, "epoch-too-high")
    commit(9, 6, a.epoch, "nobody", "unknown-member")
    commit(9, 6, -1, "", "simple")
    commit(9, 6, a.epoch, "", "no-member")
    commit(8, 6, a.epoch, a.id, "right")
    commit(8, 6, a.epoch - 1, a.id, "epoch-too-low")
    commit(2, 7, a.epoch, a.id, "right")
    fetch(9, a.epoch, a.id, "right")
    fetch(9, a.epoch - 1, a.id, "epoch-too-low")
    fetch(9, a.epoch + 1, a.id, "epoch-too-high")
    fetch(9, a.epoch, "nobody", "unknown-member")
    fetch(9, -1, None, "as-an-admin")
    fetch(8, 0, None, "without-a-member")
    s.ask(
        "OffsetDelete",
        0,
        group_id=a.group,
        topics=[{"name": t, "partitions": [{"partition_index": 0}]}],
        label="subscribed",
    )
    s.ask("DeleteGroups", 2, groups_names=[a.group], label="with-a-member")
    a.leave(quiet=True)
    commit(9, 8, -1, "", "simple-when-empty")
    fetch(9, -1, None, "at-last")
    s.ask("DeleteGroups", 2, groups_names=[a.group], label="empty")


def classic_calls(s):
    t = s.topic()
    a = Consumer(s, known(s, s.name("g"), t), "a", t)
    a.join(quiet=True)
    s.ask("Heartbeat", 4, group_id=a.group, generation_id=a.epoch, member_id=a.id, label="of-a-new-member", retry=())
    s.ask("Heartbeat", 4, group_id=a.group, generation_id=a.epoch, member_id="nobody", label="unknown-member", retry=())
    s.ask("SyncGroup", 4, group_id=a.group, generation_id=a.epoch, member_id=a.id, label="of-a-new-member", retry=())
    s.ask("LeaveGroup", 5, group_id=a.group, members=[{"member_id": "nobody"}], label="unknown-member")
    s.ask(
        "JoinGroup",
        7,
        group_id=a.group,
        member_id="",
        protocol_type="connect",
        protocols=[{"name": "p", "metadata": b""}],
        label="other-type",
        retry=(),
    )
    s.ask(
        "JoinGroup",
        7,
        group_id=a.group,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"bad"}],
        label="bad-subscription",
        retry=(),
    )
    s.ask("LeaveGroup", 5, group_id=a.group, members=[{"member_id": a.id}], label="of-a-new-member")


def new_member_in_a_classic_group(s):
    t = s.topic(partitions=2)
    old = Member(s, known(s, s.name("g"), t), "old", topics=(t,), version=9)
    old.join(quiet=True)
    old.sync({old.id: assignment(**{t: [0, 1]})}, label="of-both")
    new = Consumer(s, old.group, "new", t)
    new.join(hide=("member_epoch",))
    s.ask("ListGroups", 5, mine=True, pick=lambda a: a["groups"], label="type")
    _describe(s, old.group, hide=("group_epoch", "assignment_epoch", "member_epoch"))
    old.beat(label="told-to-join-again", until=lambda h: h.error_code, retry=())
    old.joined(old.start_joining(), label="joins-again", hide=("generation_id",))
    old.sync(label="gets-less", retry=())
    new.beat(
        label="gets-its-share",
        until=lambda h: h.assignment is not None and h.assignment.topic_partitions,
        hide=("member_epoch",),
    )
    new.beat(report=True, quiet=True)
    new.leave()
    old.beat(label="told-to-join-again", until=lambda h: h.error_code, retry=())


def new_member_where_it_cannot_be(s):
    t = s.topic(partitions=2)
    (odd,) = stable(s, s.name("odd"), "x", topics=(t,))
    Consumer(s, odd.group, "new", t).join(label="assignments-that-are-none", retry=())
    (other,) = stable(s, s.name("other"), "x", protocols={"p": b"1"}, protocol_type="connect")
    Consumer(s, other.group, "y", t).join(label="group-of-another-type", retry=())
    s.ask("ListGroups", 5, mine=True, pick=lambda a: a["groups"], label="type")


def new_member_in_an_empty_classic_group(s):
    t = s.topic(partitions=2)
    (gone,) = stable(s, known(s, s.name("g"), t), "z", topics=(t,))
    gone.leave()
    Consumer(s, gone.group, "late", t).join()
    s.ask("ListGroups", 5, mine=True, pick=lambda a: a["groups"], label="type")
    s.ask("DescribeGroups", 6, groups=[gone.group])


def classic_member_in_a_new_group(s):
    t = s.topic(partitions=2)
    a = Consumer(s, known(s, s.name("g"), t), "a", t)
    a.join(quiet=True)
    a.beat(report=True, quiet=True)
    _pause()
    old = Member(s, a.group, "old", topics=(t,), version=9)
    sent = old.start_joining()
    old.joined(sent, label="joins", hide=("generation_id",))
    a.beat(label="told-to-give-up", until=lambda h: h.assignment is not None)
    a.beat(report=True, label="has-given-up")
    old.beat(label="told-to-join-again", until=lambda h: h.error_code == 27, retry=())
    old.joined(old.start_joining(), label="joins-again", hide=("generation_id",))
    old.sync(label="gets-its-share", retry=())
    _describe(s, a.group, hide=("group_epoch", "assignment_epoch", "member_epoch"))
    old.leave()
    a.beat(
        label="gets-all-back",
        until=lambda h: h.assignment is not None and len(h.assignment.topic_partitions[0].partitions) == 2,
    )


def states(s):
    t = s.topic(partitions=2)
    a = Consumer(s, known(s, s.name("g"), t), "a", t)
    a.join(quiet=True)
    for states_wanted in (["Stable"], ["Reconciling"], ["Assigning"], ["Empty"]):
        s.ask(
            "ListGroups",
            5,
            mine=True,
            states_filter=states_wanted,
            types_filter=["Consumer"],
            pick=lambda x: x["groups"],
            label=states_wanted[0],
        )
    settle(s, a.group, a)
    s.ask("ListGroups", 4, mine=True, states_filter=["Stable"], pick=lambda x: x["groups"], label="v4")
    s.ask("ListGroups", 3, mine=True, pick=lambda x: x["groups"])


def group_settings(s):
    t = s.topic()
    g = known(s, s.name("g"), t)
    rows = [{"name": "consumer.heartbeat.interval.ms", "config_operation": 0, "value": "6000"}]
    s.ask("IncrementalAlterConfigs", 1, resources=[{"resource_type": 32, "resource_name": g, "configs": rows}])
    a = Consumer(s, g, "a", t)
    a.join(quiet=True)
    a.beat(label="interval-6000", until=lambda h: h.heartbeat_interval_ms == 6000)


def zero_id(s):
    s.ask(
        "ConsumerGroupHeartbeat",
        1,
        group_id=s.name("g"),
        member_id=str(uuid.UUID(int=5)),
        member_epoch=0,
        rebalance_timeout_ms=500,
        subscribed_topic_names=[s.name("none")],
        topic_partitions=[],
        rack_id="r1",
        label="with-a-rack",
    )
    _describe(s, s.name("g"))
