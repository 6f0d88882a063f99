"""Which release of Kafka has which version of an API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages import APIS, keys
from kafkacodec.protocol.versions import highest_common

__all__ = ["BASELINES", "usable_version"]

# The highest version of each API; all start at 0. 0.8.0 and 0.8.1 keep offsets in ZooKeeper, 0.8.2 also in a topic.
_HIGHEST: Final[Mapping[str, Mapping[int, int]]] = {
    "0.8.0": {keys.PRODUCE: 0, keys.FETCH: 0, keys.LIST_OFFSETS: 0, keys.METADATA: 0},
    "0.8.1": {
        keys.PRODUCE: 0,
        keys.FETCH: 0,
        keys.LIST_OFFSETS: 0,
        keys.METADATA: 0,
        keys.OFFSET_COMMIT: 0,
        keys.OFFSET_FETCH: 0,
    },
    "0.8.2": {
        keys.PRODUCE: 0,
        keys.FETCH: 0,
        keys.LIST_OFFSETS: 0,
        keys.METADATA: 0,
        keys.OFFSET_COMMIT: 1,
        keys.OFFSET_FETCH: 1,
        keys.FIND_COORDINATOR: 0,
    },
    "0.9.0": {
        keys.PRODUCE: 1,
        keys.FETCH: 1,
        keys.LIST_OFFSETS: 0,
        keys.METADATA: 0,
        keys.OFFSET_COMMIT: 2,
        keys.OFFSET_FETCH: 1,
        keys.FIND_COORDINATOR: 0,
        keys.JOIN_GROUP: 0,
        keys.HEARTBEAT: 0,
        keys.LEAVE_GROUP: 0,
        keys.SYNC_GROUP: 0,
        keys.DESCRIBE_GROUPS: 0,
        keys.LIST_GROUPS: 0,
    },
}

BASELINES: Final[Mapping[str, Mapping[int, range]]] = {
    release: {key: range(highest + 1) for key, highest in apis.items()} for release, apis in _HIGHEST.items()
}
"""The API versions of brokers before ApiVersions, by release and API key, without APIs between brokers."""

# The release that brought an API, and later versions of it that calls need.
_RELEASES: Final[Mapping[int, Mapping[int, str]]] = {
    keys.LIST_OFFSETS: {0: "0.8", 1: "0.10.1", 7: "3.0", 8: "3.6", 9: "3.9", 11: "4.2"},
    keys.METADATA: {0: "0.8", 8: "2.3"},
    keys.OFFSET_COMMIT: {0: "0.8.1", 2: "0.9"},
    keys.OFFSET_FETCH: {0: "0.8.1", 2: "0.10.2", 7: "2.5"},
    keys.LEAVE_GROUP: {0: "0.9", 3: "2.4"},
    keys.DESCRIBE_GROUPS: {0: "0.9", 3: "2.3"},
    keys.LIST_GROUPS: {0: "0.9", 4: "2.6", 5: "3.8"},
    keys.API_VERSIONS: {0: "0.10", 3: "2.4"},
    keys.CREATE_TOPICS: {0: "0.10.1", 1: "0.10.2", 4: "2.4"},
    keys.DELETE_TOPICS: {0: "0.10.1", 6: "2.8"},
    keys.DELETE_RECORDS: {0: "0.11"},
    keys.INIT_PRODUCER_ID: {0: "0.11"},
    keys.WRITE_TXN_MARKERS: {0: "0.11"},
    keys.DESCRIBE_ACLS: {0: "0.11", 1: "2.0"},
    keys.CREATE_ACLS: {0: "0.11", 1: "2.0"},
    keys.DELETE_ACLS: {0: "0.11", 1: "2.0"},
    keys.DESCRIBE_CONFIGS: {0: "0.11", 1: "1.1", 3: "2.6"},
    keys.ALTER_CONFIGS: {0: "0.11"},
    keys.ALTER_REPLICA_LOG_DIRS: {0: "1.0"},
    keys.DESCRIBE_LOG_DIRS: {0: "1.0"},
    keys.CREATE_PARTITIONS: {0: "1.0"},
    keys.CREATE_DELEGATION_TOKEN: {0: "1.1", 3: "3.3"},
    keys.RENEW_DELEGATION_TOKEN: {0: "1.1"},
    keys.EXPIRE_DELEGATION_TOKEN: {0: "1.1"},
    keys.DESCRIBE_DELEGATION_TOKEN: {0: "1.1"},
    keys.DELETE_GROUPS: {0: "1.1"},
    keys.ELECT_LEADERS: {0: "2.2", 1: "2.4"},
    keys.INCREMENTAL_ALTER_CONFIGS: {0: "2.3"},
    keys.ALTER_PARTITION_REASSIGNMENTS: {0: "2.4", 1: "4.1"},
    keys.LIST_PARTITION_REASSIGNMENTS: {0: "2.4"},
    keys.OFFSET_DELETE: {0: "2.4"},
    keys.DESCRIBE_CLIENT_QUOTAS: {0: "2.6"},
    keys.ALTER_CLIENT_QUOTAS: {0: "2.6"},
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS: {0: "2.7"},
    keys.ALTER_USER_SCRAM_CREDENTIALS: {0: "2.7"},
    keys.DESCRIBE_QUORUM: {0: "3.3"},
    keys.UPDATE_FEATURES: {0: "2.7", 1: "3.3"},
    keys.DESCRIBE_CLUSTER: {0: "2.8", 2: "4.0"},
    keys.DESCRIBE_PRODUCERS: {0: "2.8"},
    keys.UNREGISTER_BROKER: {0: "3.3"},
    keys.DESCRIBE_TRANSACTIONS: {0: "3.0"},
    keys.LIST_TRANSACTIONS: {0: "3.0", 1: "3.8", 2: "4.1"},
    keys.CONSUMER_GROUP_DESCRIBE: {0: "3.7"},
    keys.LIST_CONFIG_RESOURCES: {0: "3.7", 1: "4.1"},
    keys.SHARE_GROUP_DESCRIBE: {0: "4.0"},
    keys.ADD_RAFT_VOTER: {0: "3.9"},
    keys.REMOVE_RAFT_VOTER: {0: "3.9"},
    keys.STREAMS_GROUP_DESCRIBE: {0: "4.1"},
    keys.DESCRIBE_SHARE_GROUP_OFFSETS: {0: "4.1"},
    keys.ALTER_SHARE_GROUP_OFFSETS: {0: "4.1"},
    keys.DELETE_SHARE_GROUP_OFFSETS: {0: "4.1"},
}


def usable_version(
    api_key: int, versions: Mapping[int, range], least: int = 0, most: int | None = None, needs: str = ""
) -> int:
    """The highest version of an API that a broker has, up to `most`.

    Args:
        api_key: the API.
        versions: the versions that the broker shares with this library.
        least: the lowest usable version.
        most: the highest usable version; None for any.
        needs: what makes `least` necessary, such as "a filter by state", for the error.

    Raises:
        UnsupportedVersion: the broker has none of them. The error names the API and the Kafka release that has it.
    """
    name = APIS[api_key].name
    release = _RELEASES.get(api_key, {}).get(least)
    later = f"; Kafka {release} and later have it" if release else ""
    if api_key not in versions:
        raise UnsupportedVersion(f"the broker does not have {name}{later}")
    ours = APIS[api_key].valid_versions
    found = highest_common(api_key, versions, ours if most is None else range(ours.start, most + 1))
    if found < least:
        raise UnsupportedVersion(f"{needs or name} needs version {least} of {name}, the broker has {found}{later}")
    return found
