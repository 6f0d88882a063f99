"""The arithmetic of SCRAM, and its messages as attributes: for both sides (RFC 5802, RFC 7677)."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from kafkacodec.datatypes import NamedTuple

__all__ = [
    "HASHES", "MIN_ITERATIONS", "Credential", "attributes", "client_proof", "credential", "credential_of_salted",
    "salted_password", "server_signature", "stored_key_of",
]  # fmt: skip

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The name of the hash, by mechanism."""

MIN_ITERATIONS: Final = 4096
"""The minimum in RFC 7677, and Kafka's."""


class Credential(NamedTuple):
    """A server's stored form of a password.

    Attributes:
        salt: random bytes.
        iterations: the number of hash rounds.
        stored_key: the hash of the client's key.
        server_key: proves that the server knows the password.
    """

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def salted_password(name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the password after a number of rounds of the hash `name`. Kafka uses no SASLprep."""
    return hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)


def credential(name: str, password: str, salt: bytes, iterations: int) -> Credential:
    """Return the stored form of a password."""
    return credential_of_salted(name, salted_password(name, password, salt, iterations), salt, iterations)


def credential_of_salted(name: str, salted: bytes, salt: bytes, iterations: int) -> Credential:
    """Return the stored form of a salted password."""
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    return Credential(salt, iterations, stored, hmac.digest(salted, b"Server Key", name))


def client_proof(name: str, salted: bytes, signed: bytes) -> bytes:
    """Return a client's proof of the password, for the messages of both sides."""
    key = hmac.digest(salted, b"Client Key", name)
    return _xor(key, hmac.digest(hashlib.new(name, key).digest(), signed, name))


def stored_key_of(name: str, stored_key: bytes, proof: bytes, signed: bytes) -> bytes:
    """Return the stored key of a proof of the right length: the server's own, if the client knows the password."""
    return hashlib.new(name, _xor(proof, hmac.digest(stored_key, signed, name))).digest()


def server_signature(name: str, server_key: bytes, signed: bytes) -> bytes:
    """Return a server's proof of the password."""
    return hmac.digest(server_key, signed, name)


def attributes(message: bytes) -> dict[str, str] | None:
    """The attributes of a message by letter; None if it is malformed. Raises UnicodeDecodeError."""
    parts = message.decode().split(",")
    found = {part[:1]: part[2:] for part in parts if part[1:2] == "="}
    return found if len(found) == len(parts) else None


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
