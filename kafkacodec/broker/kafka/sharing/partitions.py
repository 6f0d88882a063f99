"""The partitions of share groups at their leader: opening, changes, and the end of locks."""

from __future__ import annotations

import heapq
import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.config_kinds import GROUP_CONFIGS, RESETS
from kafkacodec.broker.kafka.sharing.dead_letters import DeadLetters
from kafkacodec.broker.kafka.sharing.sessions import Owner, SharePlace
from kafkacodec.broker.options import is_true
from kafkacodec.broker.state.sharing.batches import Batch
from kafkacodec.broker.state.sharing.deliveries import RENEW, Acknowledged
from kafkacodec.broker.state.sharing.partition import Change, SharePartition
from kafkacodec.datatypes import NamedTuple
from kafkacodec.net.service import NOTHING, Effect, together

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.options import BrokerConfig
    from kafkacodec.broker.topics.partition import Partition

__all__ = ["OpenShare", "SharePartitions", "ShareSettings"]

_READ_VERSION, _WRITE_VERSION = 0, 1
_RENEWS: Final = "share.renew.acknowledge.enable"
_SECONDS: Final = (86_400, 3_600, 60, 1)
_CODES: Final = {
    errors.FENCED_STATE_EPOCH: errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_LEADER_EPOCH: errors.NOT_LEADER_OR_FOLLOWER,
    errors.INVALID_REQUEST: errors.UNKNOWN_SERVER_ERROR,
}
"""The client's error when the share coordinator refuses; the leader then reads the state again."""

GroupPlace = tuple[str, uuid.UUID, int]


class ShareSettings:
    """The configurations of a share group that its partitions' leader uses.

    Args:
        texts: the group's settings.
        config: of the broker.
    """

    def __init__(self, texts: Mapping[str, str], config: BrokerConfig) -> None:
        def number(name: str) -> int:
            return int(texts[name]) if name in texts else config.number(f"group.{name}")

        self.lock_ms = number("share.record.lock.duration.ms")
        self.limits = number("share.delivery.count.limit"), number("share.partition.max.record.locks")
        self.renews = is_true(texts.get(_RENEWS, GROUP_CONFIGS[_RENEWS].default))
        self.committed = texts.get("share.isolation.level") == "read_committed"
        self.reset = texts.get("share.auto.offset.reset", GROUP_CONFIGS["share.auto.offset.reset"].default)

    def first_offset(self, log: Partition, now: float) -> int:
        """Return the start of a group that has read nothing."""
        if self.reset == "earliest":
            return log.start_offset
        found = RESETS.fullmatch(self.reset)
        if found is not None and self.reset != "latest":
            past = sum(float(part or 0) * seconds for part, seconds in zip(found.groups(), _SECONDS, strict=True))
            first = log.first_at(int(now - past * 1000))
            return log.high_watermark if first is None else first[0]
        return log.high_watermark


class OpenShare(NamedTuple):
    """A partition of a group, and the epoch of its state."""

    shared: SharePartition
    state_epoch: int


