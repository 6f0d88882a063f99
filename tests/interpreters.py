"""Other CPythons on this machine, and environments for them with a wheel of this tree, in .cache/lifetimes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).parents[1]
ROOT = TREE / ".cache" / "lifetimes"
BUILD = ("setuptools>=77", "cython>=3.1")
NEEDED = ("pyarrow", "typing_extensions", "pytest", "pytest-asyncio", "hypothesis", "crc32c")
WANTED = ("polars",)  # left out where there is no wheel of it
OLDEST, NEWEST = 11, 20  # minor versions that are looked for
# Where interpreters are besides PATH.
PLACES = ("~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin", "/opt/python/*/bin", "/usr/local/bin")
# Prints nothing where it cannot build extensions.
ABOUT = """
import json, os, sys, sysconfig, venv
if os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print(json.dumps([list(sys.version_info[:3]), bool(sysconfig.get_config_var("Py_GIL_DISABLED"))]))
"""


class Unprepared(Exception):
    """An environment without what the tests need: no wheels of it, or no network."""


def run(*command: str | Path, **env: str) -> int:
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=False).returncode


def found() -> dict[tuple[int, int, bool], str]:
    """The newest CPython of each minor version but the running one.

    (3, minor version, whether it is free-threaded) to its path.
    """
    newest: dict[tuple[int, int, bool], tuple[list[int], str]] = {}
    for path in _candidates():
        finished = subprocess.run([path, "-c", ABOUT], capture_output=True, text=True, check=False)
        if finished.returncode or not finished.stdout:  # a launcher of pyenv without its version, or no headers
            continue
        version, free_threaded = json.loads(finished.stdout)
        kind = (version[0], version[1], free_threaded)
        if kind[:2] != sys.version_info[:2]:
            newest[kind] = max(newest.get(kind, ([], "")), (version, str(path)))
    return {kind: newest[kind][1] for kind in sorted(newest)}


def _candidates() -> Iterator[Path]:
    folders = [Path(folder) for folder in os.get_exec_path()]
    for place in PLACES:
        anchor, *parts = Path(place).expanduser().parts
        folders += Path(anchor).glob("/".join(parts))
    for folder in folders:
        for minor in range(OLDEST, NEWEST):
            for suffix in ("", "t"):
                path = folder / f"python3.{minor}{suffix}"
                if os.access(path, os.X_OK):
                    yield path


def prepare(interpreter: str) -> Path:
    """The interpreter of an environment with this tree's wheel.

    Raises Unprepared, and SystemExit where the wheel cannot be built.
    """
    ROOT.mkdir(parents=True, exist_ok=True)
    tests = ROOT / "tests"  # alone: the package in this tree is not the one to be tested
    if not tests.is_symlink():
        tests.symlink_to(TREE / "tests")
    version = subprocess.check_output(
        [interpreter, "-c", "import sys; print(sys.implementation.cache_tag, sys.version.split()[0], sep='-')"],
        text=True,
    ).strip()
    home = ROOT / version
    python = home / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet")
    if not python.exists():
        subprocess.run([interpreter, "-m", "venv", home], check=True)
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    needed = (*BUILD, *NEEDED, *project["dependencies"])
    if run(*pip, *needed):
        raise Unprepared(f"{', '.join(needed)} cannot be installed for {interpreter}")
    run(*pip, *WANTED)
    # Built beside the tree's own objects, which belong to another version.
    config = home / "build.cfg"
    config.write_text(f"[build]\nbuild_base = {home / 'build'}\n[egg_info]\negg_base = {home}\n")
    if run(*pip, "--no-build-isolation", "--force-reinstall", "--no-deps", TREE, DIST_EXTRA_CONFIG=str(config)):
        raise SystemExit(f"{interpreter}: the wheel cannot be built")
    return python
