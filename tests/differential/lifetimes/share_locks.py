"""Records of share groups whose locks time out, and how often they are delivered."""

import time

from tests.differential.members import ShareMember, acquired, share_setting

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def _group(s, *topics):
    g = s.name("g")
    share_setting(s, g, share_auto_offset_reset="earliest")
    m = ShareMember(s, g, "m", *topics)
    m.assigned()
    return m


def time_out(s):
    t = s.topic()
    s.produce(t, b"a", b"b", quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), count=2, label="first", pick=acquired)
    m.fetch(label="locked", pick=acquired, max_wait_ms=0)
    m.until_acquired(count=2, label="second", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, label="one")
    m.until_acquired(label="third", pick=acquired)
    m.acknowledge({(t, 0): [(1, 1, [ACCEPT])]}, label="the-other")
    s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": m.group, "topics": None}])


def too_late(s):
    t = s.topic()
    s.produce(t, b"a", b"b", quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), count=2, label="first", pick=acquired)
    time.sleep(2.5)
    m.acknowledge({(t, 0): [(0, 1, [ACCEPT])]}, label="too-late")
    m.until_acquired(count=2, label="second", pick=acquired)


def at_most_three_deliveries(s):
    t = s.topic()
    s.produce(t, b"a", b"b", quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), count=2, label="first", pick=acquired)
    for label in ("second", "third"):
        m.until_acquired(count=2, label=label, pick=acquired)
    time.sleep(2.5)
    m.fetch(label="given-up", pick=acquired)
    s.produce(t, b"c", at=2, quiet=True)
    m.until_acquired(label="the-next", pick=acquired)


def released_and_timed_out(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), label="first", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [RELEASE])]}, label="released")
    m.until_acquired(label="second", pick=acquired)
    m.until_acquired(label="third", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [RELEASE])]}, label="released-again")
    m.fetch(label="given-up", pick=acquired)


def other_member_gets_them(s):
    t = s.topic()
    s.produce(t, b"a", b"b", quiet=True)
    m = _group(s, t)
    n = ShareMember(s, m.group, "n", t)
    n.assigned()
    m.until_acquired((t, 0), count=2, label="m", pick=acquired)
    n.until_acquired((t, 0), count=2, label="n", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, label="m-no-longer")
    n.acknowledge({(t, 0): [(0, 1, [ACCEPT])]}, label="n")


def one_by_one(s):
    t = s.topic()
    for at in range(3):
        s.produce(t, b"x", at=at, quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), max_records=1, label="first", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [RELEASE])]}, label="released")
    m.until_acquired(count=3, label="all", pick=acquired)
    m.acknowledge({(t, 0): [(1, 1, [ACCEPT])]}, label="in-between")
    m.until_acquired(count=2, label="timed-out", pick=acquired)
    m.acknowledge({(t, 0): [(0, 2, [ACCEPT, 0, REJECT])]}, label="the-rest")
    m.fetch(label="nothing-left", pick=acquired)


def renewed(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), label="first", pick=acquired)
    for number in range(3):
        time.sleep(0.8)
        m.acknowledge({(t, 0): [(0, 0, [RENEW])]}, version=2, label=f"renewed-{number}", is_renew_ack=True)
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, version=2, label="in-time")


def session_closed(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    m = _group(s, t)
    m.until_acquired((t, 0), label="first", pick=acquired)
    m.fetch(session=-1, label="closed", pick=acquired)
    m.until_acquired((t, 0), label="second", pick=acquired)


def waits_for_a_lock(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    m = _group(s, t)
    n = ShareMember(s, m.group, "n", t)
    n.assigned()
    n.until_acquired((t, 0), quiet=True)
    n.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, quiet=True)
    s.produce(t, b"b", at=1, quiet=True)
    m.until_acquired((t, 0), label="m", pick=acquired)
    n.fetch(label="n-waits", pick=acquired, max_wait_ms=5000)
