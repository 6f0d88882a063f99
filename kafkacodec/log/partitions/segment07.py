"""A segment of Kafka 0.6 or 0.7: no indexes, no timestamps, and offsets are byte positions in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacodec.errors import UnsupportedMagic
from kafkacodec.log.checking.kafka07 import verify_segment07
from kafkacodec.log.checking.report import Report
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import fault_of, open_file
from kafkacodec.log.opening.listing import SegmentFile
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.segments import kafka07
from kafkacodec.log.segments.kinds import BATCHES, MESSAGES, kind_of
from kafkacodec.records.columns import BatchHeaders

if TYPE_CHECKING:
    from kafkacodec.log.checking.checked import Advance


class Kafka07Segment(Segment):
    """A ``.kafka`` file. The methods are those of `Segment`; a start offset must be that of a message.

    `read` omits the column ``next_offset`` of `kafkacodec.dialects.kafka07.decode`.
    """

    def scan(self, **options: Any) -> BatchHeaders:
        """Not available: this format has no batches.

        Raises:
            UnsupportedMagic: always.
        """
        raise UnsupportedMagic("a log of Kafka 0.6 or 0.7 has no batches", path=self.path)

    def ranges(
        self, *, start_offset: int | None = None, end_offset: int | None = None, **_limits: int | None
    ) -> list[SegmentRange]:
        """One range at most: a segment cannot be cut without reading it."""
        size, base = self.size_in_bytes, self._base
        start = 0 if start_offset is None else min(max(start_offset - base, 0), size)
        end = size if end_offset is None else min(max(end_offset - base, 0), size)
        if start >= end:
            return []
        return [
            SegmentRange(
                self.path, self.topic, self.partition, start, end, base + start, None, start_offset, end_offset
            )
        ]

    def first_offset(self) -> int | None:
        """The offset in the file's name."""
        return self._base

    def last_offset(self) -> int | None:
        """The offset of the last complete message, None without one; reads the whole segment."""
        with open_file(self.path) as file:
            return kafka07.end_of(file, self._base)[1]

    def end_position(self) -> int:
        """The end of the complete messages, in bytes; reads the whole segment."""
        with open_file(self.path) as file:
            return kafka07.end_of(file, self._base)[0]

    def position_of_offset(self, offset: int) -> int:
        """The position of the offset, in bytes."""
        return min(max(offset - self._base, 0), self.size_in_bytes)

    def _offset_of_timestamp(self, time: int, start_offset: int, following: int | None) -> int | None:
        """None: messages had no timestamps."""
        return None

    def _verify_among(
        self,
        surroundings: Surroundings,
        leader_epochs: list[LeaderEpoch] | None = None,
        threads: int | None = 1,
        advance: Advance | None = None,
    ) -> Report:
        """Inspect the segment: every message's checksum, and the compressed messages."""
        try:
            report = verify_segment07(self.path, self._base, surroundings)
        except OSError as error:
            fault = fault_of(self.path, error)
            if fault is None:
                raise
            from kafkacodec.log.checking.verify import unreadable_segment

            return unreadable_segment(self.path, fault)
        if advance is not None:
            advance(report.size_in_bytes)
        return report

    @property
    def _base(self) -> int:
        return self.base_offset or 0


_CLASSES = {BATCHES: Segment, MESSAGES: Kafka07Segment}


def segment_at(path: str, *, topic: str | None = None, partition: int | None = None) -> Segment:
    """The segment in a file, of the class for its kind."""
    return _CLASSES[kind_of(path)](path, topic=topic, partition=partition)


def listed_segment(file: SegmentFile, topic: str | None, partition: int | None) -> Segment:
    """As `segment_at`, for a file of a listing in the directory of the topic's partition."""
    if topic is None or partition is None or not file.path.endswith(layout.LOG_SUFFIX):
        return segment_at(file.path, topic=topic, partition=partition)
    return Segment._listed(file.path, file.base_offset, topic, partition)
