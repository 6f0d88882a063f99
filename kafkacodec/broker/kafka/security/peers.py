"""The client of a connection."""

from __future__ import annotations

from typing import Any, Final

from kafkacodec.datatypes import dataclass

__all__ = ["ANONYMOUS", "Peer"]

ANONYMOUS: Final = "User:ANONYMOUS"
"""A client without a login."""


@dataclass(eq=False, slots=True)
class Peer:
    """A client, as its connection shows it.

    Attributes:
        principal: such as ``User:alice``.
        login: its login; None on a listener without SASL (`kafkacodec.broker.kafka.security.logins.Login`).
        trusted: whether it has logged in, or need not.
        bare: whether it sends a token without a header next.
        by_token: whether it has logged in with a delegation token.
        certified: whether its certificate names it, and has not been read yet.
    """

    principal: str = ANONYMOUS
    login: Any = None
    trusted: bool = True
    bare: bool = False
    by_token: bool = False
    certified: bool = False
