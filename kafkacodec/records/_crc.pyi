"""Checksums over Python buffers."""

from typing_extensions import Buffer

def crc32c(data: Buffer, value: int = 0) -> int: ...
def crc32(data: Buffer, value: int = 0) -> int:
    """CRC-32 (IEEE 802.3, as zlib) of `data`, as message sets of magic 0 and 1 carry it; arguments as for `crc32c`."""

def crc32c_kernel() -> str:
    """The kernel that runs `crc32c` in this process: ``vpclmul``, ``sse42``, ``clmul``, ``arm`` or ``table``.

    The environment variable ``KAFKACODEC_FORCE_KERNEL`` names another one. It is read at the first checksum, and
    ignored where this processor cannot run what it names.
    """

def crc32_kernel() -> str:
    """The kernel that runs `crc32`: ``vpclmul``, ``clmul``, ``arm`` or ``table``; chosen as for `crc32c_kernel`."""
