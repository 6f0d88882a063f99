"""Memory of the C core and of dead messages: its size, and its release."""

from __future__ import annotations

from kafkacodec._core import _memory
from kafkacodec.datatypes import NamedTuple


class MemoryInUse(NamedTuple):
    """Memory of the C core and of dead messages, in bytes."""

    live: int
    """In use: by columns that are still referenced (by a `RecordColumns`, a numpy view, an Arrow array made from them),
    and by decoders and encoders."""
    kept: int
    """Freed, and kept for reuse, since new memory costs more than parsing; at most 256 MiB of columns, decoders and
    encoders, and 2.5 MiB of message objects, in a process."""


def memory_in_use() -> MemoryInUse:
    """The memory of the C core in this process, in bytes.

    It includes all columns and the working memory of decoders and encoders, but not the caller's data, the memory of
    the compression packages, or live Python objects such as messages and records.

    Another thread may allocate between the two counts.
    """
    return MemoryInUse(_memory.live(), _memory.kept())


def trim_memory() -> int:
    """Return the memory in the pool of the C core to the system, and that of dead messages to Python.

    Useful after decoding much data; the next columns then cost more page faults. Safe to call at any time, in any
    thread.

    Returns:
        The number of bytes returned, which was `memory_in_use().kept`.
    """
    return _memory.trim()
