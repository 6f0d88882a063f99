# Buffers that a binding keeps exported after a call.
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint64_t


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
