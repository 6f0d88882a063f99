"""Where the embedded broker answers otherwise than Apache Kafka, and why: by pattern of steps, with the reason."""

from __future__ import annotations

_NEWER = "in what 3.9 and 4 both serve, release 3.9 adds old versions and changes no answer of 4"

AS_ANOTHER: dict[str, dict[str, str]] = {
    "4": {
        "transaction_offsets.offsets_refused/*-group-not-added": "the error is that of 4.1",
    },
    "3.9": {
        "acls.changes_of_partitions/*": _NEWER,
        "cluster.*": _NEWER,
        "configs.*": _NEWER,
        "fetch.as_a_follower/*": _NEWER,
        "group_settings.*": _NEWER,
        "groups_classic.*": _NEWER,
        "groups_of_three.*": _NEWER,
        "list_offsets.order_of_checks/*": _NEWER,
        "list_offsets.unknown/*-twice": _NEWER,
        "metadata.coordinators/*": _NEWER,
        "offsets.*": _NEWER,
        "produce.record_times/*": "times far ahead are refused since 4.0 (KIP-1030)",
        "produce.repeated_partitions/*-Fetch-v12": _NEWER,
        "produce.versions/*-Fetch-v12": _NEWER,
        "share.*": _NEWER,
        "streams_topologies.missing_sources/*": "3.9 has no streams groups to list",
        "topics.*": _NEWER,
        "transaction_epochs.batches_after_a_marker*/*": "since 4 an old epoch is refused before a verification",
        "transaction_offsets.*": "markers of the second version of transactions have the next epoch (KIP-890)",
        "transactions.*": "markers of the second version of transactions have the next epoch (KIP-890)",
        "restarts.configs/*": _NEWER,
        "versions.*": _NEWER,
    },
}
"""By `release`: answers that are not those of this release, but of another that is served."""

_LEADER = "the only node stays the leader, so that its start writes nothing for each partition; Kafka begins an epoch"
_FIVE = "all of the last five batches of a producer are known after a restart, where Kafka knows the last"

_AT_ONCE = "groups wait for nothing by default: the intervals of assignments and the first delay are 0"
_NEGATIVE = "a negative log.flush.interval.ms has no effect; Kafka then describes no topic"

DIFFERENT: dict[str, dict[str, str]] = {
    "4": {
        "restarts.leader_epochs/*": _LEADER,
        "restarts.producers/*-first-again": _FIVE,
        "topic_defaults*/*-log.flush.interval.ms--1-topic": _NEGATIVE,
        "configs.describe_group/01-*": _AT_ONCE,
        "versions.features/*": "metadata.version is 27, which 4.1 opens too; share groups are on from the start",
    },
    "3.9": {
        "configs.describe_group/01-*": _AT_ONCE,
        "restarts.leader_epochs/*": _LEADER,
        "restarts.producers/*-first-again": _FIVE,
        "old_versions.fetch_transactions/*-from-1": "a fetch that begins at a marker gets the next message twice",
        "old_versions.offsets/*": "offsets of version 0 were in ZooKeeper; here they are with those of other versions",
        "topic_defaults*/*-log.flush.interval.ms--1-topic": _NEGATIVE,
        "versions.advertised/*": "the newest versions are those of 4",
        "versions.features/*": "the features are those of 4",
    },
}
"""By `release`: answers that are those of neither."""
