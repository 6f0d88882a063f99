"""What a host takes before it makes others wait, or closes a connection."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a host.

    Attributes:
        max_connections: how many connections are kept; a further one is closed at once.
        max_pending: requests of one connection that wait for their answers; while there are as many, nothing more is
            read from it.
        max_bytes_in_flight: bytes of requests of all connections that wait for their answers; while there are more,
            nothing is read.
        max_unsent_bytes: bytes of answers that a client has not taken; while there are more, nothing is read from it.
        max_idle_ms: after this time without a request a connection is closed.
    """

    max_connections: int = 10_000
    max_pending: int = 500
    max_bytes_in_flight: int = 512 << 20
    max_unsent_bytes: int = 1 << 20
    max_idle_ms: float = 600_000
