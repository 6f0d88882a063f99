"""Defaults of topics in all units: as a broker is given them, and as they are changed for all brokers and for one.

One scenario for each set of them, since what is changed for all brokers is changed for all scenarios.
"""

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
ALL = ""
OF_TOPICS = ("retention.ms", "segment.ms", "segment.jitter.ms", "flush.ms", "flush.messages", "cleanup.policy")
OF_BROKER = (
    "log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.roll.ms", "log.roll.hours",
    "log.roll.jitter.ms", "log.roll.jitter.hours", "log.flush.interval.ms", "log.flush.scheduler.interval.ms",
    "log.flush.interval.messages", "log.cleanup.policy", "log.preallocate",
)  # fmt: skip
CHANGES = {
    "log.retention.ms": "1000000", "log.roll.ms": "70001", "log.roll.jitter.ms": "10", "log.flush.interval.ms": "3001",
    "log.flush.interval.messages": "51", "log.cleanup.policy": "compact", "log.preallocate": "true",
}  # fmt: skip
REFUSED = (
    (ALL, "log.retention.hours", "5"), (ALL, "log.retention.minutes", "5"), (ALL, "log.roll.hours", "5"),
    (ALL, "log.roll.jitter.hours", "5"), (ALL, "log.flush.scheduler.interval.ms", "5"), (ALL, "log.retention.ms", "0"),
    (ALL, "log.retention.ms", "many"), (ALL, "log.roll.ms", "0"), (ALL, "log.roll.jitter.ms", "-5"),
    (ALL, "log.flush.interval.messages", "0"),
)  # fmt: skip
NEGATIVE = (("log.retention.ms", "-1"), ("log.retention.ms", "-2"), ("log.flush.interval.ms", "-1"))


def _rows(a):
    """Each configuration: value, source, whether it is fixed, and synonyms, nearest first; or the error."""
    if a["results"][0]["error_code"]:
        return a["results"][0]["error_code"]
    return {
        row["name"]: [
            row["value"],
            row["config_source"],
            row["read_only"],
            [[*one.values()] for one in row["synonyms"]],
        ]
        for row in a["results"][0]["configs"]
    }


def _shown(s, kind, name, keys, label, **options):
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}
    s.ask(
        "DescribeConfigs", 4, resources=[asked], include_synonyms=True, ordered=True, pick=_rows, label=label, **options
    )


def _made(s, label):
    """The configurations of a new topic, as CreateTopics answers them."""
    entry = {"name": s.name(f"made-{label}"), "num_partitions": 1, "replication_factor": 1, "configs": []}
    s.ask("CreateTopics", 5, topics=[entry], label=label, pick=_created)


def _created(a):
    rows = a["topics"][0]["configs"]
    return {row["name"]: [row["value"], row["config_source"]] for row in rows if row["name"] in OF_TOPICS}


def _altered(s, broker, changes, label):
    rows = [
        {"name": name, "config_operation": DELETE if value is None else SET, "value": value}
        for name, value in changes.items()
    ]
    wanted = [{"resource_type": BROKER, "resource_name": broker, "configs": rows}]
    return s.ask("IncrementalAlterConfigs", 1, resources=wanted, label=label).responses[0].error_code == 0


def _all_shown(s, t, label, name="log.preallocate", value="false"):
    """All configurations, as soon as one of the broker has a value."""

    def is_there(a):
        return any(c.name == name and c.value == value for c in a.results[0].configs)

    _shown(s, BROKER, str(s.server.node), OF_BROKER, f"{label}-broker", until=is_there)
    _shown(s, TOPIC, t, OF_TOPICS, f"{label}-topic")


def defaults(s):
    t, node = s.topic(), str(s.server.node)
    _all_shown(s, t, "given")
    _made(s, "given")
    _altered(s, ALL, CHANGES, "all")
    _all_shown(s, t, "all", "log.preallocate", "true")
    _made(s, "all")
    _shown(s, BROKER, ALL, OF_BROKER, "all-of-all")
    _altered(s, node, {"log.retention.ms": "-2", "log.roll.ms": "70002"}, "one")
    _all_shown(s, t, "one", "log.roll.ms", "70002")
    _made(s, "one")
    _altered(s, node, {"log.retention.ms": None, "log.roll.ms": None}, "one-deleted")
    _all_shown(s, t, "one-deleted", "log.roll.ms", "70001")
    _altered(s, ALL, dict.fromkeys(CHANGES), "all-deleted")
    _all_shown(s, t, "all-deleted")
    for broker, name, value in REFUSED:
        _altered(s, broker, {name: value}, f"refused-{name}-{value}")
    for at, (name, value) in enumerate(NEGATIVE):
        if _altered(s, ALL, {name: value, "log.roll.ms": str(80_000 + at)}, f"{name}-{value}"):
            _all_shown(s, t, f"{name}-{value}", "log.roll.ms", str(80_000 + at))
    _altered(s, ALL, {"log.retention.ms": None, "log.flush.interval.ms": None, "log.roll.ms": None}, "end")
