"""Fetches of share groups: records read and delivered to a member (KIP-932)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.sharing.sessions import Owner, SharePlace
from kafkacodec.broker.state.sharing.deliveries import Acquired, Wanted
from kafkacodec.broker.state.sharing.partition import SharePartition
from kafkacodec.broker.topics.committed import aborted_batches
from kafkacodec.datatypes import NamedTuple
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.topics.partition import Partition, Piece

__all__ = ["ShareFetching", "ShareTake"]

_COLUMNS: Final = ("position", "size_in_bytes", "base_offset", "last_offset")


class ShareTake(NamedTuple):
    """The limits of a fetch.

    Attributes:
        owner: the member.
        min_bytes: the bytes that it waits for.
        max_bytes: the maximum of bytes.
        max_records: the maximum of records; whole batches may exceed it, unless it is `strict`.
        batch_size: the number of records of a range.
        strict: whether `max_records` is exact.
    """

    owner: Owner
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool


class ShareFetching:
    """A fetch.

    Args:
        node: the broker.
        wants: its limits.
        places: the partitions, in the order of reading.
        fresh: partitions that are not open yet. The fetch opens them one after another until it has enough, and does
            not answer the others.
        denied: partitions that the client may not read.
    """

    def __init__(
        self, node: Node, wants: ShareTake, places: list[SharePlace], fresh: set[SharePlace], denied: set[SharePlace]
    ) -> None:
        self._node, self._wants, self._denied = node, wants, denied
        self._places = sorted(places, key=fresh.__contains__)
        self._fresh = fresh
        self._settings = node.shares.partitions.settings(wants.owner.group)

    @property
    def logs(self) -> list[Hashable]:
        """Return the logs that it may wait for."""
        found = [self._node.shares.partitions.log(place) for place in self._places]
        return [log.key for log in found if log is not None]

    def enough(self) -> bool:
        """Whether there are enough bytes, or an error to report."""
        total, some, moved = 0, False, False
        read: set[SharePlace] = set()
        for at, place in enumerate(self._places):
            if place in self._fresh and some and total >= self._wants.min_bytes:
                del self._places[at:]
                break
            log = self._node.shares.partitions.log(place)
            shared = self._node.shares.partitions.find(self._wants.owner.group, place)
            if log is None or shared is None or place in self._denied:
                return True
            if not self._node.brokers.leads(self._wants.owner.broker, *log.key):
                return True
            offset = self._offset(shared)
            if offset is None:
                continue
            some = True
            if offset != shared.looked_at:
                read.add(place)
                if offset < log.start_offset:
                    moved = True
                    continue
                shared.looked_at = offset
            total += len(self._read(log, max(offset, log.start_offset)).records)
        self._fresh = set()
        if moved or (some and total >= self._wants.min_bytes):
            self._places.sort(key=read.__contains__)  # as Apache Kafka: first those of which it knows where they are
            return True
        return False

    def take(self, now: float) -> list[tuple[SharePlace, Any]]:
        """Deliver available records: a row for each partition."""
        rows = []
        left = self._wants.max_records
        for place in self._places:
            row = messages.ShareFetchResponse.PartitionData(partition_index=place.number, records=b"")
            rows.append((place, row))
            log = self._node.shares.partitions.log(place)
            shared = self._node.shares.partitions.find(self._wants.owner.group, place)
            if place in self._denied:
                row.error_code = errors.TOPIC_AUTHORIZATION_FAILED
            elif log is None:
                known = self._node.name_of(place.topic_id) is not None
                row.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION if known else errors.UNKNOWN_TOPIC_ID
            elif not self._node.brokers.leads(self._wants.owner.broker, *log.key):
                row.error_code = errors.NOT_LEADER_OR_FOLLOWER
            elif shared is None:
                row.error_code = errors.UNKNOWN_SERVER_ERROR
            else:
                left -= self._fill(row, place, log, shared, left, now)
        return rows

    def _offset(self, shared: SharePartition) -> int | None:
        """Where a partition is read; None if it is not."""
        return None if shared.is_full or self._wants.max_bytes <= 0 else shared.next_offset

    def _read(self, log: Partition, offset: int) -> Piece:
        """Return records of a partition."""
        room = self._wants.max_bytes // max(1, len(self._places))
        return log.read(offset, room, at_least_one=True, committed=self._settings.committed)

    def _fill(self, row: Any, place: SharePlace, log: Partition, shared: SharePartition, left: int, now: float) -> int:
        """Deliver records of a partition; return their number. Where the log's start has passed it, the next does."""
        offset = self._offset(shared)
        if offset is not None and offset < log.start_offset:
            shared.delete_before(log.start_offset)
            return 0
        end = log.last_stable_offset if self._settings.committed else log.high_watermark
        if offset is None or offset >= end or left <= 0:
            return 0
        piece = self._read(log, offset)
        heads = scan(piece.records, columns=_COLUMNS, verify_crc=False, on_error="stop")
        batches = list(zip(*(heads[name].tolist() for name in _COLUMNS), strict=True))
        wants, until = self._wants, now + self._settings.lock_ms
        wanted = Wanted(wants.owner.member, left, max(1, wants.batch_size), wants.strict, until)
        found = shared.acquire([(base, last) for _, _, base, last in batches], wanted)
        if self._settings.committed:
            for first, last in aborted_batches(bytes(piece.records), piece.aborted):
                shared.archive(first, last)
                found = _without(found, first, last)
        if not found:
            return 0
        self._node.shares.partitions.lock(wants.owner.group, place, until)
        sent = [(at, size) for at, size, base, last in batches if last >= found[0].first and base <= found[-1].last]
        row.records = piece.records[sent[0][0] : sent[-1][0] + sent[-1][1]]
        made = messages.ShareFetchResponse.AcquiredRecords
        row.acquired_records = [
            made(first_offset=one.first, last_offset=one.last, delivery_count=one.delivery) for one in found
        ]
        return sum(one.last - one.first + 1 for one in found)


def _without(found: list[Acquired], first: int, last: int) -> list[Acquired]:
    """Return ranges without those offsets."""
    rest = []
    for one in found:
        if one.first < first:
            rest.append(one._replace(last=min(one.last, first - 1)))
        if one.last > last:
            rest.append(one._replace(first=max(one.first, last + 1)))
    return rest
