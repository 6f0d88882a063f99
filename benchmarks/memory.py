"""Peak memory of reading a segment in chunks: `python -m benchmarks.memory [GIB]`.

Each figure is from a separate process that maps a segment of the given size and reads all of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cases import Case, record_set

CODECS = ("none", "lz4")

# Only anonymous memory is counted: resident pages of the mapping belong to the system's cache.
PROBE = """
import sys
import kafkacodec.records.decode
from kafkacodec.log import Segment

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

before = peak = anonymous()
chunk = 0
for count, columns in enumerate(Segment(sys.argv[1]).read()):
    chunk = max(chunk, columns.nbytes)
    if count % 16 == 0:
        peak = max(peak, anonymous())
print(chunk, peak - before)
"""


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 1) * (1 << 30))
    print("| codec | file, MiB | chunk, KiB | peak above the start, KiB | in chunks |\n|---|---|---|---|---|")
    for codec in CODECS:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "00000000000000000000.log"
            write(path, codec, size)
            chunk, peak = probe(path)
            print(f"| {codec} | {size >> 20} | {chunk >> 10} | {peak >> 10} | {peak / chunk:.1f} |")


def write(path: Path, codec: str, size: int) -> None:
    """Write a segment of at least `size` bytes that repeats the same batches, with the same offsets."""
    data = record_set(Case("memory", codec=codec, total_bytes=64 << 20))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(data)


def probe(path: Path) -> tuple[int, int]:
    finished = subprocess.run([sys.executable, "-c", PROBE, path], check=True, capture_output=True, text=True)
    chunk, peak = finished.stdout.split()
    return int(chunk), int(peak)


if __name__ == "__main__":
    main()
