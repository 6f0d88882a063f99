"""A partition of bytes that Kafka wrote, and what brokers do to its files; the functions return the offsets left.

The log cleaner swaps segments, retention deletes them, a follower truncates, a topic is deleted and created again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import kafkacodec as kc
from tests.corpus import ROOT

SOURCE = ROOT / "logs" / "kraft-4.1.0" / "none-0"
FIRST_ID, SECOND_ID = "MkU3OEVBNTcwNTJENDM2Qg", "c2Vjb25kLXRvcGljLWlkMQ"


def batches(path: Path) -> list[tuple[int, int, bytes]]:
    """The batches of a segment: first offset, last offset, bytes."""
    data = path.read_bytes()
    headers = kc.scan(data)
    columns = (headers[name].tolist() for name in ("base_offset", "last_offset", "position", "size_in_bytes"))
    return [(base, last, data[at : at + size]) for base, last, at, size in zip(*columns, strict=True)]


ALL = [batch for path in sorted(SOURCE.glob("*.log")) for batch in batches(path)]
END = ALL[-1][1] + 1
assert END == 174


def make_log(tmp_path: Path) -> Path:
    """Three segments, from offset 0, 65 and 133 on; the last one is active."""
    directory = tmp_path / "logs" / "none-0"
    directory.mkdir(parents=True)
    for base, end in ((0, 65), (65, 133), (133, END)):
        write(directory, base, [b for b in ALL if base <= b[0] and b[1] < end])
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {FIRST_ID}\n")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return directory


def write(directory: Path, base: int, kept: list[tuple[int, int, bytes]], suffix: str = ".log") -> Path:
    path = directory / f"{base:020}{suffix}"
    path.write_bytes(b"".join(data for _, _, data in kept))
    return path


def offsets_of(kept: list[tuple[int, int, bytes]]) -> list[int]:
    return [offset for base, last, _ in kept for offset in range(base, last + 1)]


def tail_removed(kept: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Without every other batch, and without the last one."""
    return kept[1:-1:2]


def clean(directory: Path, suffix: str = ".log") -> list[int]:
    """The cleaner replaces the first segment by a smaller one with the same time of modification."""
    path = directory / f"{0:020}.log"
    state = path.stat()
    kept = tail_removed(batches(path))
    new = write(directory, 0, kept, ".log.cleaned")
    os.utime(new, ns=(state.st_mtime_ns, state.st_mtime_ns))
    new = new.rename(new.with_suffix(".swap"))
    path.rename(f"{path}.deleted")
    if suffix == ".log":
        new.rename(path)
    return offsets_of(kept + [b for b in ALL if b[0] >= 65])


def half_cleaned(directory: Path) -> list[int]:
    """As `clean`, but the last rename has not happened yet, as when a broker is killed there."""
    return clean(directory, ".log.swap")


def merge(directory: Path) -> list[int]:
    """The cleaner replaces two segments by one."""
    paths = [directory / f"{base:020}.log" for base in (0, 65)]
    kept = tail_removed([b for path in paths for b in batches(path)])
    new = write(directory, 0, kept, ".log.swap")
    for path in paths:
        path.rename(f"{path}.deleted")
    new.rename(paths[0])
    return offsets_of(kept + [b for b in ALL if b[0] >= 133])


def grow(directory: Path) -> list[int]:
    """Records after those that were planned."""
    with open(directory / f"{133:020}.log", "ab") as file:
        file.write(kc.encode([(None, b"later")] * 9, base_offset=END))
    return list(range(END))


def roll_and_clean(directory: Path) -> list[int]:
    """The segment that was active when it was planned is cleaned."""
    path = directory / f"{133:020}.log"
    kept = batches(path)[::2]
    write(directory, END, [])
    new = write(directory, 133, kept, ".log.swap")
    path.rename(f"{path}.deleted")
    new.rename(path)
    return offsets_of([b for b in ALL if b[0] < 133] + kept)


COMPACTED = [clean, half_cleaned, merge, grow, roll_and_clean]


def delete_first(directory: Path) -> list[int]:
    """Retention removes the oldest segment."""
    path = directory / f"{0:020}.log"
    path.rename(f"{path}.deleted")
    return list(range(65, END))


def delete_records(directory: Path) -> list[int]:
    """Records below an offset are deleted; the first segment is gone, the second one still has some of them."""
    delete_first(directory)
    (directory.parent / "log-start-offset-checkpoint").write_text("0\n1\nnone 0 70\n")
    return list(range(70, END))


def truncate(directory: Path) -> list[int]:
    """A follower truncates its active segment, inside a batch's bytes."""
    path = directory / f"{133:020}.log"
    kept = batches(path)[:2]
    os.truncate(path, sum(len(data) for *_, data in kept))
    return offsets_of([b for b in ALL if b[0] < 133] + kept)


def truncate_and_write(directory: Path) -> list[int]:
    """A follower truncates at offset 140 or before it, and gets other records in their place."""
    kept = truncate(directory)
    cut = kept[-1] + 1
    with open(directory / f"{133:020}.log", "ab") as file:
        file.write(kc.encode([(None, b"other")] * 100, base_offset=cut, partition_leader_epoch=1))
    (directory / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n1 {cut}\n")
    return kept


def create_again(directory: Path) -> list[int]:
    """The topic is deleted and created again, and has as many records as before."""
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    directory.rename(directory.with_name("none-0.0123456789abcdef0123456789abcdef-delete"))
    copy.rename(directory)
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {SECOND_ID}\n")
    return []


def delete_partition(directory: Path) -> list[int]:
    """The partition is deleted."""
    directory.rename(directory.with_name("none-0.0123456789abcdef0123456789abcdef-delete"))
    return []
