"""Detection of peers that speak another protocol, by the first bytes that they send."""

from __future__ import annotations

from typing import Final

__all__ = ["foreign_protocol"]

_TLS = "the broker's listener uses TLS: set security_protocol to 'SSL' or 'SASL_SSL'"

# As the size of a frame, each of these would be over 300 MB.
_BEGINNINGS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x15\x03", _TLS),  # an alert
    (b"\x16\x03", _TLS),  # a handshake
    (b"HTTP", "the peer speaks HTTP: it is not a Kafka broker"),
    (b"SSH-", "the peer speaks SSH: it is not a Kafka broker"),
    (b"<", "the peer sends XML or HTML: it is not a Kafka broker"),
    (b"{", "the peer sends JSON: it is not a Kafka broker"),
)


def foreign_protocol(head: bytes) -> str | None:
    """What is wrong with a peer that sent these first four bytes; None if they do not tell."""
    return next((reason for beginning, reason in _BEGINNINGS if head.startswith(beginning)), None)
