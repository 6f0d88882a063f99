"""All groups of a coordinator, of every kind, and their common parts."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from kafkacodec.broker.state.classic import ClassicGroup
from kafkacodec.broker.state.consumers.group import RECORDS, ConsumerGroup
from kafkacodec.broker.state.machine import Machine, Room, Topics
from kafkacodec.broker.state.offsets import Offsets
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.broker.state.sharing.group import SHARE_RECORDS, ShareGroup
from kafkacodec.broker.state.streams.group import STREAMS_RECORDS, StreamsGroup
from kafkacodec.internal_records import CONSUMER_OFFSETS
from kafkacodec.messages.stored import StoredRecord

__all__ = ["AnyGroup", "Groups"]

AnyGroup = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

_EVERYWHERE = "\0all groups"  # the key of the timer for all groups; no group has such a name


class Groups(Machine):
    """The groups and their offsets, and the records of both.

    Args:
        topics: the topics of the cluster.
        partitions: the number of partitions of ``__consumer_offsets``.
        options: see `GroupOptions`.
        new_id: makes the ids of members.
    """

    topic: ClassVar[str] = CONSUMER_OFFSETS

    def __init__(self, topics: Topics, partitions: int, options: GroupOptions, new_id: Callable[[], uuid.UUID]) -> None:
        super().__init__(partitions)
        self.topics, self.options, self.new_id = topics, options, new_id
        self.groups: dict[str, AnyGroup] = {}
        self.topics_version = 0  # goes up when topics come, go or grow
        self._settings: dict[str, dict[str, int | str]] = {}
        self._defaults: dict[str, int | str] = {
            "consumer.assignment.interval.ms": options.group_consumer_assignment_interval_ms,
            "consumer.heartbeat.interval.ms": options.group_consumer_heartbeat_interval_ms,
            "consumer.session.timeout.ms": options.group_consumer_session_timeout_ms,
            "share.assignment.interval.ms": options.group_share_assignment_interval_ms,
            "share.heartbeat.interval.ms": options.group_share_heartbeat_interval_ms,
            "share.session.timeout.ms": options.group_share_session_timeout_ms,
            "streams.assignment.interval.ms": options.group_streams_assignment_interval_ms,
            "streams.heartbeat.interval.ms": options.group_streams_heartbeat_interval_ms,
            "streams.initial.rebalance.delay.ms": options.group_streams_initial_rebalance_delay_ms,
            "streams.num.standby.replicas": options.group_streams_num_standby_replicas,
            "streams.rack.aware.assignment.tags": options.group_streams_rack_aware_assignment_tags,
            "streams.session.timeout.ms": options.group_streams_session_timeout_ms,
        }
        self.offsets = Offsets(topics, options)
        self._changes: dict[str, Callable[[Any, Any, int], None]] = {
            "GroupMetadataKey": self._on_classic,
            "OffsetCommitKey": self._on_commit,
            "LegacyOffsetCommitKey": self._on_commit,
            **dict.fromkeys(RECORDS, partial(self._on_newer, ConsumerGroup, "ConsumerGroupMetadataKey")),
            **dict.fromkeys(SHARE_RECORDS, partial(self._on_newer, ShareGroup, "ShareGroupMetadataKey")),
            **dict.fromkeys(STREAMS_RECORDS, partial(self._on_newer, StreamsGroup, "StreamsGroupMetadataKey")),
        }

    def find(self, name: str) -> AnyGroup | None:
        """The group of this name."""
        return self.groups.get(name)

    def find_classic(self, name: str) -> ClassicGroup | None:
        """The group of this name if it is a classic one."""
        group = self.groups.get(name)
        return group if isinstance(group, ClassicGroup) else None

    def classic(self, name: str) -> ClassicGroup:
        """Return the classic group of this name; create it if it is missing."""
        group = self.groups.get(name)
        if not isinstance(group, ClassicGroup):
            group = self.groups[name] = ClassicGroup(Room(self, name), self.options, self.new_id)
        return group

    def setting(self, group: str, name: str) -> int:
        """Return a number among the settings of a group, by default the common one."""
        return int(self._settings.get(group, {}).get(name, self._defaults[name]))

    def text_setting(self, group: str, name: str) -> str:
        """Return a setting of a group that is a text, by default the common one."""
        return str(self._settings.get(group, {}).get(name, self._defaults[name]))

    def configure(self, group: str, name: str, value: int | str | None) -> None:
        """Set a setting of a group, such as ``consumer.heartbeat.interval.ms``; None: unset.

        Raises:
            KeyError: no such setting.
            ValueError: the setting is a number, and the value is not one.
        """
        kind = type(self._defaults[name])
        settings = self._settings.setdefault(group, {})
        settings.pop(name, None)
        if value is not None:
            settings[name] = kind(value)

    def configure_all(self, name: str, value: int | str) -> None:
        """Change the common value of a setting. Raises KeyError, ValueError: as `configure`."""
        self._defaults[name] = type(self._defaults[name])(value)

    def tombstones(self, name: str) -> list[StoredRecord]:
        """Return the records that remove a group and its offsets."""
        group = self.groups.get(name)
        gone = [] if group is None else group.tombstones()
        return [*self.offsets.tombstones(name, self.offsets.places(name)), *gone]

    # Records

    def apply(self, key: Any, value: Any, producer_id: int) -> None:
        """Change the state as a record says; records of other types change nothing."""
        change = self._changes.get(type(key).__name__)
        if change is not None:
            change(key, value, producer_id)

    def _on_classic(self, key: Any, value: Any, _producer_id: int) -> None:
        if value is None or self.loading:
            self.groups.pop(key.group, None)
            self.cancel_timers(key.group)
        if value is not None:
            self.classic(key.group).restore(value)

    def _on_newer(
        self, kind: type[ConsumerGroup | ShareGroup | StreamsGroup], epoch: str, key: Any, value: Any, _producer_id: int
    ) -> None:
        """Apply a record of a group of one of the newer kinds; a tombstone of its epoch removes the group."""
        group = self.groups.get(key.group_id)
        if value is None and type(key).__name__ == epoch:
            if isinstance(group, kind):
                del self.groups[key.group_id]
                self.cancel_timers(key.group_id)
            return
        if not isinstance(group, kind):
            if value is None:
                return
            group = self.groups[key.group_id] = kind(Room(self, key.group_id), self.topics)
        group.apply(key, value)

    def _on_commit(self, key: Any, value: Any, producer_id: int) -> None:
        self.offsets.apply(key, value, producer_id)
        if value is not None:
            self.find(key.group) or self.classic(key.group)  # a group of offsets alone has no other record

    def end_transaction(self, partition: int, producer_id: int, committed: bool) -> None:
        """Apply a marker in a partition of ``__consumer_offsets``, in the order of its log."""
        groups = self.offsets.pending_groups(producer_id)
        here = [name for name in groups if self.log_of(name)[1] == partition]
        self.offsets.end_transaction(producer_id, committed, here)

    # Time

    def start(self) -> None:
        """Set the timers of loaded members and offsets."""
        for group in self.groups.values():
            group.start()
        self._look_later()

    def _look_later(self) -> None:
        due = self.now + self.options.offsets_retention_check_interval_ms
        self.set_timer(_EVERYWHERE, "retention", due, self._expire_all)

    def _expire_all(self) -> None:
        for name in list(self.groups):
            self.run(name, lambda name=name: self._expire(name))  # type: ignore[misc]
        self._look_later()

    def _expire(self, name: str) -> None:
        group = self.groups.get(name)
        if group is None or isinstance(group, ShareGroup):
            return
        places = self.offsets.expired(name, group.retention_start(), self.now)
        if group.idle and len(places) == len(self.offsets.places(name)):
            group.room.write(self.tombstones(name), lambda code: None)
        else:
            group.room.write(self.offsets.tombstones(name, places), lambda code: None)
