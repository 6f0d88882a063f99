"""The report's page: plots and tables from a survey, put into the template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

import kafkacodec
from kafkacodec.cli.console import visible
from kafkacodec.cli.inputs import place
from kafkacodec.cli.output import counted, duration, interval, size, timestamp
from kafkacodec.cli.report import plots
from kafkacodec.cli.report.plots import Bar
from kafkacodec.log.damage_map import SegmentDamage, damage_map
from kafkacodec.log.histograms import TimeHistogram
from kafkacodec.log.partition_statistics import PartitionStatistics, merge_statistics, per_topic
from kafkacodec.log.report import Report
from kafkacodec.log.survey import Survey

__all__ = ["render"]

# What is shown at most; the rest is summed up or counted.
_BARS = 12
_TOPIC_ROWS = 200
_PARTITION_ROWS = 500
_DAMAGE_ROWS = 25
_FINDING_ROWS = 200
_LAG_ROWS = 200
_BUCKETS = 120

_FIRST_TIME, _LAST_TIME = 0, 253_370_764_800_000  # 1970 to 9999, the years that a time axis has


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


@dataclass(frozen=True)
class Plot:
    """A plot with its heading, and remarks about what it does not show."""

    title: str
    svg: str
    remarks: Sequence[str] = ()


def render(survey: Survey, paths: Iterable[str], made_at: datetime | None = None) -> str:
    """The page.

    Args:
        survey: what it shows.
        paths: the paths that were given, for the heading.
        made_at: when; by default now.
    """
    total = merge_statistics(survey.partitions)
    topics = sorted(per_topic(survey.partitions), key=lambda topic: (-topic.size_in_bytes, topic.topic or ""))
    damaged = damage_map(survey.reports)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), autoescape=True, undefined=jinja2.StrictUndefined, finalize=_finalize
    )
    return environment.get_template("page.jinja").render(
        style=Markup(_template("page.css")),
        paths=list(paths),
        made_at=f"{made_at or datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
        version=kafkacodec.__version__,
        verified=survey.verified,
        state=_state(survey, total),
        tiles=_tiles(survey, total, topics),
        unreadable=survey.unreadable[:_FINDING_ROWS],
        more_unreadable=max(0, len(survey.unreadable) - _FINDING_ROWS),
        plots=[plot for plot in _plots(survey, total, topics) if plot is not None],
        damage=_damage(damaged),
        lag=_lag(survey),
        lags=_lag_table(survey),
        damaged=_damage_table(damaged, survey.reports),
        findings=_findings(survey.reports),
        topics=_topic_table(topics, survey),
        partitions=_partition_table(survey),
    )


def _template(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finalize(value: Any) -> Any:
    """Text of the log on one line, without characters that change how others are shown; escaped afterwards."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# --- the summary ------------------------------------------------------------------------------------------------------


def _state(survey: Survey, total: PartitionStatistics) -> tuple[str, str]:
    """A word for the page's class, and a sentence."""
    if not survey.partitions and not survey.unreadable:
        return "empty", "There are no partitions here."
    unread = f" {counted(len(survey.unreadable), 'file or directory', 'files or directories')} could not be read."
    unread = unread if survey.unreadable else ""
    reports = survey.reports
    if unread or total.damaged or not all(report.ok for report in reports):
        lost = sum(report.damaged_bytes for report in reports) if survey.verified else total.damaged_bytes
        missing = sum(report.missing_offsets for report in reports) if survey.verified else total.missing_offsets
        what = [counted(missing, "offset") + " missing"] if missing else []
        what = [size(lost) + " damaged", *what] if lost else what
        return "bad", ("Damaged: " + ", ".join(what) + "." if what else "Damaged." if not unread else "") + unread
    if not survey.verified:
        return "unknown", "Only headers of batches were read: damage inside batches is not found."
    if not all(report.clean for report in reports):
        return "warnings", "All records can be read. There are warnings about other files."
    return "intact", "All records were read and are intact."


def _tiles(
    survey: Survey, total: PartitionStatistics, topics: Sequence[PartitionStatistics]
) -> list[tuple[str, str, int | None]]:
    """Title, text and value of the numbers on top."""
    records = _records(total, survey.reports)
    return [
        ("topics", f"{len(topics):,}", len(topics)),
        ("partitions", f"{total.num_partitions:,}", total.num_partitions),
        ("segments", f"{total.num_segments:,}", total.num_segments),
        ("size", size(total.size_in_bytes), total.size_in_bytes),
        ("batches", f"{total.num_batches:,}", total.num_batches),
        ("records", "unknown" if records is None else f"{records:,}", records),
        ("first record (UTC)", _minute(total.first_timestamp), total.first_timestamp),
        ("last record (UTC)", _minute(total.last_timestamp), total.last_timestamp),
    ]


