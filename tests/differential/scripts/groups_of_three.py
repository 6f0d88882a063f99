"""Classic groups of three and more members: who joins twice, leaves while it waits, or is too slow."""

import itertools

from kafkacodec.errors import INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID
from tests.differential.members import Member, in_state, join_fields, stable


def _silent(s, label, name):
    """A step: whether nothing has come on a member's connection, which is then given up."""
    connection = s.connections.pop(name)
    s.note(label, "no answer" if connection.is_silent() else "an answer")
    connection.close()


def _wait_until_offered(s, group, name, *, by_all=True):
    """Waits until all members offer a protocol, or not all: what a stranger gets who has only this one. No step."""
    wanted = UNKNOWN_MEMBER_ID if by_all else INCONSISTENT_GROUP_PROTOCOL
    request = join_fields(group, "nobody", protocols={name: b""})
    s.ask("JoinGroup", 7, quiet=True, until=lambda a: a.error_code == wanted, **request)


def _rebalanced(s, *members):
    """The members join again, the last one first; the answers of the others are no steps."""
    *others, last = members
    sent = last.start_joining()
    in_state(s, last.group, "PreparingRebalance")
    for member, waiting in [(m, m.start_joining()) for m in others] + [(last, sent)]:
        member.joined(waiting, quiet=True)


def protocol_ties(s):
    names = "range", "roundrobin", "sticky", "cooperative-sticky", "b", "q", "ä"
    for n, (one, other) in enumerate(itertools.combinations(names, 2)):
        g = s.name(f"g{n}")
        a = Member(s, g, "a", protocols={one: b"", other: b""})
        b = Member(s, g, "b", protocols={other: b"", one: b""})
        a.join(quiet=True)
        a.sync(quiet=True)
        sent = b.start_joining()
        in_state(s, g, "PreparingRebalance")
        s.note(f"{one}-or-{other}", a.join(quiet=True).protocol_name)
        b.joined(sent, quiet=True)


def three_protocols(s):
    g = s.name("g")
    lists = ("x", "y", "z"), ("y", "z", "x"), ("z", "x", "y")
    members = [Member(s, g, f"m{n}", protocols=dict.fromkeys(names, b"")) for n, names in enumerate(lists)]
    members[0].join(quiet=True)
    members[0].sync(quiet=True)
    coming = []
    for member in members[1:]:
        coming.append((member, member.start_joining()))
        in_state(s, g, "PreparingRebalance")
    s.note("a-vote-for-each", members[0].join(quiet=True).protocol_name)
    for member, sent in coming:
        member.joined(sent, quiet=True)


BOTH = {"range": b"1", "x": b"2"}


def joins_twice(s):
    a, b, c = stable(s, s.name("g"), "a", "b", "c", protocols=BOTH)
    b.start_joining(protocols={"range": b"3"})
    _wait_until_offered(s, a.group, "x", by_all=False)
    b.name = "b-again"
    new = b.start_joining()
    _wait_until_offered(s, a.group, "x")
    others = [(m, m.start_joining()) for m in (a, c)]
    b.joined(new, label="the-second")
    for member, sent in others:
        member.joined(sent, quiet=True)
    _silent(s, "the-first", "b")


def leaves_while_it_joins(s):
    for version in (2, 5, 7, 9):
        a, b, c = stable(s, s.name(f"g{version}"), "a", "b", "c", version=version, protocols=BOTH)
        coming = b.start_joining(protocols={"range": b"3"})
        _wait_until_offered(s, a.group, "x", by_all=False)
        row = [{"member_id": b.id}]
        s.ask("LeaveGroup", 4, label=f"of-v{version}", group_id=a.group, members=row)
        b.joined(coming, label="left")
        sent = a.start_joining()
        c.join(quiet=True)
        a.joined(sent, quiet=True)
        for name in "abc":
            s.connections.pop(name).close()


