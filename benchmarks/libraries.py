"""The compression libraries alone, on the payloads of a record set, without parsing."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam
import lz4.block
import lz4.frame
import snappy
import zstandard
from isal import isal_zlib

Decompress = Callable[[bytes], object]

_MOST = 2 << 20
_buffer = bytearray(_MOST)
_zstd = zstandard.ZstdDecompressor()
_lz4 = lz4.frame.create_decompression_context()


def xerial_blocks(payload: bytes) -> Iterator[memoryview]:
    """The Snappy blocks in xerial's framing: a header of 16 bytes, then blocks, each preceded by its length."""
    view, at = memoryview(payload), 16
    while at < len(payload):
        size = int.from_bytes(view[at : at + 4], "big")
        yield view[at + 4 : at + 4 + size]
        at += 4 + size


def joined(block: Callable[[memoryview], Any]) -> Decompress:
    return lambda payload: b"".join(map(block, xerial_blocks(payload)))


def cramjam_into(payload: bytes) -> int:
    target, done = memoryview(_buffer), 0
    for block in xerial_blocks(payload):
        done += cramjam.snappy.decompress_raw_into(block, target[done:])
    return done


CANDIDATES: dict[str, dict[str, Decompress]] = {
    "gzip": {
        "isal_zlib.decompress": lambda payload: isal_zlib.decompress(payload, 31),
        "zlib.decompress": lambda payload: zlib.decompress(payload, 31),
        "gzip.decompress": gzip.decompress,
        "cramjam.gzip.decompress_into": lambda payload: cramjam.gzip.decompress_into(payload, _buffer),
    },
    "snappy": {
        "cramjam.snappy.decompress_raw": joined(cramjam.snappy.decompress_raw),
        "cramjam.snappy.decompress_raw_into": cramjam_into,
        "python-snappy uncompress": joined(snappy.uncompress),
    },
    "lz4": {
        "lz4.frame.decompress": lz4.frame.decompress,
        "lz4.frame.decompress_chunk, one context": lambda payload: lz4.frame.decompress_chunk(_lz4, payload),
        "cramjam.lz4.decompress_into": lambda payload: cramjam.lz4.decompress_into(payload, _buffer),
    },
    "zstd": {
        "zstandard, one context": lambda payload: _zstd.decompress(payload, max_output_size=_MOST),
        "zstandard decompressobj": lambda payload: _zstd.decompressobj().decompress(payload),
        "cramjam.zstd.decompress_into": lambda payload: cramjam.zstd.decompress_into(payload, _buffer),
    },
}


COMPRESSORS: dict[str, Decompress] = {
    "gzip": lambda content: isal_zlib.compress(content, wbits=31),
    "snappy": lambda content: cramjam.snappy.compress_raw(content),
    "lz4": lambda content: lz4.frame.compress(content, block_linked=False, block_size=4, store_size=False),
    "zstd": zstandard.ZstdCompressor().compress,
}


def payloads(data: bytes) -> Iterator[bytes]:
    """The compressed bytes of every batch of a record set in magic 2, without the header of 61 bytes."""
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        yield data[position + 61 : position + size]
        position += size


def passes(data: bytes, codec: str) -> dict[str, Callable[[], object]]:
    """One pass over all payloads with each candidate."""
    found = list(payloads(data))

    def over(decompress: Decompress) -> Callable[[], object]:
        def work() -> None:
            for payload in found:
                decompress(payload)

        return work

    return {name: over(decompress) for name, decompress in CANDIDATES[codec].items()}
