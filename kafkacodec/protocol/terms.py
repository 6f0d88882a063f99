"""Kafka's names for the numbers in administrative messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kafkacodec.arguments import one_of

__all__ = [
    "CONFIGURED",
    "CONFIG_RESOURCES",
    "CONFIG_SOURCES",
    "CONFIG_TYPES",
    "OPERATIONS",
    "PATTERNS",
    "PERMISSIONS",
    "RESOURCES",
    "SCRAM_MECHANISMS",
    "AclOperation",
    "ConfigResourceType",
    "PatternType",
    "PermissionType",
    "ResourceType",
    "authorized_operations",
    "code_of",
    "word",
]

AclOperation = Literal[
    "any", "all", "read", "write", "create", "delete", "alter", "describe", "cluster_action", "describe_configs",
    "alter_configs", "idempotent_write", "create_tokens", "describe_tokens", "two_phase_commit",
]  # fmt: skip
ResourceType = Literal["any", "topic", "group", "cluster", "transactional_id", "delegation_token", "user"]
PatternType = Literal["any", "match", "literal", "prefixed"]
PermissionType = Literal["any", "deny", "allow"]
ConfigResourceType = Literal["topic", "broker", "broker_logger", "client_metrics", "group"]

OPERATIONS: Final[dict[str, int]] = {
    "any": 1, "all": 2, "read": 3, "write": 4, "create": 5, "delete": 6, "alter": 7, "describe": 8,
    "cluster_action": 9, "describe_configs": 10, "alter_configs": 11, "idempotent_write": 12, "create_tokens": 13,
    "describe_tokens": 14, "two_phase_commit": 15,
}  # fmt: skip
RESOURCES: Final = {
    "any": 1, "topic": 2, "group": 3, "cluster": 4, "transactional_id": 5, "delegation_token": 6, "user": 7,
}  # fmt: skip
PATTERNS: Final = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
PERMISSIONS: Final = {"any": 1, "deny": 2, "allow": 3}
CONFIG_RESOURCES: Final = {"topic": 2, "broker": 4, "broker_logger": 8, "client_metrics": 16, "group": 32}
CONFIGURED: Final = {number: name.replace("_", "-") for name, number in CONFIG_RESOURCES.items()}
"""What has configurations, by its number, as Kafka's tools and logs write it: ``client-metrics``."""
CONFIG_SOURCES: Final = {
    "dynamic_topic": 1, "dynamic_broker": 2, "dynamic_default_broker": 3, "static_broker": 4, "default": 5,
    "dynamic_broker_logger": 6, "dynamic_client_metrics": 7, "dynamic_group": 8,
}  # fmt: skip
CONFIG_TYPES: Final = {
    "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7, "class": 8, "password": 9,
}  # fmt: skip
SCRAM_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}

_NONE_GIVEN: Final = -(2**31)


def code_of(name: str, table: dict[str, int], value: str) -> int:
    """The number for a name. Raises ValueError, which lists the known ones; `name` is the argument's name."""
    one_of(name, value, tuple(table))
    return table[value]


def word(table: Mapping[str, int], code: int, unknown: str = "unknown_{}") -> str:
    """The name for a number; `unknown` with the number in it if it is unknown."""
    return next((name for name, number in table.items() if number == code), unknown.format(code))


def authorized_operations(bits: int) -> frozenset[str] | None:
    """The operations that the client may perform, from a response; None if they were not requested."""
    if bits == _NONE_GIVEN:
        return None
    return frozenset(word(OPERATIONS, bit) for bit in range(32) if bits >> bit & 1)
