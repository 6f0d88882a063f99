"""A buffer that another thread writes to meanwhile: errors or other values, never a crash. In separate processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

COMMON = """
import random, threading, time
import numpy as np, pyarrow as pa
import kafkacodec as kc
from kafkacodec.log.segments import _resync
from kafkacodec.dialects import kafka07
from tests.corpus import blobs

def while_bytes_change(buffer, places, run):
    done = threading.Event()
    values = np.random.default_rng(5).integers(0, 256, 1 << 16, dtype=np.uint8)
    original = buffer.copy()
    def change():
        at = 0
        while not done.is_set():
            for place in places:
                buffer[place] = values[at & 0xFFFF]
                at += 1
            buffer[:] = original
    thread = threading.Thread(target=change)
    thread.start()
    end = time.monotonic() + 0.4
    ran = 0
    try:
        while time.monotonic() < end or not ran:
            try:
                run()
            except (kc.KafkaCodecError, ValueError):
                pass
            ran += 1
    finally:
        done.set()
        thread.join()

def headers(magic):
    big = kc.encode([(b"k", b"v" * 200_000)] * 4, magic=magic, codec="none", drop_unsupported=True)
    rows = [(b"k%d" % i, b"value") for i in range(2000)]
    small = kc.encode(rows, magic=magic, drop_unsupported=True, batch_bytes=300)
    buffer = np.frombuffer(big + small, np.uint8).copy()
    rnd = random.Random(magic)
    starts = kc.scan(bytes(buffer))["position"].tolist()
    return buffer, [s + rnd.choice([8, 9, 10, 11, 16, 17, 22, 60]) for s in starts]
"""

RUNS = {
    "decode": """
for magic in (0, 1, 2):
    buffer, places = headers(magic)
    def run():
        for verify in (True, False):
            kc.decode(buffer, on_error="skip", verify_crc=verify, batch_columns=True)
    while_bytes_change(buffer, places, run)
""",
    "scan": """
for magic in (1, 2):
    buffer, places = headers(magic)
    def run():
        kc.scan(buffer, on_error="stop")
        search = _resync.Resync(buffer)
        at = 0
        while at < len(buffer):
            at = search.after(at)
    while_bytes_change(buffer, places, run)
""",
    "kafka07": """
data = np.frombuffer(kafka07.encode_messages([b"x" * 100_000] * 3 + [b"y" * 20] * 5000), np.uint8).copy()
places = [random.Random(1).randrange(len(data)) for _ in range(500)] + [0, 1, 2, 3, 4]
while_bytes_change(data, places, lambda: kafka07.decode(data, on_error="skip"))
""",
    "compressed": """
for codec in ("gzip", "snappy", "lz4", "zstd"):
    sets = kc.encode([(b"k", b"value %d" % i * 50) for i in range(4000)], codec=codec)
    buffer = np.frombuffer(sets, np.uint8).copy()
    places = [random.Random(1).randrange(61, len(buffer)) for _ in range(300)] + list(range(61, 120))
    while_bytes_change(buffer, places, lambda: kc.decode(buffer, on_error="skip", verify_crc=False))
""",
    "encode": """
count = 20_000
for width, kind in ((4, pa.binary()), (8, pa.large_binary())):
    offsets = np.arange(count + 1, dtype=f"i{width}") * 8
    column = pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(bytes(count * 8))])
    places = list(range(width * 10, width * count, 401))
    while_bytes_change(offsets.view(np.uint8), places, lambda: kc.encode(pa.table({"value": column})))
words = pa.array([b"long enough to lie elsewhere %d" % i for i in range(count)], pa.binary_view())
buffers = words.buffers()
index = np.frombuffer(buffers[1], np.uint8).copy()
column = pa.Array.from_buffers(pa.binary_view(), count, [None, pa.py_buffer(index), *buffers[2:]])
while_bytes_change(index, list(range(0, len(index), 4)), lambda: kc.encode(pa.table({"value": column})))
""",
}


@pytest.mark.parametrize("what", RUNS)
def test_nothing_crashes(what: str) -> None:
    script = COMMON + RUNS[what]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, timeout=120, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
