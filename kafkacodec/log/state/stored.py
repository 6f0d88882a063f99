"""Reading internal topics: errors are raised, or collected while reading continues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

from kafkacodec.errors import DecodeError
from kafkacodec.log.files.access import note
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import DecodeOptions


def sound_chunks(
    log: Partition | Segment, problems: list[DecodeError] | None, **options: Unpack[DecodeOptions]
) -> Iterator[RecordColumns]:
    """The records of a log. Damage is raised, or skipped and appended to `problems` if that is a list."""
    options["on_error"] = "raise" if problems is None else "skip"
    for chunk in log.read(**options):
        if problems is not None:
            for found in chunk.problems:
                if isinstance(found.exception, DecodeError):
                    note(problems, found.exception)
        yield chunk


def note_record(error: DecodeError, path: str, offset: int, problems: list[DecodeError] | None) -> None:
    """Add the record's place to its error, and append the error to `problems`; raise it if that is None."""
    error.within(f"{path}: record at offset {offset}")
    if problems is None:
        raise error
    note(problems, error)
