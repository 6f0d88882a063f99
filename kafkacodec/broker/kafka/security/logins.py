"""SASL logins: allowed requests before the login, the user afterwards, and the session's end (KIP-43, 152, 368)."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.refusals import refusal
from kafkacodec.broker.kafka.security.tokens import TOKEN_SECRET, token_hmac
from kafkacodec.messages import keys
from kafkacodec.net.notes import Notes
from kafkacodec.net.sasl.scram_keys import HASHES, MIN_ITERATIONS, Credential, credential
from kafkacodec.net.sasl.server import (
    InvalidToken,
    Malformed,
    OAuthBearerServer,
    PlainServer,
    Refused,
    ScramServer,
    ServerExchange,
    unsecured_token,
)
from kafkacodec.net.service import CLOSE, NOTHING, Effect, Reply
from kafkacodec.protocol.terms import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.kafka.security.peers import Peer

__all__ = ["Login", "Logins", "TokenCheck"]

TokenCheck: TypeAlias = Callable[[str], Any]
"""Takes a bearer token; returns the user's name, or a pair of it and when the token expires, in seconds since 1970."""

_RENEWED_MS: Final = 1000  # the shortest time between renewals of a session


class _State(Enum):
    FIRST = 0
    """No request yet."""
    HANDSHAKE = 1
    """The client has asked for versions; the mechanism follows."""
    TOKENS = 2
    """The mechanism is known; tokens follow."""
    DONE = 3
    """Logged in."""
    FAILED = 4
    """The connection ends."""


class Logins:
    """Users and mechanisms, the same for all connections.

    Args:
        node: the broker.
        users: passwords by name.
        tokens: checks bearer tokens; "unsecured" accepts unsigned tokens; None: there are none.
    """

    def __init__(self, node: Node, users: Mapping[str, str], tokens: TokenCheck | str | None) -> None:
        self.node = node
        self._users, self._tokens = users, tokens
        self._derived: dict[tuple[str, str], Credential] = {}
        config = node.config
        wanted = [name.strip() for name in config.text("sasl.enabled.mechanisms").split(",")]
        self._makers: dict[str, Callable[[], ServerExchange]] = {
            name: make for name, make in self._known().items() if name in wanted
        }
        self.mechanisms: Sequence[str] = list(self._makers)
        self._notes = Notes(time.monotonic)
        self.max_session_ms = config.number("connections.max.reauth.ms") or inf
        self.delay_ms = config.number("connection.failed.authentication.delay.ms")

    def exchange(self, mechanism: str) -> ServerExchange | None:
        """A new exchange of a mechanism; None if there is none of this name."""
        make = self._makers.get(mechanism)
        return None if make is None else make()

    def anyone(self) -> bool:
        """Whether anybody can log in now; clients may add users to the metadata later."""
        return bool(self._users or self._tokens or self.node.catalog.scram)

    def note(self, request: Request, reason: str) -> None:
        """Log why a client is disconnected."""
        self._notes.say(f"{request.session.listener.name}: {reason}; closing its connection", request.session.peer)

    def _known(self) -> dict[str, Callable[[], ServerExchange]]:
        known: dict[str, Callable[[], ServerExchange]] = {}
        if self._users:
            known["PLAIN"] = partial(PlainServer, self._users.get)
        for name in HASHES:
            known[name] = partial(ScramServer, name, partial(self._credential, name), self._owner)
        if self._tokens is not None:
            known["OAUTHBEARER"] = partial(OAuthBearerServer, self._check)
        return known

    def _credential(self, mechanism: str, user: str, is_token: bool) -> Credential | None:
        """Return the credential of a user: from the metadata, otherwise from the broker's users."""
        if is_token:
            return self._of_token(mechanism, user)
        record = self.node.catalog.scram.get((user, SCRAM_MECHANISMS[mechanism]))
        if record is not None:
            return Credential(bytes(record.salt), record.iterations, bytes(record.stored_key), bytes(record.server_key))
        if user not in self._users:
            return None
        found = self._derived.get((mechanism, user))
        if found is None:
            salt = secrets.token_bytes(16)
            found = credential(HASHES[mechanism], self._users[user], salt, MIN_ITERATIONS)
            self._derived[mechanism, user] = found
        return found

    def _of_token(self, mechanism: str, token_id: str) -> Credential | None:
        """Return the credential of a delegation token, whose HMAC is the password."""
        if token_id not in self.node.catalog.tokens or not self.node.config.text(TOKEN_SECRET):
            return None
        password = base64.b64encode(token_hmac(self.node, token_id)).decode()
        return credential(HASHES[mechanism], password, secrets.token_bytes(16), MIN_ITERATIONS)

    def _owner(self, token_id: str) -> tuple[str, float]:
        """The user of a delegation token, and when it expires."""
        record = self.node.catalog.tokens.get(token_id)
        if record is None:
            raise Refused
        return record.owner.partition(":")[2], float(record.expiration_timestamp)

    def _check(self, token: str, now: float) -> tuple[str, float | None]:
        if not callable(self._tokens):
            return unsecured_token(token, now)
        try:
            found = self._tokens(token)
        except Exception as error:
            raise InvalidToken(str(error)) from error
        user, expires = found if isinstance(found, tuple) else (found, None)
        if not isinstance(user, str) or not user or (expires is not None and expires * 1000 <= now):
            raise InvalidToken("it is unknown, or has expired")
        return user, None if expires is None else expires * 1000.0


