"""Checksums over Python buffers."""

from typing_extensions import Buffer

def crc32c(data: Buffer, value: int = 0) -> int: ...
def crc32(data: Buffer, value: int = 0) -> int:
    """CRC-32 (IEEE 802.3, as in zlib) of `data`, the checksum of messages of magic 0 and 1; as `crc32c`."""

def crc32c_kernel() -> str:
    """The kernel of `crc32c` in this process: ``vpclmul``, ``mixed``, ``sse42``, ``clmul``, ``arm`` or ``table``.

    The environment variable ``KAFKACODEC_FORCE_KERNEL`` selects another one. It is read at the first checksum, and
    ignored if the processor does not support the kernel.
    """

def crc32_kernel() -> str:
    """The kernel of `crc32`: ``vpclmul``, ``clmul``, ``arm`` or ``table``; chosen as for `crc32c_kernel`."""
