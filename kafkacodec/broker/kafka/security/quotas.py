"""Quotas of users and clients: the wait of a client over its quota, for its answer and its connection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import messages
from kafkacodec.broker.state.rates import FULL_SECONDS, Rate, Tokens
from kafkacodec.messages import keys
from kafkacodec.protocol.headers import encode_response_header

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.state.catalog import Catalog

__all__ = ["Quotas"]

_LONGEST_MS: Final = 1000.0  # the longest wait for a request-time quota
_MAX_RATES: Final = 10_000
_ARRIVALS: Final = "connection_creation_rate"
_LOCAL: Final = {"localhost": "127.0.0.1"}
_Names = tuple[str | None, ...]
Pieces = Sequence[bytes | memoryview]
"""The bytes of an answer, to be written one piece after another."""

_ORDER: Final = (
    ("user", "client"), ("user", None), ("user", ""), (None, "client"), (None, None), (None, ""), ("", "client"),
    ("", None),
)  # fmt: skip
"""Entities from the strongest to the weakest: a name, None for the default entity, or empty for none."""


class Quotas:
    """The clients' use of the quotas in the metadata.

    Args:
        catalog: has the quotas.

    Attributes:
        present: those of the catalog; empty if no client has one.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.present = catalog.quotas
        self._rates: dict[tuple[str, str, str], Rate] = {}
        self._tokens: dict[tuple[str, str], Tokens] = {}
        self._of_addresses: dict[Any, float] | None = None  # rates of connections, once asked for; None: any address

    def account(self, request: Request, response: Any, encode: Callable[[Any], Pieces]) -> Pieces:
        """Count a request and its answer; return the bytes of the answer, with the client's wait.

        A fetch of a client over a quota gets no records, and counts for its bytes when the client repeats it. Records
        of a share group stay locked until their time ends, as with Apache Kafka.

        Args:
            request: the request.
            response: its answer.
            encode: makes the bytes of an answer, with its header.
        """
        if not self.present or _is_exempt(request):
            return encode(response)
        pieces: Pieces | None = None
        withhold = messages.ShareFetchResponse if request.key == keys.SHARE_FETCH else request.withhold
        waits = [min(_LONGEST_MS, self._use(request, "request_percentage", request.spent * 100))]
        name = _MEASURED.get(request.key)
        if name is not None and self._quota(request, name) is not None:
            if request.key == keys.PRODUCE:
                size = float(request.size)
            else:
                pieces = encode(response)
                size = float(sum(map(len, pieces)) - len(encode_response_header(request.key, request.version, 0)))
            waits.append(self._use(request, name, size))
            if withhold is not None and max(waits):
                self._take_back(request, name, size)
        if withhold is not None and max(waits):
            response, pieces = withhold(), None
        if request.key in _STRICT_SINCE:
            waits.append(request.rest)
        wait = int(max(waits))
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = wait
        request.rest = max(request.rest, float(wait))
        return encode(response) if pieces is None or wait else pieces

    def arrivals(self, host: str) -> float | None:
        """Return how many connections of an address may arrive per second (KIP-612); None for any number."""
        if self._of_addresses is None:
            rates = [(entity[0], values.get(_ARRIVALS)) for entity, values in self.present.items()]
            of_ips = [(name, rate) for (kind, name), rate in rates if kind == "ip" and rate is not None]
            self._of_addresses = {name and _address(name): rate for name, rate in of_ips}
        found = self._of_addresses
        return found.get(_address(host), found.get(None)) if found else None

    def changed(self) -> None:
        """Note that the quotas have changed."""
        self._of_addresses = None

    def most_fetched(self, request: Request) -> float:
        """Return the bytes that a client may fetch at once: those of ten seconds; infinite without a quota."""
        found = self._quota(request, "consumer_byte_rate") if self.present else None
        return math.inf if found is None else found[0] * FULL_SECONDS

    def refuses_partitions(self, request: Request, count: int) -> bool:
        """Count partitions that a request creates or deletes (KIP-599); True if its client must wait first.

        Clients with a version without the error for this wait after the answer.
        """
        found = self._quota(request, "controller_mutation_rate") if self.present else None
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
            values: Mapping[str, float] | None = self.present.get(entity)
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


@lru_cache(_MAX_RATES)
def _address(name: str) -> Any:
    """An address, which may be written in several ways."""
    return ip_address(_LOCAL.get(name, name).removeprefix("::ffff:"))


def _is_exempt(request: Request) -> bool:
    """Whether a request is not counted: one of a client that is logging in, or of a broker."""
    if request.key == keys.WRITE_TXN_MARKERS or not request.peer.trusted:
        return True
    return request.peer.login is not None and request.key in (keys.SASL_HANDSHAKE, keys.SASL_AUTHENTICATE)


_STRICT_SINCE: Final = {keys.CREATE_TOPICS: 6, keys.CREATE_PARTITIONS: 3, keys.DELETE_TOPICS: 5}
"""By API key: the first version whose clients know the error for an exceeded quota."""

_MEASURED: Final[Mapping[int, str]] = {
    keys.PRODUCE: "producer_byte_rate", keys.FETCH: "consumer_byte_rate", keys.SHARE_FETCH: "consumer_byte_rate"
}  # fmt: skip
"""By API key: the quota for the bytes of its records."""
