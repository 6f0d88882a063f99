"""Files under faults: full disks, errors, short writes, a file system that goes away, and kills at any call.

The result is the old state or the new one, and an error that names a file; a second run completes. A broker has told
no client what is not so, and goes on when the disk does. By default some of
the calls are tried; with KAFKACODEC_FAULTS=all each one (`make faults`).
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.faults.__main__ import FAULTS, KILL, NAME
from tests.faults.broker import FAULTS as BROKER_FAULTS
from tests.faults.programs import PROGRAMS
from tests.memory_files import temporary_directory

SHIM = Path(__file__).parent.parent / "faults" / "shim.c"
ALL = os.environ.get("KAFKACODEC_FAULTS") == "all"
RUNS = () if ALL else ("8",)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: the shim is preloaded as there"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc, a C compiler, on PATH"),
]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("faults") / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", built, SHIM, "-ldl"], check=True)
    return built


@pytest.fixture
def place() -> Iterator[str]:
    with temporary_directory() as directory:
        yield directory


def with_shim(shim: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    preloaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(shim)]))
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "LD_PRELOAD": preloaded, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )


def together(faults: Iterable[str]) -> list[str]:
    """Faults for one process: of a few calls all of them, so that it starts once."""
    return [*faults] if ALL else [",".join(faults)]


@pytest.mark.parametrize("faults", together(FAULTS))
@pytest.mark.parametrize("program", PROGRAMS)
def test_old_state_or_new_state(program: str, faults: str, shim: Path, place: str) -> None:
    run = with_shim(shim, "-m", "tests.faults", program, faults, place, *RUNS)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert run.stdout.count(" runs over ") == len(faults.split(","))


@pytest.mark.slow
@pytest.mark.parametrize("faults", together(BROKER_FAULTS))
def test_what_a_broker_says_is_true(faults: str, shim: Path, place: str) -> None:
    run = with_shim(shim, "-m", "tests.faults.broker", faults, place, *(() if ALL else ("4",)))
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert run.stdout.count(" runs over ") == len(faults.split(","))


UNREADABLE = """
import ctypes, errno, os, sys
from kafkacodec.log.files.access import MappedFile
path, number = sys.argv[1], int(sys.argv[2])
try:
    with MappedFile(path) as file:
        os.truncate(path, 0)
        file.data[5000:5001]
        os.truncate(path, file.size)
        ctypes.CDLL(None).fault_arm(os.fsencode(path), number, ctypes.c_long(1), 1, 1)
except OSError as error:
    print(error.errno, error.filename)
"""


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_page_that_the_system_cannot_read_is_its_error(number: int, shim: Path, place: str) -> None:
    path = Path(place, "segment")
    path.write_bytes(bytes(20_000))
    run = with_shim(shim, "-c", UNREADABLE, str(path), str(number))
    assert run.stdout == f"{number} {path}\n", run.stderr


ROLLING = """
import ctypes, os, sys, time
import kafkacodec as kc
place, path, what, calls = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
now = time.time_ns() // 1_000_000
with kc.broker.serve(place, topics=["t"], flush="always", config={"segment.ms": 1}) as kafka:
    with kc.client.Producer(kafka.bootstrap_servers) as producer:
        ctypes.CDLL(None).fault_arm(os.fsencode(path), what, ctypes.c_long(1), calls, 0)
        for n in range(6):
            offset = producer.send("t", b"%d" % n, timestamp=now + 1000 * n).result().offset
            print(offset, flush=True)
"""
"""Each record begins a segment."""

IN_ORDER = (".index", ".timeindex", ".log")


@pytest.mark.parametrize("suffix", IN_ORDER)
def test_a_kill_between_the_files_of_a_new_segment(suffix: str, shim: Path, place: str) -> None:
    partition = Path(place, "t-0")
    path = partition / f"{3:020}{suffix}"
    run = with_shim(shim, "-c", ROLLING, place, str(path), str(KILL), str(NAME))
    assert (run.returncode, run.stdout.split()) == (-signal.SIGKILL, ["0", "1", "2"]), run.stderr
    made = {file.suffix for file in partition.glob(f"{3:020}.*")}
    assert made & {*IN_ORDER} == {*IN_ORDER[: IN_ORDER.index(suffix)]}
    with kc.broker.serve(place) as kafka:
        assert kafka.records("t")["value"].tolist() == [b"0", b"1", b"2"]
        assert {file.suffix for file in partition.glob(f"{3:020}.*")}.isdisjoint(IN_ORDER)
        kafka.write("t", [(None, b"next")])
        assert kafka.records("t")["offset"].tolist() == [0, 1, 2, 3]
    assert kc.log.Partition(partition).verify().ok
