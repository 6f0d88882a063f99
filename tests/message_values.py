"""Random messages from the schema tables: every field of a version, edge values, nulls, known and unknown tags."""

from __future__ import annotations

import random
import uuid
from typing import Any

LETTERS = "aZ09-._ \0\x7fé߿Ж日😀\ufeff"
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
# Tags that few schemas use, from one byte to the largest.
TAGS = [0, 1, 2, 3, 7, 126, 127, 128, 16383, 16384, 10**6, 2**28, 2**31 - 2]


class Values:
    """Draws messages of one class and version."""

    def __init__(self, cls: Any, version: int, rnd: random.Random) -> None:
        self.cls, self.version, self.rnd = cls, version, rnd
        self.flexible = version in cls.flexible_versions

    def message(self) -> Any:
        """A message with all fields of the version set."""
        return self.struct(self.cls, 0)

    def struct(self, cls: Any, depth: int) -> Any:
        fields = [field for field in cls._spec.fields if self.version in field.versions]
        made = cls(**{field.attribute: self.field(cls, field, depth) for field in fields})
        if self.flexible and self.rnd.random() < 0.2:
            taken = {field.tag for field in cls._spec.fields}
            tags = [tag for tag in self.rnd.sample(TAGS, 3) if tag not in taken]
            made.unknown_tagged_fields = {tag: self.bytes() for tag in tags}
        return made

    def field(self, cls: Any, field: Any, depth: int) -> Any:
        if self.version in field.nullable and self.rnd.random() < 0.2:
            return None
        if field.array:
            return [
                self.single(cls, field, depth) for _ in range(self.rnd.choice((0, 1, 1, 2, 3) if depth < 3 else (0, 1)))
            ]
        return self.single(cls, field, depth)

    def single(self, cls: Any, field: Any, depth: int) -> Any:
        if field.struct:
            return self.struct(cls._parts[field.struct.name], depth + 1)
        if field.type in BITS:
            return self.integer(field.type)
        return getattr(self, field.type)()

    def integer(self, kind: str) -> int:
        bits = BITS[kind]
        low = 0 if kind[0] == "u" else -(1 << bits - 1)
        high = low + (1 << bits) - 1
        return self.rnd.choice(
            (low, high, 0, max(low, -1), 1, self.rnd.randint(low, high), self.rnd.randint(low, high))
        )

    def bool(self) -> bool:
        return self.rnd.random() < 0.5

    def float64(self) -> float:
        return self.rnd.choice((0.0, -0.0, 1.5, float("inf"), float("nan"), self.rnd.gauss(0, 1e9)))

    def string(self) -> str:
        return "".join(self.rnd.choices(LETTERS, k=self.size(150)))

    def bytes(self) -> bytes:
        return self.rnd.randbytes(self.size(300))

    records = bytes

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.rnd.choice((0, 1, self.rnd.getrandbits(128), self.rnd.getrandbits(128))))

    def size(self, long: int) -> int:
        return self.rnd.randrange(long) if self.rnd.random() < 0.1 else self.rnd.randrange(8)


def damage(body: bytes, rnd: random.Random) -> bytes:
    """One to three changes: a bit, a byte, an edge value, a truncation, bytes inserted, moved or removed."""
    data = bytearray(body)
    for _ in range(rnd.choice((1, 1, 1, 2, 3))):
        at = rnd.randrange(len(data) + 1)
        size = rnd.choice((1, 1, 2, 4, 5))
        what = rnd.randrange(7)
        if what == 0 and at < len(data):
            data[at] ^= 1 << rnd.randrange(8)
        elif what == 1 and at < len(data):
            data[at] = rnd.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, rnd.randrange(256)))
        elif what == 2:
            edge = rnd.choice((0, 1, 0x7F, 0x80, 0xFF))
            data[at : at + size] = bytes([edge]) * min(size, len(data) - at)
        elif what == 3:
            del data[at:]
        elif what == 4:
            data[at:at] = rnd.randbytes(size)
        elif what == 5:
            source = rnd.randrange(len(data) + 1)
            data[at : at + size] = data[source : source + size]
        else:
            del data[at : at + size]
    return bytes(data)
