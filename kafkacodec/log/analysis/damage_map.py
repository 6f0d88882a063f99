"""Damaged bytes of segments, and missing offsets, from the findings of `verify`."""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.datatypes import dataclass, field
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.opening import identity_of, is_directory

__all__ = ["SegmentDamage", "damage_map"]


@dataclass
class SegmentDamage:
    """The damage of one segment.

    Attributes:
        path (str): the segment, or the partition's directory if offsets are missing without a segment.
        size_in_bytes (int): the size of the file; 0 if it cannot be read.
        ranges (list[tuple[int, int]]): start and size of the damaged ranges, in bytes, in order.
        missing (list[tuple[int, int]]): first missing offset and the one after the last, in order. Those of a gap after
            the segment are among them.
        reasons (list[str]): one for each finding.
    """

    path: str
    size_in_bytes: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    missing: list[tuple[int, int]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def damaged_bytes(self) -> int:
        """The bytes of all ranges."""
        return sum(size for _, size in self.ranges)

    @property
    def missing_offsets(self) -> int:
        """The number of known missing offsets."""
        return sum(end - first for first, end in self.missing)

    def add(self, finding: Finding) -> None:
        """Add an error."""
        self.reasons.append(finding.text)
        # The bytes after the batches before a gap are not damage: there may be none.
        if finding.kind != "gap" and finding.position is not None and finding.size_in_bytes:
            self.ranges.append((finding.position, finding.size_in_bytes))
        if finding.first_offset is not None and finding.end_offset is not None:
            self.missing.append((finding.first_offset, finding.end_offset))


def damage_map(reports: Iterable[Report]) -> list[SegmentDamage]:
    """The damaged segments, those with most damaged bytes first, then those with most missing offsets.

    A report keeps its first 1,000 findings: see `Report.counts` for the others.
    """
    found: dict[str, SegmentDamage] = {}
    for report in reports:
        for finding in report.findings:
            if finding.level == "error":
                found.setdefault(finding.path, SegmentDamage(finding.path)).add(finding)
    for segment in found.values():
        try:
            segment.size_in_bytes = 0 if is_directory(segment.path) else identity_of(segment.path).size
        except OSError:
            segment.size_in_bytes = 0
    return sorted(found.values(), key=lambda s: (-s.damaged_bytes, -s.missing_offsets, s.path))
