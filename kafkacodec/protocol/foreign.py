"""Detection of other protocols by their first four bytes, where Kafka has the size of a frame."""

from __future__ import annotations

from typing import Final

__all__ = ["spoken"]

_HTTP: Final = "HTTP"

# As the size of a frame, each of these would be over 300 MB.
_BEGINNINGS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x15\x03", "TLS"),  # an alert
    (b"\x16\x03", "TLS"),  # a handshake
    (b"HTTP", _HTTP),
    *((method, _HTTP) for method in (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"CONN", b"PRI ")),
    (b"SSH-", "SSH"),
    (b"<", "XML or HTML"),
    (b"{", "JSON"),
)


def spoken(head: bytes) -> str | None:
    """The protocol of which these are the first four bytes; None if they do not tell."""
    return next((name for beginning, name in _BEGINNINGS if head.startswith(beginning)), None)
