"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups."""

from tests.differential.members import Member, in_state, join_fields, listed, stable, subscription


def _describe(s, group, version=5, **options):
    return s.ask("DescribeGroups", version, groups=[group], **options)


def versions(s):
    t = s.topic()
    for version in range(10):
        g = s.name(f"g{version}")
        first = s.ask("JoinGroup", version, label="no-id", retry=(), **join_fields(g, topics=(t,)))
        if version > 3:
            first = s.ask("JoinGroup", version, label="with-id", **join_fields(g, first.member_id, (t,)))
        place = {"group_id": g, "generation_id": first.generation_id, "member_id": first.member_id}
        named = {"protocol_type": "consumer", "protocol_name": "range"} if version > 4 else {}
        s.ask(
            "SyncGroup",
            min(version, 5),
            assignments=[{"member_id": first.member_id, "assignment": b"mine"}],
            **place,
            **named,
        )
        s.ask("Heartbeat", min(version, 4), **place)
        who = {"members": [{"member_id": first.member_id}]} if version > 2 else {"member_id": first.member_id}
        s.ask("LeaveGroup", min(version, 5), group_id=g, **who)


def join_refused(s):
    g = s.name("g")
    good = join_fields(g)
    s.ask("JoinGroup", 7, label="empty-group", retry=(), **join_fields(""))
    s.ask("JoinGroup", 7, label="unknown-member", retry=(), **join_fields(g, "nobody"))
    for timeout in (0, 5999, 1_800_001, -1):
        s.ask("JoinGroup", 7, label=f"session-{timeout}", retry=(), **{**good, "session_timeout_ms": timeout})
    s.ask("JoinGroup", 7, label="no-protocols", retry=(), **{**good, "protocols": []})
    s.ask("JoinGroup", 7, label="no-protocol-type", retry=(), **{**good, "protocol_type": ""})
    s.ask("JoinGroup", 3, label="no-protocols", retry=(), **{**good, "protocols": []})
    _describe(s, g, pick=lambda a: [a["groups"][0]["error_code"], a["groups"][0]["members"]])
    one = Member(s, s.name("h"), "one")
    one.join(quiet=True)
    s.ask(
        "JoinGroup",
        3,
        on="two",
        label="other-protocol-type",
        retry=(),
        **join_fields(one.group, protocol_type="connect"),
    )
    s.ask(
        "JoinGroup", 3, on="two", label="other-protocols", retry=(), **join_fields(one.group, protocols={"mine": b""})
    )
    s.ask(
        "JoinGroup", 7, on="two", label="unknown-member-of-a-known-group", retry=(), **join_fields(one.group, "nobody")
    )
    s.ask(
        "JoinGroup",
        7,
        on="two",
        label="rebalance-timeout-0",
        **{**join_fields(s.name("i")), "rebalance_timeout_ms": 0},
        retry=(),
    )


def one_member(s):
    m = Member(s, s.name("g"), "a", version=9)
    m.join()
    listed(s, m.group, s.topic())
    _describe(s, m.group, label="before-sync")
    m.beat(label="before-sync")
    m.sync({m.id: b"all"})
    m.sync(label="again")
    m.beat()
    _describe(s, m.group)
    m.join(label="again")
    m.beat(label="before-sync-2")
    m.sync({m.id: b"more"}, label="2")
    m.leave()
    m.beat(label="after-leaving")
    _describe(s, m.group, label="empty")
    m.join(label="with-the-old-id", retry=())


def two_members(s):
    t = s.topic(partitions=2)
    g = s.name("g")
    a, b = Member(s, g, "a", topics=(t,)), Member(s, g, "b", topics=(t,))
    a.join()
    a.sync({a.id: b"everything"})
    coming = b.start_joining()
    in_state(s, g, "PreparingRebalance")
    a.beat(label="told-to-join-again")
    _describe(s, g, label="preparing", hide=("member_metadata",))
    again = a.start_joining()
    a.joined(again, label="leader")
    b.joined(coming, label="follower")
    _describe(s, g, label="completing", hide=("member_metadata",))
    waiting = s.send("SyncGroup", 5, on="b", **b.sync_fields(protocol_type="consumer", protocol_name="range"))
    a.sync({a.id: b"for a", b.id: b"for b"})
    s.finish(waiting, label="follower")
    _describe(s, g)
    a.beat()
    b.beat()
    b.leave()
    in_state(s, g, "PreparingRebalance")
    a.beat(label="the-other-has-left")
    a.join(label="alone-again")


