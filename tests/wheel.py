"""A wheel of the sources as they are, installed into an environment that takes other packages from this one."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

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
    """The Python of a new environment with the wheel and all packages of this one."""
    python = _with_wheel(directory)
    (_site(directory) / "zz_others.pth").write_text(sysconfig.get_path("purelib"))
    return python


def install_exactly(directory: Path, requirements: Iterable[str]) -> Path:
    """The Python of a new environment with what pip would install, and nothing else: links to this one's packages.

    Args:
        directory: the environment.
        requirements: such as ``kafkacodec[arrow]``, ``polars``.
    """
    python = _with_wheel(directory)
    site = _site(directory)
    for name in _closure(requirements) - {"kafkacodec"}:
        for file in metadata.distribution(name).files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(file.locate())
    return python


def _closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirements need, directly or not."""
    todo = [Requirement(text) for text in requirements]
    seen: set[tuple[str, str]] = set()
    while todo:
        wanted = todo.pop()
        for extra in {"", *wanted.extras}:
            if (wanted.name.lower(), extra) in seen:
                continue
            seen.add((wanted.name.lower(), extra))
            needs = map(Requirement, metadata.requires(wanted.name) or ())
            todo += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


def _with_wheel(directory: Path) -> Path:
    """What pip makes of the wheel, which it does once: for each environment it would take two seconds."""
    first = _by_pip()
    python = directory / "bin" / "python"
    _run(sys.executable, "-m", "venv", "--without-pip", directory)
    shutil.copytree(_site(first), _site(directory), dirs_exist_ok=True)
    for script in (first / "bin").glob("kafkacodec*"):
        text = script.read_text()
        assert str(first) in text, "the script does not name its Python"
        (directory / "bin" / script.name).write_text(text.replace(str(first), str(directory)))
        shutil.copymode(script, directory / "bin" / script.name)
    return python


@cache
def _by_pip() -> Path:
    """An environment for which pip has installed the wheel, until this process ends."""
    directory = Path(tempfile.mkdtemp(prefix="kafkacodec-wheel-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    python = directory / "bin" / "python"
    _run(sys.executable, "-m", "venv", "--without-pip", directory)
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", build())
    return directory


def _site(directory: Path) -> Path:
    return directory / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)


def _sources() -> list[Path]:
    inside = [p for name in ("kafkacodec", "csrc") for p in (ROOT / name).rglob("*") if p.is_file()]
    built = (".so", ".o", ".pyc")
    return [*(p for p in inside if p.suffix not in built), ROOT / "setup.py", ROOT / "pyproject.toml"]


def _run(*command: str | Path) -> None:
    # With this directory on PYTHONPATH, which tests of Spark set, pip takes its egg-info for an installed package.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
