"""Produce: versions, codecs, checks of batches and records."""

import time
import uuid

import kafkacodec as kc
from tests.differential.record_sets import patched


def versions(s):
    t = s.topic()
    for version in range(3, 14):
        s.produce(t, f"v{version}".encode(), version=version)
    s.fetch(t)


def codecs(s):
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        t = s.topic(codec)
        s.produce(t, b"one" * 50, (b"k", None, [("h", b"1"), ("h", b"")]), codec=codec)
        s.fetch(t)


def zstd_needs_v7(s):
    t = s.topic()
    s.produce(t, b"one", codec="zstd", version=6)
    s.produce(t, b"one", codec="zstd", version=7)
    s.fetch(t, version=9, label="stored-zstd")


def acks(s):
    t = s.topic()
    for n in (-1, 1, 2, -2):
        s.produce(t, b"x", acks=n, label=f"acks-{n}")
    s.send(
        "Produce", 9, acks=0, topic_data=[{"name": t, "partition_data": [{"index": 0, "records": s.batch(b"unheard")}]}]
    )
    s.sent -= 1  # no answer to acks 0: the next one on this connection is the fetch's
    s.fetch(t, until=lambda a: a.responses[0].partitions[0].high_watermark == 3)


def unknown_places(s):
    t = s.topic()
    s.ids["nowhere"] = uuid.UUID(int=9)
    s.produce(s.name("none"), b"x", retry=())
    s.produce(t, b"x", partition=5, retry=())
    s.produce(t, b"x", partition=-1, retry=())
    s.produce("nowhere", b"x", version=13, retry=())
    s.produce("a/b", b"x", retry=(), label="bad-name")


def two_batches(s):
    t = s.topic()
    one = s.batch(b"a", b"b")
    s.produce(t, data=one + one, label="two-batches")
    s.produce(t, data=patched(one, base_offset=3), label="base-offset-3")
    s.produce(t, data=patched(one, leader_epoch=44), label="leader-epoch-44")
    s.produce(t, data=b"", label="empty")
    s.fetch(t)


def old_formats(s):
    t = s.topic()
    for magic in (0, 1):
        s.produce(t, data=kc.encode([(b"k", b"v")], magic=magic), version=3, label=f"magic-{magic}")
        s.produce(t, data=kc.encode([(b"k", b"v")], magic=magic, codec="gzip"), label=f"magic-{magic}-gzip")
    s.produce(t, data=patched(s.batch(b"a"), magic=3), label="magic-3")
    s.fetch(t)


def damaged(s):
    t = s.topic()
    good = s.batch(b"first", b"second")
    bad = {
        "wrong-crc": patched(good, crc=1),
        "flipped-byte": good[:-3] + b"!" + good[-2:],
        "cut": good[:-4],
        "cut-header": good[:40],
        "count-too-large": patched(good, count=3),
        "count-too-small": patched(good, count=1),
        "last-offset-delta": patched(good, last_offset_delta=5),
        "count-negative": patched(good, count=-1),
        "control": patched(good, attributes=0x20),
        "no-records": patched(good[:61], size=49, count=0, last_offset_delta=-1),
    }
    for label, data in bad.items():
        s.produce(t, data=data, label=label)
    s.fetch(t)


def record_times(s):
    t = s.topic(retention_ms="-1")
    ahead = s.T + 10_800_000
    s.produce(t, b"far", times=[ahead], label="two-hours-ahead")
    s.produce(t, b"ok", b"far", b"far", times=[s.T, ahead, ahead], label="two-of-three")
    s.produce(t, b"none", times=[-1], label="no-time")
    s.produce(t, b"old", times=[47_304_000_000], label="in-1971")
    s.produce(t, b"far", times=[ahead], version=3, label="two-hours-ahead")
    s.fetch(t)