class SharePartitions:
    """All of them.

    Args:
        node: the broker.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._dead_letters = DeadLetters(node)
        self._open: dict[GroupPlace, OpenShare] = {}
        self._locks: list[tuple[float, GroupPlace]] = []
        self._first: dict[GroupPlace, float] = {}  # when the first lock of a partition ends

    def settings(self, group: str) -> ShareSettings:
        """The configurations of a group."""
        return ShareSettings(self._node.catalog.configs("group", group), self._node.config)

    def configured(self, group: str) -> None:
        """The configurations of a group have changed."""
        limits = self.settings(group).limits
        for (name, _, _), found in self._open.items():
            if name == group:
                found.shared.limit(*limits)

    def find(self, group: str, place: SharePlace) -> SharePartition | None:
        """Return an open partition."""
        found = self._open.get((group, *place))
        return None if found is None else found.shared

    def lock(self, group: str, place: SharePlace, until: float) -> None:
        """Note the end of locks; a partition is checked at the end of its first lock."""
        key = (group, *place)
        if until < self._first.get(key, math.inf):
            self._first[key] = until
            heapq.heappush(self._locks, (until, key))
            self._node.waiting.alarm.ring()

    # Opening

    def open(self, group: str, places: Iterable[SharePlace], then: Callable[[], Effect], now: float) -> Effect:
        """Read the states of partitions that are not open yet, then continue; those without a state stay closed."""
        asked = [place for place in places if (group, *place) not in self._open]
        if not asked:
            return then()
        request = messages.ReadShareGroupStateRequest
        topics: dict[uuid.UUID, list[Any]] = {}
        for place in asked:
            part = request.PartitionData(partition=place.number, leader_epoch=self._leader_epoch(place))
            topics.setdefault(place.topic_id, []).append(part)
        rows = [request.ReadStateData(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()]

        def answered(answer: Any) -> Effect:
            for topic in answer.results:
                for part in topic.partitions:
                    key = group, topic.topic_id, part.partition
                    if not part.error_code and key not in self._open:
                        batches = [Batch(**row.to_dict()) for row in part.state_batches]
                        settings, log = self.settings(group), self.log(SharePlace(*key[1:]))
                        shared = SharePartition(part.start_offset, batches, *settings.limits)
                        if shared.start < 0 and log is not None:
                            shared.begin(settings.first_offset(log, now))
                        self._open[key] = OpenShare(shared, part.state_epoch)
            return then()

        return self._node.ask(request(group_id=group, topics=rows), _READ_VERSION, answered, now)

    def _leader_epoch(self, place: SharePlace) -> int:
        log = self.log(place)
        return 0 if log is None else log.leader_epoch

    def log(self, place: SharePlace) -> Partition | None:
        """The log of a partition."""
        name = self._node.name_of(place.topic_id)
        return None if name is None else self._node.topics.partition(name, place.number)

    def forget_topic(self, topic_id: uuid.UUID) -> None:
        """The topic is gone."""
        for key in [key for key in self._open if key[1] == topic_id]:
            del self._open[key]

    def forget(self, topic_id: uuid.UUID, number: int) -> None:
        """A partition has a new leader, which reads its state: what was acquired and not acknowledged is available."""
        for key in [key for key in self._open if key[1:] == (topic_id, number)]:
            del self._open[key]

    # Changes

    def acknowledge(
        self, owner: Owner, place: SharePlace, said: list[Acknowledged], then: Callable[[int], Effect], now: float
    ) -> Effect:
        """Apply a member's acknowledgements, and continue with an error code when they are written."""
        found, settings = self._open[owner.group, *place], self.settings(owner.group)
        if not settings.renews and any(RENEW in one.types for one in said):
            return then(errors.INVALID_RECORD_STATE)
        until = now + settings.lock_ms
        change = found.shared.acknowledge(owner.member, said, until)
        if isinstance(change, int):
            return then(change)
        self.lock(owner.group, place, until)
        return self._write(owner.group, place, found, change, then, now)

    def release(self, owner: Owner, places: Iterable[SharePlace], now: float) -> Effect:
        """Release the records that a member has from partitions of a broker, those of its session."""
        effects = []
        for place in places:
            found = self._open.get((owner.group, *place))
            if found is not None and self._leads(owner.broker, *place):
                change = found.shared.release(owner.member)
                effects.append(self._write(owner.group, place, found, change, _nothing, now))
        return together(effects)

    def _leads(self, broker: int, topic_id: uuid.UUID, number: int) -> bool:
        name = self._node.name_of(topic_id)
        return name is not None and self._node.brokers.leads(broker, name, number)

    def _write(
        self, group: str, place: SharePlace, found: OpenShare, change: Change, then: Callable[[int], Effect], now: float
    ) -> Effect:
        """Write a change through the share coordinator."""
        if not change.batches:
            return then(errors.NONE)
        request = messages.WriteShareGroupStateRequest
        part = request.PartitionData(
            partition=place.number, state_epoch=found.state_epoch, leader_epoch=self._leader_epoch(place),
            start_offset=found.shared.start, delivery_complete_count=found.shared.complete,
            state_batches=[request.StateBatch(**batch._asdict()) for batch in change.batches],
        )  # fmt: skip
        data = request.WriteStateData(topic_id=place.topic_id, partitions=[part])

        def answered(answer: Any) -> Effect:
            code = answer.results[0].partitions[0].error_code
            buried = NOTHING
            if code:
                found.shared.undo(change)
                if self._open.get((group, *place)) is found:
                    del self._open[group, *place]
            else:
                found.shared.done(change)
                buried = self._dead_letters.write(group, self.log(place), change.dead, now)
            name = self._node.name_of(place.topic_id)
            if name is not None:
                self._node.waiting.touch((name, place.number))
            return together([then(_CODES.get(code, code)), buried])

        return self._node.ask(request(group_id=group, topics=[data]), _WRITE_VERSION, answered, now)

    # Time

    def due(self, now: float) -> Effect:
        """Free the records whose locks have ended."""
        effects = []
        while self._locks and self._locks[0][0] <= now:
            until, key = heapq.heappop(self._locks)
            found = self._open.get(key)
            if self._first.get(key) != until:
                continue
            del self._first[key]
            if found is not None:
                change = found.shared.expire(now)
                rest = found.shared.first_end
                if rest is not None:
                    self.lock(key[0], SharePlace(*key[1:]), rest)
                effects.append(self._write(key[0], SharePlace(*key[1:]), found, change, _nothing, now))
        return together(effects)

    def next_deadline(self) -> float | None:
        """When `due` has something to do."""
        return self._locks[0][0] if self._locks else None


def _nothing(code: int) -> Effect:
    return NOTHING
