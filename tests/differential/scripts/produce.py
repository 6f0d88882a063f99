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
