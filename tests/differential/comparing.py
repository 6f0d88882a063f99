"""Where answers differ, in words."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterator
from typing import Any

LINES = 8  # of a difference that are shown


def shown(wanted: Any, got: Any) -> str:
    """The paths at which two answers differ, with what is there; empty if nothing differs."""
    found = [f"    {path}: wanted {_short(one)}, got {_short(other)}" for path, one, other in differences(wanted, got)]
    more = [f"    and {len(found) - LINES} more"] if len(found) > LINES else []
    return "\n".join(found[:LINES] + more)


def differences(wanted: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ: path, wanted, got."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in {**wanted, **got}:
            there = f"{path}.{key}" if path else key
            if key in wanted and key in got:
                yield from differences(wanted[key], got[key], there)
            else:
                yield there, wanted.get(key, "no such field"), got.get(key, "no such field")
    elif isinstance(wanted, list) and isinstance(got, list):
        for at, one, other in _aligned(wanted, got):
            yield from differences(one, other, f"{path}[{at}]")
    elif wanted != got or isinstance(wanted, bool) != isinstance(got, bool):
        yield path or "answer", wanted, got


def _aligned(wanted: list[Any], got: list[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Pairs of items; "nothing" where one list has an item more."""
    if len(wanted) == len(got):
        yield from ((i, one, other) for i, (one, other) in enumerate(zip(wanted, got, strict=True)))
        return
    texts = [[json.dumps(item, sort_keys=True) for item in items] for items in (wanted, got)]
    for kind, i, end, j, other_end in difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if kind != "equal":
            pairs = itertools.zip_longest(wanted[i:end], got[j:other_end], fillvalue="nothing")
            yield from ((i + n, *pair) for n, pair in enumerate(pairs))


def _short(value: Any, room: int = 150) -> str:
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value)
    return text if len(text) <= room else f"{text[: room - 1]}…"
