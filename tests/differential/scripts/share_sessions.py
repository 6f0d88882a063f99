"""Share sessions (KIP-932): when what a fetch says counts, what a session answers and in which order, how it ends."""

from tests.differential.members import ShareMember, acquired, share_setting

ACCEPT, RELEASE = 1, 2
AT_ONCE = {"max_wait_ms": 0}


def _member(s, *topics, name="m", group="g"):
    g = s.name(group)
    share_setting(s, g, share_auto_offset_reset="earliest")
    m = ShareMember(s, g, name, *topics)
    m.assigned()
    return m


def released_in_a_fetch(s):
    t = s.topic()
    s.produce(t, b"0", b"1", quiet=True)
    m = _member(s, t)
    m.until_acquired((t, 0), count=2, label="all", pick=acquired)
    s.produce(t, b"2", quiet=True)
    m.fetch(acks={(t, 0): [(1, 1, [RELEASE])]}, label="new-ones-come-at-once", pick=acquired)
    m.fetch(label="the-released", pick=acquired)
    m.fetch(acks={(t, 0): [(0, 0, [RELEASE])]}, label="waits", pick=acquired)


def forgotten_and_closed(s):
    t = s.topic(partitions=2)
    for number in (0, 1):
        s.produce(t, b"0", b"1", partition=number, quiet=True)
    m = _member(s, t)
    n = ShareMember(s, m.group, "n", t)
    n.join(quiet=True)
    m.until_acquired((t, 0), count=2, label="one", pick=acquired)
    m.until_acquired((t, 1), count=2, label="other", pick=acquired)
    m.fetch(forgotten=[(t, 0)], label="forgotten", pick=acquired, **AT_ONCE)
    m.fetch((t, 0), session=-1, label="closed-with-one-more", pick=acquired)
    n.until_acquired((t, 0), (t, 1), count=2, label="only-that-of-the-session", pick=acquired)
    m.until_acquired((t, 1), session=0, max_wait_ms=100, count=0, label="new", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, label="still-out")
    m.fetch((t, 1), acks={(t, 0): [(1, 1, [ACCEPT])]}, session=-1, label="closed-with-acknowledgements", pick=acquired)


def acknowledgements_of_others(s):
    t = s.topic(partitions=3)
    for number in range(3):
        s.produce(t, b"0", b"1", partition=number, quiet=True)
    m = _member(s, t)
    m.until_acquired((t, 0), count=2, label="first", pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])], (t, 1): []}, label="with-one-not-read")
    m.fetch((t, 1), acks={(t, 0): [(1, 1, [ACCEPT])]}, label="with-one-to-read", pick=acquired)
    m.fetch((t, 1), acks={(t, 1): [(0, 0, [ACCEPT])]}, label="again", pick=acquired, **AT_ONCE)
    m.fetch((t, 2), acks={(t, 2): [(0, 0, [ACCEPT])]}, label="before-it-is-read", pick=acquired)


def order(s):
    t = s.topic(partitions=3)
    m = _member(s, t)
    m.until_acquired((t, 0), (t, 1), (t, 2), count=0, label="first", pick=acquired, max_wait_ms=100)
    for number in range(3):
        for _ in range(3):
            s.produce(t, b"0", partition=number, quiet=True)
    for count in range(8):
        m.fetch(label=f"one-{count}", max_records=1, pick=acquired, **AT_ONCE)
    m.fetch((t, 0), (t, 2), label="named", max_records=1, pick=acquired, **AT_ONCE)


def deleted_below(s):
    t = s.topic()
    for _ in range(4):
        s.produce(t, b"0", b"1", b"2", quiet=True)
    m = _member(s, t)
    m.until_acquired((t, 0), max_records=3, label="first", pick=acquired)

    def delete(offset):
        rows = [{"partition_index": 0, "offset": offset}]
        s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": rows}], quiet=True)

    def described(label):
        rows = [{"group_id": m.group, "topics": None}]
        s.ask("DescribeShareGroupOffsets", 1, groups=rows, label=label, pick=lambda a: [
            [part["start_offset"], part["lag"]]
            for group in a["groups"] for topic in group["topics"] for part in topic["partitions"]
        ])  # fmt: skip

    delete(2)
    m.fetch(max_records=1, label="later-ones", pick=acquired, **AT_ONCE)
    m.acknowledge({(t, 0): [(0, 2, [RELEASE])]}, label="deleted-meanwhile")
    m.fetch(label="the-start-moves", pick=acquired)
    m.fetch(label="from-there", max_records=2, pick=acquired)
    delete(8)
    m.acknowledge({(t, 0): [(2, 2, [ACCEPT]), (3, 5, [ACCEPT])]}, label="all-below")
    described("below")
    m.fetch(label="nothing-yet", pick=acquired)
    m.fetch(label="the-rest", pick=acquired)
    m.acknowledge({(t, 0): [(8, 11, [ACCEPT])]}, label="the-rest")
    described("end")


def out_below(s):
    t = s.topic()
    for _ in range(3):
        s.produce(t, b"0", b"1", b"2", quiet=True)
    m = _member(s, t)
    m.until_acquired((t, 0), max_records=3, label="first", pick=acquired)
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": 5}]}], quiet=True)
    m.fetch(label="the-start-moves", pick=acquired)
    m.fetch(label="with-deleted-ones", pick=acquired)
    m.acknowledge({(t, 0): [(3, 8, [ACCEPT])]}, label="all-but-what-is-below")
    rows = [{"group_id": m.group, "topics": None}]
    s.ask("DescribeShareGroupOffsets", 0, groups=rows, label="stays")
    s.produce(t, b"3", quiet=True)
    m.fetch(label="next", pick=acquired)
    m.acknowledge({(t, 0): [(0, 9, [ACCEPT])]}, label="over-the-start")
    m.acknowledge({(t, 0): [(9, 9, [ACCEPT])]}, label="the-next")
    m.fetch(session=-1, label="closed", pick=acquired)
    s.ask("DescribeShareGroupOffsets", 0, groups=rows, label="end")


def mixed_counts(s):
    t = s.topic()
    s.produce(t, *[b"x"] * 8, quiet=True)
    m = _member(s, t)
    m.until_acquired((t, 0), label="delivery-1", pick=acquired)
    m.acknowledge({(t, 0): [(0, 7, [RELEASE])]}, quiet=True)
    m.until_acquired(label="delivery-2", pick=acquired)
    m.acknowledge({(t, 0): [(2, 7, [RELEASE])]}, quiet=True)
    m.until_acquired(label="delivery-3", pick=acquired)
    m.acknowledge({(t, 0): [(0, 7, [RELEASE])]}, quiet=True)
    for number in range(6):
        answer = m.until_acquired(label=f"fewer-{number}", pick=acquired)
        rows = [(r.first_offset, r.last_offset, [RELEASE])
                for topic in answer.responses for p in topic.partitions for r in p.acquired_records]  # fmt: skip
        m.acknowledge({(t, 0): rows}, quiet=True)
