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
