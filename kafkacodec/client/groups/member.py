"""The base of all memberships: settings, owned partitions, leaving."""

from __future__ import annotations

from kafkacodec.assignment.partitions import TopicPartition, in_order
from kafkacodec.client.core.calls import Coordinator
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.groups.membership import Broken, Event, Failed, GroupSettings
from kafkacodec.client.groups.ownership import Ownership
from kafkacodec.client.groups.topics import PollInterval, SubscribedTopics
from kafkacodec.errors import LocalProtocolError, RemoteProtocolError

__all__ = ["GroupMember"]


class GroupMember:
    """A member of a group, of any kind."""

    def __init__(self, settings: GroupSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._place = Coordinator("group", settings.group_id)
        self._topics = SubscribedTopics(cluster)
        self._interval = PollInterval(settings.max_poll_interval_ms)
        self._ownership = Ownership()
        self._ending: bool | None = None  # whether it was asked to leave, and whether it stays a member

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of this member, in order, including those being revoked."""
        return in_order(self._ownership.owned)

    def take_events(self) -> list[Event]:
        """The events since the last call, in order."""
        return self._ownership.take_events()

    def leave(self, now: float, *, remain: bool | None = None) -> None:
        """Leave the group; see `Membership.leave`."""
        if self._ending is None:
            self._ending = self._settings.group_instance_id is not None if remain is None else remain

    def _require_staying(self) -> None:
        if self._ending is not None:
            raise LocalProtocolError("the member is leaving the group: wait for Left")

    def _give_up_all(self) -> bool:
        """Revoke everything before leaving; returns whether nothing is owned any longer."""
        ownership = self._ownership
        if ownership.owned and not ownership.revoking:
            ownership.revoke(ownership.owned)
        return not ownership.revoking

    def _note_refusal(self, code: int, now: float) -> None:
        """The coordinator does not let the member join now."""
        self._cluster.hindrances.refused(f"group {self._settings.group_id!r} cannot be joined", code, now)

    def _tell_broken(self, fault: Exception, failures: int) -> None:
        """Report a request that the broker repeatedly fails."""
        if isinstance(fault, RemoteProtocolError) and failures >= MOST_BROKEN:
            self._ownership.events.append(Broken(fault))

    def _tell_failure(self, fault: Exception) -> None:
        self._ownership.events.append(Failed(fault))
