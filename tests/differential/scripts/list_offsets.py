"""ListOffsets and OffsetForLeaderEpoch."""


def versions(s):
    t = s.topic()
    s.produce(t, b"a", b"b", at=100)
    for version in range(1, 12):
        s.offset(t, -1, version=version)
    for version in (1, 4, 7):
        s.offset(t, -2, version=version, label="earliest")
        s.offset(t, s.T + 101, version=version, label="by-time")


def special_timestamps(s):
    t = s.topic()
    s.produce(t, b"a", b"b")
    for timestamp, version in (
        (-3, 6),
        (-3, 7),
        (-4, 7),
        (-4, 8),
        (-5, 8),
        (-5, 9),
        (-6, 10),
        (-7, 10),
        (-100, 10),
        (-6, 11),
        (-7, 11),
    ):
        s.offset(t, timestamp, version=version, retry=(), label=f"{-timestamp}")


def empty_partition(s):
    t = s.topic()
    for timestamp in (-1, -2, -3, 0):
        s.offset(t, timestamp, label=f"{timestamp}")
    s.offset(t, -4, version=8, label="-4")
    s.offset(t, -5, version=9, label="-5")


def by_time(s):
    t = s.topic()
    s.produce(t, b"0", b"1", b"2", times=[s.T + 10, s.T + 20, s.T + 30])
    s.produce(t, b"3", b"4", times=[s.T + 25, s.T + 50])
    s.produce(t, b"5", times=[s.T + 40])
    for at in (0, 10, 11, 25, 30, 31, 45, 50, 51):
        s.offset(t, s.T + at, label=f"T+{at}")
    s.offset(t, 0, label="zero")
    s.offset(t, 1, version=1, label="one")
    s.offset(t, -3, label="latest-time")


def compressed_by_time(s):
    t = s.topic()
    s.produce(t, b"0" * 40, b"1" * 40, b"2" * 40, times=[s.T + 10, s.T + 20, s.T + 20], codec="gzip")
    for at in (0, 11, 20, 21):
        s.offset(t, s.T + at, label=f"T+{at}")
    s.offset(t, -3, label="latest-time")


def latest_time_ties(s):
    t = s.topic()
    s.produce(t, b"0", b"1", times=[s.T + 10, s.T + 10])
    s.produce(t, b"2", times=[s.T + 10])
    s.offset(t, -3)
    s.produce(t, b"3", times=[s.T + 5])
    s.offset(t, -3, label="an-older-one-after")
    s.produce(t, b"4", b"5", times=[s.T + 11, s.T + 6])
    s.offset(t, -3, label="first-of-the-last-batch")


def append_time(s):
    t = s.topic(message_timestamp_type="LogAppendTime")
    s.produce(t, b"0", b"1", times=[s.T, s.T + 10])
    s.offset(t, -3, label="latest-time")
    s.offset(t, s.T + 5, label="by-time")


def unknown(s):
    t = s.topic()
    s.offset(s.name("none"), -1, retry=())
    s.offset(t, -1, partition=4, retry=(), label="partition-4")
    s.offset(t, -1, partition=-1, retry=(), label="partition-minus-1")
    s.offset("a/b", -1, retry=(), label="bad-name")
    s.ask("ListOffsets", 7, label="none", topics=[])
    rows = [{"partition_index": 0, "timestamp": -1}, {"partition_index": 0, "timestamp": -2}]
    s.ask("ListOffsets", 7, label="partition-twice", retry=(), topics=[{"name": t, "partitions": rows}])
    s.ask(
        "ListOffsets",
        7,
        label="topic-twice",
        retry=(),
        topics=[{"name": t, "partitions": rows[:1]}, {"name": t, "partitions": rows[1:]}],
    )


def epochs(s):
    t = s.topic()
    s.produce(t, b"a")
    s.offset(t, -1, current_leader_epoch=0, label="right")
    s.offset(t, -1, current_leader_epoch=3, label="too-high", retry=())
    s.offset(t, -2, current_leader_epoch=3, version=4, label="too-high", retry=())


