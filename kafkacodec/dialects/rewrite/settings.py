"""The configuration of a server of the rewrite, by the names of its properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from kafkacodec.assignment.dividing import assign_range, assign_round_robin
from kafkacodec.datatypes import dataclass, field
from kafkacodec.dialects.properties import Properties, read_properties
from kafkacodec.dialects.rewrite.groups import Strategy
from kafkacodec.net.addresses import addresses

__all__ = ["NAMES", "ServerSettings"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """The properties as values.

    Attributes:
        servers: host and port of all servers that share the groups, by id and in the same order for each; empty: this
            one is alone.
        strategy: assigns partitions.
    """

    servers: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    strategy: Strategy = assign_range

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Settings from properties by name. Raises ValueError."""
        return cls(**read_properties(NAMES, given))


def _servers(text: str) -> dict[int, tuple[str, int]]:
    """``id@host:port,...``."""
    found: dict[int, tuple[str, int]] = {}
    for entry in text.split(","):
        number, at, address = entry.strip().partition("@")
        if not at or not number.isascii() or not number.isdigit() or int(number) >= 1 << 31:
            raise ValueError(f"{entry.strip()!r} is not id@host:port")
        if int(number) in found:
            raise ValueError(f"two servers have the id {number}")
        (found[int(number)],) = addresses([address], "server")
        if len(set(found.values())) < len(found):
            raise ValueError(f"two servers have the address {address}")
    return found


def _strategy(text: str) -> Strategy:
    if text not in _STRATEGIES:
        raise ValueError(f"it must be {' or '.join(_STRATEGIES)}")
    return _STRATEGIES[text]


_STRATEGIES: Final[Mapping[str, Strategy]] = {"range": assign_range, "round_robin": assign_round_robin}


NAMES: Final[Properties] = {
    "rewrite.assignment.strategy": ("strategy", _strategy),
    "rewrite.servers": ("servers", _servers),
}
"""Property -> attribute of `ServerSettings`, and what reads its text."""
