"""Compression of record batches: libraries, levels and limits.

Frames are parsed and their lengths checked before a library reads them. `docs/compression.md` lists the accepted
framing, the differences to Kafka's reader, and the libraries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from kafkacodec.arguments import require_int
from kafkacodec.datatypes import NamedTuple
from kafkacodec.records import _compression

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["CODECS", "DEFAULT_MAX_DECOMPRESSED_BYTES", "LEVELS", "Codec", "compress", "compressor", "decompress"]

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]

CODECS: Final[tuple[Codec, ...]] = get_args(Codec)
"""Names of the codecs; the index is the number in a batch's attributes (KIP-110 added zstd)."""

DEFAULT_MAX_DECOMPRESSED_BYTES: Final = 128 << 20
"""Limit on the decompressed records of one batch, in bytes (128 MiB)."""

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)


class LevelRange(NamedTuple):
    """The levels that a codec accepts, inclusive."""

    lowest: int
    highest: int


LEVELS: Final = {
    _GZIP: LevelRange(0, 9),
    _LZ4: LevelRange(1, 17),
    _ZSTD: LevelRange(-131072, 22),
}
"""Levels by codec number, as in Kafka's `compression.*.level` settings (KIP-390)."""


def decompress(codec: int, data: Buffer, *, magic: int = 2, limit: int) -> bytes:
    """Decompress the payload of one batch (magic 2) or wrapper message (magic 0 and 1).

    Args:
        codec: number of the codec, 0 to 4.
        data: the complete compressed bytes.
        magic: format of the batch; LZ4 frames in magic 0 may have a wrong header checksum (KAFKA-3160).
        limit: maximum size of the result in bytes.

    Raises:
        LimitExceeded: the result would exceed `limit` bytes; no more than that is ever allocated for it.
        CorruptRecord: the data is damaged, or its framing is one that Kafka rejects.
        Truncated: the data ends too early.
        UnsupportedCodec: the codec is unknown.

    Positions in the errors count from the start of `data`. Threads may call this at the same time.
    """
    return _per_thread.decompressor.decompress(codec, data, magic=magic, limit=limit)


def compress(codec: int, data: Buffer, *, level: int | None = None, magic: int = 2) -> Buffer:
    """Compress the records of one batch, with the framing of Kafka's clients.

    Args:
        codec: number of the codec, 0 to 4.
        data: the bytes to compress.
        level: as in Kafka's `compression.<codec>.level`; None is a fast default.
        magic: format of the batch; LZ4 in magic 0 gets the header checksum that old readers expect (KAFKA-3160).

    Raises:
        ValueError: the codec is unknown, does not have this level, or does not exist in this magic.
        TypeError: the level is not an integer.

    Threads may call this at the same time.
    """
    prepared = _per_thread.compressors.get((codec, level, magic))
    if prepared is None:
        prepared = _per_thread.compressors[codec, level, magic] = compressor(codec, level=level, magic=magic)
    return prepared(data)


def compressor(codec: int, *, level: int | None = None, magic: int = 2) -> Callable[[Buffer], Buffer]:
    """A function that compresses one batch after another. Not thread-safe: it reuses its context.

    Arguments and errors are those of `compress`.
    """
    if codec not in range(len(CODECS)):
        raise ValueError(f"unknown compression codec {codec!r}")
    if codec == _ZSTD and magic < 2:
        raise ValueError(f"zstd needs magic 2, not {magic}")
    if level is not None:
        _check_level(codec, level)
    made = _COMPRESSORS[codec](level)
    if codec == _LZ4 and magic == 0:
        return lambda data: _compression.with_old_lz4_checksum(bytes(made(data)))
    return made


def _check_level(codec: int, level: int) -> None:
    levels = LEVELS.get(codec)
    if levels is None:
        raise ValueError(f"{CODECS[codec]} has no levels")
    require_int(f"the level of {CODECS[codec]}", level, levels.lowest, levels.highest)


# The libraries are imported when there is something for them.


def _gzip(level: int | None) -> Callable[[Buffer], Buffer]:
    import zlib

    return partial(_fastest_deflate(), wbits=31) if level is None else partial(zlib.compress, level=level, wbits=31)


def _fastest_deflate() -> Callable[..., bytes]:
    try:
        from isal.isal_zlib import compress as deflate
    except ImportError:  # exists for x86-64 and AArch64 only
        from zlib import compress as deflate
    made: Callable[..., bytes] = deflate
    return made


def _lz4(level: int | None) -> Callable[[Buffer], Buffer]:
    """Independent blocks and no optional fields, which every version of Kafka can read."""
    direct = _compression.Lz4Frames(level or 0)
    if direct.is_there:
        return direct
    import lz4.frame

    small, large = (
        partial(lz4.frame.compress, compression_level=level or 0, block_size=size, block_linked=False, store_size=False)
        for size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX256KB)
    )
    # Readers reserve a whole block; more than one of 64 KiB would be compressed worse, and decompressed more slowly.
    return lambda data: (small if memoryview(data).nbytes <= 1 << 16 else large)(data)


def _zstd(level: int | None) -> Callable[[Buffer], Buffer]:
    from zstandard import ZstdCompressor

    made: Callable[[Any], bytes] = ZstdCompressor(3 if level is None else level).compress
    return made


_COMPRESSORS: Final[tuple[Callable[[int | None], Callable[[Buffer], Buffer]], ...]] = (
    lambda level: lambda data: data,
    _gzip,
    lambda level: _compression.compress_snappy,
    _lz4,
    _zstd,
)


class _PerThread(threading.local):
    """Contexts of the libraries, which threads cannot share."""

    def __init__(self) -> None:
        self.decompressor = _compression.Decompressor()
        self.compressors: dict[tuple[int, int | None, int], Callable[[Buffer], Buffer]] = {}


_per_thread = _PerThread()