def isolation(s):
    t = s.topic()
    s.produce(t, b"a", b"b")
    for level in (0, 1, 2):
        s.offset(t, -1, isolation_level=level, label=f"level-{level}")
    s.ask(
        "ListOffsets",
        7,
        label="as-a-follower",
        replica_id=9,
        retry=(),
        topics=[{"name": t, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    )
    s.ask(
        "ListOffsets",
        7,
        label="as-a-debugger",
        replica_id=-2,
        retry=(),
        topics=[{"name": t, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    )


def several(s):
    a, b = s.topic("a", 2), s.topic("b")
    s.produce(a, b"x", partition=1)
    rows = [{"partition_index": 0, "timestamp": -1}, {"partition_index": 1, "timestamp": -1}]
    topics = [{"name": a, "partitions": rows}, {"name": b, "partitions": rows}]
    s.ask("ListOffsets", 5, topics=topics, retry=())


def leader_epochs(s):
    t = s.topic()
    s.produce(t, b"a", b"b")
    for version in (2, 3, 4):
        s.ask(
            "OffsetForLeaderEpoch", version, topics=[{"topic": t, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        )
    asked = {
        "future": {"leader_epoch": 5},
        "minus-1": {"leader_epoch": -1},
        "minus-2": {"leader_epoch": -2},
        "current-right": {"leader_epoch": 0, "current_leader_epoch": 0},
        "current-too-high": {"leader_epoch": 0, "current_leader_epoch": 7},
    }
    for label, row in asked.items():
        s.ask(
            "OffsetForLeaderEpoch",
            4,
            label=label,
            retry=(),
            topics=[{"topic": t, "partitions": [{"partition": 0, **row}]}],
        )
    s.ask(
        "OffsetForLeaderEpoch",
        4,
        label="unknown-topic",
        retry=(),
        topics=[{"topic": s.name("none"), "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    )
    s.ask(
        "OffsetForLeaderEpoch",
        4,
        label="unknown-partition",
        retry=(),
        topics=[{"topic": t, "partitions": [{"partition": 6, "leader_epoch": 0}]}],
    )
    s.ask("OffsetForLeaderEpoch", 4, label="none", topics=[])


def leader_epochs_of_an_empty_log(s):
    t = s.topic()
    s.ask("OffsetForLeaderEpoch", 4, topics=[{"topic": t, "partitions": [{"partition": 0, "leader_epoch": 0}]}])
    s.produce(t, b"a", b"b")
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": -1}]}])
    s.ask(
        "OffsetForLeaderEpoch",
        4,
        label="after-delete-records",
        topics=[{"topic": t, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    )


def order_of_checks(s):
    t, none = s.topic(partitions=2), s.name("none")

    def rows(*pairs):
        return [{"partition_index": n, "timestamp": time} for n, time in pairs]

    asked: dict[str, list[tuple[str, list[tuple[int, int]]]]] = {
        "special-of-unknown": [(none, [(0, -7)]), (t, [(9, -3), (0, -7)])],
        "special-twice": [(t, [(0, -7), (0, -7), (1, -1)])],
        "topics-apart": [(t, [(0, -1)]), (none, [(0, -1)]), (t, [(1, -1)])],
        "without-partitions": [(none, []), (t, []), ("", [])],
    }
    for label, topics in asked.items():
        wanted = [{"name": name, "partitions": rows(*pairs)} for name, pairs in topics]
        s.ask("ListOffsets", 6, label=label, topics=wanted, retry=())
        s.ask("ListOffsets", 6, label=f"{label}-level-2", topics=wanted, isolation_level=2, retry=())


def leader_epoch_minus_2(s):
    t = s.topic()
    s.produce(t, b"a")
    s.offset(t, -1, current_leader_epoch=-2, retry=())
    row = {"partition": 0, "leader_epoch": 0, "current_leader_epoch": -2}
    s.ask("OffsetForLeaderEpoch", 4, topics=[{"topic": t, "partitions": [row]}], retry=())
    s.fetch(t, current_leader_epoch=-2)
