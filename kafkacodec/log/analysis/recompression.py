"""The size of a log with other codecs, from a sample of its batches compressed with each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from kafkacodec.arguments import limit
from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import DecodeError
from kafkacodec.log.analysis.sampling import HEADER_BYTES, Stretch, read_stretch
from kafkacodec.log.opening import fault_of, open_file
from kafkacodec.log.order.gap_evidence import unused
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.named_rows import Tabular, fields_of
from kafkacodec.records.compression import CODECS, Codec, compress, compressor, decompress
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    from kafkacodec.log.checking.checked import Advance

__all__ = ["DEFAULT_CODECS", "CodecResult", "CodecTrial", "codec_trial"]

CodecAndLevel = tuple[Codec, int | None]
"""A codec's name, and its level or None for the fast default of its library."""

DEFAULT_CODECS: Final[tuple[CodecAndLevel, ...]] = (
    ("none", None),
    ("gzip", 6),
    ("snappy", None),
    ("lz4", None),
    ("zstd", 1),
    ("zstd", 3),
    ("zstd", 9),
)
"""The codecs with the default levels of Kafka's producer, and two more levels of zstd."""

DEFAULT_SAMPLE_BYTES: Final = 16 << 20

_FEWEST_STRETCHES: Final = 64
_STRETCH_BYTES: Final = 256 << 10  # with fewer stretches than that, they are smaller
_NORMAL_95: Final = 1.96  # standard deviations on each side of the mean that hold 95 % of a normal distribution


@dataclass
class CodecResult:
    """The sample with one codec.

    Attributes:
        codec (str), level (int | None): the codec; None is the fast default level of the library.
        size_in_bytes (int): the size of the sample's batches with this codec.
        margin (float): half the width of the 95 % interval of `estimated_bytes`, as a share of it; 0 if the sample is
            everything; NaN if it is a single stretch of more.
        estimated_bytes (int): the size of the whole log with this codec.
        compress_speed, decompress_speed (float): bytes of uncompressed records a second, on one thread of this machine;
            NaN for codec none.
    """

    codec: str
    level: int | None
    size_in_bytes: int = 0
    margin: float = float("nan")
    estimated_bytes: int = 0
    compress_speed: float = float("nan")
    decompress_speed: float = float("nan")


