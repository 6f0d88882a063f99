"""Objects that export bytes, each with a way to tell whether somebody still holds an export."""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

POISON = 0xDD


class Export(NamedTuple):
    """An object that exports bytes.

    Attributes:
        data: the object.
        require_free: raises an exception as long as somebody holds an export of it.
    """

    data: Any
    require_free: Callable[[], object]


class _Fresh:
    """Gives new memory at each export, and overwrites it when that export ends. What it needs stands in `_install`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.held: dict[int, Any] = {}  # by address

    def require_free(self) -> None:
        if self.held:
            raise BufferError(f"{len(self.held)} exports are held")


_old_memory: list[Any] = []  # stays readable, so that a late read shows POISON


class _Procs(ctypes.Structure):
    _fields_ = (("getbuffer", ctypes.c_void_p), ("releasebuffer", ctypes.c_void_p))


class _Buffer(ctypes.Structure):
    _fields_ = (("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t))


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
def _get(self: _Fresh, view: int, flags: int) -> int:
    memory = ctypes.create_string_buffer(self.data, len(self.data) + 1)
    address = ctypes.addressof(memory)
    fill = ctypes.pythonapi.PyBuffer_FillInfo
    fill.argtypes = (
        ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int,
    )  # fmt: skip
    fill(view, self, address, len(self.data), 1, flags)
    self.held[address] = memory
    return 0


@ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_void_p)
def _release(self: _Fresh, view: int) -> None:
    memory = self.held.pop(_Buffer.from_address(view).buf)
    ctypes.memset(memory, POISON, len(memory))
    _old_memory.append(memory)


_AS_BUFFER = 160
"""Where PyTypeObject.tp_as_buffer is, in bytes; the same in CPython 3.11 to 3.14 on machines of 64 bits."""


def _install(cls: type) -> None:
    """Makes the class export buffers. From CPython 3.12 on a method could; this is for all versions."""
    procs = _Procs.from_address(ctypes.c_void_p.from_address(id(cls) + _AS_BUFFER).value or 0)
    procs.getbuffer = ctypes.cast(_get, ctypes.c_void_p).value
    procs.releasebuffer = ctypes.cast(_release, ctypes.c_void_p).value


_install(_Fresh)


class _FreshMethod:
    """The same by the methods of PEP 688."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.held = 0

    def __buffer__(self, flags: int) -> memoryview:
        self.held += 1
        return memoryview(bytearray(self.data))

    def __release_buffer__(self, view: memoryview) -> None:
        self.held -= 1
        view[:] = bytes([POISON]) * len(view)
        view.release()

    def require_free(self) -> None:
        if self.held:
            raise BufferError(f"{self.held} exports are held")


def _bytes(data: bytes) -> Export:
    return Export(data, lambda: None)


def _bytearray(data: bytes) -> Export:
    made = bytearray(data)
    return Export(made, lambda: made.append(0))


def _view(data: bytes) -> Export:
    inner = bytearray(data)
    view = memoryview(inner)

    def require_free() -> None:
        view.release()
        inner.append(0)

    return Export(view, require_free)


def _slice(data: bytes) -> Export:
    inner = bytearray(b"\xff" * 7 + data + b"\xff" * 7)
    outer = memoryview(inner)
    view = outer[7:-7]

    def require_free() -> None:
        view.release()
        outer.release()
        inner.append(0)

    return Export(view, require_free)


def _read_only_view(data: bytes) -> Export:
    view = memoryview(data)
    return Export(view, view.release)


def _mmap(data: bytes) -> Export:
    mapped = mmap.mmap(-1, max(1, len(data)))
    mapped[: len(data)] = data
    view = memoryview(mapped)[: len(data)]

    def require_free() -> None:
        view.release()
        mapped.close()

    return Export(view if len(data) != len(mapped) else mapped, require_free)


def _array(data: bytes) -> Export:
    made = array.array("B", data)
    return Export(made, lambda: made.append(0))


def _numpy(data: bytes) -> Export:
    inner = bytearray(data)
    made: list[Any] = [np.frombuffer(inner, np.uint8)]
    return Export(made[0], lambda: None)


def _numpy_slice(data: bytes) -> Export:
    return Export(np.frombuffer(b"\xff" * 5 + data + b"\xff" * 5, np.uint8)[5:-5], lambda: None)


def _ctypes(data: bytes) -> Export:
    return Export((ctypes.c_ubyte * len(data)).from_buffer_copy(data), lambda: None)


def _arrow(data: bytes) -> Export:
    import pyarrow as pa

    return Export(pa.py_buffer(data), lambda: None)


def _fresh(data: bytes) -> Export:
    made = _Fresh(data)
    return Export(made, made.require_free)


def _fresh_method(data: bytes) -> Export:
    made = _FreshMethod(data)
    return Export(made, made.require_free)


def _view_of_fresh(data: bytes) -> Export:
    made = _Fresh(data)
    view = memoryview(made)  # type: ignore[arg-type]

    def require_free() -> None:
        view.release()
        made.require_free()

    return Export(view, require_free)


class _Owned(bytearray):
    """With attributes, so that it can lead back to what was made from it."""


def _subclass(data: bytes) -> Export:
    made = _Owned(data)
    return Export(made, lambda: made.append(0))


EXPORTERS: dict[str, Callable[[bytes], Export]] = {
    "bytes": _bytes,
    "bytearray": _bytearray,
    "memoryview": _view,
    "memoryview of bytes": _read_only_view,
    "memoryview slice": _slice,
    "mmap": _mmap,
    "array": _array,
    "numpy": _numpy,
    "numpy slice": _numpy_slice,
    "ctypes array": _ctypes,
    "pyarrow.Buffer": _arrow,
    "bytearray subclass": _subclass,
    "new memory at each export": _fresh,
    "memoryview of new memory": _view_of_fresh,
}
if sys.version_info >= (3, 12):
    EXPORTERS["__buffer__"] = _fresh_method
