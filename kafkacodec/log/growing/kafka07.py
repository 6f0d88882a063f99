"""A growing log of Kafka 0.6 or 0.7: ``.kafka`` files, in which an offset is a position."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from kafkacodec.dialects.kafka07.driver import answer_fetch, answer_offsets
from kafkacodec.dialects.kafka07.message_set import valid_bytes
from kafkacodec.log.formats import layout
from kafkacodec.log.growing.appended_file import AppendedFile
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.growing.refused import DirectoryRefused
from kafkacodec.net.service import FilePart

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07.settings import TopicSettings
    from kafkacodec.dialects.kafka07.wire import FetchRequest, FetchResponse, OffsetsRequest, OffsetsResponse

__all__ = ["Flushing07", "GrowingLog07"]

_LEAST_SENT: Final = 1 << 17  # fewer bytes are sent together with earlier ones


class _Segment(AppendedFile):
    """A file of the log: a `kafkacodec.dialects.kafka07.driver.LogSegment`."""

    def __init__(self, path: str, start: int, disk: Disk) -> None:
        super().__init__(path, disk)
        self.start = start
        self.first_append: float | None = None  # of this process, in ms

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + self.size

    @property
    def modified_ms(self) -> int:
        """The time of its last write, in milliseconds since 1970."""
        return os.stat(self.path).st_mtime_ns // 1_000_000

    def stamp(self, now: float) -> None:
        """Set the time of its last write, in ms. Raises OSError."""
        nanoseconds = int(now) * 1_000_000
        os.utime(self.path, ns=(nanoseconds, nanoseconds))

    def read(self, offset: int, size: int) -> memoryview | FilePart:
        """Return its bytes from an offset on, at most `size`: a part of the file, or a view for a few bytes."""
        at = offset - self.start
        count = min(size, self.size - at)
        if count < _LEAST_SENT:
            return memoryview(self.mapped())[at : at + count]
        return FilePart(self.file, at, count, lambda: memoryview(self.mapped())[at : at + count])


class Flushing07:
    """The work that syncs a log's current contents.

    Attributes:
        end (int): the offset up to which it syncs.
    """

    def __init__(self, files: Sequence[OpenFile], end: int, disk: Disk) -> None:
        self._files, self._disk, self.end = files, disk, end

    def sync(self) -> None:
        """Wait for the disk. Raises OSError."""
        for file in self._files:
            self._disk.sync(file)


class GrowingLog07:
    """The log of a partition. Readers see flushed messages; the caller decides when to flush.

    Args:
        path: the partition's directory; created if it is missing.
        settings: its limits of segments and retention.
        clean: whether its last owner stopped cleanly; otherwise it cuts the last segment after its last valid message.
        now: the time, in milliseconds since 1970.
        disk: changes the files.

    Attributes:
        path (str): the directory.
        settings (TopicSettings): as given.
        visible (int): the offset up to which readers see it.
        unflushed (int): the number of messages after that.
        last_flush (float): the time of the last flush, or of opening, in ms.

    Raises:
        DirectoryRefused: its segments are not contiguous, or the name of one is not a number.
        OSError: a file cannot be read or created.
    """

    def __init__(self, path: str, settings: TopicSettings, *, clean: bool, now: float, disk: Disk) -> None:
        self.path, self.settings, self._disk = path, settings, disk
        os.makedirs(path, exist_ok=True)
        self._segments = self._found()
        if self._segments:
            self._check()
            if not clean:
                self._recover()
        else:
            self._begin(0)
        self.visible = self.end
        self.unflushed, self.last_flush = 0, now

    @property
    def start(self) -> int:
        """The offset of the first byte."""
        return self._segments[0].start

    @property
    def end(self) -> int:
        """The offset after the last byte, whether readers see it or not."""
        return self._segments[-1].end

    @property
    def starts(self) -> list[int]:
        """The start of each segment."""
        return [segment.start for segment in self._segments]

    def append(self, data: memoryview, messages: int, now: float, *, stamps: bool = False) -> None:
        """Append a message set, which may be empty; a segment that is large or old enough ends first.

        Args:
            data, messages: the set, and its number of messages.
            now: the time, in ms.
            stamps: whether the file gets this time, since the system's clock shows another one.

        Raises:
            OSError: from the file system.
        """
        last = self._segments[-1]
        began = last.first_append
        if last.size > self.settings.file_size or (began is not None and now - began > self.settings.roll_ms):
            last = self._begin(last.end)
            self.unflushed = 0  # the ended one is flushed
        if not len(data):
            return
        last.write(data)
        if stamps:
            last.stamp(now)
        if last.first_append is None:
            last.first_append = now
        self.unflushed += messages

    @property
    def flush_due_to(self) -> int:
        """Return the offset up to which an append needs a flush: it has enough messages, or has started a segment."""
        last = self._segments[-1]
        return last.end if self.unflushed >= self.settings.flush_messages else max(self.visible, last.start)

    @property
    def flush_due_at(self) -> float | None:
        """Return the latest time of the next flush; None: there is nothing to flush."""
        return self.last_flush + self.settings.flush_ms if self.visible < self.end else None

    def flushing(self) -> Flushing07:
        """Return the work that syncs invisible messages. Raises OSError."""
        return Flushing07([s.file for s in self._segments if s.end > self.visible], self.end, self._disk)

    def flushed(self, end: int, now: float) -> None:
        """Note a flush up to an offset, which readers now see."""
        self.visible, self.last_flush = max(self.visible, end), now
        if self.visible == self.end:
            self.unflushed = 0

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """The response to a FETCH. Raises OSError."""
        return answer_fetch(self._segments, request, end=self.visible)

    def pieces(self) -> list[tuple[int, bytes]]:
        """Return the visible bytes: the offset of the first byte, and the bytes, of each segment."""
        found = [(s.start, min(s.size, self.visible - s.start)) for s in self._segments]
        return [
            (start, bytes(memoryview(segment.mapped())[:size]))
            for segment, (start, size) in zip(self._segments, found, strict=True)
            if size > 0
        ]

    def offsets(self, request: OffsetsRequest, now: float) -> OffsetsResponse:
        """The response to OFFSETS. Raises OSError."""
        return answer_offsets(self._segments, request, end=self.visible, now_ms=int(now))

    def retain(self, now: float) -> None:
        """Delete segments that are too old or beyond the size limit. Raises OSError."""
        kept = self.settings
        if kept.retention_ms >= 0:
            before = now - kept.retention_ms
            old = takewhile(lambda segment: segment.modified_ms < before, self._segments)
            self._delete_first(len(list(old)), now)
        size = sum(segment.size for segment in self._segments)
        if 0 <= kept.retention_bytes <= size:
            left = size - kept.retention_bytes
            count = 0
            for segment in self._segments:
                if left < segment.size:
                    break
                left -= segment.size
                count += 1
            self._delete_first(count, now)

    def close(self, *, keeps: bool) -> None:
        """Close the files, and sync them if the log is kept. Raises OSError."""
        if keeps and self._segments[-1].size:
            self._disk.sync(self._segments[-1].file)
        for segment in self._segments:
            segment.release()

    def _found(self) -> list[_Segment]:
        found = []
        for name in os.listdir(self.path):
            path = os.path.join(self.path, name)
            if not name.endswith(layout.KAFKA07_SUFFIX) or not os.path.isfile(path):
                continue
            stem = name.removesuffix(layout.KAFKA07_SUFFIX)
            if not (stem.isascii() and stem.isdigit() and int(stem) < 1 << 62):
                raise DirectoryRefused(errno.EINVAL, "the name of a segment is not its offset", path)
            segment = _Segment(path, int(stem), self._disk)
            segment.size = os.path.getsize(path)
            found.append(segment)
        return sorted(found, key=lambda segment: segment.start)

    def _check(self) -> None:
        for segment, following in zip(self._segments, self._segments[1:], strict=False):
            if segment.end != following.start:
                reason = f"it does not start at the end of {os.path.basename(segment.path)}, {segment.end}"
                raise DirectoryRefused(errno.EINVAL, reason, following.path)

    def _recover(self) -> None:
        last = self._segments[-1]
        if last.size:
            last.cut(valid_bytes(memoryview(last.mapped())[: last.size], any_magic=True))

    def _begin(self, start: int) -> _Segment:
        segment = _Segment(os.path.join(self.path, layout.file_name(start, layout.KAFKA07_SUFFIX)), start, self._disk)
        self._disk.truncate(segment.file, 0)
        self._segments.append(segment)
        return segment

    def _delete_first(self, count: int, now: float) -> None:
        """Delete the first segments; a log without messages keeps its end."""
        if count == len(self._segments):
            last = self._segments[-1]
            if last.size:
                self._begin(last.end)
                self.visible = max(self.visible, last.end)
            else:
                last.stamp(now)
                count -= 1
        gone, self._segments = self._segments[:count], self._segments[count:]
        for segment in gone:
            self._disk.remove(segment.path)
            segment.release()
