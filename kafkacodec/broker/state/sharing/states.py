"""The share coordinator: positions of share groups in each partition, and the states of its records (KIP-932).

Its records are in ``__share_group_state``: a snapshot of a partition's state, updates, then another snapshot. That
topic is not compacted: now and then the broker cuts off a log before the last snapshots of all its partitions.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

from kafkacodec import messages
from kafkacodec.broker.state.machine import Client, Machine, Prune, Topics
from kafkacodec.broker.state.sharing.batches import Batch, combined
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import (
    FENCED_LEADER_EPOCH,
    FENCED_STATE_EPOCH,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    error,
)
from kafkacodec.internal_records import SHARE_GROUP_STATE
from kafkacodec.messages import keys
from kafkacodec.messages.stored import StoredRecord

__all__ = ["ShareStates", "share_key"]

_EVERYWHERE = "\0all states"  # the key of the timer for all states; no group has such a name
_UPDATES = 500  # share.coordinator.snapshot.update.records.per.snapshot
_UNKNOWN = -1


class Place(NamedTuple):
    """A partition of a group."""

    group: str
    topic_id: uuid.UUID
    partition: int


class State(NamedTuple):
    """The state of a partition.

    Attributes:
        snapshot_epoch: the number of snapshots before the last.
        state_epoch: the epoch of the group when its start was set.
        leader_epoch: of the partition's leader that read last, since its start was set.
        start: the first offset to deliver; -1 before the first delivery.
        complete: the number of completed records from there on; -1 if unknown.
        batches: states of records from there on.
        created: the time of the last snapshot.
        updates: the number of records since then.
        offset: of that snapshot; -1 if unknown.
        fence: the newest leader epoch that was ever noted; older leaders may neither read nor write.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start: int = _UNKNOWN
    complete: int = _UNKNOWN
    batches: tuple[Batch, ...] = ()
    created: int = 0
    updates: int = 0
    offset: int = -1
    fence: int = 0

    def moved(self, start: int, complete: int) -> State:
        """Return the state after a write: its start only moves forward, and the count of completed records with it."""
        if start < self.start:
            return self
        return self._replace(start=start, complete=max(complete, self.complete) if start == self.start else complete)


