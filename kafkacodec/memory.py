"""Memory of the C core: how much of it there is, and giving back what is only kept for later."""

from __future__ import annotations

from typing import NamedTuple

from kafkacodec._core import _memory


class MemoryInUse(NamedTuple):
    """Bytes that the C core has from the system."""

    live: int
    """In use: columns that something refers to (a `RecordColumns`, a numpy view, an Arrow array made of them), and what
    decoders and encoders work with."""
    kept: int
    """Freed, and kept because fresh memory costs more than parsing; at most 256 MiB in a process."""


def memory_in_use() -> MemoryInUse:
    """How much memory the C core of this process has, in bytes.

    It counts what columns are made of, wherever they are now, and the scratch memory of decoders and encoders; not the
    caller's own data, what the compression packages take, nor Python objects such as messages and records.

    Another thread may allocate between the two counts.
    """
    return MemoryInUse(_memory.live(), _memory.kept())


def trim_memory() -> int:
    """Give the freed blocks that the C core keeps for later back to the system.

    For a process that has decoded much and now does something else; the next columns cost some more page faults. Safe
    to call at any time, in any thread.

    Returns:
        how many bytes these blocks had: what `memory_in_use().kept` was.
    """
    return _memory.trim()
