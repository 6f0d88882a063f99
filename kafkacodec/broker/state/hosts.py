"""Hosts of access control entries: an address, ``*`` for all, or a subnet such as ``10.0.0.0/8`` (Kafka 4.4)."""

from __future__ import annotations

import re
import socket
from typing import Final

from kafkacodec.datatypes import NamedTuple

__all__ = ["ANY_HOST", "Subnet", "subnet"]

ANY_HOST: Final = "*"

_IPV4: Final = re.compile(r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})/(\d{1,2})", re.ASCII)
_IPV6: Final = re.compile(r"(\[?)([0-9a-fA-F:.]*:[0-9a-fA-F:.]*)(?:%\w+)?(\]?)/(\d{1,9})", re.ASCII)
_MAPPED: Final = bytes(10) + b"\xff\xff"


class Subnet(NamedTuple):
    """The addresses of `size` bytes whose value begins as `start` does, but for the last `free` bits."""

    size: int
    start: int
    free: int

    def has(self, host: str) -> bool:
        """Whether an address is in it."""
        try:
            found = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host.partition("%")[0])
        except OSError:
            return False
        return len(found) == self.size and int.from_bytes(found, "big") >> self.free == self.start >> self.free


def subnet(host: str) -> Subnet | None:
    """The subnet that a text names; None if it names a host, without a slash. Raises ValueError."""
    if "/" not in host:
        return None
    four, six = _IPV4.fullmatch(host), _IPV6.fullmatch(host)
    try:
        if four is not None:
            numbers = bytes(map(int, four[1].split(".")))
            return _made(numbers, int(four[2]))
        if six is not None and bool(six[1]) == bool(six[3]):
            address = socket.inet_pton(socket.AF_INET6, six[2])
            if not address.startswith(_MAPPED):  # for Java that is an address of four bytes
                return _made(address, int(six[4]))
    except (OSError, ValueError):
        pass
    raise ValueError(f"{host!r} is no subnet, such as 10.0.0.0/8")


def _made(address: bytes, bits: int) -> Subnet:
    if bits > 8 * len(address):
        raise ValueError("more bits than the address has")
    return Subnet(len(address), int.from_bytes(address, "big"), 8 * len(address) - bits)
