"""No result depends on memory that was never set, such as an option that a binding forgot: valgrind's memcheck follows
each bit through every entry point, hostile data, a log and a broker. A sanitizer sees only what happened to be there.

    python -m tests.lifetime.unset [--only TEXT]

Runs itself in valgrind. What it finds is printed, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import kafkacodec as kc
from kafkacodec.errors import KafkaCodecError
from tests.lifetime.arrow import ARROW_ENTRIES
from tests.lifetime.entries import ENTRIES
from tests.lifetime.matrix import PLAIN, export_of
from tests.limits.families import FAMILIES

SECONDS = 1000
"""Timeout of valgrind."""

ENVIRONMENT = {
    "PYTHONMALLOC": "malloc",
    "PYTHONHASHSEED": "0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Each object is an allocation of its own, so that memory which is used again counts as not set."""

FOUND = re.compile(r"uninitialised (value|byte)")
FRAME = re.compile(r"==\d+==    (?:at|by) 0x[0-9A-F]+: (.*)")
OURS = re.compile(r"\(in \S*/kafkacodec/\S+\)")
LIBC = re.compile(r"vgpreload|/libc[.-]")


def entries() -> Iterator[tuple[str, Callable[[], object]]]:
    """Every function that takes a buffer, with valid and with damaged bytes."""
    for name, entry in (ENTRIES | ARROW_ENTRIES).items():
        for data in filter(None, (entry.good, entry.bad)):
            export = export_of(name, PLAIN[name in ARROW_ENTRIES], data)
            yield name, lambda entry=entry, export=export: entry.show(entry.call(export.data))  # type: ignore[misc]


def hostile(place: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Little of each kind of data that would take long."""
    for number, (name, family) in enumerate(FAMILIES.items()):
        (place / str(number)).mkdir()
        yield f"hostile: {name}", family.make(max(2, family.units // 20), place / str(number))


def read_log() -> None:
    log = kc.sample()
    for topic in log.topics:
        for isolation in ("read_committed", "read_uncommitted"):
            assert [len(chunk.records()) for chunk in log.topic(topic).read(isolation_level=isolation)]
    assert log.verify().ok


def use_broker() -> None:
    """Everything that a record passes through from a producer to a consumer."""
    with kc.broker.serve(topics={"orders": 2}) as broker:
        with kc.client.Producer(broker.bootstrap_servers, transactional_id="t") as producer:
            for codec in ("none", "lz4"):
                with producer.transaction():
                    for number in range(20):
                        producer.send("orders", b"%d" % number, key=b"k", headers={"codec": codec.encode()})
        with kc.client.Consumer("orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest",
                                isolation_level="read_committed") as consumer:  # fmt: skip
            left = 40
            while left:
                left -= len(next(consumer.columns(timeout=600)))


def inside(only: str) -> None:
    """The program that runs in valgrind: names and what valgrind says go to the same place."""
    with tempfile.TemporaryDirectory() as place:
        more = [("read a log", read_log), ("use a broker", use_broker)]
        for name, call in (*entries(), *hostile(Path(place)), *more):
            if only in name:
                print(f"entry {name}", file=sys.stderr, flush=True)
                with contextlib.suppress(KafkaCodecError):
                    call()
    print("entry the end", file=sys.stderr, flush=True)


def reports(said: str) -> list[str]:
    """What valgrind says about code of ours, with the entry point before it."""
    found = []
    entry = ""
    for block in re.split(r"^==\d+== \n|^(?=entry )", said, flags=re.MULTILINE):
        entry = block.partition("\n")[0] if block.startswith("entry ") else entry
        frames = FRAME.findall(block)
        at = next((frame for frame in frames if not LIBC.search(frame)), "")
        if FOUND.search(block) and OURS.search(at):
            found.append("\n".join([entry, *frames[:8]]))
    return found


def search(only: str = "") -> list[str]:
    """What valgrind finds."""
    command = ["valgrind", "--tool=memcheck", "--leak-check=no", "--error-limit=no", "--num-callers=16"]
    command += [sys.executable, "-m", "tests.lifetime.unset", "--inside", "--only", only]
    done = subprocess.run(
        command,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, "entry the end" in done.stderr) == (0, True), done.stderr[-4000:]
    return reports(done.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="entry points whose name has this text")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.only)
        return 0
    found = search(options.only)
    print(*found, sep="\n\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
