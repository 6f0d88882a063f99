from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t

from kafkacodec._core cimport encode as k


cdef class BatchBuilder:
    cdef k.kc_appender appender
    cdef str allowed_by
    cdef int64_t add(self, k.kc_new_record *record, headers, int64_t limit, int64_t most) except -1
    cdef int64_t add_cells(self, const k.kc_new_record *record, int64_t limit, int64_t most) except -1
    cdef closed(self, int codec, const uint8_t *records, Py_ssize_t size)


cdef bytes as_bytes(value, str what)

cdef inline void fill(k.kc_cell *cell, bytes value) noexcept:
    if value is None:
        cell.data = NULL
        cell.size = -1
    else:
        cell.data = <const uint8_t *> PyBytes_AS_STRING(value)
        cell.size = PyBytes_GET_SIZE(value)


cdef object header_pairs(headers)
