"""The cluster as a whole: nodes, quorum, directories, features, elections, reassignments, telemetry."""

import uuid

from tests.differential.frames import frame
from tests.differential.picking import sizes


def describe(s):
    for version in range(3):
        s.ask("DescribeCluster", version, include_cluster_authorized_operations=True)
    s.ask("DescribeCluster", 2, label="with-fenced", include_fenced_brokers=True)
    s.ask("DescribeCluster", 1, label="kind-0", endpoint_type=0)
    s.ask("DescribeCluster", 1, label="kind-2", endpoint_type=2)


def quorum(s):
    row = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    hide = (
        "high_watermark",
        "log_end_offset",
        "leader_epoch",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "listeners",
        "replica_directory_id",
    )
    for version in range(3):
        s.ask("DescribeQuorum", version, topics=row, hide=hide)
    s.ask(
        "DescribeQuorum",
        2,
        label="other-topic",
        topics=[{"topic_name": s.name("t"), "partitions": [{"partition_index": 0}]}],
    )
    s.ask(
        "DescribeQuorum",
        2,
        label="other-partition",
        topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 1}]}],
    )
    s.ask("DescribeQuorum", 2, label="none", topics=[])


def log_directories(s):
    t = s.topic(partitions=2)
    s.produce(t, b"a")
    s.produce(t, b"bb", b"cc")
    rows = [{"topic": t, "partitions": [0, 1, 5]}, {"topic": s.name("none"), "partitions": [0]}]
    for version in range(1, 6):
        s.ask("DescribeLogDirs", version, topics=rows, hide=("log_dir", "total_bytes", "usable_bytes"))
    s.ask("DescribeLogDirs", 4, label="none", topics=[], hide=("log_dir", "total_bytes", "usable_bytes"))
    s.ask(
        "DescribeLogDirs",
        4,
        label="all",
        topics=None,
        pick=lambda a: [row for d in a["results"] for row in d["topics"] if "~" in row["name"]],
    )


def sizes_after_produce(s):
    t = s.topic()

    batch = s.batch(b"x" * 100)
    s.note("batch", len(batch))
    s.produce(t, data=batch)
    s.ask("DescribeLogDirs", 4, topics=[{"topic": t, "partitions": [0]}], pick=sizes)
    s.produce(t, data=batch)
    s.ask("DescribeLogDirs", 4, topics=[{"topic": t, "partitions": [0]}], pick=sizes, label="two-batches")


def move_directories(s):
    t = s.topic()
    s.ask(
        "AlterReplicaLogDirs",
        2,
        label="unknown-path",
        dirs=[{"path": "/no/such/path", "topics": [{"name": t, "partitions": [0]}]}],
    )
    s.ask(
        "AlterReplicaLogDirs",
        2,
        label="relative-path",
        dirs=[{"path": "here", "topics": [{"name": t, "partitions": [0]}]}],
    )
    s.ask(
        "AlterReplicaLogDirs",
        1,
        label="unknown-topic",
        retry=(),
        dirs=[{"path": "/no/such/path", "topics": [{"name": s.name("none"), "partitions": [0]}]}],
    )
    s.ask("AlterReplicaLogDirs", 2, label="none", dirs=[])


def features(s):
    def update(*rows, version=1, **options):
        made = [{"feature": name, "max_version_level": level, "upgrade_type": how} for name, level, how in rows]
        return s.ask("UpdateFeatures", version, feature_updates=made, validate_only=True, **options)

    for version in (1, 2):
        update(("no.such.feature", 1, 1), version=version, label="unknown")
        update(("group.version", 99, 1), version=version, label="too-high")
        update(("group.version", 1, 1), version=version, label="as-it-is")
        update(("group.version", 0, 1), version=version, label="down-as-an-upgrade")
        update(("metadata.version", 1, 2), version=version, label="metadata-too-low")
    update(("group.version", 0, 2), label="down-safely")
    update(("group.version", -1, 1), label="negative")
    update(("group.version", 1, 7), label="kind-7")
    update(("", 1, 1), label="empty-name")
    update(label="none")
    update(("group.version", 1, 1), ("group.version", 1, 1), label="twice")


def elections(s):
    t = s.topic(partitions=2)
    for version in range(3):
        s.ask("ElectLeaders", version, topic_partitions=[{"topic": t, "partitions": [0, 1]}])
    s.ask("ElectLeaders", 2, label="unclean", election_type=1, topic_partitions=[{"topic": t, "partitions": [0]}])
    s.ask(
        "ElectLeaders",
        2,
        label="unknown",
        retry=(),
        topic_partitions=[{"topic": t, "partitions": [9]}, {"topic": s.name("none"), "partitions": [0]}],
    )
    s.ask("ElectLeaders", 2, label="kind-5", election_type=5, topic_partitions=[{"topic": t, "partitions": [0]}])
    s.ask("ElectLeaders", 2, label="none", topic_partitions=[])
    s.ask(
        "ElectLeaders",
        2,
        label="all",
        topic_partitions=None,
        pick=lambda a: [row for row in a["replica_election_results"] if row["partition_result"]],
    )


