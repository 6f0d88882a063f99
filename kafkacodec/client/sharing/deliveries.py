"""Decoding the records of a share group, delivering them to the application, and acknowledging them.

Without I/O, on top of a `ShareReader`. A record is *given* when the application has it, and *processed* when the
application has asked for the next one. Records that are never given are released at the end.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, Literal

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.consuming.given import option_of
from kafkacodec.client.consuming.record import ConsumerRecord
from kafkacodec.client.groups.share_reader import ShareReader
from kafkacodec.client.groups.share_records import ShareFetched
from kafkacodec.client.groups.share_session import AcknowledgeType
from kafkacodec.client.sharing.settings import ShareConsumerSettings
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError, LocalProtocolError
from kafkacodec.questions import Question
from kafkacodec.records._record_rows import ConsumerRecords
from kafkacodec.records.columns import Problem
from kafkacodec.records.decode import iter_columns
from kafkacodec.records.plan import RECORD_COLUMNS

__all__ = ["Deliveries", "ShareRecord"]

_COLUMNS: Final = (*RECORD_COLUMNS, "partition_leader_epoch")
_TYPES: Final = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
    "renew": AcknowledgeType.RENEW,
}


class ShareRecord(NamedTuple):
    """A record of a share group, with the attributes of `ConsumerRecord` and:

    Attributes:
        delivery_count (int): how often the group has delivered it, counting this time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int | None
    delivery_count: int

    @property
    def place(self) -> tuple[TopicPartition, int]:
        """Its partition and offset."""
        return TopicPartition(self.topic, self.partition), self.offset


