"""The contents of a report: statistics of partitions, changes over time, damage, other codecs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import DecodeError
from kafkacodec.internal_records import CONSUMER_OFFSETS
from kafkacodec.log.analysis.batch_rows import batches_of, messages_of
from kafkacodec.log.analysis.histograms import TimeHistogram
from kafkacodec.log.analysis.partition_statistics import PartitionStatistics, partition_statistics
from kafkacodec.log.analysis.recompression import CodecTrial, codec_trial
from kafkacodec.log.checking.report import Report
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.opening import open_file
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.planning import end_of
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.log.segments.walk import Damage
from kafkacodec.log.state.group_lag import PartitionLag, lag

if TYPE_CHECKING:
    from kafkacodec.log.checking.checked import Advance

__all__ = ["Survey", "survey"]

LARGEST_TOPICS: Final = 6
"""The number of topics with a time histogram of their own."""

SAMPLE_BYTES: Final = 4 << 20

MOST_FINDINGS: Final = 20_000
"""The number of findings after which each further partition keeps its first few."""

_FEW = 10


@dataclass
class Survey:
    """The results for some partitions.

    Attributes:
        partitions (list[PartitionStatistics]): those that could be read, in the order given.
        reports (list[Report]): the report of `Partition.verify` for each; empty without verification.
        unreadable (list[tuple[str, str]]): path and reason of unreadable partitions.
        times (dict[str | None, TimeHistogram]): records and stored bytes by time, of the largest topics by name, the
            largest first, and of all others together under None. Batches count at their largest timestamp.
        trial (CodecTrial | None): the sizes with other codecs; None if records were not read.
        lags (list[PartitionLag]): of all consumer groups, if the log directories have them.
        lag_problems (int): unreadable batches and records of groups.
    """

    partitions: list[PartitionStatistics] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    times: dict[str | None, TimeHistogram] = field(default_factory=dict)
    trial: CodecTrial | None = None
    lags: list[PartitionLag] = field(default_factory=list)
    lag_problems: int = 0

    @property
    def verified(self) -> bool:
        """Whether it has read and checked all records."""
        return len(self.reports) == len(self.partitions)


def survey(
    partitions: Iterable[Partition],
    *,
    log_dirs: Sequence[str] = (),
    verify: bool = True,
    threads: int | None = 1,
    advance: Advance = lambda count: None,
) -> Survey:
    """Survey partitions. Damage and unreadable files are part of the result, not errors.

    Args:
        partitions: the partitions.
        log_dirs: the directories to look for consumer groups and their logs in.
        verify: read and check all records, and try other codecs with a sample of 4 MiB. Without it, only the headers of
            batches are read, which finds less damage.
        threads: as in `Segment.verify`.
        advance: called with the number of bytes read since the last call; all in all the size of the segments.
    """
    found = Survey()
    readable: list[Partition] = []
    findings = 0
    for partition in partitions:
        done = _Done(advance)
        try:
            done.total = partition.size_in_bytes
            statistics = partition_statistics(partition)
            report = partition.verify(threads=threads, advance=done.advance) if verify else None
        except (OSError, DecodeError) as error:  # DecodeError: shortened while it was read
            found.unreadable.append((partition.path, reason_of(error)))
        else:
            found.partitions.append(statistics)
            if report is not None:
                del report.findings[max(_FEW, MOST_FINDINGS - findings) :]
                findings += len(report.findings)
                found.reports.append(report)
            readable.append(partition)
        done.finish()
    _add_times(found, readable)
    _add_lags(found, log_dirs)
    if verify:
        found.trial = _trial(found, readable)
    return found


class _Done:
    """Bytes of a partition that were read so far; those that are not read count at its end."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._read, self.total = advance, 0, 0

    def advance(self, count: int) -> None:
        """Count bytes."""
        self._read += count
        self._advance(count)

    def finish(self) -> None:
        """Count the rest."""
        self._advance(max(0, self.total - self._read))


def _trial(found: Survey, partitions: list[Partition]) -> CodecTrial | None:
    try:
        return codec_trial(partitions, sample_bytes=SAMPLE_BYTES)
    except (OSError, DecodeError) as error:
        found.unreadable.append((getattr(error, "filename", None) or "", reason_of(error)))
        return None


def _add_lags(found: Survey, log_dirs: Sequence[str]) -> None:
    problems: list[DecodeError] = []
    try:
        found.lags = lag(log_dirs, problems=problems) if log_dirs else []
    except FileNotFoundError:  # no directory has consumer groups
        pass
    except (OSError, DecodeError) as error:
        found.unreadable.append((getattr(error, "filename", None) or CONSUMER_OFFSETS, reason_of(error)))
    found.lag_problems = len(problems)


def _add_times(found: Survey, partitions: list[Partition]) -> None:
    sizes: dict[str, int] = {}
    for statistics in found.partitions:
        if statistics.topic is not None:
            sizes[statistics.topic] = sizes.get(statistics.topic, 0) + statistics.batch_bytes
    largest = sorted(sizes, key=lambda topic: (-sizes[topic], topic))
    # One more topic takes no more room than "others" would.
    named = largest[: LARGEST_TOPICS if len(largest) > LARGEST_TOPICS + 1 else LARGEST_TOPICS + 1]
    found.times = {topic: TimeHistogram() for topic in [*named, None]}
    for partition in partitions:
        histogram = found.times.get(partition.topic, found.times[None])
        for segment in partition.segments:
            try:
                _add_segment(histogram, segment, end_of(partition, segment))
            except (OSError, DecodeError) as error:
                found.unreadable.append((segment.path, reason_of(error)))


def _add_segment(histogram: TimeHistogram, segment: Segment, until: int | None) -> None:
    """Add the batches of a segment before an offset; records by their own times where no header has their number."""
    old = not kind_of(segment.path).has_batches
    counted, every_count = TimeHistogram(), True
    with open_file(segment.path) as file:
        for part in messages_of(file, segment.base_offset or 0) if old else batches_of(file, segment.base_offset):
            if not isinstance(part, Damage):
                part = part.between(None, until)
                histogram.add(part.max_time, np.zeros(len(part), np.int64), part.size)
                counted.add(part.max_time, part.count, np.zeros(len(part), np.int64))
                every_count = every_count and bool(part.has_first.all())
    if not every_count:
        counted = TimeHistogram()
        for chunk in segment.read(columns=("timestamp",), include_control=True, end_offset=until, on_error="skip"):
            counted.add(chunk["timestamp"], np.ones(len(chunk), np.int64), np.zeros(len(chunk), np.int64))
    histogram.merge(counted)