def sync_refused(s):
    (m,) = stable(s, s.name("g"), "a")
    m.sync(fields={"generation_id": 7}, label="generation-7", retry=())
    m.sync(fields={"generation_id": -1}, label="generation-minus-1", retry=())
    m.sync(fields={"member_id": "nobody"}, label="unknown-member", retry=())
    m.sync(fields={"group_id": s.name("none")}, label="unknown-group", retry=())
    m.sync(fields={"group_id": ""}, label="empty-group", retry=())
    m.sync(version=5, fields={"protocol_type": "connect", "protocol_name": "range"}, label="other-type", retry=())
    m.sync(version=5, fields={"protocol_type": "consumer", "protocol_name": "sticky"}, label="other-protocol", retry=())
    m.sync(version=5, label="without-type", retry=())
    m.sync(version=5, fields={"protocol_type": "consumer", "protocol_name": "range"}, label="right-ones", retry=())
    m.sync({"nobody": b"x", m.id: b"new"}, label="of-a-stable-group", retry=())


def sync_gaps(s):
    m = Member(s, s.name("g"), "a")
    m.join(quiet=True)
    m.sync({"somebody": b"x"}, label="assignment-of-a-stranger-only")
    m.join(label="again")
    m.sync(label="no-assignments")
    _describe(s, m.group)


def heartbeat_refused(s):
    (m,) = stable(s, s.name("g"), "a")
    for label, fields in {
        "generation": {"generation_id": 9},
        "generation-minus-1": {"generation_id": -1},
        "member": {"member_id": "nobody"},
        "empty-member": {"member_id": ""},
        "group": {"group_id": s.name("none")},
        "empty-group": {"group_id": ""},
        "instance": {"group_instance_id": "i"},
    }.items():
        m.beat(fields=fields, label=label, retry=())
    m.beat(version=0)


def leave_variants(s):
    a, b = stable(s, s.name("g"), "a", "b")
    none = s.name("none")
    s.ask("LeaveGroup", 2, label="unknown-group", retry=(), group_id=none, member_id="x")
    s.ask("LeaveGroup", 5, label="unknown-group", retry=(), group_id=none, members=[{"member_id": "x"}])
    s.ask("LeaveGroup", 5, label="empty-group", retry=(), group_id="", members=[{"member_id": "x"}])
    s.ask(
        "LeaveGroup",
        5,
        label="unknown-member",
        retry=(),
        group_id=a.group,
        members=[{"member_id": "x"}, {"member_id": "", "group_instance_id": "i"}],
    )
    s.ask("LeaveGroup", 2, label="unknown-member", retry=(), group_id=a.group, member_id="x")
    s.ask("LeaveGroup", 5, label="nobody", retry=(), group_id=a.group, members=[])
    s.ask(
        "LeaveGroup",
        5,
        label="both",
        group_id=a.group,
        ordered=True,
        members=[{"member_id": b.id, "reason": "done"}, {"member_id": a.id}],
    )
    _describe(s, a.group)


def leave_while_others_join(s):
    a, b = stable(s, s.name("g"), "a", "b")
    again = a.start_joining()
    in_state(s, a.group, "PreparingRebalance")
    b.leave()
    a.joined(again, label="goes-on-without-the-other")


def protocols_by_vote(s):
    g = s.name("g")
    a = Member(s, g, "a", protocols={"x": b"a-x", "y": b"a-y", "z": b"a-z"})
    b = Member(s, g, "b", protocols={"z": b"b-z", "y": b"b-y"})
    c = Member(s, g, "c", protocols={"w": b"c-w", "y": b"c-y", "z": b"c-z"})
    a.join(label="first-of-its-own")
    a.sync(quiet=True)
    coming = b.start_joining()
    in_state(s, g, "PreparingRebalance")
    a.joined(a.start_joining(), label="two")
    b.joined(coming, quiet=True)
    third = c.start_joining()
    in_state(s, g, "PreparingRebalance")
    sent = [m.start_joining() for m in (a, b)]
    a.joined(sent[0], label="three")
    b.joined(sent[1], label="follower")
    c.joined(third, quiet=True)
    _describe(s, g, hide=("member_metadata",))


