"""Sums over the batches of a segment, a partition or a topic, from their headers alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from kafkacodec.datatypes import dataclass, field, fields
from kafkacodec.log.analysis.batch_rows import NO_TIME, BatchRows, Ints
from kafkacodec.records.compression import CODECS

__all__ = ["MAX_PRODUCERS", "OF_RECORDS", "BatchTotals", "added"]

MAX_PRODUCERS = 10_000
"""The number of producers that are counted exactly; 80 kB of memory."""

SIZES = 33
"""Batch sizes are counted by power of two, up to 2 GiB and larger."""

_NAMES = (*CODECS, "unknown")


@dataclass
class BatchTotals:
    """What the headers of batches add up to. In logs of Kafka 0.6 and 0.7, messages count as batches.

    Attributes:
        num_batches (int), batch_bytes (int): complete batches, and their size in bytes.
        num_records (int | None): records, including control records. None: not known from headers, since a compressed
            set of magic 0 or 1 is among the batches.
        control_records (int): those in control batches, such as transaction markers.
        first_offset (int | None): the first offset. None: no batch, or a compressed set of magic 0 or 1 is the first.
        last_offset (int | None): the last offset; None without a batch. Unless the records were read, both are those of
            batches, from whose ends the log cleaner may have removed records.
        first_timestamp (int | None): timestamp of the first record that is no control record, in ms since the epoch.
            None: there is none, or its batch's header does not have it: compressed sets of magic 1, magic 0, batches
            that the log cleaner marked.
        last_timestamp (int | None): the largest timestamp of such records; None if there is none.
        formats (Counter[str]): batches by magic and codec, such as ``v2/lz4``.
        codec_bytes (Counter[str]): bytes of batches by codec.
        batch_sizes (list[int]): batches by size: ``batch_sizes[n]`` have 2^n bytes or more and less than 2^(n+1).
        smallest_batch, largest_batch (int | None): sizes in bytes.
        transactional_batches, control_batches (int): batches of these kinds; markers of transactions are both.
        producers (set[int]): ids of idempotent and transactional producers, at most `MAX_PRODUCERS`.
        more_producers (bool): there are more.
        crc_failures (int | None): batches whose checksum is wrong; None if checksums were not verified.
        gaps (int): places where offsets are missing between two batches.
        invalid_headers (int): batches whose header cannot be right: offsets that are not after those of the batch
            before, or more records than offsets.
        missing_offsets (int): offsets that are missing where something is damaged; in logs of Kafka 0.6 and 0.7, bytes.

    Known only if the records were read, else None; without those of control batches:
        num_keys (int | None): records with a key.
        tombstones (int | None): records with a key and without a value, which delete the key in a compacted topic.
        key_bytes, value_bytes (int | None): sizes of all keys and values.
        uncompressed_bytes (int | None): the size of the batches without compression. Also None if a batch could not be
            read, and in logs of Kafka 0.6 and 0.7.
    """

    num_batches: int = 0
    batch_bytes: int = 0
    num_records: int | None = 0
    control_records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    formats: Counter[str] = field(default_factory=Counter)
    codec_bytes: Counter[str] = field(default_factory=Counter)
    batch_sizes: list[int] = field(default_factory=lambda: [0] * SIZES)
    smallest_batch: int | None = None
    largest_batch: int | None = None
    transactional_batches: int = 0
    control_batches: int = 0
    producers: set[int] = field(default_factory=set, repr=False)
    more_producers: bool = False
    crc_failures: int | None = None
    gaps: int = 0
    invalid_headers: int = 0
    missing_offsets: int = 0
    num_keys: int | None = None
    tombstones: int | None = None
    key_bytes: int | None = None
    value_bytes: int | None = None
    uncompressed_bytes: int | None = None

    @property
    def magics(self) -> list[int]:
        """The magics of the batches, in order."""
        return sorted({int(name[1:].partition("/")[0]) for name in self.formats})

    @property
    def codecs(self) -> list[str]:
        """The codecs of the batches, by number of batches, the most frequent first."""
        counts: Counter[str] = Counter()
        for name, count in self.formats.items():
            counts[name.partition("/")[2]] += count
        return [name for name, _ in counts.most_common()]

    @property
    def data_records(self) -> int | None:
        """`num_records` without `control_records`: what a consumer may get."""
        return None if self.num_records is None else self.num_records - self.control_records

    @property
    def compression_ratio(self) -> float | None:
        """The size of the batches without compression, divided by their size; None if the records were not read."""
        if self.uncompressed_bytes is None or not self.batch_bytes:
            return None
        return self.uncompressed_bytes / self.batch_bytes

    def add(self, rows: BatchRows) -> None:
        """Add batches that follow those that were added."""
        if not len(rows):
            return
        if not self.num_batches:
            self.first_offset = int(rows.first[0]) if rows.has_first[0] else None
        self.last_offset = int(rows.last[-1])
        self._add_times(rows)
        self.num_batches += len(rows)
        self.batch_bytes += int(rows.size.sum())
        self._count_records(rows)
        self._count_formats(rows)
        self._count_sizes(rows.size)
        self._count_producers(rows.producer)
        self.transactional_batches += int(np.count_nonzero(rows.is_transactional))
        if self.crc_failures is not None:
            self.crc_failures += int(np.count_nonzero(rows.wrong_crc))
        self.gaps += int(np.count_nonzero((rows.first > rows.before) & rows.has_first))
        wrong = rows.first < rows.before
        wrong |= rows.has_count & ((rows.count < 0) | (rows.count > rows.end - rows.first))
        self.invalid_headers += int(np.count_nonzero(wrong))

    def _add_times(self, rows: BatchRows) -> None:
        """Those of data, before its batches are counted."""
        data = np.flatnonzero(~rows.is_control)
        if not len(data):
            return
        if self.num_batches == self.control_batches:
            self.first_timestamp = _time(int(rows.first_time[data[0]]))
        self.last_timestamp = _larger(self.last_timestamp, _time(int(rows.max_time[data].max())))

    def _count_records(self, rows: BatchRows) -> None:
        if self.num_records is not None:
            self.num_records = self.num_records + int(rows.count.sum()) if rows.has_count.all() else None
        if rows.is_control.any():
            self.control_batches += int(np.count_nonzero(rows.is_control))
            self.control_records += int(rows.count[rows.is_control].sum())

    def _count_formats(self, rows: BatchRows) -> None:
        kinds = rows.magic.astype(np.int64) * len(_NAMES) + rows.codec
        counts, sizes = np.bincount(kinds), np.bincount(kinds, rows.size)  # sums are exact below 2^53
        for kind in np.flatnonzero(counts).tolist():
            magic, codec = divmod(kind, len(_NAMES))
            self.formats[f"v{magic}/{_NAMES[codec]}"] += int(counts[kind])
            self.codec_bytes[_NAMES[codec]] += int(sizes[kind])

    def _count_sizes(self, sizes: Ints) -> None:
        powers = np.minimum(np.frexp(sizes.astype(np.float64))[1] - 1, SIZES - 1)
        counts = np.bincount(powers, minlength=SIZES).tolist()
        self.batch_sizes = [a + b for a, b in zip(self.batch_sizes, counts, strict=True)]
        self.smallest_batch = _smaller(self.smallest_batch, int(sizes.min()))
        self.largest_batch = _larger(self.largest_batch, int(sizes.max()))

    def _count_producers(self, ids: Ints) -> None:
        changed = np.ones(len(ids), np.bool_)
        changed[1:] = ids[1:] != ids[:-1]  # mostly runs: sort only their starts
        self._include_producers(set(np.unique(ids[changed]).tolist()) - {-1})

    def _include_producers(self, ids: set[int]) -> None:
        if self.more_producers and len(self.producers) == MAX_PRODUCERS:
            return
        self.producers |= ids
        if len(self.producers) > MAX_PRODUCERS:
            self.more_producers = True
            self.producers = set(sorted(self.producers)[:MAX_PRODUCERS])

    def include(self, other: BatchTotals) -> None:
        """Add the totals of the batches that follow, or of another partition. The caller counts gaps between them."""
        if self.num_records == 0 and self.first_offset is None:
            self.first_offset = other.first_offset
        if self.num_batches == self.control_batches:
            self.first_timestamp = other.first_timestamp
        if other.last_offset is not None:
            self.last_offset = other.last_offset
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _SUMS_OR_NONE:
            setattr(self, name, added(getattr(self, name), getattr(other, name)))
        self.last_timestamp = _larger(self.last_timestamp, other.last_timestamp)
        self.smallest_batch = _smaller(self.smallest_batch, other.smallest_batch)
        self.largest_batch = _larger(self.largest_batch, other.largest_batch)
        self.batch_sizes = [a + b for a, b in zip(self.batch_sizes, other.batch_sizes, strict=True)]
        self.more_producers = self.more_producers or other.more_producers
        self._include_producers(other.producers)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers, for JSON. Of the producers, their number."""
        names = [f.name for f in fields(self)]
        names = [name for name in names if name in _PLACE] + [name for name in names if name not in _PLACE]
        plain = {name: getattr(self, name) for name in names}
        plain["num_producers"] = len(plain.pop("producers"))
        plain["compression_ratio"] = self.compression_ratio
        return plain | {name: dict(sorted(plain[name].items())) for name in ("formats", "codec_bytes")}


_PLACE = ("path", "topic", "partition", "state", "num_partitions", "num_segments", "size_in_bytes")
"""Attributes of subclasses that are first in `to_dict`."""

_SUMS = (
    "num_batches",
    "batch_bytes",
    "control_records",
    "formats",
    "codec_bytes",
    "transactional_batches",
    "control_batches",
    "gaps",
    "invalid_headers",
    "missing_offsets",
)
OF_RECORDS = ("num_keys", "tombstones", "key_bytes", "value_bytes", "uncompressed_bytes")
"""The attributes that are known only if the records were read."""

_SUMS_OR_NONE = ("num_records", "crc_failures", *OF_RECORDS)


def added(a: int | None, b: int | None) -> int | None:
    """The sum; None if one is unknown."""
    return None if a is None or b is None else a + b


def _time(milliseconds: int) -> int | None:
    return None if milliseconds == NO_TIME else milliseconds


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
