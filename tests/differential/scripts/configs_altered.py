"""Configurations of topics that are altered while clients use them: from when on they count."""

from tests.differential.picking import seen

SET, DELETE = 0, 1


def _alter(s, t, name, value):
    """Alter one, and wait until the broker knows it. No step."""
    row = {"name": name, "config_operation": DELETE if value is None else SET, "value": value}
    s.ask(
        "IncrementalAlterConfigs", 1, resources=[{"resource_type": 2, "resource_name": t, "configs": [row]}], quiet=True
    )
    asked = {"resource_type": 2, "resource_name": t, "configuration_keys": [name]}
    s.ask("DescribeConfigs", 4, resources=[asked], quiet=True,
          until=lambda a: value is None or a.results[0].configs[0].value == value)  # fmt: skip


def _error(a):
    part = a["responses"][0]["partition_responses"][0]
    return [part["error_code"], part["base_offset"], part["record_errors"], part["error_message"]]


def _codecs(a):
    return [
        [batch.get("codec"), batch.get("base_offset")] for batch in a["responses"][0]["partitions"][0]["records"] or []
    ]


def min_insync_replicas(s):
    t = s.topic()
    _alter(s, t, "min.insync.replicas", "2")
    for acks in (-1, 0, 1):
        if acks:
            s.produce(t, b"a", acks=acks, label=f"acks-{acks}")
    s.fetch(t, pick=seen)
    _alter(s, t, "min.insync.replicas", None)
    s.produce(t, b"b", label="again")


def compression_type(s):
    t = s.topic()
    for codec in ("gzip", "uncompressed", "zstd", "producer"):
        _alter(s, t, "compression.type", codec)
        s.produce(t, b"a" * 100, b"b" * 100, quiet=True)
        s.produce(t, b"a" * 100, b"b" * 100, codec="lz4", quiet=True)
    s.fetch(t)


def timestamp_type(s):
    t = s.topic()
    s.produce(t, b"a")
    _alter(s, t, "message.timestamp.type", "LogAppendTime")
    s.produce(t, b"b", pick=lambda a: a["responses"][0]["partition_responses"][0]["log_append_time_ms"])
    _alter(s, t, "message.timestamp.type", "CreateTime")
    s.produce(t, b"c", at=5)
    s.offset(t, s.T + 2, label="by-time")
    s.fetch(t, pick=lambda a: [batch.get("timestamp_type") for batch in a["responses"][0]["partitions"][0]["records"]])


def timestamp_limits(s):
    t = s.topic()
    s.produce(t, b"a", times=[s.T - 10_000_000])
    _alter(s, t, "message.timestamp.before.max.ms", "5000000")
    s.produce(t, b"a", times=[s.T - 10_000_000], label="too-old", pick=lambda a: _error(a)[0])
    s.produce(t, b"a", times=[s.T + 5_400_000], label="ahead")
    _alter(s, t, "message.timestamp.after.max.ms", "1000")
    s.produce(t, b"a", times=[s.T + 5_400_000], label="too-new", pick=lambda a: _error(a)[0])


def max_message_bytes(s):
    t = s.topic()
    s.produce(t, b"x" * 1000)
    _alter(s, t, "max.message.bytes", "500")
    s.produce(t, b"x" * 1000, label="too-large")
    s.produce(t, b"x" * 1000, codec="gzip", label="small-enough-compressed")
    s.fetch(t, pick=seen, label="larger-ones-stay")
    _alter(s, t, "compression.type", "uncompressed")
    s.produce(t, b"x" * 1000, codec="gzip", label="too-large-once-decompressed")


def cleanup_policy(s):
    t = s.topic()
    s.produce(t, b"keyless")
    _alter(s, t, "cleanup.policy", "compact")
    s.produce(t, b"keyless", label="refused", pick=_error)
    s.produce(t, (b"k", b"v"))
    _alter(s, t, "cleanup.policy", "compact,delete")
    s.produce(t, b"keyless", label="refused-still", pick=_error)
    _alter(s, t, "cleanup.policy", "delete")
    s.produce(t, b"keyless", label="again")


def segment_bytes(s):
    t = s.topic()
    big = b"x" * 600_000
    for at in range(3):
        s.produce(t, big, at=at, quiet=True)
    s.segments("one", t)
    _alter(s, t, "segment.bytes", str(1 << 20))
    s.segments("still-one", t)
    s.produce(t, b"y", at=3, quiet=True)
    s.segments("with-the-next-record", t)
    _alter(s, t, "segment.bytes", None)
    for at in range(4, 7):
        s.produce(t, big, at=at, quiet=True)
    s.segments("larger-again", t)


def of_a_fetch_that_waits(s):
    t = s.topic()
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    held = s.send("Fetch", 12, on="f", topics=[{"topic": t, "partitions": [row]}], max_wait_ms=2000, min_bytes=1)
    _alter(s, t, "retention.ms", "100000")
    s.finish(held, pick=seen)
