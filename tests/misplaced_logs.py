"""Logs whose batches and segments are out of place in many ways, from random seeds.

The value of every record names its offset, so a reader that gives a record at a wrong offset is seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import kafkacodec as kc
from kafkacodec.log.formats.checkpoints import encode_checkpoint

FIRST_TIME = 1_700_000_000_000
STEP_MS = 1000

Segments = dict[int, list[bytes]]
"""The batches of each segment, by the offset in its name."""


Harm = Callable[[random.Random, Segments], None]
"""What happens to a log."""


def batch(first: int, count: int, magic: int, codec: str = "none") -> bytes:
    rows = [
        kc.Record(offset, FIRST_TIME + offset * STEP_MS, 0, b"key", b"value %d" % offset, ())
        for offset in range(first, first + count)
    ]
    return kc.encode(rows, magic=magic, codec=codec, drop_unsupported=True)


def intact(rng: random.Random, magic: int) -> tuple[Segments, int]:
    """A log of a few segments, and its end offset."""
    segments: Segments = {}
    offset = rng.choice((0, 57))
    for _ in range(rng.choice((1, 2, 3, 4))):
        base, parts = offset, []
        for _ in range(rng.randrange(1, 9)):
            count = rng.choice((1, 3, 3, 7))
            parts.append(batch(offset, count, magic, rng.choice(("none", "none", "gzip"))))
            offset += count
        segments[base] = parts
    return segments, offset


def _some(rng: random.Random, segments: Segments) -> list[bytes]:
    return segments[rng.choice([base for base in segments if segments[base]] or [*segments])]


def _two(rng: random.Random, segments: Segments) -> tuple[int, int] | None:
    bases = sorted(segments)
    return None if len(bases) < 2 else tuple(rng.sample(bases, 2))  # type: ignore[return-value]


def wrong_base_offset(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    row, shift = rng.randrange(len(parts)), rng.choice((1, -1, 3, -3, 20, -20, 1000, 1 << 20, 1 << 40))
    offset = int.from_bytes(parts[row][:8], "big") + shift
    if offset >= 0:
        parts[row] = offset.to_bytes(8, "big") + parts[row][8:]


def wrong_base_offsets(rng: random.Random, segments: Segments) -> None:
    for _ in range(3):
        wrong_base_offset(rng, segments)


def glued_segments(rng: random.Random, segments: Segments) -> None:
    """The file of one is at the end of another, and may be there itself."""
    pair = _two(rng, segments)
    if pair is not None:
        one, other = sorted(pair) if rng.random() < 0.6 else pair
        segments[one] = segments[one] + segments[other]
        if rng.random() < 0.5:
            del segments[other]


def swapped_segments(rng: random.Random, segments: Segments) -> None:
    pair = _two(rng, segments)
    if pair is not None:
        one, other = pair
        segments[one], segments[other] = segments[other], segments[one]


def content_twice(rng: random.Random, segments: Segments) -> None:
    _some(rng, segments).extend(_some(rng, segments))


def copied_segment(rng: random.Random, segments: Segments) -> None:
    base = rng.choice([*segments])
    segments[rng.choice((base + 1, base + 2, max(segments) + 30, max(segments) + 200))] = [*segments[base]]


def renamed_segment(rng: random.Random, segments: Segments) -> None:
    base = rng.choice([*segments])
    name = base ^ 1 << rng.randrange(10)
    if name not in segments:
        segments[name] = segments.pop(base)


def repeated_batch(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    parts.insert(rng.randrange(len(parts) + 1), rng.choice(parts))


def swapped_batches(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    parts[one], parts[other] = parts[other], parts[one]


def batch_of_another_segment(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    parts.insert(rng.randrange(len(parts) + 1), rng.choice(_some(rng, segments)))


def missing_batch(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    del parts[rng.randrange(len(parts))]


def flipped_bit(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    row = rng.randrange(len(parts))
    changed = bytearray(parts[row])
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    parts[row] = bytes(changed)


def strange_bytes(rng: random.Random, segments: Segments) -> None:
    parts = _some(rng, segments)
    parts.insert(rng.randrange(len(parts) + 1), rng.choice((b"\xff" * 50, rng.randbytes(33))))


KINDS: list[Harm] = [
    wrong_base_offset,
    wrong_base_offsets,
    glued_segments,
    swapped_segments,
    content_twice,
    copied_segment,
    renamed_segment,
    repeated_batch,
    swapped_batches,
    batch_of_another_segment,
    missing_batch,
    flipped_bit,
    strange_bytes,
]


def write_indexes(segments: Segments, directory: Path, every: int = 100) -> None:
    """The index files of intact segments, without these; with an entry for each batch after so many bytes."""
    for base, parts in segments.items():
        with kc.log.SegmentWriter(directory, base, index_interval_bytes=every) as writer:
            for data in parts:
                offsets, headers = kc.decode(data)["offset"], kc.scan(data)
                time = int(headers["max_timestamp"].astype("int64").max())
                writer.append(kc.EncodedBatch(data, int(offsets[0]), int(offsets[-1]), max(time, -1), 0))
    for path in directory.glob("*.log"):
        path.unlink()


def make(place: Path, seed: str, kinds: list[Harm]) -> Path:
    """The directory of a partition in an empty log directory; `kinds` are what happened to it, one after the other."""
    rng = random.Random(seed)
    magic = rng.choice((2, 2, 2, 1, 0))
    directory = place / "t-0"
    directory.mkdir(parents=True)
    segments, end = intact(rng, magic)
    if rng.random() < 0.5:
        write_indexes(segments, directory)
    if rng.random() < 0.6:
        (place / "recovery-point-offset-checkpoint").write_bytes(encode_checkpoint({("t", 0): end}))
    for harm in kinds:
        if any(segments.values()):
            harm(rng, segments)
    for base, parts in segments.items():
        (directory / f"{base:020}.log").write_bytes(b"".join(parts))
    return directory
