"""Versions that Apache Kafka 4.0 removed (KIP-896), as clients of 0.8 to 0.11 use them. 4.x does not advertise them."""

CODECS = ("none", "gzip", "snappy", "lz4")


def produce(s):
    for version, magic in ((0, 0), (1, 0), (2, 1), (2, 0), (1, 1)):
        t = s.topic(f"t{version}{magic}")
        s.produce(t, b"a", (b"k", None), (b"", b""), version=version, magic=magic, label=f"magic-{magic}")
        s.fetch(t, label=f"of-v{version}-magic-{magic}", pick=_records)


def produce_compressed(s):
    for magic in (0, 1):
        for codec in CODECS:
            t = s.topic(f"{codec}{magic}")
            rows = (b"a" * 100, (b"k", b"b" * 100))
            s.produce(t, *rows, version=2, magic=magic, codec=codec, label=f"{codec}-{magic}")
            s.fetch(t, label=f"{codec}-{magic}", pick=_codecs)


def produce_refused(s):
    t = s.topic()
    good = s.batch(b"a", magic=1)
    cases = {
        "broken-checksum": good[:-1] + b"?",
        "cut": good[:-1],
        "empty": b"",
        "two-sets": good + good,
        "magic-2": s.batch(b"a"),
        "magic-2-and-1": s.batch(b"a") + good,
    }
    for label, data in cases.items():
        s.produce(t, version=2, data=data, label=label, retry=())
    s.produce(t, version=3, data=good, label="magic-1", retry=())
    s.produce(t, b"a", version=2, magic=1, acks=7, label="acks-7", retry=())
    u = s.topic("compacted", cleanup_policy="compact")
    s.produce(u, b"a", version=2, magic=1, label="no-key", retry=())
    s.produce(u, (b"k", b"a"), version=0, magic=0, label="key", retry=())


def append_time(s):
    t = s.topic(message_timestamp_type="LogAppendTime")
    for version, magic in ((2, 1), (1, 0)):
        s.produce(t, b"a", b"b", version=version, magic=magic, label=f"magic-{magic}")
    s.fetch(t, pick=_records)


def fetch(s):
    t = s.topic()
    s.produce(t, b"a", (b"k", None), (b"k", b"v", [("h", b"x")]), quiet=True)
    s.produce(t, b"d" * 50, b"e" * 50, at=10, codec="gzip", quiet=True)
    for version in range(5):
        for offset in (0, 1, 3, 4, 5, 6):
            s.fetch(t, offset, version=version, label=f"from-{offset}", retry=(), pick=_converted)


def fetch_zstd(s):
    t = s.topic()
    s.produce(t, b"f", codec="zstd", quiet=True)
    for version in range(4):
        s.fetch(t, version=version, retry=(), pick=_converted)


def fetch_with_little_room(s):
    t = s.topic()
    for at in range(3):
        s.produce(t, b"x" * 100, at=at, quiet=True)
    for version in range(4):
        for room in (1, 50, 134, 200, 300):
            s.fetch(t, version=version, partition_max_bytes=room, label=f"room-{room}", pick=_cut)
    for room in (1, 200):
        s.fetch(t, version=3, max_bytes=room, label=f"max-bytes-{room}", pick=_cut)


def fetch_transactions(s):
    from tests.differential.producers import Producer, finished

    t, p = s.topic(), Producer(s)
    for n, commit in enumerate((True, False)):
        p.init(quiet=True)
        p.add(t, quiet=True)
        p.produce(t, b"%d" % n, at=n, quiet=True)
        p.end(commit, quiet=True)
        finished(s, t, 2 * n + 2)
    for version in (1, 3):
        for offset in (0, 1, 2):
            s.fetch(t, offset, version=version, label=f"from-{offset}", pick=_converted)


def list_offsets(s):
    t = s.topic()
    for at in range(3):
        s.produce(t, b"x", at=at, quiet=True)
    for timestamp in (-1, -2, s.T, s.T + 5):
        for count in (0, 1, 2, 9):
            label = f"{timestamp if timestamp < 0 else timestamp - s.T}-{count}"
            s.offset(t, timestamp, version=0, max_num_offsets=count, label=label, retry=())
    s.offset(t, -1, version=0, partition=9, label="unknown-partition", max_num_offsets=1, retry=())


def offsets(s):
    t, g = s.topic(), s.name("g")
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m"}
    for version in (0, 1):
        s.ask("OffsetCommit", version, group_id=g, topics=[{"name": t, "partitions": [row]}], retry=(),
              **({"generation_id_or_member_epoch": -1, "member_id": ""} if version else {}))  # fmt: skip
        rows = [{"name": t, "partition_indexes": [0, 7]}]
        for fetched in (0, 1):
            s.ask("OffsetFetch", fetched, group_id=g, topics=rows, label=f"after-v{version}", retry=())


def leader_epochs(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    for version in (0, 1):
        for epoch in (0, 1, -1):
            rows = [{"topic": t, "partitions": [{"partition": 0, "leader_epoch": epoch}]}]
            s.ask("OffsetForLeaderEpoch", version, topics=rows, label=f"epoch-{epoch}", retry=())


def configs(s):
    t = s.topic(retention_ms="5000")
    wanted = {"resource_type": 2, "resource_name": t, "configuration_keys": ["retention.ms", "cleanup.policy"]}
    s.ask("DescribeConfigs", 0, resources=[wanted])


def rights(s):
    creation = {"resource_type": 2, "resource_name": "x", "principal": "User:a", "host": "*", "operation": 3,
                "permission_type": 3}  # fmt: skip
    wanted = {"resource_type_filter": 2, "resource_name_filter": "x", "operation": 1, "permission_type": 1}
    s.ask("CreateAcls", 0, creations=[creation])
    s.ask("DescribeAcls", 0, **wanted)
    s.ask("DeleteAcls", 0, filters=[wanted])


def log_directories(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    hide = ("log_dir", "total_bytes", "usable_bytes")
    s.ask("DescribeLogDirs", 0, topics=[{"topic": t, "partitions": [0]}], hide=hide)


def _records(a):
    return a["responses"][0]["partitions"][0]["records"]


def _codecs(a):
    return [[batch["attributes"] & 7, batch["count"]] for batch in _records(a)]


def _converted(a):
    """Of an old Fetch answer: the error, the end, and the messages; wrappers of compressed ones are opened."""
    part = a["responses"][0]["partitions"][0]
    rows = [
        [batch.get("magic", 2), batch.get("codec", batch.get("attributes")), batch["items"]]
        for batch in part["records"] or []
    ]
    return [part["error_code"], part["high_watermark"], rows]


def _cut(a):
    """The error, and how many whole messages were sent."""
    part = a["responses"][0]["partitions"][0]
    return [part["error_code"], sum(len(batch["items"]) for batch in part["records"] or [])]
