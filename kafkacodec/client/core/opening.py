"""How a connection begins: the broker's versions, then SASL. Bytes in, bytes out; no I/O.

Brokers from 0.10 on answer ApiVersions. Older ones close the connection at it; which of them it is, is found out by
requests that only some of them have, each on a new connection: see `Way`. What a probe has found is confirmed by
ApiVersions once more, since a newer broker may have closed the first connection for another reason.

Source: KIP-35 and KIP-511 (ApiVersions), KIP-43, KIP-152 and KIP-368 (SASL).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.core.authentication import Authentication, Exchange, Request
from kafkacodec.client.core.calls import Versions
from kafkacodec.client.core.foreign import foreign_protocol
from kafkacodec.client.core.old_brokers import BASELINES, baseline_of
from kafkacodec.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
    error,
)
from kafkacodec.protocol.connection import Connection, ResponseReceived, VersionsAgreed, VersionsRefused
from kafkacodec.protocol.frames import SIZE_BYTES, frame_size
from kafkacodec.protocol.versions import supported_ranges

__all__ = ["FIRST_WAY", "Opening", "Way", "reauthenticate_at"]

# Far above what ApiVersions and tokens need; a broker cannot make the client keep more before it is authenticated.
_MAX_FRAME_SIZE: Final = 1 << 20
_HEAD_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Way:
    """A way to open a connection. The driver keeps the one that succeeded for each broker.

    Attributes:
        release: the key of `BASELINES` that the broker is taken for; None: it has ApiVersions.
        certain: whether that is known; else a probe is sent.
    """

    release: str | None = None
    certain: bool = False


FIRST_WAY: Final = Way()

# What each release has and older ones have not, newest first.
_PROBES: Final[dict[str, Request]] = {
    "0.9.0": (messages.ListGroupsRequest(), 0),
    "0.8.2": (messages.FindCoordinatorRequest(key="kafkacodec"), 0),
    "0.8.1": (messages.OffsetFetchRequest(group_id="kafkacodec"), 0),
}


class Opening:
    """The beginning of one connection, after TCP and TLS::

        opening = Opening(client_id, exchange, way)
        send opening.start()
        while not opening.ready:
            send opening.receive(received)        # b"" means: wait for more
        # Where the broker closes the connection:
        way = opening.closed_by_peer()            # connect again at once with Opening(…, way)

    Args:
        client_id: of the requests.
        exchange: a new exchange of the SASL mechanism (with its token, if it needs one), or None without SASL.
        way: the one that succeeded with this broker, or that `closed_by_peer` returned.
        fallback: the release that a broker without ApiVersions is taken for; None: it is found out.

    Attributes:
        ready: whether the connection takes requests.
        way: to be kept for the next connection to this broker, once ready.
        versions: those that the broker and this library have in common, by API key, once ready.
        session_lifetime_ms: how long until the connection must be authenticated again; 0: never.
    """

    def __init__(
        self,
        client_id: str | None = None,
        exchange: Exchange | None = None,
        way: Way = FIRST_WAY,
        *,
        fallback: str | None = None,
    ) -> None:
        self.ready = False
        self.way = way
        self.versions: Versions = {}
        self.session_lifetime_ms = 0
        self._exchange = exchange
        self._fallback = fallback
        self._connection = Connection("client", client_id=client_id, max_frame_size=_MAX_FRAME_SIZE)
        self._authentication: Authentication | None = None
        self._head: bytearray | None = bytearray()  # the first bytes, until they are known to be Kafka's
        self._tokens: bytearray | None = None  # received of raw tokens, while they are exchanged
        self._answered = False  # the broker answered a request
        self._authenticated = False  # by tokens, before or after the versions are known
        self._confirming = False

    def __repr__(self) -> str:
        return f"<Opening: {self.way.release or 'ApiVersions'}, {'ready' if self.ready else 'not ready'}>"

    def start(self) -> bytes:
        """The first bytes to send; b"" if the connection is ready at once. Raises AuthenticationFailed."""
        if self.way.release is None:
            return self._connection.negotiate()[1]
        if self._exchange is not None:  # 0.9 has one mechanism, GSSAPI, and no handshake
            return self._start_tokens()
        return self._probe_or_finish()

    def receive(self, data: bytes | bytearray | memoryview) -> bytes:
        """Take received bytes; returns the next bytes to send.

        Raises:
            AuthenticationFailed: the broker refused, or is not what it says.
            RemoteProtocolError: the peer does not speak Kafka's protocol.
            LocalProtocolError: the connection is ready already.
        """
        if self.ready:
            raise LocalProtocolError("the connection is open already: its bytes go to the link")
        self._check_head(data)
        if self._tokens is not None:
            return self._receive_tokens(data)
        events = self._connection.receive(data)  # of one response, as one request is pending at a time
        return self._answer(*events) if events else b""

    def closed_by_peer(self) -> Way:
        """The way to try next, at once, on a new connection, after the broker closed this one.

        Raises ConnectionFailed or AuthenticationFailed, with the reason, if there is none.
        """
        if self._answered and self._tokens is not None:
            raise AuthenticationFailed(
                f"the broker closed the connection during the authentication by {self._mechanism}, as brokers before "
                "1.0 do when they refuse the credentials"
            )
        if self._confirming:
            return replace(self.way, certain=True)
        way = None if self._answered else self._older()
        if way is None:
            when = "before the connection was open" if self._answered else "without an answer"
            raise ConnectionFailed(
                f"the broker closed the connection {when}: it is shutting down, or its listener uses another "
                "security_protocol"
            )
        return way

    def _older(self) -> Way | None:
        if self.way.certain or (self._exchange is not None and self._mechanism != "GSSAPI"):
            return None
        if self.way.release is None and self._fallback is not None:
            return Way(baseline_of(self._fallback), certain=True)
        tried = [None, *_PROBES]
        left = tried[tried.index(self.way.release) + 1 :]
        if not left or (self._exchange is not None and self.way.release is not None):
            return None
        return Way(left[0])

    @property
    def _mechanism(self) -> str:
        return "" if self._exchange is None else self._exchange.mechanism

    # Versions

    def _answer(self, received: ResponseReceived, versions: VersionsAgreed | VersionsRefused | None = None) -> bytes:
        """What follows a response; `versions` is what it told about them."""
        self._answered = True
        message: Any = received.message
        if isinstance(versions, VersionsRefused):
            return self._connection.negotiate()[1]
        if isinstance(versions, VersionsAgreed):
            return self._agreed(versions)
        if isinstance(message, messages.ApiVersionsResponse):
            raise RemoteProtocolError(f"the broker refused the ApiVersions request: {error(message.error_code).name}")
        if self._authentication is not None:
            return self._authenticate(self._authentication, message)
        self._confirming = True  # it was the answer to a probe
        return self._request((messages.ApiVersionsRequest(), 0))

    def _agreed(self, versions: VersionsAgreed) -> bytes:
        self.way = FIRST_WAY  # also after a probe: it has ApiVersions after all
        self.versions = _common(versions.ranges)
        if self._exchange is None or self._authenticated:
            return self._finish()
        self._authentication = Authentication(self._exchange, self.versions)
        return self._request(self._authentication.start())

    def _authenticate(self, authentication: Authentication, message: Any) -> bytes:
        following = authentication.answered(message)
        if following is not None:
            return self._request(following)
        if authentication.raw:
            return self._start_tokens()
        self.session_lifetime_ms = authentication.session_lifetime_ms
        return self._finish()

    def _probe_or_finish(self) -> bytes:
        release = self.way.release
        assert release is not None
        if self.way.certain:
            self.versions = _common(BASELINES[release])
            return self._finish()
        return self._request(_PROBES[release])

    def _request(self, request: Request) -> bytes:
        return self._connection.send_request(*request)[1]

    def _finish(self) -> bytes:
        self.ready = True
        return b""

    # Tokens without headers

    def _start_tokens(self) -> bytes:
        assert self._exchange is not None
        self._tokens = bytearray()
        return _sized(self._exchange.first())

    def _receive_tokens(self, data: bytes | bytearray | memoryview) -> bytes:
        assert self._tokens is not None
        assert self._exchange is not None
        self._tokens += data
        try:
            size = frame_size(self._tokens, max_size=_MAX_FRAME_SIZE) if len(self._tokens) >= SIZE_BYTES else 0
        except DecodeError as fault:
            raise RemoteProtocolError(f"SASL token: {fault}") from fault
        if not size or len(self._tokens) < size:
            return b""
        if len(self._tokens) > size:
            raise RemoteProtocolError(f"unexpected {len(self._tokens) - size} bytes after a SASL token")
        challenge = bytes(self._tokens[SIZE_BYTES:])
        self._tokens.clear()
        token = self._exchange.step(challenge)
        out = b"" if token is None else _sized(token)
        if token is None or self._exchange.complete:
            self._tokens, self._authenticated = None, True
            out += self._finish() if self.way.release is None else self._probe_or_finish()
        return out

    def _check_head(self, data: bytes | bytearray | memoryview) -> None:
        """Name the protocol of a peer that is no Kafka broker, rather than take its bytes for a frame's size."""
        if self._head is None:
            return
        self._head += data[:_HEAD_BYTES]
        reason = foreign_protocol(bytes(self._head))
        if reason is not None:
            raise RemoteProtocolError(reason)
        if len(self._head) >= _HEAD_BYTES:
            self._head = None


def reauthenticate_at(now: float, session_lifetime_ms: float, source: random.Random | None = None) -> float | None:
    """When to authenticate again a session that began at `now`: after 85 to 95 % of its lifetime, as Java's clients.

    None for a session without an end. Times are in ms.
    """
    if session_lifetime_ms <= 0:
        return None
    return now + session_lifetime_ms * (source or random).uniform(0.85, 0.95)


def _common(theirs: Versions) -> dict[int, range]:
    ours = supported_ranges()
    both = {key: _overlap(theirs[key], ours[key]) for key in theirs.keys() & ours.keys()}
    return {key: versions for key, versions in sorted(both.items()) if versions}


def _overlap(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _sized(token: bytes) -> bytes:
    return len(token).to_bytes(SIZE_BYTES, "big") + token
