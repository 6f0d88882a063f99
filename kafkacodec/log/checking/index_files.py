"""The index files of a checked segment."""

from __future__ import annotations

import os
from collections.abc import Callable

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import IndexFile
from kafkacodec.log.opening.indexes import read_offset_index, read_time_index

__all__ = ["Indexes"]


class Indexes:
    """The offset and the time index of a segment, up to their first faults; none of a file with a wrong name."""

    def __init__(self, path: str, base_offset: int | None, report: Report) -> None:
        self.path = path
        self.report = report
        self.missing: list[tuple[str, str]] = []
        self.offset = self.time = None
        name = layout.parse_file_name(os.path.basename(path))
        if base_offset is not None and name is not None and name.base_offset == base_offset:
            self.offset = self._read(read_offset_index, layout.OFFSET_INDEX_SUFFIX, "offset-index")
            self.time = self._read(read_time_index, layout.TIME_INDEX_SUFFIX, "time-index")

    def _read(self, read: Callable[..., IndexFile], suffix: str, kind: str) -> IndexFile | None:
        path = layout.sibling(self.path, suffix)
        try:
            index = read(path, on_error="stop")
        except FileNotFoundError:
            self.missing.append((kind, path))
            return None
        except (OSError, KafkaCodecError) as error:
            self.report.add(Finding("warning", kind, path, f"cannot be read: {reason_of(error)}"))
            return None
        return index
