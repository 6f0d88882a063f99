"""A wheel of the sources as they are, installed into an environment that takes all other packages from this one."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".cache" / "tests-wheel"


def build() -> Path:
    """The wheel of ``make wheel``, if it is newer than the sources, else one that is built and kept."""
    newest = max(path.stat().st_mtime for path in _sources())
    for directory in (ROOT / "wheels", KEPT):
        for wheel in directory.glob("*.whl"):
            if wheel.stat().st_mtime > newest:
                return wheel
            if directory == KEPT:
                wheel.unlink()
    _run(sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", KEPT)
    (made,) = KEPT.glob("*.whl")
    return made


def install(directory: Path) -> Path:
    """The Python of a new environment with the wheel."""
    python = directory / "bin" / "python"
    _run(sys.executable, "-m", "venv", "--without-pip", directory)
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", build())
    site = directory / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (site / "zz_others.pth").write_text(sysconfig.get_path("purelib"))
    return python


def _sources() -> list[Path]:
    inside = [p for name in ("kafkacodec", "csrc") for p in (ROOT / name).rglob("*") if p.is_file()]
    built = (".so", ".o", ".pyc")
    return [*(p for p in inside if p.suffix not in built), ROOT / "setup.py", ROOT / "pyproject.toml"]


def _run(*command: str | Path) -> None:
    # With this directory on PYTHONPATH, which tests of Spark set, pip takes its egg-info for an installed package.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
