"""The objects of a message made again by CPython's functions alone: what decoding them costs without being clever."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from benchmarks import compiled


@functools.cache
def again() -> Callable[[Any], object]:
    """What makes the objects of a decoded message again. Fields that are not read yet cost what `bytes` do."""
    made: Callable[[Any], object] = ctypes.PyDLL(str(compiled.library("objects"))).objects_again
    made.restype, made.argtypes = ctypes.py_object, [ctypes.py_object]  # type: ignore[attr-defined]
    return made
