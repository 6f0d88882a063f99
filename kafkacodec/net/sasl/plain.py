"""PLAIN: user name and password in one token (RFC 4616)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.errors import AuthenticationFailed

if TYPE_CHECKING:
    from kafkacodec.net.settings import SaslSettings

__all__ = ["Plain"]


class Plain:
    """The client side."""

    def __init__(self, settings: SaslSettings, host: str) -> None:
        self._user = settings.sasl_plain_username or ""
        self._password = settings.sasl_plain_password or ""

    def first(self) -> bytes:
        """User name and password."""
        if "\0" in self._user or "\0" in self._password:
            raise AuthenticationFailed("PLAIN cannot send a user name or password with a zero byte")
        return f"\0{self._user}\0{self._password}".encode()

    def step(self, challenge: bytes) -> None:
        """Take the broker's acceptance."""
        if challenge:
            raise AuthenticationFailed(f"PLAIN: the broker sent a token of {len(challenge)} bytes, expected none")
