"""Whether a cluster is absent: none of its addresses has ever answered, and none will as things are."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import Final

from kafkacodec.client.core.metadata import BrokerAddress
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed

__all__ = ["Absence"]

_NOBODY: Final = frozenset(
    {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EHOSTDOWN}
)

_SOON_MS: Final = 5_000.0
"""An error that is raised so soon is not logged before."""


class Absence:
    """The state of the bootstrap list, from the first connections of a client.

    A cluster is absent once every address of the list has refused connections, or closed each without an answer, or has
    an unknown name, for `limit_ms`. A single closed connection proves nothing: a broker that shuts down, or a proxy of
    one that starts, closes some. All of them for a while are those of a listener with another security protocol. After
    the first answer to a request a cluster never is absent, since restarting brokers refuse connections too.

    Args:
        addresses: the bootstrap list.
        limit_ms: how long to try before the cluster counts as absent.

    Attributes:
        due_at: when the cluster will count as absent, unless a broker answers before that; None if it will not.
        reason: why the cluster is absent, the same object for as long as it is; None if it is not.
    """

    def __init__(self, addresses: Sequence[BrokerAddress], limit_ms: float) -> None:
        self._left = {address.node for address in addresses}
        self._limit_ms = limit_ms
        self._found: dict[int, ConnectionFailed] = {}  # by the number of the address
        self._since: float | None = None
        self.due_at: float | None = None
        self.reason: ConnectionFailed | None = None

    def reached(self) -> None:
        """Record that a broker answered."""
        self._left.clear()
        self._found.clear()
        self._since = self.due_at = self.reason = None

    def accepted(self, number: int) -> None:
        """Record that somebody accepts connections at an address, and may answer."""
        if self._found.pop(number, None) is not None:
            self.due_at = None

    def failed(self, number: int, error: Exception, now: float) -> bool:
        """Record a failed connection to an address; return whether it need not be told, since all calls soon raise it.

        The same holds while other addresses of the list are left.
        """
        if number not in self._left:
            return False
        if not _is_nobody(error):
            self._found.pop(number, None)
            self._since = self.due_at = self.reason = None
            return False
        assert isinstance(error, ConnectionFailed)
        self._found[number] = error
        if self._since is None:
            self._since = now
        if self.reason is None and len(self._found) == len(self._left):
            self.due_at = self._since + self._limit_ms
        return self.due_at is None or self.due_at <= now + _SOON_MS

    def decide(self, now: float) -> bool:
        """Whether the cluster counts as absent from now on, and did not before."""
        if self.due_at is None or now < self.due_at:
            return False
        self.due_at = None
        told = [str(self._found[number]).removeprefix("broker ") for number in sorted(self._left, reverse=True)]
        self.reason = ConnectionFailed(f"no broker can be reached: {'; '.join(told)}")
        return True


def _is_nobody(error: Exception) -> bool:
    cause = error.__cause__
    if not isinstance(error, ConnectionFailed) or isinstance(error, AuthenticationFailed):
        return False
    if error.closed_unanswered or isinstance(cause, socket.gaierror):
        return True
    return isinstance(cause, OSError) and cause.errno in _NOBODY