def _records(statistics: PartitionStatistics, reports: Sequence[Report]) -> int | None:
    """From the headers; from reading the records where headers do not have their number."""
    if statistics.num_records is None and reports:
        return sum(report.num_records for report in reports)
    return statistics.num_records


def _minute(milliseconds: int | None) -> str:
    return timestamp(milliseconds)[:16]


# --- plots ------------------------------------------------------------------------------------------------------------


def _plots(survey: Survey, total: PartitionStatistics, topics: Sequence[PartitionStatistics]) -> list[Plot | None]:
    return [
        _sizes(topics),
        *_times(survey),
        _batch_sizes(total),
        _codecs(total),
        _trial(survey),
    ]


def _sizes(topics: Sequence[PartitionStatistics]) -> Plot | None:
    shown = topics[:_BARS] if len(topics) > _BARS + 1 else topics
    rows = [Bar(_name(topic), topic.size_in_bytes, size(topic.size_in_bytes)) for topic in shown]
    rest = sum(topic.size_in_bytes for topic in topics[len(shown) :])
    if len(shown) < len(topics):
        rows.append(Bar(f"{len(topics) - len(shown):,} other topics", rest, size(rest), is_rest=True))
    title = "Size by topic"
    return Plot(title, plots.bars(rows, title=title, unit="bytes of segments", of_bytes=True)) if rows else None


def _name(statistics: PartitionStatistics) -> str:
    return place(statistics.topic, None, statistics.path).removesuffix("-None")


def _times(survey: Survey) -> list[Plot | None]:
    every = TimeHistogram()
    for histogram in survey.times.values():
        every.merge(histogram)
    plausible, implausible = _plausible(every)
    shown, outside = plausible.without_outliers()
    shown = shown.between(_BUCKETS)
    remarks = []
    if outside + implausible:
        remarks.append(f"{counted(outside + implausible, 'record')} before or after these times.")
    if every.without_time:
        remarks.append(f"{counted(every.without_time, 'record')} without a timestamp.")
    if not len(shown.starts):
        return [Plot("Records over time", "", remarks)] if remarks else []
    starts, records, _ = shown.filled()
    names = [name for name, histogram in survey.times.items() if histogram.size_in_bytes.sum()]
    others = "other topics" if len(names) > 1 else "unknown topic"
    series = [
        (others if name is None else name, _cumulative(survey.times[name], starts, shown.width)) for name in names
    ]
    title = "Size over time"
    sized = plots.stacked_over_time(starts, shown.width, series, title=title, unit="bytes of batches")
    each = f"records in {interval(shown.width)}"
    return [
        Plot(title, sized, ["The sum of what is still in the log, by the time of its records.", *remarks]),
        Plot(
            "Records over time",
            plots.over_time(starts, shown.width, records, title="Records over time", unit=each),
            remarks,
        ),
    ]


def _plausible(times: TimeHistogram) -> tuple[TimeHistogram, int]:
    """The part of a histogram in years that can be plotted, and the number of records outside of it."""
    inside = (times.starts >= _FIRST_TIME) & (times.starts < _LAST_TIME - times.width)
    part = TimeHistogram(times.width, times.starts[inside], times.records[inside], times.size_in_bytes[inside])
    return part, int(times.records[~inside].sum())


def _cumulative(times: TimeHistogram, starts: Any, width: int) -> Any:
    """The bytes up to the end of each bucket."""
    ends = np.searchsorted(times.starts, starts + width)
    first = np.searchsorted(times.starts, starts[0])
    sums = np.concatenate([[0], np.cumsum(times.size_in_bytes)])
    return sums[ends] - sums[first]


def _batch_sizes(total: PartitionStatistics) -> Plot | None:
    used = [power for power, count in enumerate(total.batch_sizes) if count]
    if not used:
        return None
    buckets = [(1 << power, 2 << power, total.batch_sizes[power]) for power in range(used[0], used[-1] + 1)]
    title = "Batch sizes"
    remark = f"Smallest {size(total.smallest_batch or 0)}, mean {size(total.batch_bytes / total.num_batches)}, "
    remark += f"largest {size(total.largest_batch or 0)}."
    return Plot(title, plots.columns_by_size(buckets, title=title, unit="batches"), [remark])


def _codecs(total: PartitionStatistics) -> Plot | None:
    counts = sorted(total.codec_bytes.items(), key=lambda codec: (-codec[1], codec[0]))
    rows = [Bar(name, count, f"{size(count)}, {count * 100 / total.batch_bytes:.0f} %") for name, count in counts]
    title = "Compression: bytes by codec"
    return Plot(title, plots.bars(rows, title=title, unit="bytes of batches", of_bytes=True)) if rows else None


