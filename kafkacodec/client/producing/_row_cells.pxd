from libc.stdint cimport int64_t

from kafkacodec._core cimport encode as k
from kafkacodec.arrow._reader cimport ImportedArray


cdef class RowCells:
    cdef ImportedArray array    # keeps the columns alive
    cdef k.kc_arrow_bytes keys, values
    cdef bint has_keys(self) noexcept
    cdef int64_t size(self) noexcept
    cdef int64_t largest(self) except -1
    cdef int64_t load(self, int64_t row, int64_t end, k.kc_spans *keys, k.kc_spans *values) except -1


cpdef list parts_of(data)
