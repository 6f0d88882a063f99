"""SASL authentication by Kafka requests: a handshake that names the mechanism, then tokens, on one connection.

Source: KIP-43 (SaslHandshake), KIP-152 (SaslAuthenticate), KIP-368 (session expiry).
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
"""A request and its API version."""


class Exchange(Protocol):
    """The client's side of a SASL mechanism; no I/O."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""

    @property
    def complete(self) -> bool:
        """Whether the last token returned ends the exchange, so that the broker has nothing to reply."""

    def first(self) -> bytes:
        """The first token. Raises AuthenticationFailed."""

    def step(self, challenge: bytes) -> bytes | None:
        """The reply to the broker's token; None if there is nothing left to send. Raises AuthenticationFailed."""


class Authentication:
    """One authentication by requests: `start` returns the first, `answered` takes a response and returns the next.

    A connection is authenticated once its versions are known, and again before its session expires. Between the
    first request and the last response the broker accepts no other requests on the connection. Usage::

        request = authentication.start()
        while request is not None:
            request = authentication.answered(response to request)

    Brokers before 1.0 only have version 0 of SaslHandshake: `raw` is then True after its response, and the caller
    exchanges the tokens themselves, without headers.

    Args:
        exchange: a new exchange of the mechanism.
        versions: the API versions that the broker and this library share.

    Attributes:
        raw: whether tokens are sent without headers.
        session_lifetime_ms: how long the broker accepts requests before the client must authenticate again; 0: forever.
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
        """The next request; None when authenticated or `raw`. Raises AuthenticationFailed."""
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
    """The broker's reason. It contains no secrets, as brokers send it to peers that are not authenticated."""
    name = error(response.error_code).name
    reason = f"{response.error_message} ({name})" if response.error_message else name
    return f"the broker refused the authentication by {mechanism}: {reason}"
