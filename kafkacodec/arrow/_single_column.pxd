# One column over memory of its own or of others, exported to Arrow as often as wanted.
from libc.stdint cimport int64_t

from kafkacodec._core cimport arrow as k


cdef class SingleColumn:
    cdef const char *format
    cdef int64_t length
    cdef k.kc_buffer validity, values, pointers, sizes
    cdef object sources    # what keeps the memory of data buffers
    cdef int64_t buffers
    cdef void set_data(self, int64_t i, const void *data) noexcept nogil
    cdef void finish(self, int64_t data_buffers) noexcept


cdef SingleColumn new_single_column(const char *format, int64_t length, int64_t data_buffers)

cdef k.kc_buffer room(size_t size) except *
