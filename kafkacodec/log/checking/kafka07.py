"""Inspection of segments of Kafka 0.6 and 0.7."""

from __future__ import annotations

from kafkacodec.dialects import kafka07
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.opening import open_file
from kafkacodec.log.order.continuity import ALONE, Evidence, Surroundings, gap_after, missing
from kafkacodec.log.order.gap_evidence import unused

__all__ = ["verify_segment07"]


def verify_segment07(path: str, base_offset: int, surroundings: Surroundings = ALONE) -> Report:
    """Inspect a segment: every message's checksum, compressed messages, and whether the next segment follows.

    There are no index files.
    """
    report = Report(path, num_segments=1)
    with open_file(path) as file:
        report.size_in_bytes, position = file.size, 0
        for chunk in kafka07.iter_columns(
            file.view(), initial_offset=base_offset, columns=("magic", "codec"), on_error="skip"
        ):
            position = chunk.consumed
            report.num_records += len(chunk)
            for problem in chunk.problems:
                report.damaged_bytes += problem.size_in_bytes
                report.missing_offsets += problem.size_in_bytes
                first = base_offset + problem.position
                report.add(
                    Finding(
                        "error",
                        "damaged",
                        path,
                        reason_of(problem.exception),
                        problem.position,
                        problem.size_in_bytes,
                        first,
                        first + problem.size_in_bytes,
                    )
                )
        if position < file.size:
            text = "trailing partial message or unused space"
            report.add(Finding("note", "torn-tail", path, text, position, file.size - position))
        gap = gap_after(base_offset + position, surroundings.following, surroundings.flushed)
        if gap is not None:
            left = 0 if unused(file, position) else file.size - position
            error = missing(gap, Evidence(bytes_left=left, old=True), path=path, position=position)
            if error is not None:
                report.add_missing(error, file.size - position)
    return report
