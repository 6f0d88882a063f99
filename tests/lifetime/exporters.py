"""Objects that export bytes, each with a check for exports that are still held."""

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
        require_free: raises an exception while an export of it is held.
    """

    data: Any
    require_free: Callable[[], object]


_old_memory: list[Any] = []  # remains readable, so that a late read finds POISON


class _Memory:
    """The memory of one export. It overwrites the bytes when the export ends."""

    def __init__(self, owner: _Fresh) -> None:
        self.owner = owner
        self.bytes = ctypes.create_string_buffer(owner.data, len(owner.data) + 1)
        owner.held += 1

    def __del__(self) -> None:
        self.owner.held -= 1
        ctypes.memset(self.bytes, POISON, len(self.bytes))
        _old_memory.append(self.bytes)


class _Fresh:
    """Exports new memory each time, as a C class may; `_install` adds the buffer functions."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.held = 0

    def require_free(self) -> None:
        if self.held:
            raise BufferError(f"{self.held} exports are held")


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
def _get(self: _Fresh, view: int, flags: int) -> int:
    memory = _Memory(self)
    fill = ctypes.pythonapi.PyBuffer_FillInfo
    fill.argtypes = (
        ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int,
    )  # fmt: skip
    fill(view, memory, ctypes.addressof(memory.bytes), len(self.data), 1, flags)
    return 0


_AS_BUFFER = 160
"""Where PyTypeObject.tp_as_buffer is, in bytes; the same in CPython 3.11 to 3.14 on machines of 64 bits."""


def _install(cls: type) -> None:
    """Makes the class export buffers. Since CPython 3.12 a method could; this works in all versions."""
    procs = ctypes.c_void_p.from_address(id(cls) + _AS_BUFFER).value
    ctypes.c_void_p.from_address(procs or 0).value = ctypes.cast(_get, ctypes.c_void_p).value  # bf_getbuffer is first


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
    """With attributes, so that it can refer to objects created from it."""


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
