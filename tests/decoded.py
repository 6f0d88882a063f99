"""Decoded records as plain tuples, to compare with what was encoded."""

from __future__ import annotations

from typing import Any

import kafkacodec as kc


def rows(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    """Offset, timestamp, key, value and headers of each record."""
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in kc.iter_records(data, **options)]


def keys_and_values(data: bytes) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of each record."""
    return [(r.key, r.value) for r in kc.iter_records(data)]
