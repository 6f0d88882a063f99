"""The topologies of streams groups: what is wrong with them, their topics, and what the broker creates."""

from functools import partial

from tests.differential.streams_members import (
    StreamsMember,
    brief,
    describe,
    part,
    source,
    together,
    topic,
    topology,
)


def _words(s, t):
    """Counts of words: lines are split, then repartitioned by word."""
    repartition, changelog = s.name("words-repartition"), s.name("words-changelog")
    return topology(
        part("0", t, repartition_sink_topics=[repartition]),
        part("1", repartition_source_topics=[topic(repartition, cleanup_policy="delete", retention_ms="-1")],
             state_changelog_topics=[topic(changelog, cleanup_policy="compact", segment_bytes="2000000")]),
    )  # fmt: skip


def missing_sources(s):
    g, t = s.name("g"), s.name("later")
    a = StreamsMember(s, g, "a", topology(part("0", t)))
    a.join()
    describe(s, g, "not-ready", pick=brief)
    s.ask("ListGroups", 5, types_filter=["streams"], states_filter=["NotReady"], mine=True)
    s.ask("ListGroups", 5, types_filter=["streams"], states_filter=["not_ready"], mine=True)
    a.beat("epoch-without-tasks", until=lambda h: h.member_epoch == 2)
    s.ask("CreateTopics", 5, quiet=True, topics=[{"name": t, "num_partitions": 2, "replication_factor": 1}])
    s.ready(t, 2)
    a.beat("has-tasks", until=lambda h: h.active_tasks)
    a.own()
    describe(s, g, "ready", pick=brief)
    s.ask("CreatePartitions", 3, quiet=True, topics=[{"name": t, "count": 3, "assignments": None}])
    s.ready(t, 3)
    a.beat("has-more", until=lambda h: h.active_tasks)
    describe(s, g, "more", pick=brief)
    s.ask("DeleteTopics", 5, quiet=True, topic_names=[t])
    a.beat("source-is-gone", until=lambda h: h.active_tasks is not None)
    describe(s, g, "gone", pick=brief)


def _values(answer):
    return [[row["name"], row["value"], row["config_source"]] for row in answer["results"][0]["configs"]]


def internal_topics(s):
    t, g = source(s, partitions=3), s.name("g")
    a = StreamsMember(s, g, "a", _words(s, t))
    a.join()
    a.beat("topics-are-there", until=lambda h: not any(row.status_code == 3 for row in h.status))
    a.beat("assigned", until=lambda h: h.active_tasks)
    a.own()
    describe(s, g, hide=("client_host",))
    for name in ("words-repartition", "words-changelog"):
        s.ask("Metadata", 12, topics=[{"name": s.name(name)}], allow_auto_topic_creation=False,
              pick=lambda m: [len(m["topics"][0]["partitions"]), m["topics"][0]["error_code"]])  # fmt: skip
        names = ["cleanup.policy", "retention.ms", "segment.bytes"]
        asked = {"resource_type": 2, "resource_name": s.name(name), "configuration_keys": names}
        s.ask("DescribeConfigs", 2, resources=[asked], label=name.partition("-")[2], pick=_values)
    s.ask("DeleteTopics", 5, quiet=True, topic_names=[s.name("words-changelog")])
    a.beat("made-again", until=lambda h: any(row.status_code == 3 for row in h.status))


def cannot_create(s):
    t, g = source(s, partitions=3), s.name("g")
    bad = {**topic(s.name("bad-changelog")), "replication_factor": 5}
    odd = topic(s.name("odd-changelog"), cleanup_policy="odd")
    a = StreamsMember(s, g, "a", topology(part("0", t, state_changelog_topics=[bad, odd])))
    a.join()
    a.beat("not-created")
    a.beat("not-created-again")
    describe(s, g, "not-ready")


