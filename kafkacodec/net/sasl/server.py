"""SASL mechanisms of servers, without I/O: tokens in, tokens out, and in the end a user's name.

They answer as Apache Kafka's do. `step` takes a client's token and returns the server's; it raises `Refused`, or
`Malformed` for what Kafka closes a connection on without an answer.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from kafkacodec.net.sasl.scram_keys import HASHES, Credential, attributes, server_signature, stored_key_of

__all__ = [
    "MECHANISMS", "InvalidToken", "Malformed", "OAuthBearerServer", "PlainServer", "Refused", "ScramServer",
    "ServerExchange", "unsecured_token",
]  # fmt: skip

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_CONTROL_A: Final = "\x01"
_NAME: Final = r"(?:[^=,\x00\x01]|=2C|=3D)+"
# Patterns as text: `re` compiles them at the first login, and most brokers see none.
_SCRAM_FIRST: Final = (
    rf"(?P<header>n,(?:a=(?P<identity>{_NAME}))?,)(?P<bare>(?:m=[^,]*,)?n=(?P<user>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?P<extensions>(?:,[A-Za-z]+=[^,\x00]+)*))"
)
_BEARER: Final = rf"n,(?:a=(?P<identity>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
_CREDENTIALS: Final = r"(?P<scheme>[!-~]+) +(?P<token>[-A-Za-z0-9._~+/]+=*)"
_INVALID: Final = '{"status":"invalid_token"}'


class Refused(Exception):
    """The client's credentials are wrong. `reason` is the text for the client; None for the common text."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "invalid credentials")
        self.reason = reason


class Malformed(Exception):
    """A token that closes the connection without an answer."""


class InvalidToken(Exception):
    """An invalid bearer token."""


class ServerExchange(Protocol):
    """The server's side of a mechanism.

    Attributes:
        user: the name; None until the client has proved it.
        expires: when its credential expires, in milliseconds since 1970; None: never.
    """

    user: str | None
    expires: float | None

    def step(self, token: bytes, now: float) -> bytes:
        """Take the client's token. `now` is in milliseconds since 1970. Raises Refused, Malformed."""


