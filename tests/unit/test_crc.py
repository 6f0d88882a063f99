"""Checksums: published values, golden batches, the PyPI packages, and every kernel that this processor supports."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import threading
import zlib

import crc32c as peer
import pytest

import kafkacodec as kc
from kafkacodec.records import _crc
from tests.corpus import Sample, blobs, segments

KERNELS = ["vpclmul", "mixed", "sse42", "clmul", "arm", "table"]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_published_values(data: bytes, value: int) -> None:
    assert kc.crc32c(data) == value


def test_crc32_published_value() -> None:
    assert _crc.crc32(b"123456789") == 0xCBF43926


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 60, 255, 256, 257, 4096, 16384, 100_003])
def test_same_as_peers(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert kc.crc32c(data) == peer.crc32c(data)
    assert kc.crc32c(data, 0xDEADBEEF) == peer.crc32c(data, 0xDEADBEEF)
    assert _crc.crc32(data) == zlib.crc32(data)
    assert _crc.crc32(data, 0xDEADBEEF) == zlib.crc32(data, 0xDEADBEEF)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_takes_any_contiguous_buffer(kind: type) -> None:
    assert kc.crc32c(kind(b"123456789")) == 0xE3069283


def test_refuses_what_is_no_buffer() -> None:
    with pytest.raises(TypeError):
        kc.crc32c("text")  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        kc.crc32c(memoryview(b"123456789")[::2])
    for value in (1 << 32, -1):
        with pytest.raises(ValueError, match="from 0 to"):
            kc.crc32c(b"", value)


@pytest.mark.parametrize("sample", segments(magics={2})[:12] + blobs("builder", magics={2}), ids=str)
def test_stored_crcs_of_real_batches(sample: Sample) -> None:
    data = memoryview(sample.data())
    for batch in sample.expected.batches:
        start, end = batch["position"], batch["position"] + batch["sizeInBytes"]
        assert kc.crc32c(data[start + 21 : end]) == struct.unpack_from(">I", data, start + 17)[0]


@pytest.mark.parametrize("sample", segments(magics={0, 1})[:12] + blobs("builder", magics={0, 1}), ids=str)
def test_stored_crcs_of_real_messages(sample: Sample) -> None:
    data = memoryview(sample.data())
    position, checked = 0, 0
    while len(data) - position >= 12:
        (size,) = struct.unpack_from(">i", data, position + 8)
        if size <= 0 or size > len(data) - position - 12:
            break
        assert (
            _crc.crc32(data[position + 16 : position + 12 + size]) == struct.unpack_from(">I", data, position + 12)[0]
        )
        position, checked = position + 12 + size, checked + 1
    assert checked == len(sample.expected.batches)


# Prints the kernels and the checksums of pseudo-random pieces of a block, at all alignments.
SCRIPT = """
import json, random
from kafkacodec.records import _crc
r = random.Random(7)
block = memoryview(r.randbytes(70_000))
pieces = [(r.randrange(64), r.randrange(1200)) for _ in range(600)]
pieces += [(r.randrange(64), r.randrange(69_000)) for _ in range(60)]
values = [(_crc.crc32c(block[a:a + n], n), _crc.crc32(block[a:a + n], n)) for a, n in pieces]
print(json.dumps([_crc.crc32c_kernel(), _crc.crc32_kernel(), values]))
"""


@pytest.mark.parametrize("kernel", [*KERNELS, "no-such-kernel"])
def test_every_kernel_agrees_with_the_peers(kernel: str) -> None:
    environment = {**os.environ, "KAFKACODEC_FORCE_KERNEL": kernel, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    for_crc32c, for_crc32, values = json.loads(done.stdout)
    assert for_crc32c in KERNELS
    assert for_crc32 in KERNELS
    if kernel == "table":
        assert (for_crc32c, for_crc32) == ("table", "table")
    r = random.Random(7)
    block = memoryview(r.randbytes(70_000))
    pieces = [(r.randrange(64), r.randrange(1200)) for _ in range(600)]
    pieces += [(r.randrange(64), r.randrange(69_000)) for _ in range(60)]
    for (at, size), (castagnoli, ieee) in zip(pieces, values, strict=True):
        data = block[at : at + size]
        assert castagnoli == peer.crc32c(data, size)
        assert ieee == zlib.crc32(data, size)


def test_threads_get_the_same_value() -> None:
    data = random.Random(3).randbytes(1 << 20)
    values: list[int] = []
    threads = [threading.Thread(target=lambda: values.append(kc.crc32c(data))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [peer.crc32c(data)] * 4
