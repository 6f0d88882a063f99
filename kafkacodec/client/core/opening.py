"""The opening of a connection, before the first request: API versions, then SASL. No I/O.

Brokers from 0.10 on answer ApiVersions. 0.9 ignores it and answers the next request; 0.8 closes the connection. A
closed connection alone proves nothing, since there are many reasons for it. A broker is old if it answers a request of
a version that no broker has: newer brokers check versions and close the connection, while 0.9 and 0.8 answer requests
that they know as if they had version 0. Requests that only some releases of 0.8 have tell these apart. Each such
attempt takes a new connection: see `Way`.

Source: KIP-35 and KIP-511 (ApiVersions), KIP-43, KIP-152 and KIP-368 (SASL).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkacodec import messages
from kafkacodec.chance import RANDOM
from kafkacodec.client.core.authentication import Authentication, Exchange, Request
from kafkacodec.client.core.calls import Versions
from kafkacodec.client.core.old_brokers import baseline_of
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, RemoteProtocolError, UnsupportedVersion, error
from kafkacodec.protocol.connection import Connection, VersionsAgreed, VersionsRefused
from kafkacodec.protocol.frames import SIZE_BYTES
from kafkacodec.protocol.releases import BASELINES
from kafkacodec.protocol.versions import supported_ranges

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.messages import Message

__all__ = ["FIRST_WAY", "OPENING_FRAME_BYTES", "SILENCE_MS", "Opening", "OpeningSettings", "Way", "renewal_time"]

OPENING_FRAME_BYTES: Final = 1 << 20
"""The largest frame accepted before a connection is ready: far above the size of versions and tokens."""

SILENCE_MS: Final = 500
"""How long a broker may be silent before `Opening.silent` is called."""


class OpeningSettings(Protocol):
    """The client options for opening a connection; `ClientSettings` has them."""

    @property
    def client_id(self) -> str:
        """The name by which brokers log this client."""

    @property
    def receive_message_max_bytes(self) -> int:
        """The largest accepted response in bytes."""

    @property
    def max_in_flight_requests_per_connection(self) -> int:
        """The maximum number of unanswered requests on a connection."""

    @property
    def broker_version_fallback(self) -> str | None:
        """The version of brokers without ApiVersions; None to detect it."""


class Way(NamedTuple):
    """A way to open a connection. The driver keeps the one that succeeded for each broker.

    Attributes:
        release: the key of `BASELINES` to assume for the broker; None: it has ApiVersions; "0.10.0": it has them,
            perhaps in version 0 only.
        certain: whether an answer has confirmed the release; otherwise it is still to be detected.
        least: the oldest possible release, by the answers so far; None without any answer.
    """

    release: str | None = None
    certain: bool = False
    least: str | None = None

    def again(self) -> Way:
        """The way for the next connection after a successful one: the broker may have been upgraded by then."""
        return Way(None, certain=self.release is None, least=self.release)


FIRST_WAY: Final = Way()

_FIRST_WITH_VERSIONS: Final = "0.10.0"
_IGNORES_UNKNOWN: Final = "0.9.0"
_NO_VERSION: Final = (2**15 - 1).to_bytes(2, "big")
_VERSION_AT: Final = slice(SIZE_BYTES + 2, SIZE_BYTES + 4)  # in a request frame


def _any_old() -> Message:
    """A request that all of the old releases have."""
    return messages.ListOffsetsRequest()


# What each release added, newest first; made when one is needed, as few brokers are old. 0.9 is recognized by what it
# ignores.
_PROBES: Final[Mapping[str, Callable[[], Message]]] = {
    "0.8.2": lambda: messages.FindCoordinatorRequest(key="kafkacodec"),
    "0.8.1": lambda: messages.OffsetFetchRequest(group_id="kafkacodec"),
    "0.8.0": _any_old,
}


class Opening:
    """The opening of one connection, without I/O: takes frames and times, returns bytes::

        opening = Opening(settings, name, exchange, way)
        send opening.start(now)
        while not opening.ready:
            send opening.receive(frame, now)      # b"" means: wait for the next frame
            send opening.silent()                 # each time after SILENCE_MS without a frame
        # If the broker closes the connection before that:
        error = opening.lost()
        way = opening.next_way                    # if not None, connect again at once with a new Opening

    Args:
        settings: the client's.
        name: the broker's name for errors.
        exchange: a new exchange of the SASL mechanism (with its token, if it needs one), or None without SASL.
        way: the way that last succeeded with this broker, or the `next_way` of the previous attempt.

    Attributes:
        connection: for requests after the opening.
        ready: whether the opening is complete.
        versions: the common API versions, once ready.
        way: the way to keep for the next connection to this broker, once ready.
        renew_at: when to authenticate again, in ms of the clock; None: never.
        next_way: set by `lost`.
    """

    def __init__(
        self, settings: OpeningSettings, name: str, exchange: Exchange | None = None, way: Way = FIRST_WAY
    ) -> None:
        self.name = name
        self.ready = False
        self.versions: Versions = {}
        self.way = way
        self.renew_at: float | None = None
        self.next_way: Way | None = None
        self.connection = _connection(settings)
        self._settings = settings
        self._silent_id: int | None = None  # the correlation id of the request after ApiVersions
        self._fallback = settings.broker_version_fallback
        self._exchange = exchange
        self._authentication: Authentication | None = None
        self._raw = False  # frames are tokens without headers
        self._authenticated = False  # by such tokens, before or after ApiVersions
        self._answered = False  # whether the broker has answered a request
        self._versions_id: int | None = None  # the correlation id of an unanswered ApiVersions

    def start(self, now: float) -> bytes:
        """The first bytes to send; empty if the connection is ready at once. Raises AuthenticationFailed."""
        if self.way.release is None:
            return self._ask_versions()
        if self.way.release == _FIRST_WITH_VERSIONS:
            return self._ask_lowest()
        if self._exchange is not None:  # 0.9 has one mechanism, GSSAPI, and no handshake
            return self._start_tokens(self._exchange)
        return self._probe_or_finish()

    def receive(self, frame: Buffer, now: float) -> bytes:
        """Take a frame including its size field; returns bytes to send.

        Raises:
            AuthenticationFailed: the broker refused, or failed to prove its own identity as the mechanism requires.
            RemoteProtocolError: the peer violates the protocol.
            UnsupportedVersion: the broker shares no API version with this library.
        """
        if self._raw and self._exchange is not None:
            return self._token_received(self._exchange, bytes(memoryview(frame)[SIZE_BYTES:]))
        if self._silent_id is not None and _correlation_id(frame) == self._silent_id:
            return self._answered_after_silence(frame, self._silent_id)
        events = self.connection.receive_frame(frame)
        return self._answer(events[0].message, events[1] if len(events) > 1 else None, now)

    def silent(self) -> bytes:
        """The bytes to send to a broker that has not answered for `SILENCE_MS`: 0.9 ignores ApiVersions."""
        before_sasl = self._exchange is not None and not self._authenticated
        if self._versions_id is None or before_sasl or self.way.certain or self._silent_id is not None:
            return b""
        self._silent_id, data = self.connection.send_request(messages.ListGroupsRequest(), 0)
        return data

    def _answered_after_silence(self, frame: Buffer, silent_id: int) -> bytes:
        self._silent_id = None
        if self._versions_id is None or self._versions_id > silent_id:  # a slow broker answered both
            self.connection.receive_frame(frame)
            return self._finish() if self.versions else b""
        self.connection = _connection(self._settings)  # the previous one still expects the answer to ApiVersions
        self._answered, self._versions_id = True, None
        self.way = self.way._replace(release=_IGNORES_UNKNOWN)
        return self._probe_or_finish()

    def lost(self) -> ConnectionFailed:
        """The error for a connection that ended before it was ready; sets `next_way` if another way remains."""
        if self._raw and self._answered:
            return AuthenticationFailed(
                f"the broker closed the connection during the authentication by {self._mechanism}, as brokers before "
                "1.0 do when they refuse the credentials"
            )
        if not self._answered:
            self.next_way = self._older()
        if not self._answered:
            reason = "without an answer: it is shutting down, or its listener uses another security_protocol"
        elif self._exchange is not None:
            reason = f"during the authentication by {self._mechanism}: it is shutting down, or its log says why"
        else:
            reason = "before it could be used: it is shutting down"
        return ConnectionFailed(f"the broker closed the connection {reason}", closed_unanswered=True)

    def _older(self) -> Way | None:
        """The way to try after a connection closed without an answer."""
        if self.way.certain:
            return None
        ways = [None, _FIRST_WITH_VERSIONS, *self._old_releases()]
        left = ways[ways.index(self.way.release) + 1 :]
        return self.way._replace(release=left[0]) if left else None

    def _old_releases(self) -> list[str]:
        if self._exchange is not None:
            found = [_IGNORES_UNKNOWN] if self._mechanism == "GSSAPI" else []
        elif self._fallback is not None:
            found = [baseline_of(self._fallback)]
        else:
            found = list(_PROBES)
        return [release for release in found if self.way.least is None or release >= self.way.least]

    @property
    def has_logged_in(self) -> bool:
        """Whether a client that is ready has authenticated by SASL."""
        return self._exchange is not None

    @property
    def _mechanism(self) -> str:
        return "" if self._exchange is None else self._exchange.mechanism

    def _answer(self, message: Any, versions: VersionsAgreed | VersionsRefused | None, now: float) -> bytes:
        """The bytes to send after a response; `versions` is what it said about API versions."""
        self._answered, self._versions_id = True, None
        if isinstance(versions, VersionsRefused):
            return self._ask_versions()
        if isinstance(versions, VersionsAgreed):
            return self._agreed(versions)
        if isinstance(message, messages.ApiVersionsResponse):
            raise RemoteProtocolError(f"the broker refused the ApiVersions request: {error(message.error_code).name}")
        if self._authentication is not None:
            return self._authenticate(self._authentication, message, now)
        self.way = self.way._replace(certain=True)  # this answered a probe
        return self._probe_or_finish()

    def _ask_versions(self) -> bytes:
        self._versions_id, data = self.connection.negotiate()
        return data

    def _ask_lowest(self) -> bytes:
        self._versions_id, data = self.connection.send_request(messages.ApiVersionsRequest(), 0)
        return data

    def _agreed(self, versions: VersionsAgreed) -> bytes:
        self.way = Way(certain=True)
        self.versions = _common(versions.ranges)
        if not self.versions:
            raise UnsupportedVersion(f"{self.name} has no API in common with this client")
        if self._silent_id is not None:
            return b""  # its answer comes next
        if self._exchange is None or self._authenticated:
            return self._finish()
        self._authentication = Authentication(self._exchange, self.versions)
        return self._request(self._authentication.start())

    def _authenticate(self, authentication: Authentication, message: Any, now: float) -> bytes:
        following = authentication.answered(message)
        if following is not None:
            return self._request(following)
        if authentication.raw and self._exchange is not None:
            return self._start_tokens(self._exchange)
        self.renew_at = renewal_time(now, authentication.session_lifetime_ms)
        return self._finish()

    def _probe_or_finish(self) -> bytes:
        release = self.way.release
        if release is None:
            return self._finish()
        if self.way.certain:
            self.versions = _common(BASELINES[release])
            return self._finish()
        return self._probe(_any_old if self._fallback is not None else _PROBES.get(release, _any_old))

    def _probe(self, request: Callable[[], Message]) -> bytes:
        """A request of a version that no broker has; old brokers answer it in version 0."""
        data = bytearray(self._request((request(), 0)))
        data[_VERSION_AT] = _NO_VERSION
        return bytes(data)

    def _request(self, request: Request) -> bytes:
        return self.connection.send_request(*request)[1]

    def _finish(self) -> bytes:
        self.ready = True
        return b""

    # Tokens without headers

    def _start_tokens(self, exchange: Exchange) -> bytes:
        self._raw = True
        return _sized(exchange.first())

    def _token_received(self, exchange: Exchange, challenge: bytes) -> bytes:
        token = exchange.step(challenge)
        out = b"" if token is None else _sized(token)
        if token is None or exchange.complete:
            self._raw, self._authenticated = False, True
            out += self._probe_or_finish()
        return out


def renewal_time(now: float, session_lifetime_ms: float, source: random.Random | None = None) -> float | None:
    """When to renew a session that began at `now`: after 85 to 95 % of its lifetime, as Java's clients do.

    None for a session that does not expire. Times are in ms.
    """
    if session_lifetime_ms <= 0:
        return None
    share: float = (source or RANDOM).uniform(0.85, 0.95)
    return now + session_lifetime_ms * share


def _connection(settings: OpeningSettings) -> Connection:
    """A connection for requests. The driver limits requests in flight; the opening and renewals use a few more."""
    return Connection(
        "client",
        client_id=settings.client_id,
        max_frame_size=settings.receive_message_max_bytes,
        max_pending=settings.max_in_flight_requests_per_connection + 10,
        allow_trailing_bytes=True,
    )


def _correlation_id(frame: Buffer) -> int:
    return int.from_bytes(memoryview(frame)[SIZE_BYTES : SIZE_BYTES + 4], "big")


def _common(theirs: Versions) -> Versions:
    found = {}
    for key, ours in supported_ranges().items():
        if key in theirs:
            common = range(max(ours.start, theirs[key].start), min(ours.stop, theirs[key].stop))
            if common:
                found[key] = common
    return found


def _sized(token: bytes) -> bytes:
    return len(token).to_bytes(SIZE_BYTES, "big") + token
