"""Addresses as text: ``host:port``, with IPv6 addresses in brackets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

__all__ = ["DEFAULT_PORT", "address_text", "addresses"]

DEFAULT_PORT: Final = 9092


def addresses(servers: Any, name: str = "bootstrap_servers") -> list[tuple[str, int]]:
    """Host and port of each server, from a text with commas or a list; the default port is 9092.

    Raises TypeError, ValueError; `name` is the argument's name.
    """
    if isinstance(servers, bytes) or not isinstance(servers, Iterable):
        raise TypeError(f"{name} must be text or a list, not {type(servers).__name__}")
    parts = servers.split(",") if isinstance(servers, str) else list(servers)
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(f"{name}: {part!r} is not text with host:port")
    found = [_address(part.strip(), name) for part in parts if part.strip()]
    if not found:
        raise ValueError(f"{name} is empty: pass host:port of at least one broker")
    return found


def address_text(address: tuple[str, int]) -> str:
    """Host and port as text, such as ``[::1]:9092``."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(text: str, name: str) -> tuple[str, int]:
    if set(text) & set("; "):
        raise ValueError(f"{name}: {text!r} is not host:port; separate several with commas")
    text = text.rpartition("://")[2]  # PLAINTEXT://host:port, as brokers write their listeners
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    elif ":" in host and not host.startswith("["):
        raise ValueError(f"{name}: put the IPv6 address of {text!r} in brackets")
    in_brackets = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if in_brackets else host
    if not host or set(host) & set("[]") or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{name}: {text!r} is not host:port")
    return host, int(port)
