"""The binding of resynchronisation: where to go on after damaged bytes."""
cimport cython
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec._core cimport decode as k
from kafkacodec._core._buffer cimport HeldBuffer


# As in _decoder.Decoder: what the searches read goes with the object, not before it.
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
        """Bytes looked at plus bytes of checksum computed so far."""
        return self.state.examined

    def behind(self, uint64_t position):
        """Where to go on after the faulty batch at `position`."""
        cdef const uint8_t *data = self.held.start
        cdef uint64_t size = self.held.size
        cdef k.kc_resync state = self.state
        cdef uint64_t found
        with nogil:
            found = k.kc_resync_behind(data, size, position, &state)
        self.state = state
        return found

    def next(self, uint64_t position):
        """The first intact batch at or after `position`; the end where there is none."""
        cdef const uint8_t *data = self.held.start
        cdef uint64_t size = self.held.size
        cdef k.kc_resync state = self.state
        cdef uint64_t found
        with nogil:
            found = k.kc_resync_next(data, size, position, &state)
        self.state = state
        return found
