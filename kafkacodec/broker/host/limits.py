"""What a host takes before it makes others wait, or closes a connection; and what it has taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Limits", "Load"]

_MOST_CONNECTIONS: Final = 10_000
_OTHER_FILES: Final = 640  # of a process: logs above all, and connections that are about to be refused


def _affordable() -> int:
    """How many connections leave the process files for its logs.

    Without any, asyncio tries to accept again and again, logs each try, and logs can no longer be opened.
    """
    try:
        import resource
    except ImportError:  # a system that does not count them
        return _MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return min(_MOST_CONNECTIONS, max(files - _OTHER_FILES, files // 2))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a host.

    Attributes:
        max_connections: how many connections are kept; a further one is closed at once. By default 10,000, or what is
            left of the files that the process may open: 640 are for others, of a few files half.
        max_pending: requests of one connection that wait for their answers; while there are as many, nothing more is
            read from it.
        max_bytes_in_flight: bytes of requests of all connections that wait for their answers; while there are more,
            nothing is read.
        max_unsent_bytes: bytes of answers that a client has not taken; while there are more, nothing is read from it.
        max_idle_ms: after this time without a request a connection is closed.
    """

    max_connections: int = field(default_factory=_affordable)
    max_pending: int = 500
    max_bytes_in_flight: int = 512 << 20
    max_unsent_bytes: int = 1 << 20
    max_idle_ms: float = 600_000


@dataclass(slots=True)
class Load:
    """What all listeners of a host have in flight.

    Attributes:
        most: bytes that may be in flight: `Limits.max_bytes_in_flight`.
        sessions: the open sessions.
        nbytes: bytes of requests that wait for their answers.
        stopped: sessions that may have stopped reading because of others.
        requests: how many were begun since the start.
        received, sent: bytes since the start.
    """

    most: int
    sessions: set[Any] = field(default_factory=set)
    nbytes: int = 0
    stopped: set[Any] = field(default_factory=set)
    requests: int = 0
    received: int = 0
    sent: int = 0

    @property
    def is_full(self) -> bool:
        """Whether as much is in flight as may be."""
        return self.nbytes >= self.most
