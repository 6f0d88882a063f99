"""The binding of the search for intact batches after damage."""
cimport cython
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec._core cimport decode as k
from kafkacodec._core._buffer cimport HeldBuffer


ctypedef uint64_t (*kc_search)(const uint8_t *, uint64_t, uint64_t, k.kc_resync *) noexcept nogil


# The buffer must not be cleared before the object is freed, as in _chunk_decoder.ChunkDecoder.
@cython.no_gc_clear
cdef class Resync:
    """Searches one buffer for intact batches, with one budget for all searches."""
    cdef HeldBuffer held
    cdef k.kc_resync state

    def __cinit__(self, data, end=None):
        self.held = HeldBuffer(data, end)
        self.state = k.kc_resync_start()

    @property
    def examined(self):
        """Number of bytes searched plus number of bytes in checksums so far."""
        return self.state.examined

    def after(self, uint64_t position):
        """The position at which to continue after the damaged batch at `position`."""
        return self.search(k.kc_resync_after, position)

    def next(self, uint64_t position):
        """The position of the first intact batch at or after `position`; the end if there is none."""
        return self.search(k.kc_resync_next, position)

    cdef uint64_t search(self, kc_search function, uint64_t position):
        # A copy of the state: another thread may search at the same time.
        cdef const uint8_t *data = self.held.start
        cdef uint64_t size = self.held.size
        cdef k.kc_resync state = self.state
        cdef uint64_t found
        with nogil:
            found = function(data, size, position, &state)
        self.state = state
        return found
