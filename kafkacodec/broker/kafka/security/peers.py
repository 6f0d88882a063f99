"""Who is at the other end of a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ANONYMOUS", "Peer"]

ANONYMOUS: Final = "User:ANONYMOUS"
"""Who has not said who it is."""


@dataclass(eq=False, slots=True)
class Peer:
    """A client, as its connection shows it.

    Attributes:
        principal: who it is, such as ``User:alice``.
        login: how it says so; None on a listener without SASL (`kafkacodec.broker.kafka.security.logins.Login`).
        trusted: it may ask for everything: it has logged in, or need not.
        bare: what it sends next is a token without a header.
        by_token: it has logged in by a delegation token.
        certified: it is who its certificate says, which was not looked at yet.
    """

    principal: str = ANONYMOUS
    login: Any = None
    trusted: bool = True
    bare: bool = False
    by_token: bool = False
    certified: bool = False
