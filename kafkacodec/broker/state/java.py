"""Hashes of texts as Java has them, and the order of its hash tables: what Kafka decides by them."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["in_java_order", "java_hash"]


def java_hash(text: str) -> int:
    """Return Java's hash of a text, without sign: 0 to 2**32 - 1."""
    units = text.encode("utf-16-be", "surrogatepass")
    number = 0
    for at in range(0, len(units), 2):
        number = (31 * number + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
    return number


def in_java_order(texts: Collection[str]) -> list[str]:
    """Return the keys of a java.util.HashMap in its order, given those of equal places in the order of insertion."""
    places = 16
    while len(texts) > places * 3 // 4:
        places *= 2
    return sorted(texts, key=lambda text: (java_hash(text) ^ java_hash(text) >> 16) & (places - 1))
