"""SASL over Kafka's requests: a handshake that names the mechanism, then tokens, on one connection.

Source: KIP-43 (SaslHandshake), KIP-152 (SaslAuthenticate), KIP-368 (sessions that end).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from kafkacodec import messages
from kafkacodec.client.core.calls import Versions
from kafkacodec.errors import (
    ILLEGAL_SASL_STATE,
    UNSUPPORTED_SASL_MECHANISM,
    AuthenticationFailed,
    RemoteProtocolError,
    error,
)
from kafkacodec.messages.keys import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kafkacodec.protocol.versions import highest_common

if TYPE_CHECKING:
    from kafkacodec.messages import Message

__all__ = ["Authentication", "Exchange", "Request"]


Request: TypeAlias = "tuple[Message, int]"
"""A request and its version."""


class Exchange(Protocol):
    """The client's side of a SASL mechanism; no I/O."""

    @property
    def mechanism(self) -> str:
        """Its name."""

    @property
    def complete(self) -> bool:
        """Whether the token that was given last is the end: the broker has nothing to answer to it."""

    def first(self) -> bytes:
        """The first token. Raises AuthenticationFailed."""

    def step(self, challenge: bytes) -> bytes | None:
        """The answer to the broker's token; None when there is nothing more to send. Raises AuthenticationFailed."""


class Authentication:
    """One authentication by requests: `start` gives the first, `answered` takes a response and gives the next.

    A connection is authenticated so after its versions are known, and again before its session ends. Between the
    first request and the last response the broker takes no other requests on the connection. The order::

        request = authentication.start()
        while request is not None:
            request = authentication.answered(response to request)

    Brokers before 1.0 have version 0 of SaslHandshake only: there `raw` is True after its response, and what follows
    are tokens without headers, which the caller exchanges.

    Args:
        exchange: a new one of the mechanism.
        versions: those of the broker and this library.

    Attributes:
        raw: whether the tokens have no headers.
        session_lifetime_ms: how long the broker accepts requests before it must be authenticated again; 0: for ever.
    """

    def __init__(self, exchange: Exchange, versions: Versions) -> None:
        self.raw = False
        self.session_lifetime_ms = 0
        self._exchange = exchange
        self._versions = versions

    def start(self) -> Request:
        """The handshake. Raises AuthenticationFailed if the broker has no SASL."""
        if SASL_HANDSHAKE not in self._versions:
            raise AuthenticationFailed("the broker has no SASL: it does not list the SaslHandshake API")
        version = highest_common(SASL_HANDSHAKE, self._versions)
        if SASL_AUTHENTICATE not in self._versions:
            version = 0
        return messages.SaslHandshakeRequest(mechanism=self._exchange.mechanism), version

    def answered(self, response: Any) -> Request | None:
        """The next request, or None: authenticated, or `raw` is True. Raises AuthenticationFailed."""
        if isinstance(response, messages.SaslHandshakeResponse):
            _check_handshake(response, self._exchange.mechanism)
            if SASL_AUTHENTICATE not in self._versions:
                self.raw = True
                return None
            return self._token(self._exchange.first())
        if response.error_code:
            raise AuthenticationFailed(_refusal(self._exchange.mechanism, response))
        self.session_lifetime_ms = max(0, response.session_lifetime_ms)
        if self._exchange.complete:
            return None
        token = self._exchange.step(bytes(response.auth_bytes))
        return None if token is None else self._token(token)

    def _token(self, token: bytes) -> Request:
        version = highest_common(SASL_AUTHENTICATE, self._versions)
        return messages.SaslAuthenticateRequest(auth_bytes=token), version


def _check_handshake(response: Any, mechanism: str) -> None:
    code = response.error_code
    if code == UNSUPPORTED_SASL_MECHANISM:
        has = ", ".join(response.mechanisms) or "none"
        raise AuthenticationFailed(f"the broker does not accept the SASL mechanism {mechanism}; it has {has}")
    if code == ILLEGAL_SASL_STATE:
        raise AuthenticationFailed(
            "the broker's listener does not use SASL: connect to another port, or without sasl_mechanism"
        )
    if code:
        raise RemoteProtocolError(f"the broker refused the SASL handshake: {error(code).name}")


def _refusal(mechanism: str, response: Any) -> str:
    """The reason that the broker gives; it has no secrets in it, as it goes to peers that are not authenticated."""
    name = error(response.error_code).name
    reason = f"{response.error_message} ({name})" if response.error_message else name
    return f"the broker refused the authentication by {mechanism}: {reason}"
