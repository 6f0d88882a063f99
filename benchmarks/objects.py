"""The objects of a message made again by CPython's functions alone: what decoding them costs without being clever."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIBRARY = HERE.parent / ".cache" / "bench-objects" / f"objects.{sysconfig.get_config_var('SOABI')}.so"


def absent() -> str | None:
    """Why the objects cannot be made, if so."""
    if shutil.which("cc") is None:
        return "no cc on PATH"
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return None if header.exists() else f"no {header}"


@functools.cache
def again() -> Callable[[Any], object]:
    """What makes the objects of a decoded message again. Fields that are not read yet cost what `bytes` do."""
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    headers = f"-I{sysconfig.get_paths()['include']}"
    command = ["cc", "-shared", "-fPIC", "-O3", "-DNDEBUG", headers, str(HERE / "objects.c"), "-o", str(LIBRARY)]
    subprocess.run(command, check=True)
    made: Callable[[Any], object] = ctypes.PyDLL(str(LIBRARY)).objects_again
    made.restype, made.argtypes = ctypes.py_object, [ctypes.py_object]  # type: ignore[attr-defined]
    return made