class Login:
    """One connection's way to a user, and again before its session ends."""

    def __init__(self, logins: Logins, peer: Peer) -> None:
        self._logins, self._peer = logins, peer
        peer.login, peer.trusted = self, False
        self._state = _State.FIRST
        self._exchange: ServerExchange | None = None
        self._mechanism = self._before = ""
        self._expires = inf
        self._renewed = -inf
        self._renews = False

    def receive(self, request: Request) -> Effect | None:
        """Return the answer; None if the request is a logged-in user's and continues."""
        if self._state is _State.DONE:
            return self._next(request)
        if self._state is _State.FAILED:
            return NOTHING
        if self._state is _State.TOKENS:
            return self._token(request)
        if request.key == keys.API_VERSIONS and self._state is _State.FIRST:
            return None
        if request.key == keys.SASL_HANDSHAKE:
            return self._handshake(request)
        return self._close(request, "the client does not log in, which this listener requires")

    def answered_versions(self, response: Any) -> None:
        """Note the answer to ApiVersions: a client may ask again after an error."""
        if self._state is _State.FIRST and not response.error_code:
            self._state = _State.HANDSHAKE

    def _next(self, request: Request) -> Effect | None:
        """Handle a request of a session: it may renew the session; otherwise the session must not have ended."""
        now = request.now
        if request.key == keys.SASL_HANDSHAKE and self._expires < inf and now - self._renewed >= _RENEWED_MS:
            self._renewed, self._renews = now, True
            self._before = self._mechanism
            return self._handshake(request)
        return self._close(request, "the session has ended without a new log-in") if now > self._expires else None

    def _handshake(self, request: Request) -> Effect:
        logins, mechanism = self._logins, request.message.mechanism
        response = messages.SaslHandshakeResponse(mechanisms=list(logins.mechanisms))
        self._exchange = logins.exchange(mechanism)
        if self._exchange is None:
            response.error_code = errors.UNSUPPORTED_SASL_MECHANISM
            offered = ", ".join(logins.mechanisms) or "none"
            return self._fail(request, response, f"the client wants another SASL mechanism than is offered: {offered}")
        self._mechanism, self._state = mechanism, _State.TOKENS
        self._peer.bare = request.version == 0
        return Effect((), [Reply(request.to, response)])

    def _token(self, request: Request) -> Effect:
        assert self._exchange is not None
        if request.key != keys.SASL_AUTHENTICATE:
            wrong = refusal(self._logins.node, request, errors.ILLEGAL_SASL_STATE)
            return self._fail(request, wrong, "the client did not complete its log-in")
        failed = f"the log-in with {self._mechanism} failed"
        if self._renews and self._mechanism != self._before:
            return self._close(request, f"{failed}: the one before was with {self._before}")
        response = messages.SaslAuthenticateResponse(error_message="")
        try:
            response.auth_bytes = self._exchange.step(bytes(request.message.auth_bytes), self._logins.node.clock())
            if self._exchange.user is not None:
                self._done(self._exchange.user, response, request.now)
        except Refused as error:
            if self._peer.bare:
                return self._close(request, failed)
            again = "re-authentication" if self._renews else "authentication"
            general = f"Authentication failed during {again} due to invalid credentials with SASL mechanism"
            response.error_code = errors.SASL_AUTHENTICATION_FAILED
            response.error_message = error.reason or f"{general} {self._mechanism}"
            response.auth_bytes = b""
            return self._fail(request, response, failed)
        except Malformed:
            return self._close(request, f"{failed}: the token is malformed")
        return Effect((), [Reply(request.to, response)])

    def _done(self, user: str, response: Any, now: float) -> None:
        assert self._exchange is not None
        principal = f"User:{user}"
        if self._renews and principal != self._peer.principal:
            was, wanted = (name.replace(":", ".", 1) for name in (self._peer.principal, principal))
            raise Refused(f"Cannot change principals during re-authentication from {was}: {wanted}")
        of_token = inf if self._exchange.expires is None else self._exchange.expires - self._logins.node.clock()
        if of_token <= 0:
            raise Refused
        lifetime = min(self._logins.max_session_ms, of_token)
        self._expires = now + lifetime
        response.session_lifetime_ms = 0 if lifetime == inf else int(lifetime)
        self._peer.principal, self._peer.trusted, self._state = principal, True, _State.DONE
        self._peer.bare = False
        self._peer.by_token = getattr(self._exchange, "by_token", False)
        self._exchange, self._renews = None, False

    def _fail(self, request: Request, response: Any, reason: str) -> Effect:
        """Answer after a delay, which slows down password guessing, and close."""
        self._logins.note(request, reason)
        self._state = _State.FAILED
        request.rest = inf
        effect = Effect((), [Reply(request.to, response)])
        return self._logins.node.later.add(request.received + self._logins.delay_ms, effect)

    def _close(self, request: Request, reason: str) -> Effect:
        self._logins.note(request, reason)
        self._state = _State.FAILED
        return Effect((), [Reply(request.to, CLOSE)])
