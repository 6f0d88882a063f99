"""URLs of listeners."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafkacodec.datatypes import NamedTuple

__all__ = ["Url", "listener_urls"]

_PORTS: Final = {
    "kafka": 9092,
    "kafka+tls": 9092,
    "kafka+sasl": 9092,
    "kafka+sasl+tls": 9092,
    "line": 9094,
    "kafka07": 9092,
    "rewrite": 9096,
}
"""The default port by scheme."""

_URL: Final = re.compile(  # urllib.parse takes longer to import than a broker takes to open an empty directory
    r"(?P<scheme>[a-z0-9+]+)://(?:\[(?P<ipv6>[^\s\[\]/?#@]+)\]|(?P<host>[^\s\[\]:/?#@]+))(?::(?P<port>[^/?#@]*))?", re.I
)


class Url(NamedTuple):
    """The address of a listener; port 0 is any free one."""

    scheme: str
    host: str
    port: int

    def text(self, address: tuple[str, int] | None = None) -> str:
        """Return it as a URL, with the bound address if it is known."""
        host, port = address or (self.host, self.port)
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def protocol(self) -> str:
        """The protocol: ``"kafka"``, ``"kafka07"``, ``"line"`` or ``"rewrite"``."""
        return self.scheme.partition("+")[0]

    @property
    def has_tls(self) -> bool:
        """Whether it encrypts."""
        return self.scheme.endswith("+tls")

    @property
    def has_sasl(self) -> bool:
        """Whether clients must log in."""
        return "+sasl" in self.scheme

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("127.0.0.1", "::1", "localhost") or self.host.startswith("127.")


def listener_urls(
    listen: str | Iterable[str], argument: str = "listen", schemes: Iterable[str] = tuple(_PORTS)
) -> list[Url]:
    """URLs such as ``kafka://127.0.0.1:9092``; with ``+tls`` or ``+sasl+tls`` for TLS, ``+sasl`` for SASL.

    ``line://`` is the line protocol V1, ``kafka07://`` Kafka 0.6 and 0.7, ``rewrite://`` the client rewrite's groups.

    Args:
        listen: one or several.
        argument: their name in errors.
        schemes: those that they may have.

    Raises:
        ValueError: not a URL of a listener, or none at all.
        TypeError: not text.
    """
    found = []
    for text in [listen] if isinstance(listen, str) else list(listen):
        if not isinstance(text, str):
            raise TypeError(f"{argument} has URLs as text, not {type(text).__name__}")
        parts = _URL.fullmatch(text)
        scheme = parts["scheme"].lower() if parts else ""
        if parts is None or scheme not in schemes:
            named = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
            raise ValueError(f"{argument}: {text!r} is not {named}")
        port = parts["port"] or str(_PORTS[scheme])
        if not port.isascii() or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
            raise ValueError(f"{argument}: {text!r} has no valid port")
        found.append(Url(scheme, (parts["ipv6"] or parts["host"]).lower(), int(port)))
    if not found:
        raise ValueError(f"{argument} is empty: pass a URL such as kafka://127.0.0.1:0")
    return found