class PlainServer:
    """PLAIN (RFC 4616). `password_of` returns the password of a user, or None."""

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        self.user: str | None = None
        self.expires: float | None = None
        self._password_of = password_of

    def step(self, token: bytes, now: float) -> bytes:
        """Take the only token."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != 3:
            raise Refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        identity, user, password = parts
        for name, value in (("username", user), ("password", password)):
            if not value:
                raise Refused(f"Authentication failed: {name} not specified")
        expected = self._password_of(user)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise Refused("Authentication failed: Invalid username or password")
        _same_identity(identity, user)
        self.user = user
        return b""


class ScramServer:
    """SCRAM (RFC 5802) without channel binding.

    Args:
        mechanism: its name.
        credential_of: takes a user's name and whether it is the id of a delegation token; returns the stored form of
            the password, or None.
        owner_of: returns the user and the end of a delegation token, in milliseconds since 1970.
    """

    def __init__(
        self, mechanism: str, credential_of: Callable[[str, bool], Credential | None],
        owner_of: Callable[[str], tuple[str, float]] | None = None,
    ) -> None:  # fmt: skip
        self.user: str | None = None
        self.expires: float | None = None
        self._hash = HASHES[mechanism]
        self._credential_of, self._owner_of = credential_of, owner_of
        self._claimed = self._header = self._nonce = ""
        self._said = b""
        self.by_token = False
        self._credential: Credential | None = None

    def step(self, token: bytes, now: float) -> bytes:
        """Take the first token, then the last."""
        try:
            return self._first(token.decode()) if self._credential is None else self._last(token, self._credential)
        except (UnicodeDecodeError, binascii.Error):
            raise Refused from None

    def _first(self, text: str) -> bytes:
        found = re.fullmatch(_SCRAM_FIRST, text)
        if found is None:
            raise Refused
        user = found["user"].replace("=2C", ",").replace("=3D", "=")
        self.by_token = ",tokenauth=true" in found["extensions"].lower()
        kept = self._credential_of(user, self.by_token)
        if kept is None:
            raise Refused
        _same_identity((found["identity"] or "").replace("=2C", ",").replace("=3D", "="), user)
        self._claimed, self._header = user, found["header"]
        self._nonce = found["nonce"] + secrets.token_urlsafe(18)
        answer = f"r={self._nonce},s={base64.b64encode(kept.salt).decode()},i={kept.iterations}".encode()
        self._said, self._credential = found["bare"].encode() + b"," + answer, kept
        return answer

    def _last(self, token: bytes, kept: Credential) -> bytes:
        unproved, comma, _ = token.rpartition(b",p=")
        found = attributes(token)
        if not comma or found is None or not hmac.compare_digest(found.get("r", "").encode(), self._nonce.encode()):
            raise Refused
        if base64.b64decode(found.get("c", ""), validate=True) != self._header.encode():
            raise Refused
        proof = base64.b64decode(found["p"], validate=True)
        if len(proof) != len(kept.stored_key):
            raise Malformed("the proof has another length than the hash")
        signed = self._said + b"," + unproved
        if not hmac.compare_digest(stored_key_of(self._hash, kept.stored_key, proof, signed), kept.stored_key):
            raise Refused
        self.user = self._claimed
        if self.by_token and self._owner_of is not None:
            self.user, self.expires = self._owner_of(self._claimed)
        return b"v=" + base64.b64encode(server_signature(self._hash, kept.server_key, signed))


class OAuthBearerServer:
    """OAUTHBEARER (RFC 7628).

    Args:
        check: takes a token and the time; returns the user's name and when the token expires, in milliseconds since
            1970, or None for never. Raises InvalidToken.
    """

    def __init__(self, check: Callable[[str, float], tuple[str, float | None]]) -> None:
        self.user: str | None = None
        self.expires: float | None = None
        self._check = check
        self._reason: str | None = None

    def step(self, token: bytes, now: float) -> bytes:
        """Take the token; if it does not hold, the client may say that it has read the reason."""
        text = token.decode("latin-1")
        if self._reason is not None and text == _CONTROL_A:
            raise Refused(self._reason)
        self._reason = None
        found = re.fullmatch(_BEARER, text)
        if found is None:
            raise Refused
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split(_CONTROL_A) if pair)
        credentials = re.fullmatch(_CREDENTIALS, pairs.get("auth", ""))
        if credentials is None:
            raise Refused
        if credentials["scheme"].lower() != "bearer":
            raise Malformed(f"a token of the scheme {credentials['scheme'][:20]!r}")
        try:
            user, expires = self._check(credentials["token"], now)
        except InvalidToken:
            self._reason = _INVALID
            return _INVALID.encode()
        identity = found["identity"]
        if identity and identity != user:
            raise Refused(
                f"Authentication failed: Client requested an authorization id ({identity}) that is different from the "
                f"token's principal name ({user})"
            )
        self.user, self.expires = user, expires
        return b""


def unsecured_token(token: str, now: float) -> tuple[str, float]:
    """The subject and the end of a token without a signature (RFC 7519, section 6), which proves nothing: for tests.

    `now` is a time in whole ms: a token of the same millisecond is one of the present.

    Raises:
        InvalidToken: it is malformed, signed, has no subject or end, or is not valid now.
    """
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise InvalidToken("not a token without a signature")
    head, claims = (_json(part) for part in parts[:2])
    subject = claims.get("sub")
    end: Any = claims.get("exp")
    begin: Any = claims.get("iat", 0)
    if head.get("alg") != "none" or not isinstance(subject, str) or not subject:
        raise InvalidToken("it is signed, or has no subject")
    if not _is_time(end) or not _is_time(begin) or begin * 1000 >= now + 1 or end * 1000 <= now:
        raise InvalidToken("it is not valid now")
    return subject, end * 1000.0


def _json(part: str) -> Mapping[str, Any]:
    import json  # by few listeners

    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        raise InvalidToken("a part of it is not JSON") from None
    if not isinstance(found, dict):
        raise InvalidToken("a part of it is not an object")
    return found


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _same_identity(identity: str, user: str) -> None:
    if identity and identity != user:
        raise Refused("Authentication failed: Client requested an authorization id that is different from username")
