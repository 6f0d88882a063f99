"""Histograms of bounded size over data of unknown range: records and bytes by time, and by size."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import dataclass, field

__all__ = ["SizeHistogram", "TimeHistogram"]

Ints = npt.NDArray[np.int64]

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000

WIDTHS: Final = (1, 10, 100, _SECOND, 10 * _SECOND, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 5 * _DAY, 30 * _DAY)
"""Widths of time buckets in milliseconds. Each divides the next, so that buckets can be joined exactly."""

MAX_BUCKETS: Final = 1 << 16
"""The number of buckets that are not empty from which they are joined; wider ones than `WIDTHS` double."""

NO_TIME: Final = np.iinfo(np.int64).min
"""A missing time: numpy's "not a time" as an integer."""


_LAST: Final = np.iinfo(np.int64).max


def _wider(width: int) -> int:
    return next((larger for larger in WIDTHS if larger > width), width * 2)


@dataclass
class TimeHistogram:
    """Records and bytes by time. Memory is bounded: the buckets become wider if there are too many.

    Only buckets with records exist, so that a few wrong timestamps cost no resolution.

    Attributes:
        width (int): the width of a bucket, in milliseconds.
        starts (numpy.ndarray): the start of each bucket, in milliseconds since 1970, increasing; multiples of `width`.
        records, size_in_bytes (numpy.ndarray): the sums of each bucket.
        without_time (int): the number of records without a timestamp.
        bytes_without_time (int): their bytes.
    """

    width: int = 1
    starts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    records: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    size_in_bytes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    without_time: int = 0
    bytes_without_time: int = 0

    def add(self, times: npt.NDArray[Any], records: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> None:
        """Add rows.

        Args:
            times: of each row, ``datetime64[ms]`` or milliseconds since 1970; NaT, `NO_TIME` or -1 for none.
            records: the number of records of each row.
            sizes: the bytes of each row.
        """
        times = np.asarray(times).astype(np.int64)
        missing = (times == NO_TIME) | (times == -1)
        if missing.any():
            self.without_time += int(np.sum(records, where=missing))
            self.bytes_without_time += int(np.sum(sizes, where=missing))
            times, records, sizes = times[~missing], records[~missing], sizes[~missing]
        self._join(_floor(times, self.width), records, sizes)

    def merge(self, other: TimeHistogram) -> None:
        """Add another histogram to this one."""
        self.without_time += other.without_time
        self.bytes_without_time += other.bytes_without_time
        while self.width < other.width:
            self._widen(_wider(self.width))
        self._join(_floor(other.starts, self.width), other.records, other.size_in_bytes)

    def between(self, most: int) -> TimeHistogram:
        """The same with wider buckets: the narrowest with which the time from the first to the last takes at most
        `most` buckets, empty ones included.
        """
        found = TimeHistogram(
            self.width, self.starts, self.records, self.size_in_bytes, self.without_time, self.bytes_without_time
        )
        while len(found.starts) and int(found.starts[-1]) - int(found.starts[0]) >= found.width * most:
            found._widen(_wider(found.width))
        return found

    def without_outliers(self, share: float = 0.001) -> tuple[TimeHistogram, int]:
        """The part that is shown in a plot, and the number of records before and after it.

        A few wrong timestamps would otherwise be all that a plot shows. If the records without `share` of them at each
        end are in less than a tenth of the time, those are left out that are further away than these records extend.
        """
        total = int(self.records.sum())
        if len(self.starts) < 3 or not total:
            return self, 0
        before = np.cumsum(self.records)
        first = int(self.starts[np.searchsorted(before, total * share, side="right")])
        last = int(self.starts[np.searchsorted(before, total - total * share, side="left")])
        whole, most = int(self.starts[-1]) - int(self.starts[0]), last - first + self.width
        if most > whole // 10:
            return self, 0
        kept = slice(*np.searchsorted(self.starts, [max(first - most, int(NO_TIME)), min(last + most, _LAST)]))
        inside = TimeHistogram(self.width, self.starts[kept], self.records[kept], self.size_in_bytes[kept])
        return inside, total - int(inside.records.sum())

    def filled(self) -> tuple[Ints, Ints, Ints]:
        """Starts, records and bytes of all buckets from the first to the last, empty ones included.

        Call it on the result of `between`, which bounds their number.
        """
        if not len(self.starts):
            return self.starts, self.records, self.size_in_bytes
        unsigned = self.starts.view(np.uint64)  # their differences may need 64 bits without a sign
        places = ((unsigned - unsigned[0]) // np.uint64(self.width)).astype(np.int64)
        count = int(places[-1]) + 1
        records, sizes = np.zeros(count, np.int64), np.zeros(count, np.int64)
        records[places], sizes[places] = self.records, self.size_in_bytes
        return self.starts[0] + np.arange(count) * self.width, records, sizes

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists and numbers, for JSON."""
        return {
            "bucket_ms": self.width,
            "starts": self.starts.tolist(),
            "records": self.records.tolist(),
            "size_in_bytes": self.size_in_bytes.tolist(),
            "without_time": self.without_time,
            "bytes_without_time": self.bytes_without_time,
        }

    def _join(self, starts: npt.NDArray[Any], records: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> None:
        self.starts, place = np.unique(np.concatenate([self.starts, starts]), return_inverse=True)
        self.records = _sums(place, len(self.starts), self.records, records)
        self.size_in_bytes = _sums(place, len(self.starts), self.size_in_bytes, sizes)
        while len(self.starts) > MAX_BUCKETS:
            self._widen(_wider(self.width))

    def _widen(self, width: int) -> None:
        starts, records, sizes = self.starts, self.records, self.size_in_bytes
        self.width = width
        self.starts = self.records = self.size_in_bytes = np.zeros(0, np.int64)
        self._join(_floor(starts, width), records, sizes)


def _floor(times: npt.NDArray[Any], width: int) -> Ints:
    """The starts of the buckets; the first bucket of all begins at the smallest 64-bit integer."""
    floored: Ints = np.maximum(times, NO_TIME + width) // width * width
    return floored


def _sums(place: npt.NDArray[Any], count: int, *parts: npt.NDArray[Any]) -> Ints:
    """The sum of the values with each place."""
    found = np.zeros(count, np.int64)
    np.add.at(found, place.reshape(-1), np.concatenate(parts).astype(np.int64))
    return found


@dataclass
class SizeHistogram:
    """Counts by size in powers of two.

    Attributes:
        counts (numpy.ndarray): ``counts[0]`` is the number of empty ones, ``counts[i]`` of those with
            2^(i-1) <= size < 2^i.
        count, total (int): the number of all, and the sum of their sizes in bytes.
        smallest, largest (int | None): in bytes; None without any.
    """

    counts: Ints = field(default_factory=lambda: np.zeros(64, np.int64))
    count: int = 0
    total: int = 0
    smallest: int | None = None
    largest: int | None = None

    def add(self, sizes: npt.NDArray[Any]) -> None:
        """Add sizes in bytes, which are not negative."""
        if not len(sizes):
            return
        # frexp's exponent is the number of bits: exact below 2^53.
        self.counts += np.bincount(np.frexp(sizes.astype(np.float64))[1], minlength=64)[:64]
        self.count += len(sizes)
        self.total += int(sizes.sum(dtype=np.int64))
        least, most = int(sizes.min()), int(sizes.max())
        self.smallest = least if self.smallest is None else min(self.smallest, least)
        self.largest = most if self.largest is None else max(self.largest, most)

    def merge(self, other: SizeHistogram) -> None:
        """Add another histogram to this one."""
        self.counts += other.counts
        self.count += other.count
        self.total += other.total
        found = [size for size in (self.smallest, other.smallest) if size is not None]
        self.smallest = min(found, default=None)
        found = [size for size in (self.largest, other.largest) if size is not None]
        self.largest = max(found, default=None)

    def buckets(self) -> list[tuple[int, int, int]]:
        """(first size, size after the last, count) from the first bucket with a count to the last one."""
        used = np.flatnonzero(self.counts)
        if not len(used):
            return []
        places = range(int(used[0]), int(used[-1]) + 1)
        return [((1 << i) >> 1, 1 << i, int(self.counts[i])) for i in places]

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists and numbers, for JSON."""
        return {
            "count": self.count,
            "total": self.total,
            "smallest": self.smallest,
            "largest": self.largest,
            "buckets": [{"from": start, "below": end, "count": count} for start, end, count in self.buckets()],
        }
