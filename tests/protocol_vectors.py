"""The golden files of tests/data/protocol: bodies, frames and damaged bodies, written by Kafka's serializers."""

from __future__ import annotations

import base64
import json
import lzma
import math
import uuid
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from kafkacodec.messages.model import snake_case

ROOT = Path(__file__).parent / "data" / "protocol"

Vector = dict[str, Any]


@cache
def vectors(name: str) -> list[Vector]:
    """All lines of one file (requests, responses, frames, data, control, bad)."""
    with lzma.open(ROOT / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def bodies(kind: str) -> dict[str, list[Vector]]:
    """The bodies of all requests, or all responses, by API."""
    found = defaultdict(list)
    for vector in vectors(kind + "s"):
        found[vector["api"]].append(vector)
    return found


def plain_json(value: Any, ours: Any) -> Any:
    """`value`, converted by Kafka's JSON rules to the types of `ours` (a decoded value)."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {snake_case(key): plain_json(item, ours[snake_case(key)]) for key, item in value.items()}
    if isinstance(value, list):
        assert len(value) == len(ours)
        return [plain_json(item, own) for item, own in zip(value, ours, strict=True)]
    if isinstance(ours, bytes):
        return base64.b64decode(value)
    if isinstance(ours, uuid.UUID):
        return uuid.UUID(bytes=base64.urlsafe_b64decode(value + "=="))
    return float(value) if isinstance(ours, float) else value


def without_absent(value: Any, shown: Any) -> Any:
    """`value`, a dict of a message, reduced to the fields of `shown`, Kafka's JSON."""
    if isinstance(shown, dict) and isinstance(value, dict):
        return {snake_case(key): without_absent(value[snake_case(key)], item) for key, item in shown.items()}
    if isinstance(shown, list) and isinstance(value, list):
        return [without_absent(own, item) for own, item in zip(value, shown, strict=True)]
    return value


def same(a: Any, b: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and bool(a == b)


def tagged_at(value: Any, path: str) -> dict[int, bytes]:
    """The unknown tagged fields of the struct at a path such as ``/topics/0/partitions/1`` of a message."""
    for step in filter(None, path.split("/")):
        value = value[int(step)] if isinstance(value, list) else getattr(value, snake_case(step))
    return dict(value.unknown_tagged_fields)
