"""The results of inspecting log files: as text, as dataclasses and as dicts for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from kafkacodec.datatypes import dataclass, field, replace
from kafkacodec.errors import MissingOffsets
from kafkacodec.named_rows import Tabular, fields_of
from kafkacodec.shown import html_table

MAX_FINDINGS = 1000
"""The number of findings that a report keeps; its counts include the others."""

_SHOWN_FINDINGS = 10
"""The number of findings in a report's repr."""

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """A fault or a peculiarity of a log.

    Attributes:
        level (str): ``error``: records are lost or cannot be trusted; ``warning``: an index or a checkpoint is wrong,
            or the log ends with a torn batch, which a broker removes; ``note``: neither.
        kind (str): the category, such as ``damaged``, ``offset-order``, ``offset-index``.
        path (str): the file.
        position (int | None): the position in the file, in bytes.
        size_in_bytes (int | None): the number of affected bytes.
        first_offset (int | None): the first affected offset.
        end_offset (int | None): the offset after the last affected one; None if unknown.
        text (str): the fault.
    """

    level: Level
    kind: str
    path: str
    text: str
    position: int | None = None
    size_in_bytes: int | None = None
    first_offset: int | None = None
    end_offset: int | None = None

    def __str__(self) -> str:
        place = "" if self.position is None else f" at byte {self.position}"
        if self.size_in_bytes is not None:
            place += f", {self.size_in_bytes} bytes"
        offsets = ""
        if self.first_offset is not None:
            last = self.first_offset if self.end_offset is None else self.end_offset - 1
            if last > self.first_offset:
                offsets = f" (offsets {self.first_offset} to {last})"
            elif last == self.first_offset:
                offsets = f" (offset {last})"
        return f"{self.level}: {self.path}{place}: {self.text}{offsets}"


_SUMS = (
    "num_segments",
    "size_in_bytes",
    "num_batches",
    "num_records",
    "control_records",
    "damaged_bytes",
    "missing_offsets",
    "compacted_offsets",
)


@dataclass(repr=False)
class Report(Tabular):
    """The contents and the faults of a segment, a partition or a log directory.

    Notebooks show the first findings as a table; `to_arrow` and its siblings have all kept findings.

    Attributes:
        path (str): the inspected file or directory.
        num_segments, size_in_bytes, num_batches, num_records (int): of the input; only intact batches and records.
        control_records (int): those of `num_records` that are control records, such as transaction markers.
        damaged_bytes (int): bytes that are not intact batches, without torn and unused tails.
        missing_offsets (int): the number of offsets lost in damaged batches and in gaps between segments: those between
            the intact batches around the damage, from the damaged batch's own first offset on if its header has a
            plausible one. The number of lost records may be smaller: compaction may have removed some before. Damage at
            the end of a log, whose offsets are unknown, is not counted. In logs of Kafka 0.6 and 0.7, in bytes.
        compacted_offsets (int): the number of offsets between batches that no batch has, as compaction leaves them.
        formats (Counter): batches by magic and codec, such as ``v2/lz4``.
        findings (list[Finding]): the first `MAX_FINDINGS`, in the order of the log.
        counts (Counter): all findings, by (level, kind).
    """

    path: str
    num_segments: int = 0
    size_in_bytes: int = 0
    num_batches: int = 0
    num_records: int = 0
    control_records: int = 0
    damaged_bytes: int = 0
    missing_offsets: int = 0
    compacted_offsets: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def data_records(self) -> int:
        """`num_records` without `control_records`: what a consumer may get."""
        return self.num_records - self.control_records

    @property
    def ok(self) -> bool:
        """Whether there is no error: every record can be read and trusted."""
        return not any(level == "error" for level, _ in self.counts)

    @property
    def clean(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return not any(level != "note" for level, _ in self.counts)

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        self.counts[finding.level, finding.kind] += 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)

    def add_missing(self, error: MissingOffsets, size_in_bytes: int) -> None:
        """Add a finding for offsets missing after a segment's batches; `size_in_bytes` of the file follow them."""
        first, end = error.first_offset, error.end_offset
        self.missing_offsets += end - first
        self.add(
            Finding("error", "gap", error.path or "", error.reason, error.position, size_in_bytes or None, first, end)
        )

    def with_gaps_accepted(self) -> Report:
        """The same report, in which gaps between segments are notes: they are known, as in a recovered log.

        `missing_offsets` still counts them.
        """
        findings = [f if f.kind != "gap" else replace(f, level="note") for f in self.findings]
        counts = Counter[tuple[str, str]]()
        for (level, kind), count in self.counts.items():
            counts["note" if kind == "gap" else level, kind] += count
        return replace(self, findings=findings, counts=counts)

    def include(self, part: Report) -> None:
        """Add the report of a part, such as a segment, to this one."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.formats += part.formats
        self.counts += part.counts
        self.findings += part.findings[: MAX_FINDINGS - len(self.findings)]

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers, for JSON."""
        plain = {name: value for name, value in vars(self).items() if name not in ("formats", "findings", "counts")}
        return plain | {
            "ok": self.ok,
            "clean": self.clean,
            "formats": dict(sorted(self.formats.items())),
            "counts": {f"{level}/{kind}": count for (level, kind), count in sorted(self.counts.items())},
            "findings": [vars(finding) for finding in self.findings],
        }

    def _columns(self) -> Mapping[str, Any]:
        return fields_of(Finding)

    def _rows(self) -> Iterator[dict[str, Any]]:
        return map(vars, self.findings)

    def __repr__(self) -> str:
        """The summary and the first findings; `str` has all that are kept."""
        lines = str(self).split("\n")
        if len(self.findings) > _SHOWN_FINDINGS:
            hidden = sum(self.counts.values()) - _SHOWN_FINDINGS
            lines[1 + _SHOWN_FINDINGS : -1] = [f"and {hidden} more findings: see findings and counts"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = self.findings[:_SHOWN_FINDINGS]
        rows = ([f.level, f.kind, f.path, _number(f.position), _number(f.first_offset), f.text] for f in shown)
        lines = repr(self).split("\n")
        hidden = sum(self.counts.values()) - len(shown)
        caption = f"{lines[0]}: {lines[-1]}" + (
            f"; the first {len(shown)} findings of {hidden + len(shown)}" if hidden else ""
        )
        return html_table(caption, ["level", "kind", "file", "byte", "offset", "finding"], rows, ["byte", "offset"])

    def __str__(self) -> str:
        formats = ", ".join(f"{count} {name}" for name, count in sorted(self.formats.items()))
        lines = [
            f"{self.path}: {self.num_segments} segments, {self.size_in_bytes} bytes, {self.num_batches} batches"
            f" ({formats or 'none'}), {self.data_records} records, {self.damaged_bytes} bytes damaged"
            + (f", {self.missing_offsets} offsets missing" if self.missing_offsets else "")
        ]
        lines += map(str, self.findings)
        hidden = sum(self.counts.values()) - len(self.findings)
        if hidden:
            lines.append(f"and {hidden} more findings")
        lines.append("intact" if self.clean else "readable, with warnings" if self.ok else "damaged")
        return "\n".join(lines)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value}"
