"""What retention leaves: by size and by time; what readers are told of what is gone."""

from tests.differential.members import Member, ShareMember, acquired, share_setting
from tests.differential.picking import seen, sizes
from tests.differential.producers import Producer, finished

BIG = b"x" * 600_000  # one batch in each segment
LATER = 6_500_000  # after an hour ago: what has this time stays


def _starts_at(s, topic, offset, label=""):
    """Waits for a log start offset; a step: what it is, and what the directory has."""
    s.offset(topic, -2, label=f"first-{label}", until=lambda a: a.topics[0].partitions[0].offset == offset)
    s.offset(topic, -1, label=f"end-{label}")
    s.segments(label, topic)


def _read(s, topic, *offsets):
    for offset in offsets:
        s.fetch(topic, offset, label=f"from-{offset}", pick=seen)


def _set(s, topic, **configs):
    rows = [{"name": k.replace("_", "."), "config_operation": 0, "value": v} for k, v in configs.items()]
    wanted = [{"resource_type": 2, "resource_name": topic, "configs": rows}]
    s.ask("IncrementalAlterConfigs", 1, quiet=True, resources=wanted)


def by_size(s):
    t = s.topic(segment_bytes=str(1 << 20), retention_bytes="1300000")
    for at in range(5):
        s.produce(t, BIG, at=at, quiet=True)
    _starts_at(s, t, 2)
    _read(s, t, 0, 1, 2, 4, 5, 6)
    s.offset(t, s.T, label="by-time")
    s.ask("DescribeLogDirs", 4, topics=[{"topic": t, "partitions": [0]}], pick=sizes)
    s.ask("OffsetForLeaderEpoch", 4, topics=[{"topic": t, "partitions": [{"leader_epoch": 0}]}])


def by_size_down_to_one(s):
    t = s.topic(segment_bytes=str(1 << 20), retention_bytes="0")
    for at in range(3):
        s.produce(t, BIG, at=at, quiet=True)
    _starts_at(s, t, 3)
    s.produce(t, b"x", at=9, label="afterwards")


def by_time(s):
    t = s.topic(segment_bytes=str(1 << 20), retention_ms="60000")
    for at in range(3):
        s.produce(t, BIG, at=at, quiet=True)
    s.produce(t, BIG, times=[s.T + LATER], quiet=True)
    _starts_at(s, t, 3)
    _read(s, t, 0, 2, 3)
    s.offset(t, s.T, label="by-time")
    s.offset(t, -3, version=7, label="largest-time")


def by_time_all(s):
    t = s.topic(retention_ms="60000")
    s.produce(t, b"a", b"b", quiet=True)
    _starts_at(s, t, 2)
    _read(s, t, 0, 1, 2)
    s.offset(t, s.T, label="by-time")
    s.offset(t, -3, label="largest-time")
    s.ask("OffsetForLeaderEpoch", 4, topics=[{"topic": t, "partitions": [{"leader_epoch": 0}]}])
    s.produce(t, b"c", times=[s.T + LATER], label="afterwards")
    _read(s, t, 1, 2)


def largest_time_of_a_segment_counts(s):
    t = s.topic(segment_bytes=str(1 << 20), retention_ms="60000")
    s.produce(t, b"a", times=[s.T + LATER], quiet=True)
    for at in range(3):
        s.produce(t, BIG, at=at, quiet=True)
    s.produce(t, b"b", times=[s.T + LATER], quiet=True)
    probe = s.topic("probe", retention_ms="60000")
    s.produce(probe, b"a", quiet=True)
    _starts_at(s, probe, 1, "probe")
    _starts_at(s, t, 0)


def without_times(s):
    t = s.topic(retention_ms="2500")
    s.produce(t, b"a", times=[-1], quiet=True)
    _starts_at(s, t, 1)


def of_append_times(s):
    t = s.topic(retention_ms="2500", message_timestamp_type="LogAppendTime")
    s.produce(t, b"a", quiet=True)
    _read(s, t, 0)
    _starts_at(s, t, 1)


def changed_later(s):
    t = s.topic(retention_ms="-1", retention_bytes="-1", segment_bytes=str(1 << 20))
    for at in range(3):
        s.produce(t, BIG, at=at, quiet=True)
    _starts_at(s, t, 0, "kept")
    _set(s, t, retention_ms="1000")
    _starts_at(s, t, 3, "gone")


def with_an_open_transaction(s):
    t, p = s.topic(retention_ms="60000"), Producer(s)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, b"a", quiet=True)
    _starts_at(s, t, 1)
    _read(s, t, 0, 1)
    p.end(label="afterwards")
    finished(s, t, 2)
    s.fetch(t, 1, pick=seen, label="marker", isolation_level=1)


def compacted_only(s):
    t = s.topic(retention_ms="60000", cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    s.produce(t, (b"k", b"a"), quiet=True)
    probe = s.topic("probe", retention_ms="60000")
    s.produce(probe, b"a", quiet=True)
    _starts_at(s, probe, 1, "probe")
    _starts_at(s, t, 0)


def compacted_and_deleted(s):
    t = s.topic(retention_ms="60000", cleanup_policy="compact,delete")
    s.produce(t, (b"k", b"a"), quiet=True)
    _starts_at(s, t, 1)


def after_delete_records(s):
    t = s.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    s.produce(t, (b"k", b"a"), quiet=True)
    row = {"partition_index": 0, "offset": 1}
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [row]}], label="of-a-compacted-topic")


def committed_offsets_before_the_start(s):
    t = s.topic(retention_ms="60000")
    s.produce(t, b"a", b"b", quiet=True)
    m = Member(s, s.name("g"), "m")
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    s.ask("OffsetCommit", 8, group_id=m.group, topics=[{"name": t, "partitions": [row]}], quiet=True)
    _starts_at(s, t, 2)
    s.ask("OffsetFetch", 7, group_id=m.group, topics=[{"name": t, "partition_indexes": [0]}])


def for_share_groups(s):
    t, g = s.topic(segment_bytes=str(1 << 20)), s.name("g")
    share_setting(s, g, share_auto_offset_reset="earliest", share_record_lock_duration_ms="60000")
    for at in range(3):
        s.produce(t, BIG, at=at, quiet=True)
    m = ShareMember(s, g, "m", t)
    m.assigned()
    m.until_acquired((t, 0), max_records=1, label="one", pick=acquired)
    _set(s, t, retention_ms="1000")
    _starts_at(s, t, 3)
    m.acknowledge({(t, 0): [(0, 0, [1])]}, label="of-what-is-gone")
    s.produce(t, b"x", times=[s.T + LATER], quiet=True)
    m.until_acquired(label="what-is-left", pick=acquired)


def restarted(s):
    t = s.topic(segment_bytes=str(1 << 20), retention_bytes="1300000")
    u = s.topic("u", retention_ms="60000")
    for at in range(5):
        s.produce(t, BIG, at=at, quiet=True)
    s.produce(u, b"a", b"b", quiet=True)
    _starts_at(s, t, 2, "by-size")
    _starts_at(s, u, 2, "by-time")
    yield
    s.ready(t)
    s.ready(u)
    for name, topic in (("t", t), ("u", u)):
        s.offset(topic, -2, label=f"first-of-{name}", hide=("leader_epoch",))
        s.offset(topic, -1, label=f"end-of-{name}", hide=("leader_epoch",))
        s.segments(name, topic)
    _read(s, u, 0, 2)
    s.produce(u, b"x", times=[s.T + LATER], label="afterwards")
