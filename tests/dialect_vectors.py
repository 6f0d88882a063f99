"""The golden data of tests/data/dialects, one dict per record."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent / "data" / "dialects"


@cache
def rows(name: str) -> list[dict[str, Any]]:
    """The records of a file, such as ``line_v1/bad``."""
    return [json.loads(line) for line in _text(f"{name}.jsonl").splitlines()]


@cache
def document(name: str) -> Any:
    """The content of a .json file."""
    return json.loads(_text(f"{name}.json"))


def _text(name: str) -> str:
    path = ROOT / name
    return (path.read_bytes() if path.exists() else gzip.decompress((ROOT / f"{name}.gz").read_bytes())).decode()


def names(records: list[dict[str, Any]]) -> list[str]:
    """For the ids of parametrized tests."""
    return [record["name"] for record in records]


def snake(name: str) -> str:
    """ConsumerGroup to consumer_group."""
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)).lower()


def checksums() -> dict[str, str]:
    """SHA-256 of each file, for comparison with the manifest."""
    files = (p for p in sorted(ROOT.rglob("*")) if p.is_file() and p.name not in ("manifest.json", "README.md"))
    return {p.relative_to(ROOT).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