def _trial(survey: Survey) -> Plot | None:
    trial = survey.trial
    if trial is None or not trial.sample_bytes:
        return None
    rows = [Bar("as stored", trial.log_bytes, size(trial.log_bytes))]
    for result in trial.results:
        name = result.codec if result.level is None else f"{result.codec} {result.level}"
        change = (result.estimated_bytes / trial.log_bytes - 1) * 100
        margin = result.margin * result.estimated_bytes
        rows.append(Bar(name, result.estimated_bytes, f"{size(result.estimated_bytes)}, {change:+.0f} %", margin))
    of = "all batches" if trial.complete else f"{size(trial.sample_bytes)} of {size(trial.log_bytes)}"
    title = "Compression: size with other codecs"
    places = "" if trial.complete else f" from {counted(trial.num_stretches, 'place')}; lines show the 95 % interval"
    remark = f"Estimated by compressing {of}{places}. Default levels of Kafka's producer, and others of zstd."
    return Plot(title, plots.bars(rows, title=title, unit="bytes of segments", of_bytes=True), [remark])


# --- damage -----------------------------------------------------------------------------------------------------------


def _damage(damaged: Sequence[SegmentDamage]) -> Plot | None:
    if not damaged:
        return None
    rows = [(_file(segment.path), segment.size_in_bytes, segment.ranges) for segment in damaged[:_DAMAGE_ROWS]]
    title = "Damage map"
    hidden = len(damaged) - len(rows)
    remarks = ["Red: bytes that are not intact batches; at least a line wide. A segment without red lacks offsets."]
    remarks += [f"{counted(hidden, 'more damaged segment')} not shown."] if hidden else []
    return Plot(title, plots.damage(rows, title=title), remarks)


def _file(path: str) -> str:
    """The last two parts of a path: ``orders-0/00000000000000000000.log``."""
    return "/".join(path.replace("\\", "/").rstrip("/").split("/")[-2:])


def _damage_table(damaged: Sequence[SegmentDamage], reports: Sequence[Report]) -> Table | None:
    if not damaged:
        return None
    rows = [
        [
            Cell(_file(segment.path)),
            _bytes(segment.size_in_bytes),
            _bytes(segment.damaged_bytes, is_bad=bool(segment.damaged_bytes)),
            Cell(f"{len(segment.ranges):,}", len(segment.ranges)),
            Cell(f"{segment.missing_offsets:,}", segment.missing_offsets, bool(segment.missing_offsets)),
            Cell(_few([_offsets(first, end) for first, end in segment.missing if end > first])),
            Cell(_reasons(segment.reasons)),
        ]
        for segment in damaged[:_DAMAGE_ROWS]
    ]
    listed = sum(len(segment.reasons) for segment in damaged[:_DAMAGE_ROWS])
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


def _findings(reports: Sequence[Report]) -> Table | None:
    """Warnings and notes; errors are in the damage table."""
    found = [finding for report in reports for finding in report.findings if finding.level != "error"]
    found.sort(key=lambda finding: finding.level != "warning")
    if not found:
        return None
    rows = [[Cell(f.level), Cell(_file(f.path)), Cell(f.kind), Cell(f.text)] for f in found[:_FINDING_ROWS]]
    every = sum(count for report in reports for (level, _), count in report.counts.items() if level != "error")
    rest = f"{counted(every - len(rows), 'more')} not listed." if every > len(rows) else ""
    return Table(["level", "file", "kind", "what"], rows, rest)


# --- consumer groups --------------------------------------------------------------------------------------------------


def _lag(survey: Survey) -> Plot | None:
    """The lag of each group, summed up over its partitions."""
    groups: dict[str, int] = {}
    for line in survey.lags:
        groups[line.group] = groups.get(line.group, 0) + (line.lag or 0)
    if not groups:
        return None
    behind = sorted(((name, lag) for name, lag in groups.items() if lag), key=lambda group: (-group[1], group[0]))
    shown = behind[:_BARS] if len(behind) > _BARS + 1 else behind
    rows = [Bar(name, lag, f"{lag:,}") for name, lag in shown]
    rest = sum(lag for _, lag in behind[len(shown) :])
    if len(shown) < len(behind):
        rows.append(Bar(f"{len(behind) - len(shown):,} other groups", rest, f"{rest:,}", is_rest=True))
    title = "Lag of consumer groups"
    known = {line.group for line in survey.lags if line.lag is not None}
    remarks = [f"{counted(len(groups), 'group')}, {len(known) - len(behind):,} of them without lag."]
    unknown = sum(line.lag is None for line in survey.lags)
    if unknown:
        remarks.append(f"Unknown for {counted(unknown, 'partition')}: the log is not here, or nothing was committed.")
    if survey.lag_problems:
        remarks.append(f"{counted(survey.lag_problems, 'batch or record', 'batches or records')} could not be read.")
    return Plot(title, plots.bars(rows, title=title, unit="offsets") if rows else "", remarks)


