"""Partitions of the corpus with one bit flipped: in a batch's header, in a file beside the segments, or in a name."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import kafkacodec as kc
from tests.corpus import log_directories

# The fields of a batch's header that its checksum leaves out, for magic 2 and before: position and size in bytes.
UNCHECKED = {
    True: {"base offset": (0, 8), "length": (8, 4), "leader epoch": (12, 4), "magic": (16, 1), "crc": (17, 4)},
    False: {"base offset": (0, 8), "length": (8, 4), "crc": (12, 4)},
}
# Those that it covers.
CHECKED = {
    True: {
        "attributes": (21, 2),
        "last offset delta": (23, 4),
        "base timestamp": (27, 8),
        "max timestamp": (35, 8),
        "producer id": (43, 8),
        "producer epoch": (51, 2),
        "base sequence": (53, 4),
        "count": (57, 4),
    },
    False: {"magic": (16, 1), "attributes": (17, 1)},
}


@dataclass(frozen=True)
class Flip:
    """A bit of a batch's header: the batch by segment and row."""

    source: Path  # the partition
    segment: str
    row: int
    position: int
    size: int
    field: str
    byte: int  # in the header
    bit: int

    def __str__(self) -> str:
        place = f"{self.source.parent.name}/{self.source.name}/{self.segment}"
        return f"{place} batch {self.row}: {self.field}, byte {self.byte} bit {self.bit}"

    def copy(self, directory: Path) -> Path:
        """A copy of the partition, in a log directory with the checkpoints of the source, with the bit flipped."""
        copied = copy_of(self.source, directory)
        path = copied / self.segment
        data = bytearray(path.read_bytes())
        data[self.position + self.byte] ^= 1 << self.bit
        path.write_bytes(data)
        return copied

    @property
    def batch(self) -> bytes:
        """The batch as it was."""
        return (self.source / self.segment).read_bytes()[self.position : self.position + self.size]


@dataclass(frozen=True)
class SideFlip:
    """A bit of a file beside the segments of a partition, or of a checkpoint of its log directory."""

    source: Path  # the partition
    file: str  # from the log directory
    bit: int

    def __str__(self) -> str:
        return f"{self.source.parent.name}/{self.file}, of {self.source.name}: bit {self.bit}"

    def copy(self, directory: Path) -> Path:
        """As `Flip.copy`."""
        copied = copy_of(self.source, directory)
        path = directory / self.file
        data = bytearray(path.read_bytes())
        data[self.bit // 8] ^= 1 << self.bit % 8
        path.write_bytes(data)
        return copied


def copy_of(source: Path, directory: Path) -> Path:
    copied = directory / source.name
    shutil.copytree(source, copied, copy_function=shutil.copyfile)
    copied.chmod(0o755)
    for path in source.parent.glob("*checkpoint"):
        if path.is_file():
            shutil.copyfile(path, directory / path.name)
    return copied


@cache
def partitions() -> list[Path]:
    """All partitions of the corpus with batches."""
    found = [Path(p.path) for directory in log_directories() for p in kc.log.discover(directory) if not p.is_kafka07]
    return [path for path in found if any(stretches(path).values())]


@cache
def stretches(source: Path) -> dict[str, list[tuple[int, int, int]]]:
    """Position, size and magic of every batch, by segment."""
    found = {}
    for segment in kc.log.Partition(source).segments:
        headers = segment.scan()
        names = ("position", "size_in_bytes", "magic")
        found[Path(segment.path).name] = list(zip(*(headers[name].tolist() for name in names), strict=True))
    return found


def batches(directory: Path) -> list[bytes]:
    """The bytes of all batches of a partition."""
    return [
        (directory / name).read_bytes()[position : position + size]
        for name, rows in stretches.__wrapped__(directory).items()
        for position, size, _ in rows
    ]


@cache
def counted(source: Path) -> Counter[bytes]:
    """The batches of a partition of the corpus."""
    return Counter(batches(source))


def flips(rng: random.Random, fields: dict[bool, dict[str, tuple[int, int]]], field: str) -> Iterator[Flip]:
    """Random flips of a field, without end."""
    while True:
        source = rng.choice(partitions())
        segment = rng.choice([name for name, rows in stretches(source).items() if rows])
        rows = stretches(source)[segment]
        row = rng.randrange(len(rows))
        position, size, magic = rows[row]
        known = fields[magic >= 2]
        if field in known:
            at, width = known[field]
            bit = rng.randrange(8 * width)
            yield Flip(source, segment, row, position, size, field, at + bit // 8, bit % 8)


@cache
def side_files() -> dict[str, list[tuple[Path, str]]]:
    """All files beside the segments, by kind: the partition, and the file's path from the log directory."""
    found: dict[str, list[tuple[Path, str]]] = {}
    for source in partitions():
        beside = [path for path in source.iterdir() if path.suffix != ".log"]
        for path in sorted([*beside, *source.parent.glob("*checkpoint")]):
            if path.is_file() and path.stat().st_size:
                kind = path.suffix if path.stem.isdigit() else path.name
                found.setdefault(kind, []).append((source, str(path.relative_to(source.parent))))
    return found


def side_flips(rng: random.Random, kind: str) -> Iterator[SideFlip]:
    """Random flips in side files of a kind, without end; in preallocated ones, of the used bytes."""
    while True:
        source, file = rng.choice(side_files()[kind])
        data = (source.parent / file).read_bytes()
        yield SideFlip(source, file, rng.randrange(8 * len(data.rstrip(b"\0") or data)))