def copartitions(s):
    two, three = source(s, "two", 2), source(s, "three", 3)
    fixed, free = s.name("fixed-repartition"), s.name("free-repartition")
    wrong = source(s, "wrong-changelog", 5)
    parts = {
        "sources-differ": [part("0", two, three, copartition_groups=[together(0, 1)])],
        "sources-may-differ": [part("0", two, three)],
        "follows-source": [
            part("0", three, repartition_sink_topics=[free]),
            part("1", two, repartition_source_topics=[topic(free)],
                 copartition_groups=[together(0, repartition=(0,))]),
        ],
        "fixed-differs": [
            part("0", three, repartition_sink_topics=[fixed]),
            part("1", two, repartition_source_topics=[topic(fixed, 4)],
                 copartition_groups=[together(0, repartition=(0,))]),
        ],
        "fixed-counts": [
            part("0", three, repartition_sink_topics=[fixed, free]),
            part("1", repartition_source_topics=[topic(fixed, 4), topic(free)],
                 copartition_groups=[together(repartition=(0, 1))]),
        ],
        "largest-counts": [
            part("0", two, repartition_sink_topics=[fixed]),
            part("1", three, repartition_sink_topics=[free]),
            part("2", repartition_source_topics=[topic(fixed), topic(free)],
                 copartition_groups=[together(repartition=(0, 1))]),
        ],
        "chain": [
            part("0", repartition_source_topics=[topic(free)], repartition_sink_topics=[fixed]),
            part("1", three, repartition_sink_topics=[free]),
            part("2", repartition_source_topics=[topic(fixed)]),
        ],
        "existing-differs": [part("0", two, state_changelog_topics=[topic(wrong)])],
        "empty-group": [part("0", two, copartition_groups=[together()])],
    }  # fmt: skip
    for label, made in parts.items():
        member = StreamsMember(s, s.name(label), label, _renamed(made, label, (fixed, free)))
        member.join("")
        member.beat("assigned", until=lambda h: h.active_tasks or (h.status and h.status[0].status_code == 2))
        describe(s, s.name(label), label)


def _renamed(parts, label, names):
    """Each topology has internal topics of its own."""

    def renamed(value):
        if isinstance(value, dict):
            return {key: renamed(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [renamed(each) for each in value]
        return f"{label}-{value}" if value in names else value

    return topology(*renamed(parts))


def invalid(s):
    t, r = source(s), s.name("r")
    parts = {
        "no-sources": [part("0")],
        "no-parts": [],
        "loop": [
            part("0", repartition_source_topics=[topic(r)], repartition_sink_topics=[s.name("q")]),
            part("1", repartition_source_topics=[topic(s.name("q"))], repartition_sink_topics=[r]),
        ],
        "never-written": [part("0", t, repartition_source_topics=[topic(r)])],
        "changelog-with-partitions": [part("0", t, state_changelog_topics=[topic(r, 3)])],
        "regex": [part("0", t, source_topic_regex=["t.*"])],
        "twice": [part("0", t), part("0", t)],
        "kafkas-own": [part("0", "__consumer_offsets")],
        "kafkas-own-sink": [part("0", t, repartition_sink_topics=["__transaction_state"])],
        "bad-name": [part("0", t, "a/b")],
        "bad-changelog": [part("0", t, state_changelog_topics=[topic("..")])],
        "group-of-nothing": [part("0", t, copartition_groups=[together(3)])],
        "negative": [part("0", t, repartition_sink_topics=[r], repartition_source_topics=[topic(r, -2)])],
    }  # fmt: skip
    for label, made in parts.items():
        StreamsMember(s, s.name(label), label, topology(*made)).join("")
        s.ask("ListGroups", 5, label=label, types_filter=["streams"], mine=True, pick=partial(_listed, f"{label}-~"))


def _listed(name, answer):
    return [group["group_id"] for group in answer["groups"]].count(name)


def changed(s):
    t, other, g = source(s), source(s, "other"), s.name("g")
    a = StreamsMember(s, g, "a", topology(part("0", t), epoch=2))
    a.start()
    for label, made in {
        "same": topology(part("0", t), epoch=2),
        "other-topics": topology(part("0", other), epoch=2),
        "newer": topology(part("0", other), epoch=3),
        "newer-same-topics": topology(part("0", t), epoch=3),
        "older": topology(part("0", other), epoch=1),
    }.items():
        StreamsMember(s, g, label, made).join("")
    describe(s, g, "stays", pick=brief)
    StreamsMember(s, s.name("negative"), "negative", topology(part("0", t), epoch=-1)).join("")
