"""Membership of a KIP-848 consumer group: the coordinator assigns, members report what they own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.calls import Prepare, Versions
from kafkacodec.client.groups.epochs import EpochMembership
from kafkacodec.client.groups.leading import grouped
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages.keys import CONSUMER_GROUP_HEARTBEAT
from kafkacodec.protocol.versions import highest_common

__all__ = ["NOT_OFFERED", "ModernMembership"]

NOT_OFFERED: Final = 'the broker does not offer group_protocol="consumer" (KIP-848, Kafka 4.0); use "classic"'

_PATTERN_VERSION: Final = 1


class ModernMembership(EpochMembership):
    """A member of a KIP-848 group (``group_protocol="consumer"``); see `Membership` for its methods.

    When the coordinator takes partitions away, `Revoke` comes first; the coordinator gives them to others when
    `revoked` was called. ``session_timeout_ms`` and ``heartbeat_interval_ms`` are the broker's.

    Args:
        settings: the group and the timeouts.
        cluster: the cluster's metadata.
    """

    _had_pattern = False  # the coordinator may have an expression of this member; only "" removes it

    def _fields(self, names: frozenset[str]) -> dict[str, Any]:
        settings, subscription = self._settings, self._subscription
        fields: dict[str, Any] = {
            "rebalance_timeout_ms": int(settings.max_poll_interval_ms),
            "instance_id": settings.group_instance_id,
            "rack_id": settings.client_rack,
            "server_assignor": settings.remote_assignor,
            "topic_partitions": (self._assignments, grouped(self._ownership.owned)),
        }
        if subscription.broker_pattern is None:
            fields["subscribed_topic_names"] = sorted(names)
            fields["subscribed_topic_regex"] = "" if self._had_pattern else None
        else:
            self._had_pattern = True
            fields["subscribed_topic_regex"] = subscription.broker_pattern
            fields["subscribed_topic_names"] = []
        return fields

    def _request(self, fields: Mapping[str, Any], epoch: int) -> Prepare:
        kind = messages.ConsumerGroupHeartbeatRequest
        plain = {name: value for name, value in fields.items() if name != "topic_partitions"}
        request = kind(group_id=self._settings.group_id, member_id=self._member_id, member_epoch=epoch, **plain)
        request.instance_id = self._settings.group_instance_id
        if "topic_partitions" in fields:
            request.topic_partitions = [
                kind.TopicPartitions(topic_id=self._ids[topic], partitions=numbers)
                for topic, numbers in fields["topic_partitions"][1].items()
            ]

        def prepare(versions: Versions) -> tuple[Any, int]:
            if CONSUMER_GROUP_HEARTBEAT not in versions:
                raise UnsupportedVersion(NOT_OFFERED)
            version = highest_common(CONSUMER_GROUP_HEARTBEAT, versions)
            if version < _PATTERN_VERSION and request.subscribed_topic_regex:
                raise UnsupportedVersion("the broker does not evaluate expressions of topics: Kafka 4.0 does")
            if version < _PATTERN_VERSION:
                request.subscribed_topic_regex = None
            return request, version

        return prepare

    def _reach(self, target: set[TopicPartition]) -> None:
        self._ownership.reach(target)
