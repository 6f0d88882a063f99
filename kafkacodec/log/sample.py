"""A small log directory that a broker wrote, for trying things out; it is part of the package."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from kafkacodec.log.partitions.directory import LogDirectory
from kafkacodec.signatures import suggests_options

__all__ = ["SAMPLE", "sample"]

SAMPLE = Path(__file__).parent / "sample_data"
"""Written by tools/sample.py of the source tree with a broker of Kafka 3.9.1."""


@suggests_options
def sample(copy_to: str | os.PathLike[str] | None = None, *, damaged: bool = False) -> LogDirectory:
    """A real log directory of 70 KB, written by a broker of Kafka 3.9.1.

    It has 600 ``orders`` in three partitions and all codecs; 120 ``payments`` in transactions, of which 24 records are
    aborted and the last 8 not decided; ``customers``, which the log cleaner has compacted; the consumer groups
    ``billing``, which has read 60 % of the orders, and ``reports``, which has read all; and the broker's own topics.

    Args:
        copy_to: copy it to this directory, which must not exist or be empty. Without it, the files are those of the
            installed package: only read them.
        damaged: damage the copy in three places: a changed byte in a batch of ``orders-0`` (13 records), a missing
            segment of ``orders-1`` (70 records), and ``orders-2`` cut inside its last batch (3 records).

    Raises:
        ValueError: `damaged` without `copy_to`.
        FileExistsError: `copy_to` is not empty.
        OSError: it is a file, or cannot be written.
    """
    if copy_to is None:
        if damaged:
            raise ValueError("damaged=True needs copy_to, since the package's sample is not changed")
        return LogDirectory(SAMPLE)
    target = Path(copy_to)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file, not a directory", os.fspath(target))
    if target.is_dir() and any(target.iterdir()):
        raise FileExistsError(errno.EEXIST, "the directory is not empty", os.fspath(target))
    try:
        _copy(target)
    except BaseException:
        for entry in target.glob("*"):  # a half copy would look like a damaged log
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        raise
    if damaged:
        _damage(target)
    return LogDirectory(target)


def _copy(target: Path) -> None:
    """Copy the files of the sample. Raises OSError, which names the new file."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(SAMPLE.rglob("*")):
        new = target / entry.relative_to(SAMPLE)
        if entry.is_dir():
            new.mkdir()
        else:
            try:
                new.write_bytes(entry.read_bytes())
            except OSError as error:
                error.filename = error.filename or os.fspath(new)  # a full disk has none
                raise


def _damage(directory: Path) -> None:
    """Three faults. Positions and names are those of the sample's files."""
    first = directory / "orders-0" / "00000000000000000082.log"
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    (directory / "orders-1" / "00000000000000000077.log").unlink()
    with open(directory / "orders-2" / "00000000000000000078.log", "r+b") as last:
        last.truncate(last.seek(0, os.SEEK_END) - 10)
