from libc.stdint cimport int64_t, uint8_t

from kafkacodec._core cimport arrow as k


cdef class ByteColumn:
    cdef k.kc_buffer offsets, data, validity
    cdef int64_t rows, nulls
    cdef int append(self, object value) except -1
    cdef int put(self, const uint8_t *data, Py_ssize_t size) except -1
    cdef void describe(self, k.kc_arrow_bytes *c) noexcept


cdef class IntColumn:
    cdef k.kc_buffer values
    cdef int append(self, object value, int64_t null_value) except -1
    cdef int append_int(self, int64_t number) except -1
    cdef void describe(self, k.kc_arrow_ints *c) noexcept
