# One column over owned or borrowed memory, which can be exported to Arrow any number of times.
from libc.stdint cimport int64_t

from kafkacodec._core cimport arrow as k


cdef class SingleColumn:
    cdef const char *format
    cdef int64_t length
    cdef k.kc_buffer validity, values, pointers, sizes
    cdef object sources    # keeps the memory of the data buffers alive
    cdef int64_t buffers
    cdef void set_data(self, int64_t i, const void *data) noexcept nogil
    cdef void finish(self, int64_t data_buffers) noexcept


cdef SingleColumn new_single_column(const char *format, int64_t length, int64_t data_buffers)

cdef k.kc_buffer room(size_t size) except *
