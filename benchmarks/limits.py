"""What limits readers, measured in the same runs: a copy and the checksum of the same bytes, what threads save."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import zstandard

import kafkacodec as kc
from benchmarks.libraries import payloads

COPY, CHECKSUM = "one copy", "kc.crc32c alone"
LIMITS = (COPY, CHECKSUM)
_BLOCK = 16384


def limits(data: bytes) -> dict[str, Callable[[], object]]:
    """A copy to memory that was used before, and checksums in blocks of 16 KiB."""
    target = memoryview(bytearray(len(data)))
    blocks = [memoryview(data)[at : at + _BLOCK] for at in range(0, len(data), _BLOCK)]

    def copy() -> None:
        target[:] = data

    return {COPY: copy, CHECKSUM: lambda: [kc.crc32c(block) for block in blocks]}


def in_threads(codec: str, data: bytes, count: int) -> Callable[[], object] | None:
    """What cannot be without: a copy, or decompression by its library, of `count` equal parts in as many threads."""
    if codec == "none":
        given = np.frombuffer(data, np.uint8)
        target = np.empty_like(given)
        copies = zip(np.array_split(target, count), np.array_split(given, count), strict=True)
        return _all_at_once([partial(np.copyto, to, part) for to, part in copies])
    if codec == "zstd":
        found = list(payloads(data))
        return _all_at_once([partial(_zstd, found[i::count]) for i in range(count)])
    return None


def _zstd(found: list[bytes]) -> None:
    context = zstandard.ZstdDecompressor()
    for payload in found:
        context.decompress(payload, max_output_size=2 << 20)


def _all_at_once(parts: list[Callable[[], None]]) -> Callable[[], object]:
    def work() -> None:
        with ThreadPoolExecutor(len(parts)) as pool:
            for done in [pool.submit(part) for part in parts]:
                done.result()

    return work
