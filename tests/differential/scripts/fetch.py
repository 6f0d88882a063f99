"""Fetch without sessions."""

import time
import uuid


def versions(s):
    t = s.topic()
    s.produce(t, b"a", (b"k", b"b", [("h", b"x")]))
    for version in range(4, 19):
        s.fetch(t, version=version)


def positions(s):
    t = s.topic()
    for n in range(3):
        s.produce(t, b"%d-a" % n, b"%d-b" % n, at=n)
    for offset in (0, 1, 4, 5, 6):
        s.fetch(t, offset, label=f"at-{offset}")
    for offset in (7, -1, -5):
        s.fetch(t, offset, label=f"at-{offset}")
    s.fetch(t, 7, version=4, label="at-7")


def unknown(s):
    t = s.topic()
    s.ids["nowhere"] = uuid.UUID(int=11)
    s.fetch(s.name("none"), retry=())
    s.fetch(t, partition=3, retry=(), label="partition-3")
    s.fetch(t, partition=-1, retry=(), label="partition-minus-1")
    s.fetch("nowhere", version=13, retry=())
    s.fetch("a/b", retry=(), label="bad-name")
    s.fetch(t, partition=3, retry=(), version=13, label="partition-3")


def epochs(s):
    t = s.topic()
    s.produce(t, b"a")
    s.fetch(t, current_leader_epoch=0, label="right")
    s.fetch(t, current_leader_epoch=1, label="too-high")
    s.fetch(t, current_leader_epoch=1, label="too-high", version=9)
    s.fetch(t, 1, last_fetched_epoch=0, label="last-fetched-0")
    s.fetch(t, 1, last_fetched_epoch=5, label="last-fetched-5")


def limits(s):
    t = s.topic()
    for n in range(4):
        s.produce(t, b"x" * 1000, at=n)
    s.fetch(t, partition_max_bytes=1, label="partition-1-byte")
    s.fetch(t, partition_max_bytes=2500, label="partition-2500")
    s.fetch(t, max_bytes=1, label="total-1-byte")
    s.fetch(t, max_bytes=2500, label="total-2500")
    s.fetch(t, partition_max_bytes=0, label="partition-0")
    s.fetch(t, max_bytes=0, label="total-0")


def two_partitions_share_the_limit(s):
    t = s.topic(partitions=3)
    for n in range(3):
        s.produce(t, b"x" * 900, partition=n)
    rows = [{"partition": n, "partition_max_bytes": 1 << 20} for n in range(3)]
    s.ask("Fetch", 12, label="1500-bytes", max_bytes=1500, topics=[{"topic": t, "partitions": rows}])
    s.ask("Fetch", 12, label="1-byte", max_bytes=1, topics=[{"topic": t, "partitions": rows}])
    s.ask("Fetch", 12, label="reversed", max_bytes=1, topics=[{"topic": t, "partitions": rows[::-1]}])