def reassignments(s):
    t = s.topic(partitions=2)

    def alter(*rows, topic=t, version=0, **options):
        made = [{"partition_index": p, "replicas": r} for p, r in rows]
        return s.ask(
            "AlterPartitionReassignments",
            version,
            timeout_ms=10_000,
            topics=[{"name": topic, "partitions": made}],
            **options,
        )

    node = s.server.node
    s.ask("ListPartitionReassignments", 0, topics=None, label="all")
    s.ask("ListPartitionReassignments", 0, topics=[{"name": t, "partition_indexes": [0, 7]}])
    s.ask("ListPartitionReassignments", 0, topics=[{"name": s.name("none"), "partition_indexes": [0]}], label="unknown")
    alter((0, [node]), label="as-it-is")
    alter((0, [node + 60]), label="unknown-broker")
    alter((0, []), label="empty")
    alter((0, [node, node]), label="twice-the-same")
    alter((0, [-1]), label="negative")
    alter((1, None), label="cancel-none")
    alter((9, [node]), label="unknown-partition")
    alter((0, [node]), topic=s.name("none"), label="unknown-topic", retry=())
    alter((0, [node, node + 60]), version=1, allow_replication_factor_change=False, label="factor-must-stay")


def telemetry(s):
    s.ask("GetTelemetrySubscriptions", 0)
    s.raw("sent-all-the-same", frame(71, 0, bytes(16) + b"\0", tags=b"\0"), "GetTelemetrySubscriptions", 0)
    s.raw("push", frame(72, 0, bytes(16) + bytes(4) + b"\0\0\1\0", tags=b"\0"), "PushTelemetry", 0)


def nodes(s):
    s.ask("UnregisterBroker", 0, broker_id=s.server.node + 70)
    s.ask(
        "AddRaftVoter",
        0,
        cluster_id=None,
        timeout_ms=1000,
        voter_id=s.server.node + 70,
        voter_directory_id=uuid.UUID(int=4),
        listeners=[],
    )
    s.ask("RemoveRaftVoter", 0, cluster_id=None, voter_id=s.server.node + 70, voter_directory_id=uuid.UUID(int=4))
    s.ask("UnregisterController", 0, controller_id=s.server.node + 70)
    s.ask("UnregisterController", 0, controller_id=-1, label="negative")
    s.ask("UnregisterController", 0, controller_id=s.server.node, label="the-leader")
    s.ask(
        "DescribeQuorum",
        2,
        topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}],
        pick=lambda a: [voter["replica_id"] for voter in a["topics"][0]["partitions"][0]["current_voters"]],
    )


def between_brokers(s):
    t = s.topic()
    marker = {
        "producer_id": 900_000_077,
        "producer_epoch": 0,
        "transaction_result": True,
        "topics": [{"name": t, "partition_indexes": [0]}],
        "coordinator_epoch": 0,
    }
    s.ask("WriteTxnMarkers", 1, markers=[marker], label="of-an-unknown-producer")
    s.fetch(
        t,
        pick=lambda a: [
            [r["attributes"], r["sequence"], r["items"]] for r in a["responses"][0]["partitions"][0]["records"]
        ],
    )
    s.ask(
        "WriteTxnMarkers",
        1,
        markers=[{**marker, "topics": [{"name": s.name("none"), "partition_indexes": [0]}]}],
        retry=(),
        label="unknown-topic",
    )
    s.ask("WriteTxnMarkers", 1, markers=[], label="none")


def cluster_id_and_node(s):
    def short(a):
        return [a["error_code"], len(a["api_keys"]) > 0]

    real, node = s.ask("Metadata", 9, topics=[], quiet=True).cluster_id, s.server.node
    s.note("length-of-the-id", len(real))
    s.ask("ApiVersions", 5, pick=short)
    s.ask("ApiVersions", 5, cluster_id=real, node_id=node, pick=short, label="right-ones")
    s.ask("ApiVersions", 5, cluster_id="no-such-cluster", node_id=node, pick=short, label="other-cluster")
    s.ask("ApiVersions", 5, cluster_id=real, node_id=node + 20, pick=short, label="other-node")
    s.ask("ApiVersions", 5, cluster_id=real, pick=short, label="cluster-alone")
    s.ask("ApiVersions", 5, node_id=node, pick=short, label="node-alone")


