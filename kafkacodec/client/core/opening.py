"""What is said on a new connection before the first request: the versions of the broker, then SASL. No I/O.

Brokers from 0.10 on answer ApiVersions. 0.9 ignores it and answers the request after it; 0.8 closes the connection.
But connections are closed for many reasons, so nothing follows from that alone: a broker is old if it answers a request
of a version that no broker has. Newer ones check versions and close the connection. 0.9 and 0.8 answer, as if it were
version 0, the requests that they know; which release of 0.8 it is, is found out by requests that only some have. Each
such attempt takes a new connection: see `Way`.

Source: KIP-35 and KIP-511 (ApiVersions), KIP-43, KIP-152 and KIP-368 (SASL).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkacodec import messages
from kafkacodec.client.core.authentication import Authentication, Exchange, Request
from kafkacodec.client.core.calls import Versions
from kafkacodec.client.core.old_brokers import baseline_of
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, RemoteProtocolError, UnsupportedVersion, error
from kafkacodec.protocol.connection import Connection, VersionsAgreed, VersionsRefused
from kafkacodec.protocol.frames import SIZE_BYTES
from kafkacodec.protocol.releases import BASELINES
from kafkacodec.protocol.versions import supported_ranges

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["FIRST_WAY", "OPENING_FRAME_BYTES", "SILENCE_MS", "Opening", "OpeningSettings", "Way", "renewal_time"]

OPENING_FRAME_BYTES: Final = 1 << 20
"""The largest frame to accept before a connection is ready: far above what versions and tokens need."""

SILENCE_MS: Final = 500
"""How long a broker may be silent before `Opening.silent` is called."""


class OpeningSettings(Protocol):
    """The options of a client that count when a connection is opened; `ClientSettings` has them."""

    @property
    def client_id(self) -> str:
        """The name by which brokers log this client."""

    @property
    def receive_message_max_bytes(self) -> int:
        """The largest response that is accepted, in bytes."""

    @property
    def max_in_flight_requests_per_connection(self) -> int:
        """Requests that wait for their answers on a connection."""

    @property
    def broker_version_fallback(self) -> str | None:
        """The version of brokers that have no ApiVersions; None: found out by trying."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to open a connection. The driver keeps the one that succeeded for each broker.

    Attributes:
        release: the key of `BASELINES` that the broker is taken for; None: it has ApiVersions; "0.10.0": it has that,
            perhaps in version 0 only.
        certain: whether an answer has told that; else it is found out.
        least: the oldest release that it can be by what it answered before; None if it has answered nothing.
    """

    release: str | None = None
    certain: bool = False
    least: str | None = None

    def again(self) -> Way:
        """The way for the next connection, after one that succeeded: the broker may be a newer one by then."""
        return Way(None, certain=self.release is None, least=self.release)


FIRST_WAY: Final = Way()

_FIRST_WITH_VERSIONS: Final = "0.10.0"
_IGNORES_UNKNOWN: Final = "0.9.0"
_NO_VERSION: Final = (2**15 - 1).to_bytes(2, "big")
_VERSION_AT: Final = slice(SIZE_BYTES + 2, SIZE_BYTES + 4)  # in the frame of a request

# What all of the old releases have.
_ANY_OLD: Final[Request] = (messages.ListOffsetsRequest(), 0)

# What each release has and older ones have not, newest first. 0.9 is told by what it ignores.
_PROBES: Final[dict[str, Request]] = {
    "0.8.2": (messages.FindCoordinatorRequest(key="kafkacodec"), 0),
    "0.8.1": (messages.OffsetFetchRequest(group_id="kafkacodec"), 0),
    "0.8.0": _ANY_OLD,
}


class Opening:
    """The opening of one connection, without I/O: frames and a clock go in, bytes come out::

        opening = Opening(settings, name, exchange, way)
        send opening.start(now)
        while not opening.ready:
            send opening.receive(frame, now)      # b"" means: wait for the next frame
            send opening.silent()                 # each time after SILENCE_MS without a frame
        # Where the broker closes the connection before that:
        error = opening.lost()
        way = opening.next_way                    # if not None, connect again at once with a new Opening

    Args:
        settings: the client's.
        name: of the broker, for errors.
        exchange: a new exchange of the SASL mechanism (with its token, if it needs one), or None without SASL.
        way: the one that succeeded with this broker, or the `next_way` of the connection before.

    Attributes:
        connection: for the requests after the opening.
        ready: whether the opening is done.
        versions: those that both sides have, when it is.
        way: to be kept for the next connection to this broker, when it is.
        renew_at: when the connection has to be authenticated again, in ms of the clock; None: never.
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
        self._authenticated = False  # by such tokens, before or after the versions are known
        self._answered = False  # the broker answered a request
        self._versions_id: int | None = None  # the correlation id of ApiVersions while it has no answer

    def start(self, now: float) -> bytes:
        """The first bytes to send; none if the connection is ready at once. Raises AuthenticationFailed."""
        if self.way.release is None:
            return self._ask_versions()
        if self.way.release == _FIRST_WITH_VERSIONS:
            return self._ask_lowest()
        if self._exchange is not None:  # 0.9 has one mechanism, GSSAPI, and no handshake
            return self._start_tokens(self._exchange)
        return self._probe_or_finish()

    def receive(self, frame: Buffer, now: float) -> bytes:
        """Take a frame with its size; returns bytes to send.

        Raises:
            AuthenticationFailed: the broker refused, or cannot prove what the mechanism demands of it.
            RemoteProtocolError: the peer breaks the protocol.
            UnsupportedVersion: it has no API in common with this library.
        """
        if self._raw and self._exchange is not None:
            return self._token_received(self._exchange, bytes(memoryview(frame)[SIZE_BYTES:]))
        if self._silent_id is not None and _correlation_id(frame) == self._silent_id:
            return self._answered_after_silence(frame, self._silent_id)
        events = self.connection.receive_frame(frame)
        return self._answer(events[0].message, events[1] if len(events) > 1 else None, now)

    def silent(self) -> bytes:
        """What to send to a broker that has not answered for `SILENCE_MS`: 0.9 ignores ApiVersions."""
        before_sasl = self._exchange is not None and not self._authenticated
        if self._versions_id is None or before_sasl or self.way.certain or self._silent_id is not None:
            return b""
        self._silent_id, data = self.connection.send_request(messages.ListGroupsRequest(), 0)
        return data

    def _answered_after_silence(self, frame: Buffer, silent_id: int) -> bytes:
        self._silent_id = None
        if self._versions_id is None or self._versions_id > silent_id:  # a slow broker has answered both
            self.connection.receive_frame(frame)
            return self._finish() if self.versions else b""
        self.connection = _connection(self._settings)  # the old one waits for the answer to ApiVersions
        self._answered, self._versions_id = True, None
        self.way = replace(self.way, release=_IGNORES_UNKNOWN)
        return self._probe_or_finish()

    def lost(self) -> ConnectionFailed:
        """The error for a connection that ends before it is ready; sets `next_way` if there is another to try."""
        if self._raw and self._answered:
            return AuthenticationFailed(
                f"the broker closed the connection during the authentication by {self._mechanism}, as brokers before "
                "1.0 do when they refuse the credentials"
            )
        if not self._answered:
            self.next_way = self._older()
        when = "before the connection was open" if self._answered else "without an answer"
        return ConnectionFailed(
            f"the broker closed the connection {when}: it is shutting down, or its listener uses another "
            "security_protocol"
        )

    def _older(self) -> Way | None:
        """The way to try after a connection that was closed without an answer."""
        if self.way.certain:
            return None
        ways = [None, _FIRST_WITH_VERSIONS, *self._old_releases()]
        left = ways[ways.index(self.way.release) + 1 :]
        return replace(self.way, release=left[0]) if left else None

    def _old_releases(self) -> list[str]:
        if self._exchange is not None:
            found = [_IGNORES_UNKNOWN] if self._mechanism == "GSSAPI" else []
        elif self._fallback is not None:
            found = [baseline_of(self._fallback)]
        else:
            found = list(_PROBES)
        return [release for release in found if self.way.least is None or release >= self.way.least]

    @property
    def _mechanism(self) -> str:
        return "" if self._exchange is None else self._exchange.mechanism

    def _answer(self, message: Any, versions: VersionsAgreed | VersionsRefused | None, now: float) -> bytes:
        """What follows a response; `versions` is what it told about them."""
        self._answered, self._versions_id = True, None
        if isinstance(versions, VersionsRefused):
            return self._ask_versions()
        if isinstance(versions, VersionsAgreed):
            return self._agreed(versions)
        if isinstance(message, messages.ApiVersionsResponse):
            raise RemoteProtocolError(f"the broker refused the ApiVersions request: {error(message.error_code).name}")
        if self._authentication is not None:
            return self._authenticate(self._authentication, message, now)
        self.way = replace(self.way, certain=True)  # it was the answer to a probe
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
        return self._probe(_ANY_OLD if self._fallback is not None else _PROBES.get(release, _ANY_OLD))

    def _probe(self, request: Request) -> bytes:
        """A request of a version that no broker has; old ones answer in the given one."""
        data = bytearray(self._request(request))
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
    """When to authenticate again a session that began at `now`: after 85 to 95 % of its lifetime, as Java's clients.

    None for a session without an end. Times are in ms.
    """
    if session_lifetime_ms <= 0:
        return None
    share: float = (source or random).uniform(0.85, 0.95)
    return now + session_lifetime_ms * share


def _connection(settings: OpeningSettings) -> Connection:
    """A connection for requests; the driver limits what is in flight, the opening and renewals have a few more."""
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
