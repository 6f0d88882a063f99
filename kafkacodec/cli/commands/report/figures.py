"""The plots of the report's page, from a survey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafkacodec.cli.commands.report import plots
from kafkacodec.cli.commands.report.plots import Bar, Series
from kafkacodec.cli.commands.report.tables import DAMAGE_ROWS, file_name, topic_name
from kafkacodec.cli.output import counted, interval, size
from kafkacodec.datatypes import dataclass
from kafkacodec.log.analysis.damage_map import SegmentDamage
from kafkacodec.log.analysis.histograms import TimeHistogram
from kafkacodec.log.analysis.partition_statistics import PartitionStatistics
from kafkacodec.log.analysis.survey import Survey

__all__ = ["Plot", "damage_plot", "lag_plot", "plots_of"]

_BARS = 12  # the rest is summed up
_LARGEST_REST = 4  # times the largest bar
_BUCKETS = 120

_FIRST_TIME, _LAST_TIME = 0, 253_370_764_800_000  # 1970 to 9999, the years that a time axis has


@dataclass(frozen=True)
class Plot:
    """A plot with its heading, and remarks about what it does not show."""

    title: str
    svg: str
    remarks: Sequence[str] = ()


def plots_of(survey: Survey, total: PartitionStatistics, topics: Sequence[PartitionStatistics]) -> list[Plot | None]:
    """All plots but those of damage and lag, which have a table; None for those without data."""
    return [
        _sizes(topics),
        *_times(survey),
        _batch_sizes(total),
        _codecs(total),
        _trial(survey),
    ]


def _sizes(topics: Sequence[PartitionStatistics]) -> Plot | None:
    shown = topics[:_BARS] if len(topics) > _BARS + 1 else topics
    rows = [Bar(topic_name(topic), topic.size_in_bytes, size(topic.size_in_bytes)) for topic in shown]
    rest = sum(topic.size_in_bytes for topic in topics[len(shown) :])
    remarks = _add_rest(rows, rest, size(rest), counted(len(topics) - len(shown), "other topic"))
    title = "Size by topic"
    return (
        Plot(title, plots.bars(rows, title=title, unit="bytes of segments", of_bytes=True), remarks) if rows else None
    )


def _add_rest(rows: list[Bar], rest: int, text: str, label: str) -> list[str]:
    """Add a bar for those that have none of their own, or a remark if it would make all others invisible."""
    if not rest:
        return []
    if rest > _LARGEST_REST * max(row.value for row in rows):
        return [f"{label}: {text} together."]
    rows.append(Bar(label, rest, text, is_rest=True))
    return []


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
        Series(others if name is None else name, _cumulative(survey.times[name], starts, shown.width), name is None)
        for name in names
    ]
    stacked, counts = "Size over time", "Records over time"
    sized = plots.stacked_over_time(starts, shown.width, series, title=stacked, unit="bytes of batches")
    unit = f"records in {interval(shown.width)}"
    return [
        Plot(stacked, sized, ["The sum of what is still in the log, by the time of its records.", *remarks]),
        Plot(counts, plots.over_time(starts, shown.width, records, title=counts, unit=unit), remarks),
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


def damage_plot(damaged: Sequence[SegmentDamage]) -> Plot | None:
    """Which bytes of which segments are damaged; None without damage."""
    if not damaged:
        return None
    rows = [(file_name(segment.path), segment.size_in_bytes, segment.ranges) for segment in damaged[:DAMAGE_ROWS]]
    title = "Damage map"
    hidden = len(damaged) - len(rows)
    remarks = ["Red: bytes that are not intact batches; at least a line wide. A segment without red lacks offsets."]
    remarks += [f"{counted(hidden, 'more damaged segment')} not shown."] if hidden else []
    return Plot(title, plots.damage(rows, title=title), remarks)


def lag_plot(survey: Survey) -> Plot | None:
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
    remarks = _add_rest(rows, rest, f"{rest:,}", counted(len(behind) - len(shown), "other group"))
    title = "Lag of consumer groups"
    known = {line.group for line in survey.lags if line.lag is not None}
    remarks += [f"{counted(len(groups), 'group')}, {len(known) - len(behind):,} of them without lag."]
    unknown = sum(line.lag is None for line in survey.lags)
    if unknown:
        remarks.append(f"Unknown for {counted(unknown, 'partition')}: the log is not here, or nothing was committed.")
    if survey.lag_problems:
        remarks.append(f"{counted(survey.lag_problems, 'batch or record', 'batches or records')} could not be read.")
    return Plot(title, plots.bars(rows, title=title, unit="offsets") if rows else "", remarks)