def repeated_partitions(s):
    t, none = s.topic(partitions=2), s.name("none")
    places: list[tuple[str, list[int]]] = [(t, [0, 0]), (none, [0]), (t, [1]), (none, []), (t, [])]
    rows = [{"topic": name, "partitions": numbers} for name, numbers in places]
    for kind in (0, 2):
        s.ask("ElectLeaders", 2, label=f"kind-{kind}", election_type=kind, topic_partitions=rows)
        s.ask("ElectLeaders", 2, label=f"kind-{kind}-none", election_type=kind, topic_partitions=[])
    s.ask("DescribeLogDirs", 4, topics=rows, hide=("log_dir", "total_bytes", "usable_bytes"))
    dirs = [{"path": path, "topics": [{"name": name, "partitions": numbers} for name, numbers in places]}
            for path in ("/nowhere", "relative")]  # fmt: skip
    s.ask("AlterReplicaLogDirs", 2, dirs=dirs)
    s.ask("AlterPartitionReassignments", 0, label="none", topics=[])
    s.ask("AlterPartitionReassignments", 1, label="none", topics=[], allow_replication_factor_change=False)
    one = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    for label, topics in {"twice": [one, one], "and-another": [one, {**one, "topic_name": t}], "none": []}.items():
        s.ask("DescribeQuorum", 1, label=label, topics=topics)


def repeated_users(s):
    u = s.name("u")

    def out(*kinds, name=u):
        return [{"name": name, "mechanism": kind} for kind in kinds]

    def into(*kinds, name=u, password=b"p" * 32):
        return [
            {"name": name, "mechanism": kind, "iterations": 4096 if kind else 1, "salt": b"salt",
             "salted_password": password}
            for kind in kinds
        ]  # fmt: skip

    asked = {
        "unknown-twice": (out(1, 2), []),
        "bad-mechanism-and-unknown": (out(3, 1), []),
        "unknown-and-new": (out(1), into(1)),
        "no-name": (out(1, name=""), into(9, name="")),
        "bad-and-good": ([], into(0, 1)),
        "good-and-bad": ([], into(1, 0)),
        "no-password": ([], into(1, password=b"") + into(1, name=s.name("v"))),
    }
    for label, (deletions, upsertions) in asked.items():
        s.ask("AlterUserScramCredentials", 0, label=label, deletions=deletions, upsertions=upsertions)


def quotas_refused(s):
    u, c = s.name("u"), s.name("c")

    def entry(*entity, **rates):
        return {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [{"key": key, "value": float(value or 1), "remove": value is None} for key, value in rates.items()],
        }

    rate = {"producer_byte_rate": 1000}
    asked = {
        "type-twice": [entry(("user", ""), ("user", c), **rate)],
        "entity-twice": [entry(("user", u), **rate), entry(("user", u), consumer_byte_rate=5)],
        "entity-twice-bad-first": [entry(("user", u), x=1), entry(("user", u), **rate)],
        "two-orders": [entry(("client-id", c), ("user", u), **rate), entry(("user", u), ("client-id", c), **rate)],
        "key-twice": [{**entry(("user", u)), "ops": entry(("user", u), **rate)["ops"] * 2}],
        "infinite": [entry(("user", u), request_percentage="inf")],
        "huge": [entry(("user", u), producer_byte_rate=1e300)],
        "remove-unknown-key": [entry(("user", u), x=None)],
        "ip-and-user": [entry(("ip", "127.0.0.1"), ("user", u), **rate)],
        "empty-without-quotas": [entry()],
    }
    for label, entries in asked.items():
        s.ask("AlterClientQuotas", 1, label=label, entries=entries)
    s.ask("AlterClientQuotas", 1, label="ip-name", validate_only=True,
          entries=[entry(("ip", "localhost"), connection_creation_rate=5)])  # fmt: skip
    components = {
        "exact-null": [("user", 0, None)],
        "default-with-name": [("user", 1, u)],
        "any-with-name": [("user", 2, "")],
        "empty-type": [("", 9, None)],
        "ip-and-user": [("ip", 1, None), ("user", 1, None)],
        "twice-before-unknown": [("user", 1, None), ("user", 2, None), ("x", 1, None)],
        "unknown-before-twice": [("user", 1, None), ("x", 2, None), ("user", 1, None)],
        "bad-match-before-unknown": [("user", 9, None), ("x", 1, None)],
    }
    for label, rows in components.items():
        wanted = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in rows]
        s.ask("DescribeClientQuotas", 1, label=label, components=wanted)


def acls_of_unknown_codes(s):
    full = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1,
            "resource_name_filter": None, "principal_filter": None, "host_filter": None}  # fmt: skip
    for name in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        for code in (0, 99):
            s.ask("DescribeAcls", 2, label=f"{name}-{code}", **{**full, name: code})
            s.ask("DeleteAcls", 2, label=f"{name}-{code}", filters=[full, {**full, name: code}])
    made = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:a", "host": "*",
            "operation": 3, "permission_type": 3}  # fmt: skip
    for name in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        s.ask("CreateAcls", 2, label=f"{name}-0", creations=[made, {**made, name: 0}])
