"""Metadata, DescribeTopicPartitions, DescribeCluster, FindCoordinator."""

import uuid

NO = {"allow_auto_topic_creation": False}


def by_name(s):
    t = s.topic(partitions=2)
    for version in range(14):
        s.ask("Metadata", version, topics=[{"name": t}], retry=())


def all_topics(s):
    s.topic("a")
    s.topic("b", 3)
    s.ask("Metadata", 0, topics=[], mine=True, pick=lambda a: a["topics"])
    s.ask("Metadata", 1, topics=None, mine=True, pick=lambda a: a["topics"])
    s.ask("Metadata", 1, topics=[], label="none")
    s.ask("Metadata", 12, topics=None, mine=True, pick=lambda a: a["topics"])
    s.ask("Metadata", 12, topics=[], label="none")


def by_id(s):
    t = s.topic()
    s.ask("Metadata", 12, topics=[{"topic_id": s.ids[t], "name": None}])
    s.ask("Metadata", 12, label="unknown", topics=[{"topic_id": uuid.UUID(int=77), "name": None}], **NO)
    s.ask("Metadata", 12, label="both-kinds", topics=[{"topic_id": s.ids[t], "name": None}, {"name": t}], retry=())
    s.ask("Metadata", 10, label="below-v12", topics=[{"topic_id": s.ids[t], "name": None}], retry=())


def missing(s):
    for version in (1, 4, 9, 13):
        s.ask("Metadata", version, topics=[{"name": s.name(f"none{version}")}], retry=(), **(NO if version > 3 else {}))
    names = ["", ".", "..", "a/b", "a b", "ä", "x" * 249, "x" * 250]
    for i, name in enumerate(names):
        s.ask("Metadata", 9, label=f"name-{i}", topics=[{"name": name}], retry=(), **NO)
    s.ask("Metadata", 9, label="twice", topics=[{"name": s.name("no")}, {"name": s.name("no")}], retry=(), **NO)


def created_on_demand(s):
    name = s.name("auto")
    s.ask("Metadata", 12, topics=[{"name": name}], retry=(), label="first")
    s.ready(name)
    s.ask("Metadata", 12, topics=[{"name": name}], label="then")
    s.ask("Metadata", 9, topics=[{"name": s.name("a b")}], retry=(), label="bad-name")
    s.produce(name, b"one")
    s.fetch(name)


def authorized_operations(s):
    t = s.topic()
    s.ask(
        "Metadata",
        8,
        topics=[{"name": t}],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    s.ask("Metadata", 11, topics=[{"name": t}], include_topic_authorized_operations=True)
    s.ask("DescribeCluster", 1, include_cluster_authorized_operations=True)


def internal_topics(s):
    names = ["__consumer_offsets", "__transaction_state"]
    s.ask(
        "Metadata",
        9,
        topics=[{"name": n} for n in names],
        pick=lambda a: [[t["name"], t["is_internal"], t["error_code"]] for t in a["topics"]],
    )
    s.ask("Metadata", 4, topics=[{"name": "__consumer_offsets"}], pick=lambda a: len(a["topics"][0]["partitions"]))


def topic_partitions(s):
    a, b = s.topic("a", 3), s.topic("b")
    s.ask("DescribeTopicPartitions", 0, topics=[{"name": b}, {"name": a}], ordered=True)
    s.ask("DescribeTopicPartitions", 0, label="missing", topics=[{"name": s.name("none")}, {"name": b}], ordered=True)
    s.ask("DescribeTopicPartitions", 0, label="limit", topics=[{"name": a}, {"name": b}], response_partition_limit=2)
    cursor = {"topic_name": a, "partition_index": 2}
    s.ask("DescribeTopicPartitions", 0, label="cursor", topics=[{"name": a}, {"name": b}], cursor=cursor)
    s.ask(
        "DescribeTopicPartitions",
        0,
        label="cursor-limit",
        topics=[{"name": a}, {"name": b}],
        cursor=cursor,
        response_partition_limit=1,
    )
    past = {"topic_name": b, "partition_index": 9}
    s.ask("DescribeTopicPartitions", 0, label="cursor-beyond", topics=[{"name": a}, {"name": b}], cursor=past)
    s.ask(
        "DescribeTopicPartitions",
        0,
        label="cursor-negative",
        topics=[{"name": a}],
        cursor={"topic_name": a, "partition_index": -1},
    )


def cluster(s):
    for version in (0, 1, 2):
        s.ask("DescribeCluster", version)
    s.ask("DescribeCluster", 1, label="controllers", endpoint_type=2, pick=lambda a: a["error_code"])
    s.ask("DescribeCluster", 1, label="endpoint-3", endpoint_type=3, pick=lambda a: a["error_code"])


def coordinators(s):
    for version in range(7):
        keys = {"coordinator_keys": [s.name("g"), s.name("h")]} if version > 3 else {"key": s.name("g")}
        s.ask("FindCoordinator", version, **keys)
    s.ask("FindCoordinator", 2, label="transactions", key=s.name("x"), key_type=1)
    s.ask("FindCoordinator", 4, label="transactions", coordinator_keys=[s.name("x")], key_type=1)
    s.ask("FindCoordinator", 3, label="kind-7", key=s.name("x"), key_type=7, retry=())
    s.ask("FindCoordinator", 4, label="kind-7", coordinator_keys=[s.name("x")], key_type=7, retry=())
    s.ask("FindCoordinator", 4, label="no-keys", coordinator_keys=[])
    s.ask("FindCoordinator", 3, label="empty-key", key="", retry=())
    s.ask("FindCoordinator", 5, label="share-below-v6", coordinator_keys=[s.name("x")], key_type=2, retry=())
    s.ask("FindCoordinator", 6, label="share-bad-key", coordinator_keys=[s.name("x")], key_type=2, retry=())


def operations_of_missing(s):
    names = [s.name("none"), "", "a/b", "x" * 250]
    for name in names:
        s.ask("Metadata", 9, topics=[{"name": name}], retry=(), include_topic_authorized_operations=True, **NO)
    s.ask("Metadata", 12, topics=[{"topic_id": uuid.UUID(int=77), "name": None}], retry=(),
          include_topic_authorized_operations=True)  # fmt: skip


def neither_name_nor_id(s):
    t = s.topic()
    s.ask("Metadata", 12, topics=[{"name": None}], retry=())
    s.ask("Metadata", 12, topics=[{"name": None}, {"name": t}], retry=())
    both = [{"name": name, "topic_id": s.ids[t]} for name in (t, s.name("other"))]
    s.ask("Metadata", 12, topics=both, retry=(), label="one-id-with-two-names")


def wrong_cursors(s):
    a, b, none = s.topic("a", 2), s.topic("b"), s.name("none")
    asked = {
        "negative": ([b, a], (a, -1)),
        "not-asked-for": ([b], (a, 0)),
        "unknown": ([none, b], (none, 3)),
        "negative-of-no-list": ([], ("q", -1)),
    }
    for label, (names, (topic, number)) in asked.items():
        s.ask("DescribeTopicPartitions", 0, label=label, topics=[{"name": name} for name in names],
              cursor={"topic_name": topic, "partition_index": number}, ordered=True, retry=())  # fmt: skip
    s.ask("DescribeTopicPartitions", 0, label="empty-name", topics=[{"name": ""}, {"name": a}], ordered=True, retry=())
    s.ask("DescribeTopicPartitions", 0, label="wrong-names", topics=[{"name": "a/b"}, {"name": b}], ordered=True,
          retry=())  # fmt: skip
