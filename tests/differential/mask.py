"""Answers without what differs between brokers and runs by nature: ids, times, addresses, messages."""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import Any, ClassVar

from tests.differential.record_sets import batches_in


class Mask:
    """Turns an answer into plain JSON values without what differs between brokers and runs.

    The same id gets the same placeholder within a scenario. Lists are sorted, unless `ordered`.
    """

    TIME = re.compile(r"(^|_)time(stamp)?(_ms)?$")
    UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    SHORT_ID = re.compile(r"[A-Za-z0-9_-]{22}")
    NODES = frozenset(
        (
            "node_id", "leader_id", "controller_id", "broker_id", "replica_id", "replica_nodes", "isr_nodes",
            "offline_replicas", "current_leader", "preferred_read_replica",
        )
    )  # fmt: skip
    NUMBERS: ClassVar = {"producer_id": "producer", "session_id": "session", "subscription_id": "subscription"}
    LEFT_OUT = frozenset({"throttle_time_ms", "documentation", "unknown_tagged_fields", "finalized_features_epoch"})

    def __init__(self, token: str, start: int, node: int) -> None:
        self.token, self.start, self.node = token, start, node
        self.known: dict[Any, str] = {uuid.UUID(int=0): "zero"}
        self.counts: dict[str, int] = {}
        self.hide: frozenset[str] = frozenset()
        self.ordered = self.peek = False

    def __call__(self, answer: Any, hide: tuple[str, ...] = (), ordered: bool = False) -> Any:
        self.hide, self.ordered = frozenset(hide), ordered
        return self.value("", answer)

    def value(self, name: str, value: Any) -> Any:
        if name in self.hide:
            return "hidden"
        if isinstance(value, dict):
            return {key: self.value(key, part) for key, part in value.items() if key not in self.LEFT_OUT}
        if isinstance(value, (list, tuple)):
            return [self.value(name, item) for item in (value if self.ordered else sorted(value, key=self.order))]
        if name == "records" and value is not None:
            return [self.value("", item) for item in batches_in(bytes(value))]
        if isinstance(value, (bytes, memoryview)):
            return self.text(name, bytes(value).decode("latin-1"))
        if isinstance(value, uuid.UUID):
            return self.named("uuid", value)
        if isinstance(value, str):
            return self.text(name, value)
        return self.number(name, value)

    def order(self, item: Any) -> str:
        """A sort key in which new ids are all alike."""
        self.peek = True
        key = json.dumps(self.value("", item), sort_keys=True)
        self.peek = False
        return key

    def named(self, kind: str, value: Any) -> str:
        if value in self.known:
            return self.known[value]
        if self.peek:
            return f"<{kind}>"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.known.setdefault(value, f"<{kind} {self.counts[kind]}>")

    def text(self, name: str, value: str) -> str:
        if name.endswith("error_message") or name == "message":
            return "text" if value else value
        if name in ("host", "cluster_id"):
            return name if value else value
        if name == "resource_name" and value == str(self.node):
            return "node"
        value = value.replace(self.token, "~")
        if name in ("member_id", "leader") and self.SHORT_ID.fullmatch(value):
            return self.named("id", value)
        return self.UUID.sub(lambda found: self.named("uuid", found[0]), value)

    def number(self, name: str, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        if name == "port" and value > 0:
            return "port"
        if name in self.NODES:
            return "node" if value == self.node else value
        if name in self.NUMBERS:
            return self.named(self.NUMBERS[name], (name, value)) if value > 0 or value < -1 else value
        if self.TIME.search(name):
            if abs(value - time.time() * 1000) < 900_000:
                return "now"
            return f"T{value - self.start:+}" if abs(value - self.start) < 10 * 86_400_000 else value
        return value
