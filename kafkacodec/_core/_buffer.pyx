# Buffers and objects with bytes that a binding keeps after a call.
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec._core cimport base as k


cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil


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
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.start = <const uint8_t *> self.view.buf
        self.size = <uint64_t> self.view.len
        if end is not None and <uint64_t> end < self.size:
            self.size = end

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


def fresh(Py_ssize_t size):
    """Memory of a size in bytes, whose contents are not cleared."""
    return memoryview(PyByteArray_FromStringAndSize(NULL, size))


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
