"""Requests as bytes, for what no encoder would send."""

import struct


def frame(key: int, version: int, body: bytes, *, client: bytes = b"\0\1c", tags: bytes = b"") -> bytes:
    """A request of bytes; `tags` are those of a flexible header (b"\\0" for none)."""
    data = struct.pack(">hhi", key, version, 77) + client + tags + body
    return struct.pack(">i", len(data)) + data
