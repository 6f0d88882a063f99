"""How fast connections may arrive: those of all clients together, and those of one address (KIP-612)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkacodec.broker.state.rates import Rate

__all__ = ["Arrivals"]

_LONGEST_MS: Final = 1000
_ANY: Final = (1 << 31) - 1
_MAX_RATES: Final = 10_000


class Arrivals:
    """The rates of a broker's new connections.

    Args:
        of_host: returns the quota of a client's address, in connections per second; None for none.
    """

    def __init__(self, of_host: Callable[[str], float | None]) -> None:
        self._most = _ANY
        self._of_host = of_host
        self._all = Rate()
        self._hosts: dict[str, Rate] = {}

    def limit(self, most: int) -> None:
        """Set the most connections per second."""
        self._most = most

    def wait(self, now: float) -> int:
        """Count a connection; return the time in ms in which it has to wait, and all after it."""
        return _wait(self._all, self._most, now)

    def refusal(self, host: str, now: float) -> int:
        """Return the time in ms after which a connection is closed without being served, 0 if it is served.

        Connections that are not served do not count.
        """
        quota = self._of_host(host)
        if quota is None:
            return 0
        if host not in self._hosts and len(self._hosts) >= _MAX_RATES:
            self._hosts = {name: rate for name, rate in self._hosts.items() if not rate.is_old(now)}
        rate = self._hosts.setdefault(host, Rate())
        wait = _wait(rate, quota, now)
        if wait:
            rate.take_back(1)
            self._all.take_back(1)
        return wait


def _wait(rate: Rate, quota: float, now: float) -> int:
    return min(_LONGEST_MS, round(rate.throttle(1, quota, now)))
