"""Users and protection of a broker's listeners: checked arguments of `kafkacodec.broker.serve`."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kafkacodec.datatypes import dataclass, field

if TYPE_CHECKING:
    from kafkacodec.broker.listening import Url

__all__ = ["Security", "Tokens"]

Tokens: TypeAlias = "Literal['unsecured'] | Callable[[str], Any] | None"
"""How bearer tokens are checked."""

_NOBODY: Final = (
    "nobody can log in: pass users or tokens (--user, --users), or add SCRAM users through a listener without SASL"
)

_UNUSED = (
    "users and tokens have no effect: nobody logs in at listeners without SASL; listen at kafka+sasl:// or "
    "kafka+sasl+tls://"
)


@dataclass(frozen=True)
class Security:
    """Protection of the listeners.

    Attributes:
        tls: the server's context; None: there is none.
        users: passwords by name.
        tokens: checks bearer tokens.
    """

    tls: ssl.SSLContext | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    tokens: Tokens = None

    def __post_init__(self) -> None:
        for name, password in self.users.items():
            texts: tuple[Any, Any] = (name, password)
            if not all(isinstance(text, str) and text for text in texts):
                raise ValueError("users has names and passwords as text, none of them empty")
            if "\0" in name + password:
                raise ValueError(f"users: the name or the password of {name!r} has a zero byte")
        if self.tokens is not None and self.tokens != "unsecured" and not callable(self.tokens):
            raise ValueError(f"tokens must be 'unsecured' or a function that checks a token, not {self.tokens!r}")

    def check(self, url: Url) -> None:
        """Check that a listener can be as its URL says. Raises ValueError."""
        if url.has_tls and self.tls is None:
            raise ValueError(f"a {url.scheme}:// listener needs tls=, the server's ssl.SSLContext")

    def warnings(self, urls: Iterable[Url], *, anyone: bool) -> Iterator[str]:
        """Return warnings for the log about a listener: too many rights, or nobody to log in; `anyone`: whether there
        is a user.
        """
        urls = list(urls)
        if (self.users or self.tokens) and not any(url.has_sasl for url in urls):
            yield _UNUSED
        for url in urls:
            risk = self._risk(url)
            if risk is not None:
                yield f"{url.text()} is not loopback: {risk}"
            if url.has_sasl and not anyone:
                yield f"{url.text()}: {_NOBODY}"

    def _risk(self, url: Url) -> str | None:
        """Return what others can do at a listener; None for nothing."""
        if url.is_loopback:
            return None
        by_certificate = url.has_tls and self.tls is not None and self.tls.verify_mode == ssl.CERT_REQUIRED
        if not url.has_sasl and not by_certificate:
            return "without SASL, anybody who can reach it can read and write everything"
        return None if url.has_tls else "without TLS, others on the network can read records and passwords"