class Deliveries:
    """The records that a share consumer has received and not acknowledged.

    Args:
        reader: without ``implicit``.
        settings: the consumer's.
    """

    def __init__(self, reader: ShareReader, settings: ShareConsumerSettings) -> None:
        self._reader = reader
        self._settings = settings
        self._waiting: deque[ShareRecord] = deque()
        self._given: dict[tuple[TopicPartition, int], None] = {}
        self._errors: deque[Exception] = deque()
        self._losses = reader.losses

    @property
    def ready(self) -> bool:
        """Whether `next` would return, or `raise_error` raise, something."""
        return bool(self._waiting or self._errors)

    def take(self) -> None:
        """Decode what the reader has fetched, and drop what it has lost, which the group delivers again."""
        if self._losses != self._reader.losses:
            self._losses = self._reader.losses
            self._waiting = deque(record for record in self._waiting if self._reader.holds(*record.place))
        frames = set()
        for fetched in self._reader.take():
            self._decode(fetched)
            if fetched.frame is not None:
                frames.add(fetched.frame)
        for frame in frames:  # each holds several partitions
            frame.release()

    def next(self, most: int) -> list[ShareRecord]:
        """Return records to the application. If a deserializer raises, its record is released."""
        found: list[ShareRecord] = []
        while self._waiting and len(found) < most:
            record = self._waiting.popleft()
            try:
                found.append(self._deserialized(record))
            except Question:
                self._waiting.appendleft(record)
                if not found:
                    raise
                break
            except Exception as error:
                self._say(record.place, AcknowledgeType.RELEASE)
                error.add_note(f"{record.topic}-{record.partition}: the record at offset {record.offset} was released")
                if not found:
                    raise
                self._errors.append(error)
                break
        self._given.update((record.place, None) for record in found)
        return found

    def raise_error(self) -> None:
        """Raise the next error, if there is one."""
        if self._errors and not self._waiting:
            raise self._errors.popleft()

    def acknowledge(self, record: Any, kind: str) -> None:
        """Acknowledge a returned record.

        Raises:
            ValueError: `kind` is not "accept", "release", "reject" or "renew".
            LocalProtocolError: the record was not returned, is acknowledged already, or its time is over; or "renew" in
                implicit mode.
        """
        if kind not in _TYPES:
            *first, last = _TYPES
            raise ValueError(f"a record is acknowledged as {', '.join(first)} or {last}, not {kind!r}")
        if kind == "renew" and self._settings.share_acknowledgement_mode == "implicit":
            raise LocalProtocolError(
                'only share_acknowledgement_mode="explicit" can renew: in the other mode, commit() accepts'
            )
        if not isinstance(record, ShareRecord):
            raise TypeError(f"record must be a record of a share consumer, not {type(record).__name__}")
        place = TopicPartition(record.topic, record.partition), record.offset
        if place not in self._given:
            where = f"{record.topic}-{record.partition}"
            raise LocalProtocolError(f"offset {record.offset} of {where} does not wait for an acknowledgement")
        if kind != "renew":
            del self._given[place]
        self._reader.acknowledge(*place, _TYPES[kind])

    def processed(self, places: Iterable[tuple[TopicPartition, int]] | None = None) -> None:
        """Count these records, or all given ones, as processed.

        Raises LocalProtocolError in explicit mode if one of them is not acknowledged and still belongs to this member.
        """
        for place in list(self._given if places is None else places):
            if place not in self._given:
                continue
            if not self._reader.holds(*place):
                del self._given[place]
                continue
            if self._settings.share_acknowledgement_mode == "explicit":
                (topic, partition), offset = place
                raise LocalProtocolError(
                    f"{len(self._given)} records are not acknowledged, the first is offset {offset} of "
                    f"{topic}-{partition}: accept, release or reject them before you ask for more"
                )
            self._say(place, AcknowledgeType.ACCEPT)
            del self._given[place]

    def forget(self) -> None:
        """Drop everything when the consumer is closed; the reader releases the records."""
        self._waiting.clear()
        self._given.clear()

    def _say(self, place: tuple[TopicPartition, int], kind: AcknowledgeType) -> None:
        with contextlib.suppress(LocalProtocolError):  # its time is over; the reader's results say so
            self._reader.acknowledge(*place, kind)

    def _deserialized(self, record: ShareRecord) -> ShareRecord:
        key_of, value_of = self._settings.key_deserializer, self._settings.value_deserializer
        if key_of is not None and record.key is not None:
            record = record._replace(key=key_of(record.key))
        if value_of is not None and record.value is not None:
            record = record._replace(value=value_of(record.value))
        return record

    def _decode(self, fetched: ShareFetched) -> None:
        """Queue the acquired records, and release those that cannot be read."""
        place = fetched.partition
        records, problem = self._records(fetched, "stop")
        damaged_from = None
        if problem is not None:
            damaged_from = records[-1].offset + 1 if records else 0
            records, _ = self._records(fetched, "skip")  # what follows the damage can be read
        counts = self._reader.delivered(fetched, (record.offset for record in records), damaged_from=damaged_from)
        self._waiting += [ShareRecord(*record, counts[record.offset]) for record in records if record.offset in counts]
        if problem is not None and damaged_from is not None:
            fault = problem.exception
            if isinstance(fault, DecodeError):
                fault.reason += option_of(fault)
                fault.within(f"{place.topic}-{place.partition}")
            fault.add_note(f"the acquired records from offset {damaged_from} that cannot be read were released")
            self._errors.append(fault)

    def _records(
        self, fetched: ShareFetched, on_error: Literal["stop", "skip"]
    ) -> tuple[list[ConsumerRecord], Problem | None]:
        """The records that can be read, and the first problem."""
        records: list[ConsumerRecord] = []
        problem: Problem | None = None
        for chunk in iter_columns(
            fetched.records or b"",
            columns=_COLUMNS,
            verify_crc=self._settings.check_crcs,
            max_decompressed_bytes=self._settings.max_decompressed_bytes,
            on_error=on_error,
        ):
            records.extend(ConsumerRecords(chunk, ConsumerRecord, *fetched.partition))
            problem = problem or (chunk.problems[0] if chunk.problems else None)
        return records, problem
