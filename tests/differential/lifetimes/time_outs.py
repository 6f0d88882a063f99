"""What time takes away: sessions of members, offsets with a lifetime, transactions."""

from tests.differential.members import Member, stable
from tests.differential.picking import seen
from tests.differential.producers import Producer, finished


def session_of_a_member(s):
    t = s.topic()
    (m,) = stable(s, s.name("g"), "m", topics=(t,), session_timeout_ms=600)
    s.ask("DescribeGroups", 5, groups=[m.group], until=lambda a: a.groups[0].group_state == "Dead")
    m.beat(label="too-late")


def session_of_one_of_two(s):
    t = s.topic()
    m, n = stable(s, s.name("g"), "m", "n", topics=(t,), session_timeout_ms=1500)
    mine = {"group_id": m.group, "generation_id": m.generation, "member_id": m.id}
    s.ask("Heartbeat", 4, on="m", quiet=True, **mine, until=lambda a: a.error_code)
    m.beat(label="rebalance")
    m.join(label="alone")
    n.beat(label="too-late")


def session_too_short(s):
    Member(s, s.name("g"), "m", session_timeout_ms=499).join(label="too-short")
    Member(s, s.name("g"), "n", session_timeout_ms=500).join(label="short-enough")


def offsets_with_a_lifetime(s):
    t = s.topic()
    for version in (2, 3, 4):
        g = s.name(f"g{version}")
        row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        rows = [{"name": t, "partitions": [row]}]
        s.ask("OffsetCommit", version, group_id=g, topics=rows, retention_time_ms=1)
        wanted = {"group_id": g, "topics": [{"name": t, "partition_indexes": [0]}]}
        s.ask("OffsetFetch", 7, **wanted, label="expired",
              until=lambda a: a.topics[0].partitions[0].committed_offset == -1)  # fmt: skip
        s.ask("DescribeGroups", 5, groups=[g], label="expired", until=lambda a: a.groups[0].group_state == "Dead")


def offsets_of_a_group_with_members(s):
    t = s.topic()
    (m,) = stable(s, s.name("g"), "m", topics=(t,))
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    mine = {"generation_id_or_member_epoch": m.generation, "member_id": m.id}
    s.ask("OffsetCommit", 3, group_id=m.group, topics=[{"name": t, "partitions": [row]}], retention_time_ms=1, **mine)
    g = s.name("probe")
    s.ask("OffsetCommit", 3, group_id=g, topics=[{"name": t, "partitions": [row]}], retention_time_ms=1, quiet=True)
    s.ask("OffsetFetch", 7, group_id=g, topics=[{"name": t, "partition_indexes": [0]}], quiet=True,
          until=lambda a: a.topics[0].partitions[0].committed_offset == -1)  # fmt: skip
    s.ask("OffsetFetch", 7, group_id=m.group, topics=[{"name": t, "partition_indexes": [0]}], label="with-a-member")


def transaction(s):
    t, p = s.topic(), Producer(s, timeout=1000)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, b"a", quiet=True)
    finished(s, t, 2)
    s.fetch(t, isolation_level=1, pick=seen)
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], until=_is_over)
    p.end(label="too-late")
    p.produce(t, b"b", at=1, label="too-late")
    p.init(label="again")


def transaction_restarted(s):
    t, p = s.topic(), Producer(s, timeout=3000)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, b"a", quiet=True)
    yield
    s.ready(t)
    finished(s, t, 2)
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], until=_is_over)


def transaction_of_the_second_version(s):
    t, p = s.topic(), Producer(s, timeout=1000)
    p.init(quiet=True)
    p.produce(t, b"a", version=12, quiet=True)
    finished(s, t, 2)
    p.produce(t, b"b", at=1, version=12, label="too-late")
    p.end(version=5, label="too-late")


def _is_over(a):
    return a.transaction_states[0].transaction_state == "CompleteAbort"
