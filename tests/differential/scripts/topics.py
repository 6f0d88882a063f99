"""CreateTopics, DeleteTopics, CreatePartitions."""

import uuid


def _new(name, partitions=1, replicas=1, assignments=(), **configs):
    rows = [{"partition_index": i, "broker_ids": ids} for i, ids in assignments]
    wanted = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": rows,
        "configs": wanted,
    }


def _brief(a):
    return [{k: v for k, v in row.items() if k != "configs"} for row in a["topics"]]


def create(s):
    for version in range(2, 8):
        s.ask("CreateTopics", version, topics=[_new(s.name(f"v{version}"), 2)], pick=_brief)
    s.ask("CreateTopics", 7, label="exists", topics=[_new(s.name("v7"))], pick=_brief)
    s.ready(s.name("v3"), 2)
    s.ask("Metadata", 9, topics=[{"name": s.name("v3")}])


def create_defaults(s):
    s.ask("CreateTopics", 4, label="minus-one", topics=[_new(s.name("a"), -1, -1)], pick=_brief)
    s.ask("CreateTopics", 5, label="minus-one", topics=[_new(s.name("b"), -1, -1)], pick=_brief)
    s.ask("CreateTopics", 6, label="validate-only", topics=[_new(s.name("c"), 3)], validate_only=True, pick=_brief)
    s.ask("Metadata", 9, topics=[{"name": s.name("c")}], allow_auto_topic_creation=False, retry=())


def create_refused(s):
    node = s.server.node
    bad = {
        "no-partitions": _new(s.name("a"), 0),
        "minus-two-partitions": _new(s.name("a"), -2),
        "no-replicas": _new(s.name("a"), 1, 0),
        "two-replicas": _new(s.name("a"), 1, 2),
        "name-slash": _new("a/" + s.name("a")),
        "name-dot": _new("."),
        "name-empty": _new(""),
        "name-long": _new("x" * 250),
        "unknown-config": _new(s.name("a"), no_such_config="1"),
        "bad-config": _new(s.name("a"), retention_ms="soon"),
        "small-segment": _new(s.name("a"), segment_bytes="1000"),
        "bad-policy": _new(s.name("a"), cleanup_policy="burn"),
        "bad-codec": _new(s.name("a"), compression_type="brotli"),
        "null-config": _new(s.name("a"), retention_ms=None),
        "assignment-and-count": _new(s.name("a"), 1, 1, [(0, [node])]),
        "assignment-with-gap": _new(s.name("a"), -1, -1, [(0, [node]), (2, [node])]),
        "assignment-unknown-broker": _new(s.name("a"), -1, -1, [(0, [node + 50])]),
        "assignment-twice": _new(s.name("a"), -1, -1, [(0, [node, node])]),
        "assignment-empty": _new(s.name("a"), -1, -1, [(0, [])]),
    }
    for label, topic in bad.items():
        s.ask("CreateTopics", 6, label=label, topics=[topic], pick=_brief)


def create_too_many(s):
    t = s.topic()
    a, b = s.name("a"), s.name("b")
    asked = {
        "most": [_new(a, 9999)],
        "more": [_new(a, 10_000)],
        "far-more": [_new(a, 100_000)],
        "together": [_new(a, 5000), _new(b, 5000)],
        "default": [_new(a, 9999), _new(b, -1)],
        "with-config": [_new(a, 9999, retention_ms="60000")],
        "most-with-config": [_new(a, 9998, retention_ms="60000")],
        "and-a-wrong-one": [_new(a, 10_000), _new(b, 0)],
        "wrong-name": [_new(a + "/", 10_001), _new(b)],
        "exists": [_new(t, 10_000), _new(b)],
        "exists-and-few": [_new(t, 9999), _new(b)],
    }
    for label, topics in asked.items():
        s.ask("CreateTopics", 6, label=label, topics=topics, validate_only=True, pick=_brief)


