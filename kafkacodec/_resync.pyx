"""The binding of resynchronisation: where to go on behind damaged bytes."""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec cimport _kernel as k


# The buffer is given back in __dealloc__: clearing it while others point into it would be too early.
@cython.no_gc_clear
cdef class Resync:
    """Searches one buffer for intact batches, with one budget for all searches."""
    cdef Py_buffer view
    cdef bint has_view
    cdef uint64_t size
    cdef k.kc_resync state

    def __cinit__(self, data, end=None):
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.has_view = True
        self.size = self.view.len
        if end is not None and <uint64_t> end < self.size:
            self.size = end
        self.state = k.kc_resync_start()

    def __dealloc__(self):
        if self.has_view:
            PyBuffer_Release(&self.view)

    @property
    def examined(self):
        """Bytes looked at plus bytes of checksum computed so far."""
        return self.state.examined

    def behind(self, uint64_t position):
        """Where to go on behind the faulty batch at `position`."""
        cdef uint64_t found
        with nogil:
            found = k.kc_resync_behind(<const uint8_t *> self.view.buf, self.size, position, &self.state)
        return found

    def next(self, uint64_t position):
        """The first intact batch at or behind `position`; the end where there is none."""
        cdef uint64_t found
        with nogil:
            found = k.kc_resync_next(<const uint8_t *> self.view.buf, self.size, position, &self.state)
        return found