class ShareStates(Machine):
    """The states of all groups' partitions, as a machine over ``__share_group_state``.

    Args:
        topics: the topics of the cluster.
        partitions: the number of partitions of ``__share_group_state``.
        prune_ms: the interval of cutting off its logs.
    """

    topic: ClassVar[str] = SHARE_GROUP_STATE

    def __init__(self, topics: Topics, partitions: int = 50, prune_ms: int = 300_000) -> None:
        super().__init__(partitions)
        self._topics, self._prune_ms = topics, prune_ms
        self._pruned: dict[int, int] = {}  # the start of each log
        self._states: dict[Place, State] = {}
        self.handlers = {
            keys.INITIALIZE_SHARE_GROUP_STATE: self._initialize,
            keys.READ_SHARE_GROUP_STATE: self._read,
            keys.WRITE_SHARE_GROUP_STATE: self._write,
            keys.DELETE_SHARE_GROUP_STATE: self._delete,
            keys.READ_SHARE_GROUP_STATE_SUMMARY: self._summarize,
        }

    # Requests: one decision for every partition; the answer follows when all are made

    def _initialize(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.InitializeShareGroupStateResponse
        made = response.InitializeStateResult
        self._each(request, partial(self._initialize_one, response.PartitionResult), (response, made), to)

    def _read(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ReadShareGroupStateResponse
        self._each(request, partial(self._read_one, response), (response, response.ReadStateResult), to)

    def _write(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.WriteShareGroupStateResponse
        made = response.WriteStateResult
        self._each(request, partial(self._write_one, response.PartitionResult), (response, made), to)

    def _delete(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.DeleteShareGroupStateResponse
        made = response.DeleteStateResult
        self._each(request, partial(self._delete_one, response.PartitionResult), (response, made), to)

    def _summarize(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ReadShareGroupStateSummaryResponse
        made = response.ReadStateSummaryResult
        self._each(request, partial(self._summarize_one, response.PartitionResult), (response, made), to)

    def _each(
        self, request: Any, decide: Callable[[Place, Any, Callable[[Any], None]], None], made: Any, to: Any
    ) -> None:
        response, result = made
        asked = [(topic.topic_id, part) for topic in request.topics for part in topic.partitions]
        if not request.group_id or not asked:
            self.reply(to, response())
            return
        rows: dict[int, Any] = {}

        def decided(number: int, row: Any) -> None:
            rows[number] = row
            if len(rows) == len(asked):
                last = {(topic_id, part.partition): rows[at] for at, (topic_id, part) in enumerate(asked)}
                found: dict[uuid.UUID, Any] = {}
                for (topic_id, _), each in last.items():
                    found.setdefault(topic_id, result(topic_id=topic_id)).partitions.append(each)
                self.reply(to, response(results=list(found.values())))

        for number, (topic_id, part) in enumerate(asked):
            place = Place(request.group_id, topic_id, part.partition)
            self.run(share_key(*place), partial(decide, place, part, partial(decided, number)))

    def _initialize_one(self, row: Any, place: Place, asked: Any, done: Callable[[Any], None]) -> None:
        known = self._states.get(place)
        code = self._refusal(place, known, state_epoch=asked.state_epoch)
        if not code and not self._is_there(place):
            code = UNKNOWN_TOPIC_OR_PARTITION
        epoch = 0 if known is None else known.snapshot_epoch + 1
        state = State(epoch, asked.state_epoch, 0, asked.start_offset, _UNKNOWN, (), self.now)
        if asked.start_offset != _UNKNOWN:
            state = state._replace(complete=0)
        self._keep(place, code, [] if code else [self._snapshot(place, state)], row, done)

    def _read_one(self, response: Any, place: Place, asked: Any, done: Callable[[Any], None]) -> None:
        known = self._states.get(place)
        code = self._refusal(place, known, leader_epoch=asked.leader_epoch)
        row = response.PartitionResult(partition=place.partition)
        if code or known is None:
            done(_refused(row, code))
            return
        row.state_epoch, row.start_offset = known.state_epoch, known.start
        row.state_batches = [response.StateBatch(**batch._asdict()) for batch in known.batches]

        def written(failed: int) -> None:
            done(_refused(response.PartitionResult(partition=place.partition), failed) if failed else row)

        if asked.leader_epoch > known.fence:
            led = known._replace(leader_epoch=asked.leader_epoch)
            self.write(share_key(*place), [self._update(place, led, ())], written, (-1, -1))
        else:
            written(NONE)

    def _write_one(self, row: Any, place: Place, asked: Any, done: Callable[[Any], None]) -> None:
        known = self._states.get(place)
        code = self._refusal(place, known, state_epoch=asked.state_epoch, leader_epoch=asked.leader_epoch)
        records: list[StoredRecord] = []
        if known is not None and not code:
            state = known.moved(asked.start_offset, asked.delivery_complete_count)
            new = [
                Batch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in asked.state_batches
            ]
            if known.updates >= _UPDATES:
                batches = combined(known.batches, new, state.start)
                fresh = state._replace(snapshot_epoch=known.snapshot_epoch + 1, batches=batches, created=self.now)
                records = [self._snapshot(place, fresh)]
            else:
                records = [self._update(place, state, new)]
        self._keep(place, code, records, row, done)

    def _delete_one(self, row: Any, place: Place, asked: Any, done: Callable[[Any], None]) -> None:
        known = place in self._states or self._is_there(place)  # states of a topic that is gone are deleted too
        code = INVALID_REQUEST if place.partition < 0 else NONE if known else UNKNOWN_TOPIC_OR_PARTITION
        records = []
        if not code and place in self._states:
            key = messages.ShareSnapshotKey(group_id=place.group, topic_id=place.topic_id, partition=place.partition)
            records = [StoredRecord(key, None, None)]
        self._keep(place, code, records, row, done)

    def _summarize_one(self, made: Any, place: Place, asked: Any, done: Callable[[Any], None]) -> None:
        row = made(partition=place.partition)
        known = self._states.get(place)
        if place.partition < 0:
            _refused(row, INVALID_REQUEST)
        elif not self._is_there(place):
            _refused(row, UNKNOWN_TOPIC_OR_PARTITION)
        elif known is None:
            row.start_offset = _UNKNOWN
        elif known is not None:
            row.state_epoch, row.leader_epoch, row.start_offset = known.state_epoch, known.leader_epoch, known.start
            row.delivery_complete_count = known.complete
        done(row)

    def _refusal(
        self, place: Place, known: State | None, *, state_epoch: int | None = None, leader_epoch: int | None = None
    ) -> int:
        """Return the error of a read or write of a state; for existing states, pass the leader epoch."""
        if min(place.partition, state_epoch or 0, leader_epoch or 0) < 0:
            return INVALID_REQUEST
        if known is None:
            return NONE if leader_epoch is None else INVALID_REQUEST
        if leader_epoch is not None and known.fence > leader_epoch:
            return FENCED_LEADER_EPOCH
        return FENCED_STATE_EPOCH if state_epoch is not None and known.state_epoch > state_epoch else NONE

    def _is_there(self, place: Place) -> bool:
        name = self._topics.name_of(place.topic_id)
        return name is not None and place.partition < self._topics.partitions(name)

    def _keep(
        self, place: Place, code: int, records: list[StoredRecord], row: Any, done: Callable[[Any], None]
    ) -> None:
        """Write, and answer with a row."""

        def written(failed: int) -> None:
            done(_refused(row(partition=place.partition), code or failed))

        self.write(share_key(*place), records, written, (-1, -1))

    # Time

    def start(self) -> None:
        """Set the timer that cuts off old records."""
        self.set_timer(_EVERYWHERE, "prune", self.now + self._prune_ms, self._prune)

    def _prune(self) -> None:
        needed: dict[int, int] = {}
        for place, state in self._states.items():
            number = self.log_of(share_key(*place))[1]
            needed[number] = min(needed.get(number, state.offset), state.offset)
        for number, before in needed.items():
            if before > self._pruned.get(number, 0):
                self._pruned[number] = before
                self.send((self.topic, number), Prune(before), _whatever)
        self.start()

    # Records

    def _snapshot(self, place: Place, state: State) -> StoredRecord:
        key = messages.ShareSnapshotKey(group_id=place.group, topic_id=place.topic_id, partition=place.partition)
        made = messages.ShareSnapshotValue
        value = made(
            snapshot_epoch=state.snapshot_epoch, state_epoch=state.state_epoch, leader_epoch=state.leader_epoch,
            start_offset=state.start, delivery_complete_count=state.complete, create_timestamp=state.created,
            write_timestamp=self.now, state_batches=[made.StateBatch(**batch._asdict()) for batch in state.batches],
        )  # fmt: skip
        return StoredRecord(key, value, 0)

    def _update(self, place: Place, state: State, batches: Iterable[Batch]) -> StoredRecord:
        key = messages.ShareUpdateKey(group_id=place.group, topic_id=place.topic_id, partition=place.partition)
        made = messages.ShareUpdateValue
        value = made(
            snapshot_epoch=state.snapshot_epoch, leader_epoch=state.leader_epoch, start_offset=state.start,
            delivery_complete_count=state.complete,
            state_batches=[made.StateBatch(**batch._asdict()) for batch in batches],
        )  # fmt: skip
        return StoredRecord(key, value, 0)

    def apply(self, key: Any, value: Any, producer_id: int) -> None:
        """Change the state as a record says; records of other types change nothing."""
        place = Place(key.group_id, key.topic_id, key.partition)
        kind = type(key).__name__
        if kind == "ShareSnapshotKey" and value is None:
            self._states.pop(place, None)
        elif kind == "ShareSnapshotKey":
            fence = max(value.leader_epoch, self._states.get(place, State()).fence)
            self._states[place] = State(
                value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset,
                value.delivery_complete_count, _batches(value), value.create_timestamp, 0, self.offset, fence,
            )  # fmt: skip
        elif kind == "ShareUpdateKey" and value is not None and place in self._states:
            known = self._states[place]
            self._states[place] = known._replace(
                leader_epoch=value.leader_epoch, start=value.start_offset, complete=value.delivery_complete_count,
                batches=combined(known.batches, _batches(value), value.start_offset), updates=known.updates + 1,
                fence=max(known.fence, value.leader_epoch),
            )  # fmt: skip


def _whatever(code: int) -> None:
    """Ignore a failure: the next time cuts off more."""


def _batches(value: Any) -> tuple[Batch, ...]:
    return tuple(
        Batch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count) for row in value.state_batches
    )


def _refused(row: Any, code: int) -> Any:
    if code:
        row.error_code, row.error_message = code, f"the state stays: {error(code).__name__}"
    return row


def share_key(group: str, topic_id: uuid.UUID, partition: int) -> str:
    """The key of a partition as a group reads it, which says where its records are."""
    return f"{group}:{base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}:{partition}"