def create_accepted(s):
    good = {
        "empty-policy": {"cleanup_policy": ""},
        "two-policies": {"cleanup_policy": "compact,delete"},
        "no-limit": {"retention_ms": "-1", "retention_bytes": "-1"},
        "spaces": {"segment_ms": " 60000 "},
        "smallest-segment": {"segment_bytes": "1048576"},
        "more-replicas-than-there-are": {"min_insync_replicas": "3"},
    }
    for i, (label, configs) in enumerate(good.items()):
        topic = _new(s.name(f"t{i}"), **configs)
        keys = [row["name"] for row in topic["configs"]]
        s.ask(
            "CreateTopics",
            7,
            label=label,
            topics=[topic],
            pick=lambda a, keys=keys: [[r["name"], r["value"]] for r in a["topics"][0]["configs"] if r["name"] in keys],
        )


def create_several(s):
    s.ask("CreateTopics", 7, topics=[_new(s.name("a")), _new(s.name("b"), 0), _new(s.name("c"), 2)], pick=_brief)
    s.ask("CreateTopics", 7, label="same-name-twice", topics=[_new(s.name("d")), _new(s.name("d"))], pick=_brief)
    s.ask("CreateTopics", 7, label="none", topics=[])
    s.ask(
        "CreateTopics",
        5,
        label="assigned",
        topics=[_new(s.name("e"), -1, -1, [(1, [s.server.node]), (0, [s.server.node])])],
        pick=_brief,
    )


def colliding_names(s):
    s.ask("CreateTopics", 5, topics=[_new(s.name("a.b"))], pick=_brief)
    s.ask("CreateTopics", 5, label="underscore", topics=[_new(s.name("a_b"))], pick=_brief)


def create_shows_configs(s):
    topic = _new(s.name("a"), 1, 1, retention_ms="12345", cleanup_policy="compact", min_insync_replicas="1")

    def chosen(a):
        wanted = (
            "retention.ms",
            "cleanup.policy",
            "segment.bytes",
            "max.message.bytes",
            "min.insync.replicas",
            "compression.type",
        )
        return [row for row in a["topics"][0]["configs"] if row["name"] in wanted]

    s.ask("CreateTopics", 5, topics=[topic], pick=chosen)
    s.ask(
        "CreateTopics",
        7,
        label="all-names",
        topics=[_new(s.name("b"))],
        pick=lambda a: [row["name"] for row in a["topics"][0]["configs"]],
    )


def delete(s):
    for version in (1, 3, 4, 5):
        s.ask("DeleteTopics", version, topic_names=[s.topic(f"v{version}")])
    a, b = s.topic("a"), s.topic("b")
    s.ask("DeleteTopics", 6, label="by-name", topics=[{"name": a}])
    s.ask("DeleteTopics", 6, label="by-id", topics=[{"name": None, "topic_id": s.ids[b]}])
    s.ask("DeleteTopics", 6, label="again-by-name", topics=[{"name": a}], retry=())
    s.ask("DeleteTopics", 6, label="again-by-id", topics=[{"name": None, "topic_id": s.ids[b]}], retry=())
    s.ask(
        "Metadata",
        9,
        topics=[{"name": a}],
        allow_auto_topic_creation=False,
        retry=(),
        until=lambda m: m.topics[0].error_code,
    )


def delete_refused(s):
    t = s.topic()
    s.ask("DeleteTopics", 5, label="unknown", topic_names=[s.name("none")])
    s.ask("DeleteTopics", 6, label="unknown-id", topics=[{"name": None, "topic_id": uuid.UUID(int=5)}])
    s.ask("DeleteTopics", 6, label="name-and-id", topics=[{"name": t, "topic_id": s.ids[t]}])
    s.ask("DeleteTopics", 6, label="neither", topics=[{"name": None}])
    s.ask("DeleteTopics", 6, label="twice", topics=[{"name": t}, {"name": t}])
    s.ask("DeleteTopics", 6, label="bad-name", topics=[{"name": "a/b"}])
    s.ask("Metadata", 9, topics=[{"name": t}])


