from kafkacodec._core cimport encode as k
from kafkacodec.arrow._reader cimport ImportedArray
from kafkacodec.arrow._value_columns cimport ByteColumn, IntColumn


# The exception for `error`; its path is the column and, if `located`, the row.
cdef object fault(const k.kc_error *error, str column, bint located)


cdef class RecordChunk:
    cdef k.kc_input_chunk columns


cdef class ArrowChunk(RecordChunk):
    cdef ImportedArray array


cdef class ListChunk(RecordChunk):
    cdef ByteColumn key, value, header_key, header_value
    cdef IntColumn offset, timestamp, header_bounds
    cdef bint finished
    cdef bint numbered    # the records have offsets, once there are any
    cdef bint add_shaped(self, record) except -1
    cdef int add(self, offset, timestamp, key, value, headers) except -1
    cdef int append_headers(self, headers) except -1
