"""SCRAM-SHA-256 and SCRAM-SHA-512: the password is proved, not sent, and the broker proves that it knows it (RFC 5802).

User name and password are encoded as UTF-8 without SASLprep, like in Kafka's brokers. An extension of Kafka marks them
as the id and the HMAC of a delegation token (KIP-48).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from typing import TYPE_CHECKING, Final

from kafkacodec.errors import AuthenticationFailed
from kafkacodec.net.sasl.scram_keys import (
    HASHES,
    MIN_ITERATIONS,
    attributes,
    client_proof,
    credential_of_salted,
    salted_password,
    server_signature,
)

if TYPE_CHECKING:
    from kafkacodec.net.settings import SaslSettings

__all__ = ["Scram"]

_NO_CHANNEL_BINDING: Final = "n,,"
# The upper bound takes about a second to compute.
_ITERATIONS: Final = range(MIN_ITERATIONS, 1_000_001)


class Scram:
    """The client side."""

    def __init__(self, settings: SaslSettings, host: str, nonce: str | None = None) -> None:
        assert settings.sasl_mechanism is not None
        self._name = settings.sasl_mechanism
        self._hash = HASHES[self._name]
        self._password = settings.sasl_plain_password or ""
        self._nonce = nonce or secrets.token_urlsafe(24)
        user = (settings.sasl_plain_username or "").replace("=", "=3D").replace(",", "=2C")
        token = ",tokenauth=true" if settings.sasl_scram_tokenauth else ""
        self._first = f"n={user},r={self._nonce}{token}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        """The user name and a nonce."""
        return (_NO_CHANNEL_BINDING + self._first).encode()

    def step(self, challenge: bytes) -> bytes | None:
        """The proof for the broker's salt, then None if the broker's signature is right."""
        if self._server_signature is None:
            return self._final(challenge)
        found = self._fields(challenge)
        if "e" in found:
            raise AuthenticationFailed(f"the broker refused the authentication by {self._name}: {found['e']}")
        if not hmac.compare_digest(self._decoded("v", found), self._server_signature):
            raise AuthenticationFailed(f"{self._name}: the broker does not know the password; its signature is wrong")
        return None

    def _final(self, challenge: bytes) -> bytes:
        found = self._fields(challenge)
        if "e" in found:
            raise AuthenticationFailed(f"the broker refused the authentication by {self._name}: {found['e']}")
        nonce, salt, count = found.get("r", ""), self._decoded("s", found), self._iterations(found)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed(f"{self._name}: the broker's nonce does not continue the client's")
        salted = salted_password(self._hash, self._password, salt, count)
        final = f"c={base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        signed = b",".join([self._first.encode(), challenge, final.encode()])
        kept = credential_of_salted(self._hash, salted, salt, count)
        self._server_signature = server_signature(self._hash, kept.server_key, signed)
        proof = client_proof(self._hash, salted, signed)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _fields(self, message: bytes) -> dict[str, str]:
        """The attributes of a broker's message by letter; mandatory extensions are refused."""
        try:
            fields = attributes(message)
        except UnicodeDecodeError:
            raise AuthenticationFailed(f"{self._name}: the broker's message is not UTF-8") from None
        if fields is None or "m" in fields:
            raise AuthenticationFailed(f"{self._name}: the broker's message of {len(message)} bytes is malformed")
        return fields

    def _decoded(self, letter: str, fields: dict[str, str]) -> bytes:
        try:
            found = base64.b64decode(fields.get(letter, ""), validate=True)
        except (binascii.Error, ValueError):
            found = b""
        if not found:
            raise AuthenticationFailed(f"{self._name}: the broker's message has no valid attribute {letter!r}")
        return found

    def _iterations(self, fields: dict[str, str]) -> int:
        text = fields.get("i", "")
        count = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if count not in _ITERATIONS:
            raise AuthenticationFailed(
                f"{self._name}: the broker asks for {text[:20]!r} iterations, "
                f"not {_ITERATIONS.start} to {_ITERATIONS.stop - 1}"
            )
        return count
