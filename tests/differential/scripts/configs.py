"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources; configs that take effect."""

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def _describe(s, name, *keys, kind=TOPIC, version=4, **options):
    row = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    return s.ask("DescribeConfigs", version, resources=[row], **options)


def _alter(s, name, *changes, kind=TOPIC, version=1, **options):
    """changes: (name, operation, value)."""
    rows = [{"name": key, "config_operation": op, "value": value} for key, op, value in changes]
    return s.ask(
        "IncrementalAlterConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": rows}],
        **options,
    )


def _names(a):
    return [row["name"] for row in a["results"][0]["configs"]]


def describe(s):
    t = s.topic(retention_ms="777", cleanup_policy="compact")
    for version in (1, 2, 3, 4):
        _describe(s, t, "retention.ms", "cleanup.policy", "segment.bytes", "min.insync.replicas", version=version)
    _describe(s, t, "retention.ms", "segment.ms", include_synonyms=True, label="synonyms")
    _describe(s, t, pick=_names, label="all-names")
    _describe(s, t, "no.such.config", label="unknown-key")
    s.ask(
        "DescribeConfigs",
        4,
        label="no-keys",
        resources=[{"resource_type": TOPIC, "resource_name": t, "configuration_keys": []}],
        pick=_names,
    )


def describe_types(s):
    t = s.topic()

    def types(a):
        return {
            row["name"]: [row["config_type"], row["value"], row["config_source"]] for row in a["results"][0]["configs"]
        }

    for half in (lambda n: n < "l", lambda n: n >= "l"):
        _describe(
            s, t, pick=lambda a, half=half: {k: v for k, v in types(a).items() if half(k)}, label="types-and-defaults"
        )


def describe_refused(s):
    t = s.topic()
    _describe(s, s.name("none"), label="unknown-topic")
    _describe(s, "", label="empty-name")
    _describe(s, "a/b", label="bad-name")
    _describe(s, "x", kind=0, label="kind-0")
    _describe(s, "x", kind=3, label="kind-3")
    _describe(s, "x", kind=99, label="kind-99")
    _describe(s, "9941", kind=BROKER, label="another-broker")
    _describe(s, "word", kind=BROKER, label="broker-word")
    row = {"resource_type": TOPIC, "resource_name": t, "configuration_keys": ["segment.ms"]}
    s.ask("DescribeConfigs", 4, label="twice", resources=[row, row])
    s.ask("DescribeConfigs", 4, label="none", resources=[])


def describe_broker(s):
    keys = (
        "message.max.bytes",
        "log.retention.hours",
        "auto.create.topics.enable",
        "log.segment.bytes",
        "no.such.config",
    )
    _describe(s, str(s.server.node), *keys, kind=BROKER, include_synonyms=True)
    _describe(s, "", *keys, kind=BROKER, label="all-brokers")
    _describe(s, str(s.server.node), "kafka.no.such.Logger", kind=LOGGER, label="unknown-logger")


DEFAULTS_OF_TOPICS = (
    "compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level",
    "log.cleaner.delete.retention.ms", "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms", "log.cleanup.policy", "log.flush.interval.messages", "log.flush.interval.ms",
    "log.index.interval.bytes", "log.index.size.max.bytes", "log.local.retention.bytes", "log.local.retention.ms",
    "log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms", "log.message.timestamp.type",
    "log.preallocate", "log.retention.bytes", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms",
    "log.segment.bytes", "log.segment.delete.delay.ms", "message.max.bytes", "unclean.leader.election.enable",
)  # fmt: skip
VALUES = (
    "-200000", "-3", "-2", "-1", "0", "1", "2", "10", "20", "5000", "3000000000", "0.5", "word", "", " 1 ", "true",
    "TRUE", "delete", "compact,delete", "gzip", "LogAppendTime",
)  # fmt: skip


def broker_values(s):
    """Which values the defaults of topics may have that are changed while the broker runs."""
    _values(s, BROKER, "", DEFAULTS_OF_TOPICS)


def topic_values(s):
    t = s.topic()
    row = {"resource_type": TOPIC, "resource_name": t, "configuration_keys": None}
    rows = s.ask("DescribeConfigs", 4, resources=[row], quiet=True).results[0].configs
    _values(s, TOPIC, t, sorted(row.name for row in rows))


