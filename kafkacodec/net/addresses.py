"""Addresses as text: ``host:port``, with IPv6 addresses in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["DEFAULT_PORT", "EVERYWHERE", "address_text", "addresses"]

DEFAULT_PORT: Final = 9092

EVERYWHERE: Final = frozenset(["", "0.0.0.0", "::"])
"""Hosts of listeners at all addresses of a machine."""


def addresses(servers: Any, name: str = "bootstrap_servers", *, protocol: str | None = None) -> list[tuple[str, int]]:
    """Host and port of each server, from a text with commas or a list; the default port is 9092.

    Empty parts are left out, as Java's clients do.

    Args:
        servers: the text or list.
        name: the argument's name, for errors.
        protocol: the security protocol that may stand before an address, as in ``SSL://host:9093``; None: none may.

    Raises TypeError, ValueError.
    """
    if isinstance(servers, bytes) or not isinstance(servers, Iterable):
        raise TypeError(f"{name} must be text or a list, not {type(servers).__name__}")
    parts = servers.split(",") if isinstance(servers, str) else list(servers)
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(f"{name}: {part!r} is not text with host:port")
    texts = (text.strip() for part in parts for text in part.split(","))
    found = [_address(text, name, protocol) for text in texts if text]
    if not found:
        raise ValueError(f"{name} is empty: pass host:port of at least one broker")
    return list(dict.fromkeys(found))


def address_text(address: tuple[str, int]) -> str:
    """Host and port as text, such as ``[::1]:9092``."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(given: str, name: str, protocol: str | None) -> tuple[str, int]:
    text = given if protocol is None else given.removeprefix(f"{protocol}://")
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    in_brackets = host.startswith("[") and host.endswith("]")
    if not in_brackets and _IPV6.fullmatch(host):
        raise ValueError(f"{name}: put the IPv6 address of {given!r} in brackets, such as [::1]:9092")
    host = host[1:-1] if in_brackets else host
    possible = _IPV6 if in_brackets else _NAME
    if not possible.fullmatch(host) or not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise ValueError(f"{name}: {given!r} is not host:port{_hint(text, protocol)}")
    return host, int(port)


def _hint(text: str, protocol: str | None) -> str:
    """What to do about a text that is no address."""
    scheme, separator, rest = text.partition("://")
    if separator and scheme in _PROTOCOLS and protocol is not None:
        return f"; it names {scheme}, but security_protocol is {protocol!r}"
    if separator:
        return f"; leave out '{scheme}://'" + (f" and {'/' + path!r}" if (path := rest.partition("/")[2]) else "")
    if "/" in text:
        return f"; leave out {text[text.index('/') :]!r}"
    if set(text) & set("; \t\n"):
        return "; separate several with commas"
    if _PORT.fullmatch(port := text.rpartition(":")[2]) and not 0 < int(port) < 65536:
        return ": a port is between 1 and 65535"
    return ", such as localhost:9092"


_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_NAME: Final = re.compile(r"[\w.%-]+")
_IPV6: Final = re.compile(r"[0-9a-fA-F.]*:[0-9a-fA-F:.]*(?:%[\w.-]+)?")
_PORT: Final = re.compile(r"[0-9]{1,9}")