def _lag_table(survey: Survey) -> Table | None:
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


# --- topics and partitions --------------------------------------------------------------------------------------------

_COLUMNS: Sequence[tuple[str, Callable[[PartitionStatistics, int | None], Cell]]] = (
    ("size", lambda s, _: _bytes(s.size_in_bytes)),
    ("records", lambda s, records: _count(records)),
    ("batches", lambda s, _: _count(s.num_batches)),
    ("bytes/ record", lambda s, records: _ratio(s.batch_bytes, records)),
    ("first (UTC)", lambda s, _: Cell(_minute(s.first_timestamp), s.first_timestamp)),
    ("last (UTC)", lambda s, _: Cell(_minute(s.last_timestamp), s.last_timestamp)),
    ("formats", lambda s, _: Cell(", ".join(sorted(s.formats)))),
    ("producers", lambda s, _: Cell(f"{len(s.producers):,}{'+' if s.more_producers else ''}", len(s.producers))),
)


def _topic_table(topics: Sequence[PartitionStatistics], survey: Survey) -> Table:
    reports: dict[str, list[Report]] = {}
    for statistics, report in zip(survey.partitions, survey.reports, strict=False):
        reports.setdefault(_name(statistics), []).append(report)
    rows = []
    for topic in topics[:_TOPIC_ROWS]:
        found = reports.get(_name(topic), [])
        records = _records(topic, found)
        columns = [cell(topic, records) for _, cell in _COLUMNS]
        rows.append([Cell(_name(topic)), _count(topic.num_partitions), *columns, *_health(topic, found)])
    titles = ["topic", "partitions", *(title for title, _ in _COLUMNS), "damaged", "offsets missing"]
    return Table(titles, rows, _rest(topics[_TOPIC_ROWS:], "topic"))


def _partition_table(survey: Survey) -> Table:
    order = sorted(range(len(survey.partitions)), key=lambda i: -survey.partitions[i].size_in_bytes)
    # The largest ones, but in the order of the log directory.
    shown = sorted(order[:_PARTITION_ROWS])
    rows = []
    for i in shown:
        statistics = survey.partitions[i]
        found = survey.reports[i : i + 1]
        records = _records(statistics, found)
        first = "" if statistics.first_offset is None else f"{statistics.first_offset:,}"
        offsets = "-" if statistics.last_offset is None else f"{first}..{statistics.last_offset:,}"
        columns = [cell(statistics, records) for _, cell in _COLUMNS]
        name = place(statistics.topic, statistics.partition, statistics.path)
        state = "" if statistics.state == "current" else f" ({statistics.state})"
        segments = _count(statistics.num_segments)
        rows.append([Cell(name + state), segments, Cell(offsets), *columns, *_health(statistics, found)])
    titles = ["partition", "segments", "offsets", *(title for title, _ in _COLUMNS), "damaged", "offsets missing"]
    return Table(titles, rows, _rest([survey.partitions[i] for i in order[_PARTITION_ROWS:]], "partition"))


def _health(statistics: PartitionStatistics, reports: Sequence[Report]) -> list[Cell]:
    """Damaged bytes and missing offsets: from reading everything if that was done, else from headers."""
    damaged = sum(r.damaged_bytes for r in reports) if reports else statistics.damaged_bytes
    missing = sum(r.missing_offsets for r in reports) if reports else statistics.missing_offsets
    return [_bytes(damaged, is_bad=bool(damaged)), Cell(f"{missing:,}", missing, bool(missing))]


def _rest(others: Sequence[PartitionStatistics], what: str) -> str:
    if not others:
        return ""
    return (
        f"{counted(len(others), f'smaller {what}')} not listed: {size(sum(o.size_in_bytes for o in others))} together."
    )


def _bytes(count: int, *, is_bad: bool = False) -> Cell:
    return Cell(size(count), count, is_bad)


def _count(count: int | None) -> Cell:
    return Cell("-" if count is None else f"{count:,}", count)


def _ratio(count: int, records: int | None) -> Cell:
    return Cell(f"{count / records:,.0f}", round(count / records)) if records else Cell("-")