def _values(s, kind, resource, names):
    """For each configuration, which of the values are accepted, and the errors of the others."""
    for name in names:
        codes = {}
        for value in VALUES:
            config = {"name": name, "config_operation": SET, "value": value}
            wanted = [{"resource_type": kind, "resource_name": resource, "configs": [config]}]
            a = s.ask("IncrementalAlterConfigs", 1, resources=wanted, validate_only=True, quiet=True)
            codes[value] = a.responses[0].error_code
        accepted = [value for value, code in codes.items() if not code]
        s.note(name, {"accepted": accepted, "errors": sorted({*codes.values()} - {0})}, ordered=True)


def describe_group(s):
    _describe(
        s,
        s.name("g"),
        kind=GROUP,
        label="group",
        pick=lambda a: [[r["name"], r["value"], r["config_source"]] for r in a["results"][0]["configs"]],
    )
    _describe(s, s.name("g"), "consumer.session.timeout.ms", kind=GROUP, include_synonyms=True)
    _describe(s, "", kind=GROUP, label="empty-group")
    _describe(s, s.name("m"), kind=METRICS, label="unknown-metrics")


def incremental(s):
    t = s.topic()
    _alter(s, t, ("retention.ms", SET, "5000"), ("max.message.bytes", SET, "2000"))
    _describe(s, t, "retention.ms", "max.message.bytes", until=lambda a: a.results[0].configs[0].value != "604800000")
    _alter(s, t, ("retention.ms", DELETE, None), version=0)
    _describe(
        s,
        t,
        "retention.ms",
        "max.message.bytes",
        include_synonyms=True,
        label="deleted",
        until=lambda a: {c.name: c.value for c in a.results[0].configs}["retention.ms"] == "604800000",
    )
    _alter(s, t, ("cleanup.policy", APPEND, "compact"), label="append")
    _describe(s, t, "cleanup.policy", label="appended", until=lambda a: "compact" in a.results[0].configs[0].value)
    _alter(s, t, ("cleanup.policy", SUBTRACT, "delete"), label="subtract")
    _describe(s, t, "cleanup.policy", label="subtracted", until=lambda a: "delete" not in a.results[0].configs[0].value)
    _alter(s, t, ("cleanup.policy", APPEND, "compact"), label="append-what-is-there")
    _alter(s, t, ("cleanup.policy", SUBTRACT, "delete"), label="subtract-what-is-not-there")
    _describe(s, t, "cleanup.policy", label="as-before")
    _alter(s, t, ("segment.ms", DELETE, None), label="delete-what-is-not-set")


