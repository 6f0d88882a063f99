"""What is compiled for single contests, with the headers of this Python. It is kept in `.cache/bench-compiled`."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
KEPT = HERE.parent / ".cache" / "bench-compiled"


def absent() -> str | None:
    """Why nothing can be compiled, if so."""
    if shutil.which("cc") is None:
        return "no cc on PATH"
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return None if header.exists() else f"no {header}"


def library(name: str) -> Path:
    """The library of the source of that name in this directory, compiled again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made = KEPT / f"{name}.{sysconfig.get_config_var('SOABI')}.so"
    headers = f"-I{sysconfig.get_paths()['include']}"
    command = ["cc", "-shared", "-fPIC", "-O3", "-DNDEBUG", headers, str(HERE / f"{name}.c"), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


@functools.cache
def module(name: str) -> ModuleType:
    """The module of the source of that name."""
    spec = importlib.util.spec_from_file_location(name, library(name))
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
