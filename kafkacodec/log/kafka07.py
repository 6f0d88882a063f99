"""Segments of Kafka 0.6 and 0.7 (``.kafka``) with the face of the newer ones. An offset is a position in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from kafkacodec.dialects import kafka07
from kafkacodec.log import layout
from kafkacodec.log.continuity import ALONE, Evidence, Surroundings, gap_after, missing
from kafkacodec.log.evidence import unused
from kafkacodec.log.files import MappedFile, reason_of
from kafkacodec.log.report import Finding, Report
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.decode import RECORD_COLUMNS, DecodeOptions

# Options that mean something for this format; the others have nothing to act on.
_SHARED = ("batch_columns", "verify_crc", "on_error", "max_decompressed_bytes")


def is_kafka07(path: str) -> bool:
    """Whether the file's name is that of a 0.6 or 0.7 segment."""
    return path.endswith(layout.KAFKA07_SUFFIX)


def read(
    file: MappedFile,
    base_offset: int,
    *,
    max_rows: int,
    max_bytes: int,
    start_position: int,
    end_position: int,
    **options: Unpack[DecodeOptions],
) -> Iterator[RecordColumns]:
    """The messages of file[start_position, end_position), as `kafkacodec.iter_columns` gives records.

    A start offset must be that of a message, as in a fetch request of the time.
    """
    first, behind = options.get("start_offset"), options.get("end_offset")
    start = start_position if first is None else max(start_position, first - base_offset)
    end = end_position if behind is None else min(end_position, behind - base_offset)
    columns = _columns(options.get("columns"))
    chosen: Any = {name: options[name] for name in _SHARED if name in options}  # type: ignore[literal-required]
    chunks = kafka07.iter_columns(
        memoryview(file.data)[start : max(start, end)],
        max_rows=max_rows,
        max_bytes=max_bytes,
        initial_offset=base_offset + start,
        columns=columns,
        **chosen,
    )
    for chunk in chunks:
        chunk.consumed += start
        chunk.problems = Problems(Problem(p.position + start, *p[1:]) for p in chunk.problems)
        yield chunk


def nothing(columns: Iterable[str] | None, *, batch_columns: bool) -> RecordColumns:
    """No rows, with the columns that `read` gives."""
    return kafka07.decode(b"", columns=_columns(columns), batch_columns=batch_columns)


def _columns(chosen: Iterable[str] | None) -> Iterable[str]:
    return RECORD_COLUMNS if chosen is None else chosen


def end_of(file: MappedFile, base_offset: int) -> tuple[int, int | None]:
    """Where the whole messages end, in bytes, and the offset of the last one."""
    position, last = 0, None
    for chunk in kafka07.iter_columns(
        file.data, initial_offset=base_offset, columns=("offset",), deep=False, verify_crc=False, on_error="stop"
    ):
        position = chunk.consumed
        last = int(chunk["offset"][-1]) if len(chunk) else last
    return position, last


def verify(path: str, base_offset: int, surroundings: Surroundings = ALONE) -> Report:
    """Inspect a segment: every message's checksum, what is compressed, and whether the next segment follows.

    There are no index files.
    """
    report = Report(path, num_segments=1)
    with MappedFile(path) as file:
        report.size_in_bytes, position = file.size, 0
        for chunk in kafka07.iter_columns(
            file.data, initial_offset=base_offset, columns=("magic", "codec"), on_error="skip"
        ):
            position = chunk.consumed
            report.num_records += len(chunk)
            for problem in chunk.problems:
                report.damaged_bytes += problem.num_bytes
                report.missing_offsets += problem.num_bytes
                first = base_offset + problem.position
                report.add(
                    Finding(
                        "error",
                        "damaged",
                        path,
                        reason_of(problem.exception),
                        problem.position,
                        problem.num_bytes,
                        first,
                        first + problem.num_bytes,
                    )
                )
        if position < file.size:
            text = "a message that is not whole, or unused space, ends the file"
            report.add(Finding("note", "torn-tail", path, text, position, file.size - position))
        gap = gap_after(base_offset + position, surroundings.following, surroundings.flushed)
        if gap is not None:
            left = 0 if unused(file, position) else file.size - position
            error = missing(gap, Evidence(bytes_left=left, old=True), path=path, position=position)
            if error is not None:
                report.add_missing(error, file.size - position)
    return report