def incremental_refused(s):
    t = s.topic()
    asked = {
        "unknown-key": [("no.such.config", SET, "1")],
        "bad-value": [("retention.ms", SET, "soon")],
        "out-of-range": [("segment.bytes", SET, "3")],
        "bad-choice": [("compression.type", SET, "brotli")],
        "null-value": [("retention.ms", SET, None)],
        "empty-value": [("retention.ms", SET, "")],
        "append-to-a-number": [("retention.ms", APPEND, "1")],
        "operation-9": [("retention.ms", 9, "1")],
        "key-twice": [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        "one-good-one-bad": [("retention.ms", SET, "123"), ("segment.ms", SET, "x")],
        "delete-unknown-key": [("no.such.config", DELETE, None)],
        "no-changes": [],
    }
    for label, changes in asked.items():
        _alter(s, t, *changes, label=label)
    _describe(s, t, "retention.ms")
    _alter(s, s.name("none"), ("retention.ms", SET, "1"), label="unknown-topic")
    _alter(s, "", ("retention.ms", SET, "1"), label="empty-name")
    _alter(s, "x", ("retention.ms", SET, "1"), kind=1, label="kind-1")
    _alter(s, "9941", ("log.cleaner.threads", SET, "1"), kind=BROKER, label="another-broker", validate_only=True)
    _alter(
        s,
        str(s.server.node),
        ("log.cleaner.threads", SET, "2"),
        kind=BROKER,
        label="broker-validate-only",
        validate_only=True,
    )
    _alter(s, str(s.server.node), ("broker.id", SET, "2"), kind=BROKER, label="broker-read-only", validate_only=True)
    _alter(s, t, ("retention.ms", SET, "99"), label="validate-only", validate_only=True)
    _describe(s, t, "retention.ms", label="as-before")
    row = {"resource_type": TOPIC, "resource_name": t, "configs": []}
    s.ask("IncrementalAlterConfigs", 1, label="twice", resources=[row, row])
    s.ask("IncrementalAlterConfigs", 1, label="none", resources=[])


def whole(s):
    t = s.topic(retention_ms="5000", segment_ms="60000")

    def rows(**configs):
        wanted = [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()]
        return [{"resource_type": TOPIC, "resource_name": t, "configs": wanted}]

    s.ask("AlterConfigs", 0, resources=rows(retention_ms="6000"), validate_only=True, label="validate-only")
    s.ask("AlterConfigs", 2, resources=rows(max_message_bytes="1234"))
    _describe(
        s,
        t,
        "retention.ms",
        "segment.ms",
        "max.message.bytes",
        until=lambda a: any(c.value == "1234" for c in a.results[0].configs),
    )
    s.ask("AlterConfigs", 1, resources=rows(no_such_config="1"), label="unknown-key")
    s.ask("AlterConfigs", 1, resources=rows(retention_ms=None), label="null-value")
    s.ask(
        "AlterConfigs",
        1,
        resources=[{"resource_type": TOPIC, "resource_name": s.name("none"), "configs": []}],
        label="unknown-topic",
    )
    s.ask("AlterConfigs", 2, resources=rows(), label="empty")
    _describe(s, t, "max.message.bytes", until=lambda a: a.results[0].configs[0].value != "1234", label="all-reset")


def take_effect(s):
    t = s.topic()
    s.produce(t, b"x" * 300)
    _alter(s, t, ("max.message.bytes", SET, "200"))
    s.produce(
        t,
        b"x" * 300,
        label="too-large-now",
        until=lambda a: a.responses[0].partition_responses[0].error_code,
        pick=_error,
    )
    _alter(s, t, ("max.message.bytes", DELETE, None), ("message.timestamp.type", SET, "LogAppendTime"))
    s.produce(
        t,
        b"y",
        label="append-time-now",
        until=lambda a: a.responses[0].partition_responses[0].log_append_time_ms > 0,
        pick=_time,
    )
    _alter(s, t, ("cleanup.policy", SET, "compact"))
    s.produce(
        t, b"z", label="keys-needed-now", until=lambda a: a.responses[0].partition_responses[0].error_code, pick=_error
    )


def _error(a):
    part = a["responses"][0]["partition_responses"][0]
    return [part["error_code"], part["base_offset"], part["record_errors"]]


def _time(a):
    return a["responses"][0]["partition_responses"][0]["log_append_time_ms"]


def group_configs(s):
    g = s.name("g")
    _alter(s, g, ("consumer.session.timeout.ms", SET, "50000"), kind=GROUP)
    _describe(
        s,
        g,
        "consumer.session.timeout.ms",
        kind=GROUP,
        include_synonyms=True,
        until=lambda a: a.results[0].configs[0].value == "50000",
    )
    _alter(s, g, ("consumer.session.timeout.ms", SET, "1"), kind=GROUP, label="too-small")
    _alter(s, g, ("no.such.config", SET, "1"), kind=GROUP, label="unknown-key")
    _alter(s, "", ("consumer.session.timeout.ms", SET, "50000"), kind=GROUP, label="empty-name")
    _alter(s, g, ("consumer.session.timeout.ms", DELETE, None), kind=GROUP, label="delete")


def metrics_configs(s):
    m = s.name("m")
    _alter(
        s, m, ("interval.ms", SET, "60000"), ("metrics", SET, "a.b,c"), ("match", SET, "client_id=nobody"), kind=METRICS
    )
    _describe(s, m, kind=METRICS, until=lambda a: a.results[0].configs and a.results[0].configs[0].value)
    s.ask(
        "ListConfigResources",
        0,
        mine=True,
        pick=lambda a: a["config_resources"],
        until=lambda a: any(m == r.resource_name for r in a.config_resources),
    )
    s.ask(
        "ListConfigResources",
        1,
        mine=True,
        resource_types=[METRICS],
        label="metrics",
        pick=lambda a: a["config_resources"],
    )
    _alter(s, m, ("interval.ms", SET, "5"), kind=METRICS, label="interval-too-small")
    _alter(s, m, ("match", SET, "colour=red"), kind=METRICS, label="bad-match")
    _alter(s, m, ("no.such.config", SET, "1"), kind=METRICS, label="unknown-key")
    _alter(s, m, *[(k, DELETE, None) for k in ("interval.ms", "metrics", "match")], kind=METRICS, label="delete-all")
    s.ask(
        "ListConfigResources",
        0,
        mine=True,
        pick=lambda a: a["config_resources"],
        label="gone",
        until=lambda a: not any(m == r.resource_name for r in a.config_resources),
    )


def list_resources(s):
    s.topic(retention_ms="5")
    s.topic("plain")
    s.ask(
        "ListConfigResources",
        1,
        mine=True,
        resource_types=[TOPIC],
        label="topics",
        pick=lambda a: a["config_resources"],
    )
    s.ask(
        "ListConfigResources",
        1,
        resource_types=[BROKER],
        label="brokers",
        pick=lambda a: [[r["resource_type"]] for r in a["config_resources"]],
    )
    s.ask("ListConfigResources", 1, resource_types=[77], label="kind-77")


_ODD = {
    "min.cleanable.dirty.ratio": ("0.5f", ".5", "1e-1", "5e-4", "NaN", "1.", "Infinity", "inf", "1_0"),
    "retention.ms": (" 5", "+5", "0005", "5L", "5.0", "", "-0", "9223372036854775808"),
    "preallocate": ("TRUE", " true ", "1", ""),
    "cleanup.policy": ("compact , delete", "delete,delete", ",", "compact,", "Delete"),
    "compression.type": (" gzip", "GZIP"),
    "leader.replication.throttled.replicas": (" *", "0:1, 1:2", "0:1,0:1", "0:1,", "-1:2", "none"),
}


def odd_values(s):
    t = s.topic()
    for key, values in _ODD.items():
        for value in values:
            got = _alter(s, t, (key, SET, value), label=f"{key}-{value}")
            if got.responses[0].error_code:
                continue
            shown = {"resource_type": TOPIC, "resource_name": t, "configuration_keys": [key]}
            s.ask("DescribeConfigs", 4, label=f"{key}-{value}", resources=[shown], include_synonyms=True,
                  until=lambda a: a.results[0].configs[0].config_source == 1)  # fmt: skip
            _alter(s, t, (key, DELETE, None), quiet=True)
            s.ask("DescribeConfigs", 4, resources=[shown], quiet=True,
                  until=lambda a: a.results[0].configs[0].config_source != 1)  # fmt: skip


def order_of_checks(s):
    t, none = s.topic(), s.name("none")
    configs: dict[str, list[tuple[str, int, str | None]]] = {
        "good": [("retention.ms", SET, "5")],
        "bad-value": [("retention.ms", SET, "x")],
        "unknown-key": [("no.such.config", SET, "1")],
        "no-list": [("retention.ms", APPEND, "5")],
        "null": [("retention.ms", SET, None)],
        "key-twice": [("retention.ms", SET, "5"), ("retention.ms", SET, "6")],
        "unknown-operation": [("retention.ms", 9, "5")],
        "none": [],
    }
    for label, changes in configs.items():
        for name, where in ((t, "known"), (none, "unknown"), ("a/b", "bad-name"), ("", "no-name")):
            rows = [{"name": key, "config_operation": op, "value": value} for key, op, value in changes]
            resource = {"resource_type": TOPIC, "resource_name": name, "configs": rows}
            other = {**resource, "resource_name": t, "configs": []}
            both = [resource, other] if name != t else [resource]
            s.ask("IncrementalAlterConfigs", 1, label=f"{label}-{where}", resources=both, validate_only=True)
            if all(op == SET for _, op, _ in changes):
                plain = [{"name": key, "value": value} for key, _, value in changes]
                s.ask("AlterConfigs", 1, label=f"{label}-{where}", resources=[{**resource, "configs": plain}],
                      validate_only=True)  # fmt: skip


def unknown_kinds_among_others(s):
    t = s.topic()
    for kind in (0, 3, 64, -1):
        rows = [{"resource_type": one, "resource_name": t, "configuration_keys": ["retention.ms"]} for one in (2, kind)]
        s.ask("DescribeConfigs", 4, label=f"kind-{kind}", resources=rows)
