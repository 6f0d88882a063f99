"""What remains of groups, offsets and transactions after a restart of the broker."""

from tests.differential.members import Consumer, Member, ShareMember, acquired, in_state, settle, share_setting, stable
from tests.differential.picking import seen
from tests.differential.producers import Producer, finished


def _commit(s, group, topic, offset, version=8, **options):
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
    return s.ask("OffsetCommit", version, group_id=group, topics=[{"name": topic, "partitions": [row]}], **options)


def _fetched(s, group, topic, **options):
    s.ask("OffsetFetch", 7, group_id=group, topics=[{"name": topic, "partition_indexes": [0]}], **options)


def offsets(s):
    t, g, gone = s.topic(), s.name("g"), s.name("gone")
    for offset in (1, 5):
        _commit(s, g, t, offset, quiet=True)
    _commit(s, gone, t, 7, quiet=True)
    s.ask("DeleteGroups", 2, groups_names=[gone], quiet=True)
    yield
    s.ready(t)
    _fetched(s, g, t)
    _fetched(s, gone, t, label="deleted")
    s.ask("DescribeGroups", 5, groups=[g, gone])
    s.ask("ListGroups", 4, mine=True, pick=lambda a: a["groups"])
    rows = [{"name": t, "partitions": [{"partition_index": 0}]}]
    s.ask("OffsetDelete", 0, group_id=g, topics=rows)
    _fetched(s, g, t, label="deleted-later")


LONG = {"session_timeout_ms": 600_000}  # the start of a broker may take a while


def classic_group(s):
    t = s.topic()
    m, n = stable(s, s.name("g"), "m", "n", topics=(t,), **LONG)
    _commit(s, m.group, t, 3, generation_id_or_member_epoch=m.generation, member_id=m.id, quiet=True)
    yield
    s.ask("DescribeGroups", 5, groups=[m.group])
    m.beat()
    n.beat()
    m.beat(fields={"generation_id": 0}, label="other-generation")
    _commit(s, m.group, t, 4, generation_id_or_member_epoch=m.generation, member_id=m.id)
    _fetched(s, m.group, t)
    n.leave()
    m.beat(label="the-other-left")
    m.join(label="again")
    m.sync({m.id: b"x"}, label="again")


def static_members(s):
    t = s.topic()
    g = s.name("g")
    m, n = (Member(s, g, name, version=9, group_instance_id=name, topics=(t,), **LONG) for name in ("m", "n"))
    m.join(quiet=True)
    m.sync(quiet=True)
    coming = n.start_joining()
    in_state(s, g, "PreparingRebalance")
    m.joined(m.start_joining(), quiet=True)
    n.joined(coming, quiet=True)
    m.sync({m.id: b"left", n.id: b"right"}, fields={"group_instance_id": "m"}, quiet=True)
    n.sync(fields={"group_instance_id": "n"}, quiet=True)
    yield
    s.ask("DescribeGroups", 5, groups=[g])
    m.beat(fields={"group_instance_id": "m"})
    back = Member(s, g, "back", version=9, group_instance_id="n", topics=(t,), **LONG)
    back.join(label="comes-back")
    back.sync(label="comes-back", fields={"group_instance_id": "n"})
    n.beat(fields={"group_instance_id": "n"}, label="old-id")
    m.beat(fields={"group_instance_id": "m"}, label="no-rebalance")
    s.ask("LeaveGroup", 5, group_id=g, members=[{"member_id": "", "group_instance_id": "n"}], label="by-instance")
    m.beat(fields={"group_instance_id": "m"}, label="the-other-left")


def consumer_group(s):
    t = s.topic(partitions=2)
    g = s.name("g")
    m, n = Consumer(s, g, "m", t), Consumer(s, g, "n", t)
    m.join(quiet=True)
    n.join(quiet=True)
    settle(s, g, m, n)
    _commit(s, g, t, 3, 9, generation_id_or_member_epoch=m.epoch, member_id=m.id, quiet=True)
    yield
    s.ready(t, 2)
    s.ask("ConsumerGroupDescribe", 0, group_ids=[g])
    m.beat()
    n.beat(report=True)
    _fetched(s, g, t)
    _commit(s, g, t, 4, 9, generation_id_or_member_epoch=m.epoch, member_id=m.id)
    n.leave()
    s.ask("ConsumerGroupDescribe", 0, group_ids=[g], label="one-left", until=lambda a: len(a.groups[0].members) == 1)


