"""Access control lists, with the rules of Apache Kafka's StandardAuthorizer."""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Any, Final

from kafkacodec.broker.state.hosts import ANY_HOST, Subnet, subnet
from kafkacodec.protocol.terms import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES

__all__ = ["ANY_NAME", "Access"]

ANY_NAME: Final = "*"
_ANYBODY: Final = "User:*"
_ALL: Final = OPERATIONS["all"]
_ALLOW: Final = PERMISSIONS["allow"]
_DESCRIBE: Final = OPERATIONS["describe"]
_IMPLIES: Final = {
    _DESCRIBE: frozenset(OPERATIONS[name] for name in ("describe", "read", "write", "delete", "alter", "all")),
    OPERATIONS["describe_configs"]: frozenset(OPERATIONS[n] for n in ("describe_configs", "alter_configs", "all")),
}
_LITERAL, _PREFIXED = PATTERNS["literal"], PATTERNS["prefixed"]
_KEPT: Final = 10_000


class Access:
    """The entries, and the rights that follow from them.

    Attributes:
        entries: by id, as records of the metadata log.
        super_users: users that may do everything.
        open_without_entries: whether everybody may do everything with resources that have no entry.
    """

    def __init__(self) -> None:
        self.entries: dict[uuid.UUID, Any] = {}
        self.super_users: frozenset[str] = frozenset()
        self.open_without_entries = False
        self._exact: dict[tuple[int, str], list[Any]] = {}
        self._prefixes: dict[tuple[int, str], list[Any]] = {}
        self._subnets: dict[str, Subnet] = {}  # by the host of entries
        self._known: dict[tuple[str, str, int, int, str], bool] = {}

    def add(self, record: Any) -> None:
        """Take an entry."""
        self.remove(record.id)
        self.entries[record.id] = record
        with suppress(ValueError):  # of a broker that did not know subnets: no client has that address
            if (found := subnet(record.host)) is not None:
                self._subnets[record.host] = found
        self._index(record).setdefault((record.resource_type, record.resource_name), []).append(record)
        self._known.clear()

    def remove(self, entry: uuid.UUID) -> None:
        """Forget an entry."""
        record = self.entries.pop(entry, None)
        if record is None:
            return
        key, index = (record.resource_type, record.resource_name), self._index(record)
        index[key] = [other for other in index[key] if other.id != entry]
        if not index[key]:
            del index[key]
        self._known.clear()

    def allows(self, principal: str, host: str, operation: str, kind: str, name: str) -> bool:
        """Whether a principal at a host may do an operation on a resource. A deny entry overrides an allow entry."""
        key = (principal, host, OPERATIONS[operation], RESOURCES[kind], name)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[key] = self._decide(*key)
        return found

    def allows_any(self, principal: str, host: str, operation: str, kind: str) -> bool:
        """Whether a principal may perform an operation on at least one resource of a kind.

        An allow entry counts unless a deny entry covers all that it allows: one for ``*``, of the same literal name, or
        of a prefix of its name.
        """
        if principal in self.super_users:
            return True
        resource = RESOURCES[kind]
        of_kind = [one for one in self.entries.values() if one.resource_type == resource]
        found = [one for one in of_kind if self._concerns(one, principal, host, OPERATIONS[operation])]
        denied = {_pattern(one) for one in found if one.permission_type != _ALLOW}
        allowed = {_pattern(one) for one in found if one.permission_type == _ALLOW}
        if (_LITERAL, ANY_NAME) in denied:
            return False
        if (_LITERAL, ANY_NAME) in allowed or any(not _is_covered(one, denied) for one in allowed):
            return True
        return self.open_without_entries and not of_kind

    def _decide(self, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        if principal in self.super_users:
            return True
        allowed = exists = False
        for record in self._about(kind, name):
            exists = True
            if self._concerns(record, principal, host, operation):
                if record.permission_type != _ALLOW:
                    return False
                allowed = True
        return allowed or (not exists and self.open_without_entries)

    def _about(self, kind: int, name: str) -> Iterator[Any]:
        yield from self._exact.get((kind, name), ())
        if name != ANY_NAME:
            yield from self._exact.get((kind, ANY_NAME), ())
        if self._prefixes:
            for end in range(len(name) + 1):
                yield from self._prefixes.get((kind, name[:end]), ())

    def _concerns(self, record: Any, principal: str, host: str, operation: int) -> bool:
        if record.principal not in (principal, _ANYBODY) or not self._is_at(record.host, host):
            return False
        if record.permission_type == _ALLOW and operation in _IMPLIES:
            return record.operation in _IMPLIES[operation]
        return record.operation in (operation, _ALL)

    def _is_at(self, wanted: str, host: str) -> bool:
        if wanted in (host, ANY_HOST):
            return True
        found = self._subnets.get(wanted)
        return found is not None and found.has(host)

    def _index(self, record: Any) -> dict[tuple[int, str], list[Any]]:
        return self._prefixes if record.pattern_type == _PREFIXED else self._exact


def _pattern(record: Any) -> tuple[int, str]:
    return (_PREFIXED if record.pattern_type == _PREFIXED else _LITERAL), record.resource_name


def _is_covered(allowed: tuple[int, str], denied: Container[tuple[int, str]]) -> bool:
    """Whether patterns that are denied have all names of one that is allowed."""
    pattern, name = allowed
    return (pattern == _LITERAL and allowed in denied) or any(
        (_PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1)
    )
