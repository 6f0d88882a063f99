"""The records that `kafkacodec dump` prints: all, the last ones, or new ones as they are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.options.inputs import Reading, place
from kafkacodec.cli.rows.following import follow
from kafkacodec.cli.rows.record_rows import Origin, Page, pages
from kafkacodec.datatypes import dataclass, replace
from kafkacodec.errors import DecodeError
from kafkacodec.internal_records import CLUSTER_METADATA, INTERNAL_TOPICS
from kafkacodec.log.formats.layout import is_metadata_snapshot
from kafkacodec.log.opening import is_url
from kafkacodec.log.partitions.following import Follower, Growth
from kafkacodec.log.partitions.from_end import last_chunks

if TYPE_CHECKING:
    from kafkacodec import RecordColumns, Search
    from kafkacodec.cli.rows.typed_rows import TypedRecords
    from kafkacodec.log import Partition, SegmentRange
    from kafkacodec.records.plan import DecodeOptions

# Few rows without a search, so that the first ones appear at once.
_CHUNK_ROWS, _SEARCHED_ROWS = 1024, 8192


@dataclass(frozen=True)
class Source:
    """The records to print."""

    reading: Reading
    search: Search | None
    batch_columns: bool
    typed: TypedRecords | None = None

    def all(self, partitions: list[Partition]) -> Iterator[Page]:
        """All records, partition by partition."""
        for piece in self.reading.ranges(partitions):
            yield from self._pages(piece, self._chunks(piece, self.reading))

    def last(self, partition: Partition, count: int) -> Iterator[Page]:
        """The last records of a partition."""

        def read(span: tuple[int | None, int | None]) -> Iterator[RecordColumns]:
            part = replace(self.reading, start_offset=span[0], end_offset=span[1])
            return (chunk for piece in part.ranges([partition]) for chunk in self._chunks(piece, part))

        bounds = self.reading.start_offset, self.reading.end_offset
        return self._pages(partition, last_chunks(partition, count, bounds, read))

    def followed(self, partitions: list[Partition], count: int | None) -> Iterator[Page | None]:
        """All records, or the last ones, then new ones as they are written, in new partitions too."""
        followers = []
        for partition in partitions:
            if is_url(partition.path):
                raise click.UsageError(f"{partition.path}: --follow does not support logs in object stores")
            if partition.is_kafka07:
                raise click.UsageError(f"{partition.path}: --follow does not support logs of Kafka 0.6 and 0.7")
            follower = self._follower(partition)
            if count is not None:
                growth = follower.poll()
                if growth is not None:
                    until = replace(self, reading=replace(self.reading, end_offset=growth.end_offset))
                    yield from until.last(growth.partition, count)
            followers.append(follower)
        yield from follow(followers, self._new, self._added)

    def _pages(self, where: SegmentRange | Partition, chunks: Iterable[RecordColumns]) -> Iterator[Page]:
        place, typed = _place(where), self.typed
        if typed is None or place.topic in INTERNAL_TOPICS:  # whose records have formats of their own
            return pages(place, chunks)
        return pages(place, chunks, lambda chunk: typed.of(chunk, place.name))

    def _follower(self, partition: Partition) -> Follower:
        return Follower(partition, self._start(partition), isolation_level=self.reading.isolation_level)

    def _added(self, known: set[str]) -> list[Follower]:
        """Followers of the partitions that were created since; those that a broker sets aside are not followed."""
        try:
            found = self.reading.partitions()
        except (OSError, click.ClickException):  # being deleted; the followers' own files show what is left
            return []
        new = [partition for partition in found if partition.path not in known and partition.state == "current"]
        followers = []
        for partition in new:
            with suppress(OSError, DecodeError):  # being created or deleted: the next look shows more
                if not partition.is_kafka07:
                    followers.append(self._follower(partition))
        return followers

    def _start(self, partition: Partition) -> int | None:
        """The first offset to print, by --start-offset and --start-time."""
        if self.reading.start_time is None:
            return self.reading.start_offset
        found = partition.offset_of_timestamp(self.reading.start_time)
        found = partition.end_offset() if found is None else found
        return max(found, self.reading.start_offset or 0)

    def _new(self, growth: Growth) -> Iterator[Page]:
        start, end = growth.start_offset, growth.end_offset
        part = replace(self, reading=replace(self.reading, start_offset=start, end_offset=end, start_time=None))
        return part.all([growth.partition])

    def _chunks(self, piece: SegmentRange, reading: Reading) -> Iterator[RecordColumns]:
        """The records of a range, or those that are searched for."""
        options: DecodeOptions = {"batch_columns": self.batch_columns}
        rows = _CHUNK_ROWS if self.search is None else _SEARCHED_ROWS
        for chunk in reading.read(piece, lambda count: None, max_rows=rows, columns=options):
            yield chunk if self.search is None else self.search.select(chunk)


def _place(where: SegmentRange | Partition) -> Origin:
    topic = where.topic
    if topic is None and is_metadata_snapshot(os.path.basename(where.path)):
        topic = CLUSTER_METADATA
    return Origin(topic, where.partition, place(where.topic, where.partition, where.path))
