"""The configuration of the rewrite's consumer, by dotted names."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafkacodec.arguments import limit, require_text
from kafkacodec.datatypes import dataclass, field
from kafkacodec.net.addresses import addresses

__all__ = ["ConsumerConfig"]

_MOST_MS: Final = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumerConfig:
    """The configuration of the group member, and of the consumer that reads.

    Attributes:
        servers: host and port of some servers of the groups.
        group: the group's name; empty: none.
        client_id: unique among members.
        session_timeout_ms: of a new group.
        auto_commit: whether `poll` commits previously returned messages.
        auto_commit_ms: the interval of commits.
        request_timeout_ms: the time limit of a reply.
        of_reader: the configuration of the consumer that reads, with the same kind of names.
    """

    servers: list[tuple[str, int]]
    group: str = ""
    client_id: str = field(default_factory=lambda: f"kafkacodec-{uuid.uuid4()}")
    session_timeout_ms: int = 30_000
    auto_commit: bool = True
    auto_commit_ms: int = 5_000
    request_timeout_ms: int = 30_000
    of_reader: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> ConsumerConfig:
        """A configuration from its names. Raises ValueError, TypeError."""
        if not isinstance(given, Mapping):
            raise TypeError(f"a configuration must be a dict of values by name, not {type(given).__name__}")
        for name in ("bootstrap.servers", "rewrite.servers"):
            if name not in given:
                raise ValueError(f"the configuration needs {name}")
        values = {}
        for name, (attribute, read) in _NAMES.items():
            if name in given:
                values[attribute] = read(name, given[name])
        of_reader = {name: value for name, value in given.items() if name not in _NAMES}
        return cls(of_reader=of_reader, **values)


def _number(name: str, value: Any) -> int:
    try:
        found = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}, not a number") from None
    if found > _MOST_MS:
        raise ValueError(f"{name} is {found}; it must not exceed {_MOST_MS}")
    return limit(name, found, 1)


def _flag(name: str, value: Any) -> bool:
    found = {"true": True, "false": False}.get(str(value).lower())
    if found is None:
        raise ValueError(f"{name} is {value!r}, not true or false")
    return found


def _text(name: str, value: Any) -> str:
    return require_text(name, value)


def _servers(name: str, value: Any) -> list[tuple[str, int]]:
    return addresses(value, name)


_NAMES: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "rewrite.servers": ("servers", _servers),
    "group.id": ("group", _text),
    "client.id": ("client_id", _text),
    "session.timeout.ms": ("session_timeout_ms", _number),
    "enable.auto.commit": ("auto_commit", _flag),
    "auto.commit.interval.ms": ("auto_commit_ms", _number),
    "request.timeout.ms": ("request_timeout_ms", _number),
}
"""Name -> attribute, and what reads its value. All others are for the consumer that reads."""
