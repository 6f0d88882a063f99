"""When a log gets a new segment: by size, by the times of records, by its index; seen in the directory."""

from time import sleep

from tests.differential.picking import sizes

BIG = b"x" * 400_000


def by_size(s):
    t = s.topic(segment_bytes=str(1 << 20))
    for at in range(5):
        s.produce(t, BIG, at=at, quiet=True)
    s.segments("two-in-each", t)
    s.produce(t, BIG, BIG, at=9, label="two-records")
    s.segments("one-more", t)
    s.ask("DescribeLogDirs", 4, topics=[{"topic": t, "partitions": [0]}], pick=sizes)


def by_time(s):
    t = s.topic(segment_ms="500")
    for at in (0, 499, 500, 501, 999, 1001, 900, 1502, 1501):
        s.produce(t, b"x", at=at, quiet=True)
    s.segments("by-times-of-records", t)
    s.produce(t, b"a", b"b", times=[s.T + 2500, s.T + 1600], quiet=True)
    s.produce(t, b"c", at=2600, quiet=True)
    s.segments("largest-time-first", t)
    s.produce(t, b"d", at=0, quiet=True)
    s.segments("long-before", t)
    s.produce(t, b"e", at=700, quiet=True)
    s.segments("still-before", t)


def by_time_when_the_first_has_none(s):
    t = s.topic(segment_ms="500")
    for time in (-1, s.T, s.T + 1000):
        s.produce(t, b"x", times=[time], label="time")
        sleep(0.7)
    s.segments("after-three", t)


def by_index(s):
    t = s.topic(segment_index_bytes="24", index_interval_bytes="0")
    for at in range(8):
        s.produce(t, b"x" * 10, at=at, quiet=True)
    s.segments("three-entries-in-each", t)


def by_a_full_index_of_times(s):
    t = s.topic(segment_index_bytes="24", index_interval_bytes="100")
    for at in range(8):
        s.produce(t, b"x" * 100, at=at, quiet=True)
    s.segments("two-entries-in-each", t)


def after_restarts(s):
    t = s.topic(segment_bytes=str(1 << 20))
    s.produce(t, BIG, quiet=True)
    yield
    s.ready(t)
    s.segments("restarted", t)
    for at in range(3):
        s.produce(t, BIG, at=at, label="after-the-restart")
    s.segments("goes-on", t)
    for position in (-2, -1, -3):
        s.offset(t, position, label=f"time{position}", hide=("leader_epoch",))


def by_time_after_a_restart(s):
    t = s.topic(segment_ms="500")
    s.produce(t, b"x", at=0, quiet=True)
    yield
    s.ready(t)
    s.produce(t, b"x", at=400, quiet=True)
    s.segments("not-yet", t)
    s.produce(t, b"x", at=600, quiet=True)
    s.segments("now", t)


def config_changed(s):
    t = s.topic()
    s.produce(t, b"x", at=0, quiet=True)
    row = {"name": "segment.ms", "config_operation": 0, "value": "500"}
    s.ask("IncrementalAlterConfigs", 1, resources=[{"resource_type": 2, "resource_name": t, "configs": [row]}])
    wanted = {"resource_type": 2, "resource_name": t, "configuration_keys": ["segment.ms"]}
    s.ask("DescribeConfigs", 4, resources=[wanted], quiet=True, until=lambda a: a.results[0].configs[0].value == "500")
    s.produce(t, b"x", at=600, quiet=True)
    s.segments("heeded", t)


def deleted_records(s):
    t = s.topic(segment_bytes=str(1 << 20))
    for at in range(7):
        s.produce(t, BIG, at=at, quiet=True)
    for offset in (1, 3, 4, -1):
        row = {"partition_index": 0, "offset": offset}
        s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [row]}], label=f"before-{offset}")
        s.offset(t, -2, label=f"before-{offset}")
        wanted = [{"topic": t, "partitions": [0]}]
        s.ask(
            "DescribeLogDirs", 4, topics=wanted, pick=sizes, label=f"after-{offset}", until=LAST.get(offset), wait=8
        )  # whole segments go with the next check
        s.segments(f"after-{offset}", t)


def _fewer(size):
    return lambda a: a.results[0].topics[0].partitions[0].partition_size < size


LAST = {3: _fewer(2_400_000), 4: _fewer(1_700_000), -1: _fewer(400_000)}