def rejoin(s):
    t = s.topic()
    a, b = stable(s, s.name("g"), "a", "b", topics=(t,))
    b.join(label="follower-with-the-same-list")
    a.beat(label="no-rebalance")
    b.fields = {"topics": (t, s.name("more"))}
    coming = b.start_joining()
    in_state(s, a.group, "PreparingRebalance")
    a.joined(a.start_joining(), label="follower-with-another-list")
    b.joined(coming, quiet=True)
    a.sync({a.id: b"1", b.id: b"2"}, label="leader")
    b.sync(label="follower")
    again = a.start_joining()
    in_state(s, a.group, "PreparingRebalance")
    b.beat(label="the-leader-joins-again")
    b.joined(b.start_joining(), label="follower")
    a.joined(again, label="leader-again")


def static_member(s):
    t = s.topic()
    who = {"group_instance_id": "box-1", "topics": (t,)}
    one = Member(s, s.name("g"), "one", version=9, **who)
    one.join()
    one.sync({one.id: b"mine"}, fields={"group_instance_id": "box-1"})
    back = Member(s, one.group, "back", version=9, **who)
    back.join(label="comes-back-without-id")
    back.sync(label="comes-back", fields={"group_instance_id": "box-1"})
    one.beat(fields={"group_instance_id": "box-1"}, label="old-id")
    one.beat(label="old-id-without-instance")
    one.sync(fields={"group_instance_id": "box-1"}, label="old-id")
    one.join(label="old-id", retry=())
    back.beat(fields={"group_instance_id": "box-1"})
    _describe(s, one.group)
    older = Member(s, one.group, "older", version=8, **who)
    older.join(label="comes-back-with-v8")
    older.sync(label="comes-back-with-v8", fields={"group_instance_id": "box-1"})
    s.ask(
        "LeaveGroup",
        5,
        label="old-id",
        group_id=one.group,
        members=[{"member_id": one.id, "group_instance_id": "box-1"}],
    )
    s.ask(
        "LeaveGroup",
        5,
        label="by-instance-alone",
        group_id=one.group,
        members=[{"member_id": "", "group_instance_id": "box-1"}],
    )
    _describe(s, one.group, label="left")


def two_static_members(s):
    g = s.name("g")
    a = Member(s, g, "a", version=9, group_instance_id="left")
    b = Member(s, g, "b", version=9, group_instance_id="right")
    a.join()
    a.sync(quiet=True)
    coming = b.start_joining()
    in_state(s, g, "PreparingRebalance")
    a.joined(a.start_joining(), label="leader")
    b.joined(coming, label="follower")
    a.sync({a.id: b"l", b.id: b"r"}, fields={"group_instance_id": "left"})
    b.sync(fields={"group_instance_id": "right"})
    again = Member(s, g, "again", version=9, group_instance_id="right")
    again.join(label="follower-comes-back")
    a.beat(fields={"group_instance_id": "left"}, label="no-rebalance")
    leader = Member(s, g, "leader", version=9, group_instance_id="left")
    leader.join(label="leader-comes-back")
    again.beat(fields={"group_instance_id": "right"}, label="no-rebalance")
    s.ask("OffsetFetch", 7, group_id=g, topics=None)


def describe_states(s):
    for version in range(7):
        _describe(s, s.name("none"), version, label="unknown")
    (m,) = stable(s, s.name("g"), "a")
    for version in range(7):
        _describe(s, m.group, version)
    _describe(s, m.group, 3, include_authorized_operations=True, label="operations")
    s.ask("DescribeGroups", 6, label="two", groups=[m.group, s.name("none")])
    s.ask("DescribeGroups", 6, label="twice", groups=[m.group, m.group])
    s.ask("DescribeGroups", 5, label="none", groups=[])


