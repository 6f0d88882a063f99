"""Limits beyond which a host makes clients wait or closes connections, and its current load."""

from __future__ import annotations

from typing import Any, Final

from kafkacodec.datatypes import dataclass, field
from kafkacodec.net.notes import Notes

__all__ = ["MAX_BYTES", "Limits", "Load"]

MAX_BYTES: Final = 512 << 20
"""The most bytes of requests that wait for their answers; as many may belong to large requests that are being
received."""

_MOST_CONNECTIONS: Final = 10_000
_OTHER_FILES: Final = 640  # of a process: mostly logs, and connections that the host is about to refuse


def _affordable() -> int:
    """Return the number of connections that leave the process files for its logs.

    Without files, the host cannot accept, and the process cannot open logs.
    """
    try:
        import resource
    except ImportError:  # a system without a limit
        return _MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return min(_MOST_CONNECTIONS, max(files - _OTHER_FILES, files // 2))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a host.

    Attributes:
        max_connections: the number of connections; the host closes further ones at once. By default 10,000, but at most
            640 fewer than the files that the process may open, or half of them if they are few.
        max_pending: requests of one connection that wait for their answers; with as many, the host reads no more from
            it.
        max_bytes_in_flight: bytes of requests of all connections that wait for their answers; beyond it, the host reads
            nothing.
        max_unsent_bytes: bytes of answers that a client has not taken; beyond it, the host reads no more from it.
        max_idle_ms: the host closes a connection after this time without a request, unless its client takes an answer
            meanwhile.
    """

    max_connections: int = field(default_factory=_affordable)
    max_pending: int = 500
    max_bytes_in_flight: int = MAX_BYTES
    max_unsent_bytes: int = 1 << 20
    max_idle_ms: float = 600_000


@dataclass(slots=True)
class Load:
    """The current load of all listeners of a host.

    Attributes:
        most: the limit of bytes in flight, `Limits.max_bytes_in_flight`.
        notes: log what clients do wrong.
        sessions: the open sessions.
        opening: those whose connection was accepted, and may be in a TLS handshake.
        nbytes: bytes of requests that wait for their answers.
        stopped: sessions that may have stopped reading because of others, as keys; the first continues first.
        requests: since the start.
        received, sent: bytes since the start.
    """

    most: int
    notes: Notes
    sessions: set[Any] = field(default_factory=set)
    opening: set[Any] = field(default_factory=set)
    nbytes: int = 0
    stopped: dict[Any, None] = field(default_factory=dict)
    requests: int = 0
    received: int = 0
    sent: int = 0

    @property
    def connections(self) -> int:
        """The number of connections, open or in a handshake."""
        return len(self.sessions) + len(self.opening)

    @property
    def is_full(self) -> bool:
        """Whether the bytes in flight have reached the limit."""
        return self.nbytes >= self.most
