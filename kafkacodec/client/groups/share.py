"""Membership of a share group (KIP-932): several members read the same partitions, each record going to one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.calls import Prepare, Versions
from kafkacodec.client.groups.epochs import EpochMembership
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import LocalProtocolError, UnsupportedVersion
from kafkacodec.messages.keys import SHARE_GROUP_HEARTBEAT
from kafkacodec.protocol.versions import highest_common

__all__ = ["NOT_OFFERED", "ShareMembership"]

NOT_OFFERED: Final = "the broker has no share groups (KIP-932): they need Kafka 4.2, or 4.1 where they are enabled"


class ShareMembership(EpochMembership):
    """A member of a share group; see `Membership` for its methods.

    There is no `Revoke` while the member stays: an `Assigned` has all partitions from which it is to read from then
    on. Records acquired from other partitions stay its own until it acknowledges them or closes the session. Share
    groups have no static members.

    Args:
        settings: the group and the timeouts; without ``group_instance_id`` and ``remote_assignor``.
        cluster: the cluster's metadata.
    """

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group, or change the subscription.

        Raises:
            LocalProtocolError: an expression for the broker, or the member is leaving.
        """
        if subscription.broker_pattern is not None:
            raise LocalProtocolError("share groups have no expressions for the broker")
        super().subscribe(subscription, now)

    def _fields(self, names: frozenset[str]) -> dict[str, Any]:
        return {"rack_id": self._settings.client_rack, "subscribed_topic_names": sorted(names)}

    def _request(self, fields: Mapping[str, Any], epoch: int) -> Prepare:
        request = messages.ShareGroupHeartbeatRequest(
            group_id=self._settings.group_id, member_id=self._member_id, member_epoch=epoch, **fields
        )

        def prepare(versions: Versions) -> tuple[Any, int]:
            if SHARE_GROUP_HEARTBEAT not in versions:
                raise UnsupportedVersion(NOT_OFFERED)
            return request, highest_common(SHARE_GROUP_HEARTBEAT, versions)

        return prepare

    def _reach(self, target: set[TopicPartition]) -> None:
        self._ownership.own(target)
