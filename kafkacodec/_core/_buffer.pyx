# The one place where a binding keeps the export of a buffer beyond a call.
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint64_t


# The collector does not see this object, and so takes the exporter for one that is in use elsewhere. If it saw the
# reference, it could clear a memoryview in a cycle while its bytes are exported, and CPython up to 3.12 does not survive
# the release that follows. What holds a HeldBuffer is seen; when that goes, the export ends at once. The price: an
# exporter that itself leads back to the holder (a subclass of bytearray with a decoder as an attribute) is not found as
# garbage while the holder is open. Whoever makes a holder for the time of a call therefore closes it.
@cython.final
@cython.no_gc
cdef class HeldBuffer:
    """The first `end` bytes of a contiguous buffer, all of them where `end` is None: exported once, from here to the end."""

    def __cinit__(self, data, end=None):
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.start = <const uint8_t *> self.view.buf
        self.size = <uint64_t> self.view.len
        if end is not None and <uint64_t> end < self.size:
            self.size = end

    def __dealloc__(self):
        PyBuffer_Release(&self.view)