def share_group(s):
    t, g = s.topic(), s.name("g")
    share_setting(s, g, share_auto_offset_reset="earliest")
    s.produce(t, b"0", b"1", b"2", b"3", quiet=True)
    m = ShareMember(s, g, "m", t)
    m.assigned()
    m.until_acquired((t, 0), count=4, quiet=True)
    m.acknowledge({(t, 0): [(0, 0, [1]), (1, 1, [2]), (3, 3, [3])]}, quiet=True)
    yield
    s.ready(t)
    share_setting(s, g, share_auto_offset_reset="earliest")
    s.ask("ShareGroupDescribe", 1, group_ids=[g])
    m.heartbeat(label="goes-on")
    m.fetch(label="session-is-gone", pick=acquired)
    m.acknowledge({(t, 0): [(2, 2, [1])]}, label="session-is-gone")
    m.until_acquired((t, 0), session=0, count=2, label="new-session", pick=acquired)
    m.acknowledge({(t, 0): [(1, 2, [1])]}, label="both")
    s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": g, "topics": None}], hide=("leader_epoch",))


def share_group_of_deleted_offsets(s):
    t, g = s.topic(), s.name("g")
    share_setting(s, g, share_auto_offset_reset="earliest")
    s.produce(t, b"0", b"1", quiet=True)
    m = ShareMember(s, g, "m", t)
    m.assigned()
    m.until_acquired((t, 0), count=2, quiet=True)
    m.acknowledge({(t, 0): [(0, 1, [1])]}, quiet=True)
    m.fetch(session=-1, quiet=True)
    m.leave(quiet=True)
    rows = [{"topic_name": t, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    s.ask("AlterShareGroupOffsets", 0, group_id=g, topics=rows, retry=(), quiet=True)
    yield
    s.ready(t)
    s.ask("ShareGroupDescribe", 1, group_ids=[g])
    s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": g, "topics": None}], hide=("leader_epoch",))
    m.epoch = m.session = 0
    m.assigned()
    m.until_acquired((t, 0), label="from-there", pick=acquired)


def transactions_that_ended(s):
    t, p = s.topic(), Producer(s, timeout=900_000)
    p.init(quiet=True)
    for n, commit in enumerate((True, False)):
        p.add(t, quiet=True)
        p.produce(t, b"%d" % n, at=n, quiet=True)
        p.end(commit, quiet=True)
        finished(s, t, 2 * (n + 1))
    yield
    s.ready(t)
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name])
    s.ask("ListTransactions", 0, mine=True, pick=lambda a: a["transaction_states"])
    s.fetch(t, isolation_level=1, label="committed", pick=_read)
    s.ask(
        "DescribeProducers",
        0,
        topics=[{"name": t, "partition_indexes": [0]}],
        hide=("last_timestamp", "coordinator_epoch"),
    )
    p.add(t, label="goes-on")
    p.produce(t, b"2", at=2, label="goes-on")
    p.end(label="goes-on")
    finished(s, t, 6)
    before = p.id, p.epoch
    p.init(label="again")
    s.note("same-id-next-epoch", (p.id, p.epoch) == (before[0], before[1] + 1))


def transaction_that_is_open(s):
    t, p, g = s.topic(), Producer(s, timeout=900_000), s.name("g")
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, b"0", quiet=True)
    p.offsets_to(g, quiet=True)
    p.offsets(g, t, 9, quiet=True)
    yield
    s.ready(t)
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], hide=("partitions",))
    s.ask(
        "DescribeProducers",
        0,
        topics=[{"name": t, "partition_indexes": [0]}],
        hide=("last_timestamp", "coordinator_epoch"),
    )
    s.fetch(t, isolation_level=1, label="open", pick=seen)
    _fetched(s, g, t, label="open")
    _fetched(s, g, t, label="open-and-stable", require_stable=True, retry=())
    p.produce(t, b"1", at=1, label="goes-on")
    p.end()
    finished(s, t, 3)
    s.fetch(t, isolation_level=1, label="committed", pick=_read)
    _fetched(s, g, t, label="committed", require_stable=True, retry=(88,))


def transaction_that_is_fenced(s):
    t, p = s.topic(), Producer(s, timeout=900_000)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, b"0", quiet=True)
    yield
    s.ready(t)
    old = p.epoch
    p.init(label="aborts-it")
    finished(s, t, 2)
    s.fetch(t, isolation_level=1, label="aborted", pick=_read)
    p.produce(t, b"1", at=1, producer_epoch=old, sequence=1, label="old-epoch")


def second_version(s):
    t, p = s.topic(), Producer(s, timeout=900_000)
    p.init(quiet=True)
    p.produce(t, b"0", version=12, quiet=True)
    yield
    s.ready(t)
    p.produce(t, b"1", at=1, version=12, label="goes-on")
    p.end(version=5)
    finished(s, t, 3)
    s.fetch(t, isolation_level=1, label="committed", pick=_read)
    p.produce(t, b"2", at=2, version=12, label="next")
    p.end(False, version=5)


def _read(a):
    """Batches as offsets, attributes and values; of markers the kind."""
    part = a["responses"][0]["partitions"][0]
    rows = [
        [r["base_offset"], r["attributes"], [i["key" if r["attributes"] & 32 else "value"] for i in r["items"]]]
        for r in part["records"]
    ]
    return {"error": part["error_code"], "aborted": part["aborted_transactions"], "batches": rows}
