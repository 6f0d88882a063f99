"""Compressed files and archives, which are not read: an error says what to do."""

from __future__ import annotations

import os

from kafkacodec.errors import CorruptRecord
from kafkacodec.log.formats.layout import LOG_SUFFIX

__all__ = ["packed_as", "refuse_packed"]

# First bytes -> name of a kind of file. No segment starts so: the offset would be beyond all disks.
_STARTS = {
    b"\x1f\x8b\x08": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"\x04\x22\x4d\x18": "an lz4 file",
    b"PK\x03\x04": "a zip archive",
}
_TAR = (257, b"ustar")
_SUFFIXES = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".tar")

HEAD = _TAR[0] + len(_TAR[1])
"""The number of a file's first bytes for `refuse_packed`."""


def refuse_packed(path: str, start: bytes) -> None:
    """Raise CorruptRecord if a file starts as a compressed file or an archive."""
    kind = next((kind for mark, kind in _STARTS.items() if start.startswith(mark)), None)
    if start[_TAR[0] : HEAD] == _TAR[1]:
        kind = "a tar archive"
    if kind is not None:
        name = os.path.basename(path)
        how = f", as in: gzip -dc {name} | kafkacodec dump -" if name.endswith(f"{LOG_SUFFIX}.gz") else ""
        raise CorruptRecord(f"{kind}, not a segment: unpack it first{how}", path=path)


def packed_as(name: str) -> bool:
    """Whether a file's name is that of a packed one."""
    return name.endswith(_SUFFIXES)
