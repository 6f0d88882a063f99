"""Builds sdist and wheel, and tests the wheel where nothing else can help it: fresh environment, empty directory."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "wheels"


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    finished = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if finished.returncode:
        sys.exit(f"{finished.stdout}\nfailed: {' '.join(map(str, command))}")


def build(scratch: Path) -> Path:
    """The wheel's path in wheels/; older ones are removed."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", scratch, ROOT)
    (wheel,) = scratch.glob("*.whl")
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    return Path(shutil.copy(wheel, WHEELS))


def check(wheel: Path, scratch: Path) -> None:
    venv.create(scratch / "venv", with_pip=True)
    python = scratch / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    empty = scratch / "empty"
    empty.mkdir()
    run(python, WHEELS / "smoke_test.py", ROOT / "tests" / "data" / "kafka", cwd=empty)
    if any(empty.iterdir()):
        sys.exit("the smoke test left files behind")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        wheel = build(scratch)
        check(wheel, scratch)
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB, works by itself")


main()
