"""The part of a segment file to read: its batches, their log, and the required end."""

from __future__ import annotations

import os

from kafkacodec.datatypes import dataclass
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.formats import layout
from kafkacodec.log.opening.identity import LogIdentity

__all__ = ["Extent"]


@dataclass(frozen=True)
class Extent:
    """Consecutive batches of one segment; `kafkacodec.log.SegmentRange`, which can be read, describes the fields."""

    path: str
    topic: str | None
    partition: int | None
    start_position: int
    end_position: int
    first_offset: int = 0
    last_offset: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    aborted: tuple[tuple[int, int, int], ...] = ()
    following: int | None = None
    flushed: int | None = None
    identity: FileIdentity | None = None
    log: LogIdentity | None = None
    replaced: bool = False
    density: float = 1.0
    misplaced: bool = False

    @property
    def base_offset(self) -> int | None:
        """The offset in the name of the segment; None for another name."""
        name = layout.parse_file_name(os.path.basename(self.path))
        return None if name is None else name.base_offset

    @property
    def offsets(self) -> tuple[int, int]:
        """The first offset of the range, and the one after the last; 2^63 - 1 if the end is unknown."""
        first = max(self.first_offset, self.base_offset or 0, self.start_offset or 0)
        end = self.following if self.last_offset is None else self.last_offset + 1
        if end is None and self.log is not None:
            end = self.log.end_offset
        return first, min(bound for bound in (end, self.end_offset, (1 << 63) - 1) if bound is not None)

    @property
    def size_in_bytes(self) -> int:
        """The number of bytes to read."""
        return self.end_position - self.start_position