def time_limits(s):
    t = s.topic(message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000")
    s.produce(t, b"old", label="an-hour-old")
    s.produce(t, b"new", times=[s.T + 3_600_000], label="now")
    s.produce(t, b"far", times=[s.T + 3_600_000 + 200_000], label="ahead")


def log_append_time(s):
    t = s.topic(message_timestamp_type="LogAppendTime")
    s.produce(t, b"a", b"b")
    s.produce(t, b"c" * 40, b"d" * 40, codec="gzip")
    time.sleep(0.005)  # the next record alone has the greatest time
    s.produce(t, b"far", times=[s.T + 90_000_000], label="far-ahead")
    s.fetch(t)
    s.offset(t, s.T)
    s.offset(t, -3)


def append_time_bit_of_a_client(s):
    t = s.topic()
    s.produce(t, data=s.batch(b"a", timestamp_type=1))
    s.fetch(t)


def size_limit(s):
    batch = s.batch(b"x" * 500)
    t = s.topic(max_message_bytes=str(len(batch)))
    s.produce(t, data=batch, label="exact")
    s.produce(t, data=s.batch(b"x" * 501), label="one-more")
    s.produce(t, data=s.batch(b"x" * 5000, codec="gzip"), label="small-when-compressed")
    s.fetch(t)


def compacted(s):
    t = s.topic(cleanup_policy="compact")
    s.produce(t, b"no key")
    s.produce(t, (b"k", b"v"), b"no key", (b"l", b"v"), b"none", label="two-of-four")
    s.produce(t, (b"k", b"v"), (b"k", None))
    s.produce(t, b"no key", version=7)
    s.fetch(t)


def recompressed(s):
    t = s.topic(compression_type="gzip")
    s.produce(t, b"a" * 60, b"b" * 60)
    s.produce(t, b"c" * 60, codec="lz4")
    u = s.topic("u", compression_type="uncompressed")
    s.produce(u, b"a" * 60, codec="snappy")
    s.fetch(t)
    s.fetch(u)


def internal(s):
    data = [{"name": "__consumer_offsets", "partition_data": [{"index": 0, "records": s.batch((b"k", b"v"))}]}]
    s.ask("Produce", 9, topic_data=data)


def several_partitions(s):
    a, b = s.topic("a", 2), s.topic("b", min_insync_replicas="1")
    one = s.batch(b"one")
    rows = [{"index": 0, "records": one}, {"index": 1, "records": patched(one, crc=5)}, {"index": 7, "records": one}]
    s.ask(
        "Produce",
        9,
        topic_data=[{"name": a, "partition_data": rows}, {"name": b, "partition_data": rows[:1]}],
        retry=(),
    )
    s.ask("Produce", 9, label="no-topics", topic_data=[])
    s.fetch(b)


def too_few_replicas(s):
    t = s.topic(min_insync_replicas="2")
    s.produce(t, b"all", label="acks-all")
    s.produce(t, b"one", acks=1, label="acks-1")
    s.fetch(t)


def transactional_mix(s):
    t = s.topic()
    s.produce(t, b"x", is_transactional=True, label="no-producer-id")
    s.produce(t, b"x", producer=(-1, 0, 0), label="epoch-without-id")
    s.produce(t, b"x", transactional_id=s.name("x"), label="plain-with-transactional-id")
    s.fetch(t)


def _told(a):
    rows = [p for topic in a["responses"] for p in topic["partition_responses"]]
    return [[p["index"], p["error_code"], p["base_offset"], p["log_start_offset"], p["error_message"]] for p in rows]


def _several(s, version, *topics, label, **options):
    """Produces to several partitions: topics with pairs of number and bytes."""
    rows = [
        {**s.key(name, version >= 13), "partition_data": [{"index": n, "records": data} for n, data in parts]}
        for name, parts in topics
    ]
    s.ask("Produce", version, topic_data=rows, label=label, retry=(), pick=_told, **options)


def bytes_after_a_batch(s):
    t = s.topic()
    one, other = s.batch(b"a"), s.batch(b"b" * 100)
    for label, rest in {
        "zero": b"\0", "eleven-zeros": bytes(11), "twelve-zeros": bytes(12), "part": other[:60],
        "nearly-whole": other[:-1], "whole": other, "ones": b"\xff" * 12,
    }.items():  # fmt: skip
        s.produce(t, data=one + rest, label=label, pick=_told)
        s.produce(t, data=rest, label=f"only-{label}", pick=_told)
    s.fetch(t)


def order_of_checks(s):
    t = s.topic(partitions=2)
    good = s.batch(b"a")
    bad = {
        "good": good,
        "crc": patched(good, crc=5),
        "magic-1": patched(good, magic=1),
        "magic-3": patched(good, magic=3),
        "two": good + good,
        "base-3": patched(good, base_offset=3),
        "zstd": s.batch(b"z" * 50, codec="zstd"),
        "codec-5": patched(good, attributes=5),
        "control": patched(good, attributes=0x20),
        "transactional": s.batch(b"t", producer=(1, 0, 0), is_transactional=True),
        "transactional-control": patched(good, attributes=0x30),
        "empty": b"",
    }
    for version in (6, 9):
        for label, data in bad.items():
            for acks in (-1, 2):
                for place in ("known", "unknown", "internal"):
                    name = {"known": t, "unknown": s.name("none"), "internal": "__consumer_offsets"}[place]
                    _several(s, version, (t, [(1, good)]), (name, [(0, data)]), acks=acks,
                             label=f"{label}-{acks}-{place}")  # fmt: skip
    for n in range(2):
        s.offset(t, -1, partition=n)


def repeated_partitions(s):
    t, none = s.topic(partitions=2), s.name("none")
    one, other = s.batch(b"one"), s.batch(b"other" * 10)
    s.ids[none] = uuid.UUID(int=3)
    for version in (3, 9, 13):
        _several(s, version, (t, [(0, one), (0, other)]), label="good")
        _several(s, version, (t, [(0, b""), (0, other)]), label="empty-first")
        _several(s, version, (t, [(0, one), (0, b"")]), label="empty-last")
        _several(s, version, (t, [(0, one), (0, patched(one, crc=4))]), label="damaged-last")
        _several(s, version, (none, [(0, one), (0, one)]), label="unknown")
        _several(s, version, (t, [(1, one)]), (none, [(1, one)]), (t, [(0, one), (5, one)]), label="apart")
        _several(s, version, (t, []), (none, []), label="no-partitions")
    for n in range(2):
        s.fetch(t, partition=n, pick=lambda a: [b["items"][0]["value"] for b in
                                                a["responses"][0]["partitions"][0]["records"]])  # fmt: skip
