"""The tables of the report's page, from a survey."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kafkacodec.cli.options.inputs import place
from kafkacodec.cli.output import MINUTES, counted, duration, size, timestamp
from kafkacodec.datatypes import dataclass
from kafkacodec.log.analysis.damage_map import SegmentDamage
from kafkacodec.log.analysis.partition_statistics import PartitionStatistics
from kafkacodec.log.analysis.survey import Survey
from kafkacodec.log.checking.report import Report

__all__ = [
    "DAMAGE_ROWS",
    "Cell",
    "Table",
    "damage_table",
    "file_name",
    "findings_table",
    "lag_table",
    "minute",
    "num_records",
    "partition_table",
    "topic_name",
    "topic_table",
]

# Rows that are shown at most; the rest is summed up or counted.
_TOPIC_ROWS = 200
_PARTITION_ROWS = 500
DAMAGE_ROWS = 25
_FINDING_ROWS = 200
_LAG_ROWS = 200


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and its value where it is a number."""

    text: str
    value: int | None = None
    is_bad: bool = False


@dataclass(frozen=True)
class Table:
    """A table; `rest` is the line for what it leaves out."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    rest: str = ""

    def is_number(self, column: int) -> bool:
        """Whether a column has numbers, which are aligned at the right."""
        return any(row[column].value is not None for row in self.rows)


_COLUMNS: Sequence[tuple[str, Callable[[PartitionStatistics, int | None], Cell]]] = (
    ("size", lambda s, _: _bytes(s.size_in_bytes)),
    ("records", lambda s, records: _count(records)),
    ("batches", lambda s, _: _count(s.num_batches)),
    ("bytes/ record", lambda s, records: _ratio(s.batch_bytes, records)),
    ("first (UTC)", lambda s, _: Cell(minute(s.first_timestamp), s.first_timestamp)),
    ("last (UTC)", lambda s, _: Cell(minute(s.last_timestamp), s.last_timestamp)),
    ("formats", lambda s, _: Cell(", ".join(sorted(s.formats)))),
    ("producers", lambda s, _: Cell(f"{len(s.producers):,}{'+' if s.more_producers else ''}", len(s.producers))),
)


def topic_table(topics: Sequence[PartitionStatistics], survey: Survey) -> Table:
    """A row for each topic, the largest first."""
    reports: dict[str, list[Report]] = {}
    for statistics, report in zip(survey.partitions, survey.reports, strict=False):
        reports.setdefault(topic_name(statistics), []).append(report)
    rows = []
    topics, empty = _apart(topics, [reports.get(topic_name(topic), []) for topic in topics])
    for topic in topics[:_TOPIC_ROWS]:
        found = reports.get(topic_name(topic), [])
        records = num_records(topic, found)
        columns = [cell(topic, records) for _, cell in _COLUMNS]
        rows.append([Cell(topic_name(topic)), _count(topic.num_partitions), *columns, *_health(topic, found)])
    titles = ["topic", "partitions", *(title for title, _ in _COLUMNS), "damaged", "offsets missing"]
    return Table(titles, rows, _rest(topics[_TOPIC_ROWS:], "topic", empty))


def partition_table(survey: Survey) -> Table:
    """A row for each of the largest partitions, in the order of the log directories."""
    numbers = {id(statistics): i for i, statistics in enumerate(survey.partitions)}
    of_each = [survey.reports[i : i + 1] for i in range(len(survey.partitions))]
    filled, empty = _apart(survey.partitions, of_each)
    order = [numbers[id(statistics)] for statistics in sorted(filled, key=lambda s: -s.size_in_bytes)]
    rows = []
    for i in sorted(order[:_PARTITION_ROWS]):
        statistics = survey.partitions[i]
        found = of_each[i]
        records = num_records(statistics, found)
        first = "" if statistics.first_offset is None else f"{statistics.first_offset:,}"
        offsets = "-" if statistics.last_offset is None else f"{first}..{statistics.last_offset:,}"
        columns = [cell(statistics, records) for _, cell in _COLUMNS]
        name = place(statistics.topic, statistics.partition, statistics.path)
        state = "" if statistics.state == "current" else f" ({statistics.state})"
        segments = _count(statistics.num_segments)
        rows.append([Cell(name + state), segments, Cell(offsets), *columns, *_health(statistics, found)])
    titles = ["partition", "segments", "offsets", *(title for title, _ in _COLUMNS), "damaged", "offsets missing"]
    return Table(titles, rows, _rest([survey.partitions[i] for i in order[_PARTITION_ROWS:]], "partition", empty))


def _health(statistics: PartitionStatistics, reports: Sequence[Report]) -> list[Cell]:
    """Damaged bytes and missing offsets: from reading everything if that was done, else from headers."""
    damaged = sum(r.damaged_bytes for r in reports) if reports else statistics.damaged_bytes
    missing = sum(r.missing_offsets for r in reports) if reports else statistics.missing_offsets
    return [_bytes(damaged, is_bad=bool(damaged)), Cell(f"{missing:,}", missing, bool(missing))]


def _apart(
    every: Sequence[PartitionStatistics], reports: Sequence[Sequence[Report]]
) -> tuple[Sequence[PartitionStatistics], int]:
    """Those with something to show, and how many others there are: without a byte, and nothing wrong with them."""
    filled = [
        statistics
        for statistics, found in zip(every, reports, strict=True)
        if statistics.size_in_bytes or statistics.damaged or not all(report.clean for report in found)
    ]
    return (filled, len(every) - len(filled)) if filled else (every, 0)


def _rest(others: Sequence[PartitionStatistics], what: str, empty: int) -> str:
    parts = []
    if others:
        together = size(sum(other.size_in_bytes for other in others))
        parts.append(f"{counted(len(others), f'smaller {what}')} not listed: {together} together.")
    if empty:
        parts.append(f"{counted(empty, f'empty {what}')} not listed.")
    return " ".join(parts)


def _bytes(count: int, *, is_bad: bool = False) -> Cell:
    return Cell(size(count), count, is_bad)


def _count(count: int | None) -> Cell:
    return Cell("-" if count is None else f"{count:,}", count)


def _ratio(count: int, records: int | None) -> Cell:
    return Cell(f"{count / records:,.0f}", round(count / records)) if records else Cell("-")


def num_records(statistics: PartitionStatistics, reports: Sequence[Report]) -> int | None:
    """Those that can be read, if all were; else from headers, which may not have their number. Without markers."""
    if reports:
        return max(0, sum(report.num_records for report in reports) - statistics.control_records)
    return statistics.data_records


def minute(milliseconds: int | None) -> str:
    """A time without its seconds."""
    return timestamp(milliseconds, MINUTES)


def topic_name(statistics: PartitionStatistics) -> str:
    """The topic; the name of the directory where that is unknown."""
    return statistics.topic if statistics.topic is not None else os.path.basename(os.path.abspath(statistics.path))


def damage_table(damaged: Sequence[SegmentDamage], reports: Sequence[Report]) -> Table | None:
    """A row for each of the segments with most damage; None without damage."""
    if not damaged:
        return None
    rows = [
        [
            Cell(file_name(segment.path)),
            _bytes(segment.size_in_bytes),
            _bytes(segment.damaged_bytes, is_bad=bool(segment.damaged_bytes)),
            Cell(f"{len(segment.ranges):,}", len(segment.ranges)),
            Cell(f"{segment.missing_offsets:,}", segment.missing_offsets, bool(segment.missing_offsets)),
            Cell(_few([_offsets(first, end) for first, end in segment.missing if end > first])),
            Cell(_reasons(segment.reasons)),
        ]
        for segment in damaged[:DAMAGE_ROWS]
    ]
    listed = sum(len(segment.reasons) for segment in damaged[:DAMAGE_ROWS])
    every = sum(count for report in reports for (level, _), count in report.counts.items() if level == "error")
    rest = f"{counted(every - listed, 'more error')} not listed." if every > listed else ""
    titles = ["segment", "size", "damaged", "places", "offsets missing", "which", "why"]
    return Table(titles, rows, rest)


def _offsets(first: int, end: int) -> str:
    return f"{first:,}" if end == first + 1 else f"{first:,} to {end - 1:,}"


def _reasons(texts: Iterable[str]) -> str:
    """The kinds of faults and how often each occurs, without the values that differ."""
    kinds = Counter(text.partition(": computed ")[0] for text in texts)
    return _few([kind if count == 1 else f"{kind} ({count:,} times)" for kind, count in kinds.most_common()])


def _few(texts: Sequence[str], most: int = 3) -> str:
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


def findings_table(survey: Survey) -> Table | None:
    """Warnings and notes; errors too if there is no damage table, since only headers were read. None without any."""
    if not survey.verified:
        return _problems_table(survey)
    reports = survey.reports
    found = [finding for report in reports for finding in report.findings if finding.level != "error"]
    found.sort(key=lambda finding: finding.level != "warning")
    if not found:
        return None
    rows = [[Cell(f.level), Cell(file_name(f.path)), Cell(f.kind), Cell(f.text)] for f in found[:_FINDING_ROWS]]
    every = sum(count for report in reports for (level, _), count in report.counts.items() if level != "error")
    rest = f"{counted(every - len(rows), 'more')} not listed." if every > len(rows) else ""
    return Table(["level", "file", "kind", "what"], rows, rest)


def _problems_table(survey: Survey) -> Table | None:
    """The faults that headers show."""
    found = [problem for partition in survey.partitions for problem in partition.problems]
    if not found:
        return None
    rows = [
        [Cell("error", is_bad=True), Cell(file_name(problem.path or "")), Cell(problem.reason)]
        for problem in found[:_FINDING_ROWS]
    ]
    rest = f"{len(found) - len(rows):,} more not listed." if len(found) > len(rows) else ""
    return Table(["level", "file", "what"], rows, rest)


def file_name(path: str) -> str:
    """The last two parts of a path: ``orders-0/00000000000000000000.log``."""
    return "/".join(path.replace("\\", "/").rstrip("/").split("/")[-2:])


def lag_table(survey: Survey) -> Table | None:
    """A row for each group and partition, the largest lag first; None without groups."""
    if not survey.lags:
        return None
    order = sorted(survey.lags, key=lambda line: -1 if line.lag is None else line.lag, reverse=True)
    rows = [
        [
            Cell(line.group),
            Cell(f"{line.topic}-{line.partition}"),
            _count(line.offset),
            _count(line.end_offset),
            _count(line.lag),
            Cell(duration(line.lag_ms), line.lag_ms),
            Cell(line.client_id or "-"),
            Cell(", ".join(line.notes)),
        ]
        for line in order[:_LAG_ROWS]
    ]
    hidden = order[_LAG_ROWS:]
    total = sum(line.lag or 0 for line in hidden)
    rest = f"{counted(len(hidden), 'more line')} with a smaller lag not listed: {total:,} together." if hidden else ""
    return Table(["group", "partition", "committed", "end", "lag", "behind", "client", "notes"], rows, rest)
