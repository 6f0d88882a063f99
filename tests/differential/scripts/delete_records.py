"""DeleteRecords, and what is left to be seen after it."""


def _delete(s, topic, offset, partition=0, version=2, **options):
    row = {"partition_index": partition, "offset": offset}
    return s.ask("DeleteRecords", version, topics=[{"name": topic, "partitions": [row]}], **options)


def _brief(a):
    part = a["responses"][0]["partitions"][0]
    return [
        part["error_code"],
        part["log_start_offset"],
        part["high_watermark"],
        [r["base_offset"] for r in part["records"]],
    ]


def versions(s):
    t = s.topic()
    s.produce(t, *[b"%d" % n for n in range(5)])
    for version in range(3):
        _delete(s, t, version + 1, version=version)


def positions(s):
    t = s.topic()
    for n in range(4):
        s.produce(t, b"%d" % n, at=n)
    _delete(s, t, 2, label="to-2")
    _delete(s, t, 1, label="below-the-start")
    _delete(s, t, 2, label="at-the-start")
    _delete(s, t, 5, label="beyond-the-end")
    _delete(s, t, -2, label="minus-2")
    _delete(s, t, 4, label="to-the-end")
    _delete(s, t, -1, label="minus-1")
    _delete(s, t, 0, label="zero")


def then_fetched(s):
    t = s.topic()
    s.produce(t, b"0", b"1", b"2", b"3")
    s.produce(t, b"4", at=4)
    _delete(s, t, 2)
    s.fetch(t, 1, label="below-the-start")
    s.fetch(t, 2, label="in-the-middle-of-a-batch")
    s.fetch(t, 4, pick=_brief)
    s.offset(t, -2)
    s.offset(t, -4, version=8)
    s.offset(t, s.T, label="by-time")
    s.offset(t, -3, label="latest-time")
    s.produce(t, b"5", at=5, label="next")
    s.ask("OffsetForLeaderEpoch", 4, topics=[{"topic": t, "partitions": [{"partition": 0, "leader_epoch": 0}]}])


def all_of_them(s):
    t = s.topic()
    s.produce(t, b"0", b"1")
    _delete(s, t, -1)
    s.fetch(t, 0, label="before")
    s.fetch(t, 2, label="at-the-end")
    for timestamp in (-1, -2, -3, 0):
        s.offset(t, timestamp, label=f"{timestamp}")
    s.produce(t, b"2", at=9)
    s.fetch(t, 2)
    s.offset(t, -3, label="latest-time")


def unknown(s):
    t = s.topic()
    _delete(s, s.name("none"), 0, retry=(), label="topic")
    _delete(s, t, 0, 8, retry=(), label="partition")
    _delete(s, t, 0, -1, retry=(), label="partition-minus-1")
    _delete(s, "a/b", 0, retry=(), label="bad-name")
    _delete(s, "__consumer_offsets", 0, label="internal")
    s.ask("DeleteRecords", 2, label="none", topics=[])


def compacted(s):
    t = s.topic(cleanup_policy="compact")
    s.produce(t, (b"k", b"v"))
    _delete(s, t, 1)
    both = s.topic("both", cleanup_policy="compact,delete")
    s.produce(both, (b"k", b"v"))
    _delete(s, both, 1, label="compact-and-delete")


def several(s):
    t = s.topic(partitions=3)
    for n in (0, 2):
        s.produce(t, b"a", b"b", partition=n)
    rows = [
        {"partition_index": 0, "offset": 1},
        {"partition_index": 1, "offset": 1},
        {"partition_index": 2, "offset": -1},
    ]
    s.ask(
        "DeleteRecords",
        2,
        topics=[{"name": t, "partitions": rows}, {"name": s.name("none"), "partitions": rows[:1]}],
        retry=(),
    )


def repeated(s):
    t, none = s.topic(partitions=2), s.name("none")
    for n in range(2):
        s.produce(t, b"a", b"b", b"c", partition=n)
    asked = [(t, [(0, 2), (0, 1), (1, 9)]), (none, [(0, 0), (0, 1)]), (t, [(1, 1), (8, 0)]), (none, []), ("", [])]
    topics = [
        {"name": name, "partitions": [{"partition_index": n, "offset": offset} for n, offset in pairs]}
        for name, pairs in asked
    ]
    s.ask("DeleteRecords", 1, topics=topics, retry=())
    s.offset(t, -2)