@dataclass
class CodecTrial(Tabular):
    """The result of `codec_trial`: a table of its results in notebooks, and with `to_arrow` and its siblings.

    Attributes:
        log_bytes (int): the size of all segments, without space at their ends that a broker preallocates.
        sample_bytes (int): the bytes in the sample.
        records_bytes (int): the bytes of the sample's records after decompression.
        num_batches (int): the number of compressed batches, without control batches. Messages of magic 0 and 1 without
            a codec, and those of Kafka 0.7, are joined to batches of 16 KiB first.
        num_stretches (int): the number of places of the sample in the log.
        complete (bool): whether the sample is the whole log.
        unreadable_bytes (int): bytes at these places that are not intact batches; not part of the sample.
        codecs (dict[str, int]): bytes of the sample by the codec that they are stored with.
        results (list[CodecResult]): one for each codec, in the order asked for.
    """

    log_bytes: int = 0
    sample_bytes: int = 0
    records_bytes: int = 0
    num_batches: int = 0
    num_stretches: int = 0
    complete: bool = False
    unreadable_bytes: int = 0
    codecs: dict[str, int] = field(default_factory=dict)
    results: list[CodecResult] = field(default_factory=list)

    def add(self, stretch: Stretch) -> None:
        """Count a stretch of the sample."""
        self.num_stretches += 1
        self.num_batches += len(stretch.payloads)
        self.records_bytes += sum(map(len, stretch.payloads))
        for name, count in stretch.stored.items():
            self.codecs[name] = self.codecs.get(name, 0) + count

    def _columns(self) -> Mapping[str, Any]:
        return fields_of(CodecResult)

    def _rows(self) -> Iterator[dict[str, Any]]:
        return map(vars, self.results)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers, for JSON; None for NaN."""

        def plain(value: Any) -> Any:
            return None if value != value else value

        rows = [{name: plain(value) for name, value in vars(result).items()} for result in self.results]
        return vars(self) | {"codecs": dict(self.codecs), "results": rows}


@suggests_options
def codec_trial(
    partitions: Partition | Iterable[Partition],
    *,
    codecs: Sequence[CodecAndLevel] = DEFAULT_CODECS,
    sample_bytes: int = DEFAULT_SAMPLE_BYTES,
    advance: Advance = lambda count: None,
) -> CodecTrial:
    """Compress a sample of batches with each of several codecs.

    The sample is spread evenly over the bytes of the log, in 64 stretches of consecutive batches, or more of 256 KiB
    each; a stretch ends after 512 batches. A log of at most `sample_bytes` is taken from its first to its last segment.
    Batches keep their records, so it compresses the same bytes as a broker or producer. Memory holds one stretch.

    Args:
        partitions: the partitions.
        codecs: names and levels of the codecs to try; a level of None is the library's fast default.
        sample_bytes: how much of the log to read, in bytes.
        advance: called with the number of bytes of the log tried since the last call.

    Raises:
        ValueError: a codec is unknown or does not have this level, or `sample_bytes` is not positive.
        OSError: a file cannot be read for a reason that may pass. Damaged batches and segments that cannot be read are
            left out: see `CodecTrial.unreadable_bytes`.
    """
    for codec, level in codecs:
        if codec not in CODECS:
            raise ValueError(f"unknown codec {codec!r}; use one of {', '.join(CODECS)}")
        compressor(CODECS.index(codec), level=level)
    limit("sample_bytes", sample_bytes, 1)
    given = [partitions] if isinstance(partitions, Partition) else list(partitions)
    segments = [segment for partition in given for segment in partition.segments]
    newest = {partition.segments[-1].path for partition in given if partition.segments}
    sizes = [_size_of(segment, newest=segment.path in newest) for segment in segments]
    trial = CodecTrial(log_bytes=sum(sizes), results=[CodecResult(*codec) for codec in codecs])
    attempts = [_Attempt(CODECS.index(codec), level) for codec, level in codecs]
    stored = []
    stretch_bytes = min(_STRETCH_BYTES, -(-sample_bytes // _FEWEST_STRETCHES))
    for piece in _places(segments, sizes, sample_bytes, stretch_bytes):
        stretch = read_stretch(piece, stretch_bytes)
        trial.unreadable_bytes += stretch.unreadable_bytes
        if stretch.stored:
            stored.append(sum(stretch.stored.values()))
            trial.add(stretch)
            for attempt in attempts:
                attempt.run(stretch)
            advance(stored[-1])
    trial.sample_bytes = sum(stored)
    trial.complete = trial.sample_bytes + trial.unreadable_bytes >= trial.log_bytes
    for result, attempt in zip(trial.results, attempts, strict=True):
        attempt.report(result, trial, np.array(stored, np.float64))
    return trial


def _size_of(segment: Segment, *, newest: bool) -> int:
    """The size of a segment; 0 if there is no file. That of a newest one is without what a broker preallocates."""
    try:
        return _used_bytes(segment) if newest else segment.size_in_bytes
    except (DecodeError, OSError) as error:
        if fault_of(segment.path, error) is None:
            raise
    with suppress(OSError):
        return segment.size_in_bytes
    return 0


def _used_bytes(segment: Segment) -> int:
    """The size of a segment without the zeros at its end that a broker preallocates."""
    if not kind_of(segment.path).has_batches:
        return segment.size_in_bytes
    end = segment.end_position()
    with open_file(segment.path) as file:
        return end if unused(file, end) else file.size


def _places(segments: list[Segment], sizes: list[int], sample_bytes: int, stretch_bytes: int) -> Iterator[SegmentRange]:
    """The ranges that stretches are at the start of. Opens only the segments that have one."""
    total = sum(sizes)
    stride = max(stretch_bytes, -(-total // -(-sample_bytes // stretch_bytes)))
    start, target = 0, stride // 2  # bytes, as if all segments were one file
    for segment, size in zip(segments, sizes, strict=True):
        if size and (total <= sample_bytes or target < start + size):
            for piece in _cut(segment, stride):
                end = start + piece.end_position
                if total <= sample_bytes or target < end:
                    yield piece
                    target = end // stride * stride + stride // 2
                    target += stride if target < end else 0
        start += size


def _cut(segment: Segment, stride: int) -> list[SegmentRange]:
    """The ranges of a segment; one of a segment that cannot be read, and so cannot be cut."""
    try:
        return segment.ranges(max_bytes=stride)
    except (DecodeError, OSError) as error:
        if fault_of(segment.path, error) is None:
            raise
        return [segment._whole(None, None)]


class _Attempt:
    """One codec, with the sizes and times of every stretch."""

    def __init__(self, codec: int, level: int | None) -> None:
        self.codec, self.level = codec, level
        self.sizes: list[int] = []
        self.compressing = self.decompressing = 0.0

    def run(self, stretch: Stretch) -> None:
        """Compress and decompress the stretch."""
        if not self.codec:
            self.sizes.append(stretch.control_bytes + sum(HEADER_BYTES + len(payload) for payload in stretch.payloads))
            return
        start = thread_time()
        found = [compress(self.codec, payload, level=self.level) for payload in stretch.payloads]
        middle = thread_time()
        for payload, data in zip(stretch.payloads, found, strict=True):
            decompress(self.codec, data, limit=len(payload))
        self.compressing += middle - start
        self.decompressing += thread_time() - middle
        self.sizes.append(stretch.control_bytes + sum(HEADER_BYTES + len(memoryview(data)) for data in found))

    def report(self, result: CodecResult, trial: CodecTrial, stored: npt.NDArray[np.float64]) -> None:
        """Fill in the result: the size of the log follows from the ratio of two sums over the stretches."""
        result.size_in_bytes = sum(self.sizes)
        if self.compressing > 0:
            result.compress_speed = trial.records_bytes / self.compressing
        if self.decompressing > 0:
            result.decompress_speed = trial.records_bytes / self.decompressing
        if not trial.sample_bytes:
            return
        ratio = result.size_in_bytes / trial.sample_bytes
        result.estimated_bytes = round(ratio * trial.log_bytes)
        if trial.complete:
            result.margin = 0.0
        elif len(stored) > 1:
            n = len(stored)
            # Of a systematic sample, from the differences of neighbours: K. M. Wolter, "Introduction to Variance
            # Estimation", chapter 8. Partitions with other ratios than the whole would make the usual one too large.
            residuals = np.array(self.sizes) - ratio * stored
            variance = n / (2 * (n - 1)) * np.sum(np.diff(residuals) ** 2)
            rest = 1 - trial.sample_bytes / trial.log_bytes
            result.margin = float(_NORMAL_95 * np.sqrt(variance * rest) / result.size_in_bytes)
