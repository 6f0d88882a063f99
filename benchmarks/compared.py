"""What competitors found, compared before anything is timed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Digest:
    """The number of records, sums of offsets and timestamps modulo 2**64, a CRC-32 of keys and values in turn."""

    records: int
    offsets: int
    timestamps: int
    contents: int

    @classmethod
    def of(cls, records: Iterable[Any]) -> Digest:
        """The digest of records with the attributes of `kc.Record`, which most libraries use."""
        count = offsets = timestamps = contents = 0
        for record in records:
            count += 1
            offsets += record.offset
            timestamps += record.timestamp
            contents = zlib.crc32(record.value or b"", zlib.crc32(record.key or b"", contents))
        return cls(count, offsets & _WORD, timestamps & _WORD, contents)

    def require(self, other: Digest, who: str, case: str) -> None:
        """Raise SystemExit if a competitor found something else."""
        if other != self:
            raise SystemExit(f"{who} reads something else than the others in {case}: {other}, not {self}")