def leaves_while_it_syncs(s):
    a, b, c = stable(s, s.name("g"), "a", "b", "c")
    _rebalanced(s, b, c, a)
    s.send("SyncGroup", 4, on="b", **b.sync_fields())
    s.ask("LeaveGroup", 4, on="main", group_id=a.group, members=[{"member_id": b.id}])
    sent = a.start_joining()
    c.join(quiet=True)
    a.joined(sent, label="goes-on", hide=("leader", "members"))
    _silent(s, "waited-for-its-assignment", "b")


def static_leaves_while_it_joins(s):
    a, b = stable(s, s.name("g"), "a", "b", version=9, protocols=BOTH)
    c = Member(s, a.group, "c", version=9, group_instance_id="box")
    coming = c.start_joining()
    in_state(s, a.group, "PreparingRebalance")
    rows = [{"member_id": "", "group_instance_id": "box"}]
    s.ask("LeaveGroup", 5, label="by-instance", group_id=a.group, members=rows)
    c.joined(coming, label="left")
    again = Member(s, a.group, "again", version=9, group_instance_id="box")
    sent = again.start_joining()
    _wait_until_offered(s, a.group, "x", by_all=False)
    same = Member(s, a.group, "same", version=7, group_instance_id="box")
    coming = same.start_joining()
    again.joined(sent, label="another-has-its-instance")
    others = [(m, m.start_joining()) for m in (a, b)]
    same.joined(coming, label="of-the-same-instance", hide=("leader",))
    for member, waiting in others:
        member.joined(waiting, quiet=True)


def promised_ids(s):
    a, b = stable(s, s.name("g"), "a", "b")
    row = join_fields(a.group)
    for version in (5, 9):
        given = s.ask("JoinGroup", version, on="c", label="gets-an-id", retry=(), **row).member_id
        fields = {**join_fields(a.group, given), "group_instance_id": "box"}
        s.ask("JoinGroup", version, on="c", label="with-an-instance", retry=(), **fields)
        leaving = [{"member_id": given}]
        s.ask("LeaveGroup", 5, on="c", label="leaves", group_id=a.group, members=leaving)
        a.beat(label="has-to-join-again")
        _rebalanced(s, b, a)
        a.sync(quiet=True)


def no_time_to_join(s):
    g = s.name("g")
    a = Member(s, g, "a")
    a.join(quiet=True)
    a.join(fields={"rebalance_timeout_ms": -1, "protocols": {"range": b"other"}}, label="time-out-minus-1")
    in_state(s, g, "Empty")
    a.beat(label="was-too-slow-to-sync")
    a.id = ""
    a.version = 0
    a.join(label="v0", fields={"rebalance_timeout_ms": -1})
    a.sync(label="v0")


def joins_and_goes_on(s):
    """What the members of four are told while one joins, one leaves, one commits."""
    t = s.topic()
    a, b, c, d = stable(s, s.name("g"), "a", "b", "c", "d", version=9)
    d.leave(version=5)
    row = {"name": t, "partitions": [{"partition_index": 0, "committed_offset": 3, "committed_metadata": None}]}
    for member in (a, b, c):
        member.beat()
        s.ask("OffsetCommit", 9, on=member.name, label=member.name, group_id=a.group, member_id=member.id,
              generation_id_or_member_epoch=member.generation, topics=[row])  # fmt: skip
    b.sync(version=5, label="while-others-join", fields={"protocol_type": "consumer", "protocol_name": "range"})
    coming = [(m, m.start_joining()) for m in (c, b)]
    a.join(label="leader")
    for member, sent in coming:
        member.joined(sent)
    for member in (a, b, c):
        s.ask("OffsetCommit", 9, on=member.name, label=member.name, group_id=a.group, member_id=member.id,
              generation_id_or_member_epoch=member.generation, topics=[row])  # fmt: skip
    s.ask("DescribeGroups", 6, groups=[a.group])
