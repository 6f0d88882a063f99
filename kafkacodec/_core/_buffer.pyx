# Buffers and objects with bytes that a binding keeps after a call.
cimport cython
from cpython.buffer cimport PyBUF_FULL_RO, PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_CheckExact, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_CheckExact
from cpython.exc cimport PyErr_Clear, PyErr_ExceptionMatches
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_GET_BUFFER
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec._core cimport base as k
from kafkacodec._core._errors cimport check


cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil
    int export_raw "PyObject_GetBuffer"(object, Py_buffer *, int) noexcept


cdef int get_buffer(object data, Py_buffer *view) except -1:
    if export_raw(data, view, PyBUF_SIMPLE) < 0:
        explain(data)
    if has_objects(data):
        PyBuffer_Release(view)
        raise TypeError(
            f"a bytes-like object is required, not {type(data).__name__!r} of Python objects: pass each of them by itself"
        )
    return 0


cdef bint has_objects(object data) noexcept:
    cdef Py_buffer view
    cdef bint found
    if PyBytes_CheckExact(data) or PyByteArray_CheckExact(data):
        return False
    if PyMemoryView_Check(data):
        return names_objects(PyMemoryView_GET_BUFFER(data).format)
    if export_raw(data, &view, PyBUF_FULL_RO) < 0:  # its elements have no format, as those of numpy's times
        PyErr_Clear()
        return False
    found = names_objects(view.format)
    PyBuffer_Release(&view)
    return found


cdef bint names_objects(const char *format) noexcept:
    """Whether elements of this format, in the syntax of `struct`, have references; names of fields are in colons."""
    cdef bint in_name = False
    if format == NULL:
        return False
    while format[0]:
        if format[0] == b":":
            in_name = not in_name
        elif format[0] == b"O" and not in_name:
            return True
        format += 1
    return False


cdef int explain(object data) except -1:
    """Raises the error about an object that has no buffer, with what to pass instead."""
    if not PyErr_ExceptionMatches(TypeError):
        return -1
    PyErr_Clear()
    raise TypeError(f"a bytes-like object is required, not {type(data).__name__!r}{advice(data)}")


cdef str advice(object data):
    from os import PathLike
    from os.path import exists

    if isinstance(data, PathLike) or isinstance(data, str) and data and exists(data):
        return ": read the file first, or open a file of a log with kafkacodec.log.Segment"
    if isinstance(data, str):
        return ": encode text first"
    if callable(getattr(data, "read", None)) and not isinstance(data, type):
        return ": pass what its read() returns, or a memory map of the file"
    return ""


# The garbage collector does not traverse this object, so it treats the exporter as used elsewhere. Otherwise it could
# clear a memoryview in a cycle while its bytes are exported, and CPython up to 3.12 crashes in the release that
# follows. The holder of a HeldBuffer is traversed; when it is freed, the export ends at once. The disadvantage: an
# exporter that refers back to the holder (a subclass of bytearray with a decoder as an attribute) is not collected
# while the holder is open. Code that creates a holder for one call must therefore close it.
@cython.final
@cython.no_gc
cdef class HeldBuffer:
    """The first `end` bytes of a contiguous buffer (None: all), exported for the lifetime of this object."""

    def __cinit__(self, data, end=None):
        get_buffer(data, &self.view)
        self.start = <const uint8_t *> self.view.buf
        self.size = <uint64_t> self.view.len
        if end is not None and <uint64_t> end < self.size:
            self.size = end

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


def octets(data):
    """A memoryview of a buffer's bytes, without a copy. Raises TypeError as `get_buffer`, which says what to pass."""
    cdef Py_buffer view
    get_buffer(data, &view)
    PyBuffer_Release(&view)
    return memoryview(data).cast("B")


def fresh(Py_ssize_t size):
    """Memory of a size in bytes, whose contents are not cleared."""
    made = PyByteArray_FromStringAndSize(NULL, size)
    k.kc_advise_huge(PyByteArray_AS_STRING(made), size)
    return memoryview(made)


cdef void drop(void *holder) noexcept with gil:
    Py_DECREF(<object> holder)


cdef void let_go(void *holder) noexcept nogil:
    """Called in any thread, when the last table is freed. After the end of the interpreter the object is leaked."""
    if Py_IsInitialized():
        drop(holder)


cdef k.kc_backing *backing_of(object holder, const uint8_t *data, size_t size, k.kc_budget *budget, k.kc_error *error):
    cdef k.kc_backing *made = k.kc_backing_of(data, size, budget, let_go, <void *> holder, error)
    if made != NULL:
        Py_INCREF(holder)
    return made


@cython.final
cdef class Block:
    def __dealloc__(self):
        k.kc_buffer_free(&self.buffer)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.buffer.data, <Py_ssize_t> self.buffer.size, False, flags)


cdef Block new_block(size_t size):
    cdef Block made = Block.__new__(Block)
    cdef k.kc_error error
    if k.kc_buffer_reserve(&made.buffer, size, &error):
        check(&error)
    made.buffer.size = size
    return made
