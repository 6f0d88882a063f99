"""Protection of processes forked after their parent had read from a store, since they lack its client's threads."""

from __future__ import annotations

import os

from kafkacodec.errors import KafkaCodecError

__all__ = ["check_process", "note_client"]

_has_client = False
_forked = False


def note_client() -> None:
    """Note that this process has a client with threads from now on."""
    global _has_client
    _has_client = True


def check_process() -> None:
    """Refuse to work in a process that was forked after its parent had read objects.

    Reading would wait for ever, and would disturb the parent, which shares the connections.

    Raises:
        KafkaCodecError: this is such a process.
    """
    if _forked:
        raise KafkaCodecError(
            "this process was forked after its parent had read from an object store, and cannot read from one; "
            "start processes by spawn or forkserver, or fork before the first read"
        )


def _after_fork() -> None:
    global _forked
    _forked = _forked or _has_client


os.register_at_fork(after_in_child=_after_fork)