def list_groups(s):
    t = s.topic()
    stable(s, s.name("stable"), "a")
    joining = Member(s, s.name("joining"), "b")
    joining.join(quiet=True)
    listed(s, joining.group, t)
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    s.ask("OffsetCommit", 8, quiet=True, group_id=s.name("offsets-only"), topics=[{"name": t, "partitions": [row]}])

    def groups(a):
        return a["groups"]

    for version in range(6):
        s.ask("ListGroups", version, mine=True, pick=groups)
    for states in (
        ["Stable"],
        ["Empty"],
        ["CompletingRebalance", "Stable"],
        ["stable"],
        ["Dead"],
        ["NoSuchState"],
        [" Stable\n"],
    ):
        s.ask("ListGroups", 4, mine=True, pick=groups, states_filter=states, label="-".join(states))
    for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["nonsense"]):
        s.ask(
            "ListGroups",
            5,
            mine=True,
            pick=lambda a: [a["error_code"], a["groups"]],
            types_filter=types,
            label="-".join(types),
        )
    s.ask("ListGroups", 5, mine=True, pick=groups, types_filter=["classic"], states_filter=["Empty"], label="both")


def delete_groups(s):
    t = s.topic()
    (m,) = stable(s, s.name("busy"), "a")
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    for version in range(4):
        g = s.name(f"g{version}")
        s.ask("OffsetCommit", 8, quiet=True, group_id=g, topics=[{"name": t, "partitions": [row]}])
        s.ask("DeleteGroups", version, groups_names=[g, s.name("none"), m.group])
        s.ask("OffsetFetch", 7, group_id=g, topics=None, label="gone")
    m.leave()
    s.ask("DeleteGroups", 2, groups_names=[m.group], label="after-leaving")
    s.ask("DeleteGroups", 2, groups_names=[m.group], label="again")
    s.ask("DeleteGroups", 2, groups_names=[s.name("x"), s.name("x")], label="twice")
    _describe(s, m.group, label="deleted")


def too_slow_to_join(s):
    g = s.name("g")
    a, b = stable(s, g, "a", "b", rebalance_timeout_ms=700)
    coming = a.start_joining(rebalance_timeout_ms=700)
    a.joined(coming, label="the-other-is-dropped")
    b.beat(label="dropped")
    b.join(label="with-the-old-id", retry=())


def session_ends(s):
    a, b = stable(s, s.name("g"), "a", "b", session_timeout_ms=6000)
    in_state(s, a.group, "Stable")
    for _ in range(9):
        a.s.ask(
            "Heartbeat",
            4,
            on="a",
            quiet=True,
            group_id=a.group,
            generation_id=a.generation,
            member_id=a.id,
            wait=0.9,
            until=lambda h: h.error_code == 27,
        )
    a.beat(label="the-other-is-gone")
    a.join(label="alone")
    b.beat(label="expired")


def pending_members(s):
    g = s.name("g")
    (a,) = stable(s, g, "a")
    first = s.ask("JoinGroup", 7, on="b", label="gets-an-id", retry=(), **join_fields(g))
    a.beat(label="nothing-yet")
    _describe(s, g, label="one-member")
    s.ask(
        "SyncGroup",
        4,
        on="b",
        label="pending",
        retry=(),
        group_id=g,
        generation_id=a.generation,
        member_id=first.member_id,
    )
    s.ask(
        "Heartbeat",
        4,
        on="b",
        label="pending",
        retry=(),
        group_id=g,
        generation_id=a.generation,
        member_id=first.member_id,
    )
    s.ask("LeaveGroup", 5, on="b", label="pending", group_id=g, members=[{"member_id": first.member_id}])
    s.ask("JoinGroup", 7, on="b", label="after-leaving", retry=(), **join_fields(g, first.member_id))


def other_protocol_types(s):
    g = s.name("g")
    one = Member(s, g, "one", version=9, protocols={"compatible": b"\1\2", "eager": b"\3"}, protocol_type="connect")
    one.join()
    one.sync({one.id: b"tasks"}, version=5, fields={"protocol_type": "connect", "protocol_name": "compatible"})
    _describe(s, g)
    s.ask("ListGroups", 5, mine=True, pick=lambda a: a["groups"])
    t = s.topic()
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    s.ask("OffsetCommit", 8, group_id=g, topics=[{"name": t, "partitions": [row]}], label="from-outside")


def client_ids(s):
    for label, client in (("plain", "my app"), ("empty", ""), ("null", None)):
        s.ask("JoinGroup", 4, on=label, client=client, label=label, retry=(), **join_fields(s.name(label)))
    s.note("subscription", subscription("t").hex())