def recreate(s):
    t = s.topic()
    s.produce(t, b"old")
    old = s.ids[t]
    s.ask("DeleteTopics", 6, topics=[{"name": t}])
    s.ask(
        "Metadata",
        9,
        topics=[{"name": t}],
        allow_auto_topic_creation=False,
        quiet=True,
        until=lambda m: m.topics[0].error_code,
    )
    s.topic()
    s.note("new-id", s.ids[t] != old)
    s.fetch(t)
    s.mask.known[old] = "<old id>"
    s.ids["old"] = old
    s.ask(
        "Produce",
        13,
        label="old-id",
        topic_data=[{"topic_id": old, "partition_data": [{"index": 0, "records": s.batch(b"x")}]}],
    )
    s.fetch("old", version=13, label="old-id")
    s.produce(t, b"new")
    s.fetch(t)


def more_partitions(s):
    t = s.topic()
    for version in range(4):
        s.ask("CreatePartitions", version, topics=[{"name": t, "count": version + 2, "assignments": None}])
        s.ready(t, version + 2)
    s.ask("Metadata", 9, topics=[{"name": t}], pick=lambda a: len(a["topics"][0]["partitions"]))
    s.produce(t, b"x", partition=4)
    asked = {
        "fewer": {"name": t, "count": 1},
        "same": {"name": t, "count": 5},
        "unknown": {"name": s.name("none"), "count": 3},
        "zero": {"name": t, "count": 0},
        "assignments-too-few": {"name": t, "count": 7, "assignments": [{"broker_ids": [s.server.node]}]},
        "unknown-broker": {"name": t, "count": 6, "assignments": [{"broker_ids": [s.server.node + 50]}]},
        "assigned": {"name": t, "count": 6, "assignments": [{"broker_ids": [s.server.node]}]},
    }
    for label, topic in asked.items():
        s.ask("CreatePartitions", 3, label=label, topics=[{"assignments": None, **topic}])
    s.ask(
        "CreatePartitions",
        2,
        label="validate-only",
        topics=[{"name": t, "count": 9, "assignments": None}],
        validate_only=True,
    )
    s.ask("CreatePartitions", 2, label="twice", topics=[{"name": t, "count": 9, "assignments": None}] * 2)


def too_many_more_partitions(s):
    t, other = s.topic("many"), s.topic("other")
    asked = {
        "most": [(t, 10_001)],
        "more": [(t, 10_002)],
        "together": [(t, 10_001), (other, 2)],
        "and-a-wrong-one": [(t, 10_001), (other, 0)],
        "and-an-unknown-one": [(t, 10_001), (s.name("none"), 9000)],
        "more-and-an-unknown-one": [(t, 10_002), (s.name("none"), 3)],
    }
    for label, counts in asked.items():
        topics = [{"name": name, "count": count, "assignments": None} for name, count in counts]
        s.ask("CreatePartitions", 3, label=label, topics=topics, validate_only=True)


def order_of_checks(s):
    bad = {"retention_ms": "x"}
    asked = {
        "config-and-partitions": _new(s.name("a"), 0, 1, **bad),
        "config-and-replicas": _new(s.name("a"), 1, 0, **bad),
        "config-and-assignment": _new(s.name("a"), -1, -1, [(0, [s.server.node + 50])], **bad),
        "config-and-both": _new(s.name("a"), 1, 1, [(0, [s.server.node])], **bad),
        "partitions-and-replicas": _new(s.name("a"), -2, -2),
        "partitions-and-many-replicas": _new(s.name("a"), 0, 9),
    }
    for label, topic in asked.items():
        s.ask("CreateTopics", 6, label=label, topics=[topic], pick=_brief)
    s.ask("CreateTopics", 7, label="validate-only", topics=[_new(s.name("b"))], validate_only=True, pick=_brief)
