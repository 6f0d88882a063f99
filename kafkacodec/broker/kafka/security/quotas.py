"""Quotas of users and clients: the wait of a client over its quota, for its answer and its connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.state.rates import Rate, Tokens
from kafkacodec.messages import keys

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.state.catalog import Catalog

__all__ = ["Quotas"]

_LONGEST_MS: Final = 1000.0  # the longest wait for a request-time quota
_MAX_RATES: Final = 10_000
_Names = tuple[str | None, ...]

_ORDER: Final = (
    ("user", "client"), ("user", None), ("user", ""), (None, "client"), (None, None), (None, ""), ("", "client"),
    ("", None),
)  # fmt: skip
"""Entities from the strongest to the weakest: a name, None for the default entity, or empty for none."""


class Quotas:
    """The clients' use of the quotas in the metadata.

    Args:
        catalog: has the quotas.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._rates: dict[tuple[str, str, str], Rate] = {}
        self._tokens: dict[tuple[str, str], Tokens] = {}

    def account(self, request: Request, response: Any) -> None:
        """Count a request and its answer; set the client's wait in the answer.

        A fetch that would exceed the quota gets no records, and counts when the client repeats it.
        """
        if not self._catalog.quotas or not hasattr(response, "throttle_time_ms"):
            return
        waits = [min(_LONGEST_MS, self._use(request, "request_percentage", request.spent * 100))]
        measure = _MEASURED.get(request.key)
        if measure is not None:
            name, size_of = measure
            size = size_of(request, response)
            wait = self._use(request, name, size)
            waits.append(wait)
            if wait and request.key == keys.FETCH:
                self._take_back(request, name, size)
                response.responses = []
        if request.key in _STRICT_SINCE:
            waits.append(request.rest)
        response.throttle_time_ms = int(max(waits))
        request.rest = max(request.rest, float(response.throttle_time_ms))

    def refuses_partitions(self, request: Request, count: int) -> bool:
        """Count partitions that a request creates or deletes (KIP-599); True if its client must wait first.

        Clients with a version without the error for this wait after the answer.
        """
        found = self._quota(request, "controller_mutation_rate") if self._catalog.quotas else None
        if found is None:
            return False
        quota, *client = found
        if len(self._tokens) >= _MAX_RATES:
            self._tokens = {key: tokens for key, tokens in self._tokens.items() if not tokens.is_old(request.received)}
        tokens = self._tokens.setdefault((client[0], client[1]), Tokens())
        wait = tokens.wait(quota, request.received)
        if wait and request.version >= _STRICT_SINCE[request.key]:
            request.rest = max(request.rest, wait)
            return True
        tokens.use(count)
        if request.version < _STRICT_SINCE[request.key]:
            request.rest = max(request.rest, tokens.wait(quota, request.received))
        return False

    def _use(self, request: Request, name: str, value: float) -> float:
        found = self._quota(request, name)
        if found is None:
            return 0.0
        quota, user, client = found
        key = (name, user, client)
        rate = self._rates.get(key)
        if rate is None:
            if len(self._rates) >= _MAX_RATES:
                self._forget(request.received)
            rate = self._rates[key] = Rate()
        return rate.throttle(value, quota, request.received)

    def _take_back(self, request: Request, name: str, value: float) -> None:
        found = self._quota(request, name)
        if found is not None:
            self._rates[name, found[1], found[2]].take_back(value)

    def _quota(self, request: Request, name: str) -> tuple[float, str, str] | None:
        """Return the strongest quota of a client, with the user and client that it counts for."""
        user, client = request.peer.principal.partition(":")[2], request.client_id or ""
        for entity, counted in _entities(user, client):
            values: Mapping[str, float] | None = self._catalog.quotas.get(entity)
            if values is not None and name in values:
                return values[name], *counted
        return None

    def _forget(self, now: float) -> None:
        self._rates = {key: rate for key, rate in self._rates.items() if not rate.is_old(now)}


def _entities(user: str, client: str) -> Iterator[tuple[tuple[tuple[str, str | None], ...], tuple[str, str]]]:
    """Return the keys of quotas that may apply to a client, and the counter of each."""
    names = {"user": user, "client": client}
    for of_user, of_client in _ORDER:
        entity = []
        if of_client != "":
            entity.append(("client-id", None if of_client is None else names[of_client]))
        if of_user != "":
            entity.append(("user", None if of_user is None else names[of_user]))
        yield tuple(entity), (user if of_user != "" else "", client if of_client != "" else "")


def _produced(request: Request, response: Any) -> float:
    return float(request.nbytes)


def _fetched(request: Request, response: Any) -> float:
    rows = (row for topic in response.responses for row in topic.partitions)
    return float(sum(len(row.records) for row in rows if row.records))


_STRICT_SINCE: Final = {keys.CREATE_TOPICS: 6, keys.CREATE_PARTITIONS: 3, keys.DELETE_TOPICS: 5}
"""By API key: the first version whose clients know the error for an exceeded quota."""

_MEASURED: Final[Mapping[int, tuple[str, Callable[[Request, Any], float]]]] = {
    keys.PRODUCE: ("producer_byte_rate", _produced),
    keys.FETCH: ("consumer_byte_rate", _fetched),
}
"""By API key: the quota, and a function for the bytes that count."""