def waiting(s):
    t = s.topic()
    s.produce(t, b"first")
    sent = s.send(
        "Fetch",
        12,
        on="reader",
        max_wait_ms=8000,
        min_bytes=1,
        topics=[{"topic": t, "partitions": [{"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1000}]}],
    )
    s.produce(t, b"second")
    s.finish(sent, label="woken")
    for label, offset, least in (("times-out", 2, 1), ("too-little", 0, 100_000)):
        start = time.monotonic()
        s.fetch(t, offset, max_wait_ms=500, min_bytes=least, label=label)
        s.note(f"{label}-waits", time.monotonic() - start > 0.4)
    start = time.monotonic()
    s.fetch(t, 2, max_wait_ms=8000, min_bytes=0, label="no-minimum")
    s.note("no-minimum-waits-for-nothing", time.monotonic() - start < 7)
    start = time.monotonic()
    s.fetch(t, 9, max_wait_ms=8000, min_bytes=1, label="out-of-range")
    s.note("out-of-range-waits-for-nothing", time.monotonic() - start < 7)
    start = time.monotonic()
    rows = [
        {"topic": s.name("none"), "partitions": [{"partition": 0}]},
        {"topic": t, "partitions": [{"partition": 0, "fetch_offset": 2}]},
    ]
    s.ask("Fetch", 12, max_wait_ms=500, min_bytes=1, topics=rows, retry=(), label="one-unknown-topic")
    s.note("one-unknown-topic-waits", time.monotonic() - start > 0.4)
    start = time.monotonic()
    s.ask("Fetch", 12, max_wait_ms=8000, min_bytes=1, topics=rows[:1], retry=(), label="only-an-unknown-topic")
    s.note("only-an-unknown-topic-waits-for-nothing", time.monotonic() - start < 7)


def mixed(s):
    a, b = s.topic("a"), s.topic("b", 2)
    s.produce(a, b"a")
    s.produce(b, b"b", partition=1)
    rows = [{"partition": 0, "partition_max_bytes": 1000}, {"partition": 1, "partition_max_bytes": 1000}]
    topics = [
        {"topic": a, "partitions": rows},
        {"topic": b, "partitions": rows},
        {"topic": s.name("none"), "partitions": rows[:1]},
    ]
    s.ask("Fetch", 12, topics=topics, retry=())
    s.ask("Fetch", 12, label="no-topics", topics=[])


def cluster_id(s):
    t = s.topic()
    s.fetch(t, cluster_id="no-such-cluster")
    s.fetch(t, replica_id=5, retry=(), version=11, label="as-a-follower")


def segments(s):
    t = s.topic(segment_bytes=str(1 << 20))
    for n in range(4):
        s.produce(t, b"x" * 400_000, at=n, pick=lambda a: a["responses"][0]["partition_responses"][0]["base_offset"])

    def offsets(a):
        part = a["responses"][0]["partitions"][0]
        return [part["error_code"], part["high_watermark"], [r["base_offset"] for r in part["records"]]]

    s.fetch(t, 0, max_bytes=10 << 20, partition_max_bytes=10 << 20, pick=offsets)
    s.fetch(t, 2, max_bytes=10 << 20, partition_max_bytes=10 << 20, pick=offsets)


def _rows(*topics):
    """Topics of names with partitions, which are numbers or (number, fetch offset)."""
    pairs = [(name, [n if isinstance(n, tuple) else (n, 0) for n in numbers]) for name, numbers in topics]
    return [
        {
            "topic": name,
            "partitions": [{"partition": n, "fetch_offset": at, "partition_max_bytes": 1 << 20} for n, at in parts],
        }
        for name, parts in pairs
    ]


def _brief(a):
    return [
        a["error_code"],
        [
            [topic["topic"], [[p["partition_index"], p["error_code"], bool(p["records"]), p["aborted_transactions"]]
                              for p in topic["partitions"]]]
            for topic in a["responses"]
        ],
    ]  # fmt: skip


def order_of_partitions(s):
    t, c, none = s.topic("t", 2), s.topic("c"), s.name("none")
    for topic in (t, c):
        s.produce(topic, b"a")
    asked = {
        "unknown-last": [("", [0]), (c, [2, 0]), (t, [1, 7, 0])],
        "unknown-twice": [(c, [3, 3]), (none, [0, 0])],
        "twice": [(c, [0, (0, 5)]), (t, [0]), (c, [0])],
        "apart": [(c, [0]), (t, [0]), (c, [1]), (t, [1])],
    }
    for label, topics in asked.items():
        s.ask("Fetch", 9, label=label, session_epoch=-1, topics=_rows(*topics), retry=(), ordered=True, pick=_brief)
    s.ask("Fetch", 9, label="session", topics=_rows((none, [0]), (c, [0, 4]), (t, [0])), retry=(), ordered=True,
          pick=_brief)  # fmt: skip
    s.ask("Fetch", 12, label="forgotten-without-a-session", session_epoch=-1, topics=_rows((c, [0])), pick=_brief,
          forgotten_topics_data=[{"topic": c, "partitions": [0]}])  # fmt: skip


def order_of_ids(s):
    t = s.topic("t")
    ids = [uuid.UUID(int=12), s.ids[t], uuid.UUID(int=13), s.ids[t], uuid.UUID(int=12)]
    rows = [{"topic_id": one, "partitions": [{"partition": n}]} for n, one in zip((0, 0, 0, 3, 1), ids, strict=True)]
    s.ask("Fetch", 13, session_epoch=-1, topics=rows, retry=(), ordered=True)


def unknown_isolation_level(s):
    t, none = s.topic(), s.name("none")
    level = {"isolation_level": 2, "retry": (), "pick": _brief}
    for version in (4, 7, 12):
        s.ask("Fetch", version, topics=_rows((t, [0, 0, 5]), (none, [0])), **level)
        s.ask("Fetch", version, label="unknown", topics=_rows((t, [5]), (none, [0])), **level)
        s.ask("Fetch", version, label="none", topics=[], **level)
    s.fetch(t, version=13, retry=(), isolation_level=2)


def negative_limits(s):
    t = s.topic(partitions=3)
    for n in range(2):
        s.produce(t, b"x" * 100, partition=n)
    for label, total, part in (("both", -1, -1), ("total", -1, 1000), ("partition", 1000, -1), ("zero", -1, 0)):
        rows = [{"partition": n, "partition_max_bytes": part} for n in range(3)]
        s.ask("Fetch", 12, label=label, max_bytes=total, topics=[{"topic": t, "partitions": rows}], retry=(),
              session_epoch=-1, ordered=True)  # fmt: skip


def read_committed_without_room(s):
    t = s.topic(partitions=2)
    for n in range(2):
        s.produce(t, b"x" * 100, partition=n)
    for least, part in ((0, 1), (0, 100), (0, 0)):
        rows = [{"partition": n, "partition_max_bytes": part} for n in range(2)]
        s.ask("Fetch", 12, label=f"{part}", isolation_level=1, min_bytes=least, session_epoch=-1,
              topics=[{"topic": t, "partitions": rows}], ordered=True, pick=_brief)  # fmt: skip


def as_a_follower(s):
    t = s.topic()
    s.produce(t, b"a")
    for epoch in (-2, -1, 0, 1):
        s.fetch(t, version=12, replica_id=7, current_leader_epoch=epoch, retry=(), label=f"epoch-{epoch}")
        s.fetch(t, version=17, replica_state={"replica_id": 7, "replica_epoch": -1}, current_leader_epoch=epoch,
                retry=(), label=f"epoch-{epoch}")  # fmt: skip
