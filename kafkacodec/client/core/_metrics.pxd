from libc.stdint cimport int64_t


cdef class Counter:
    cdef public object value
    cpdef add(self, amount=*)


cdef class Histogram:
    cdef readonly long long count
    cdef readonly object sum, max
    cdef readonly dict _classes
    cpdef add(self, value)


cdef class RequestCounts:
    cdef Counter requests, bytes_out, bytes_in
    cdef Histogram request_ms
    cpdef add(self, double ms, int64_t bytes_out, int64_t bytes_in)


cdef class BatchCounts:
    cdef Counter batches, records, bytes
    cdef Histogram batch_records, batch_bytes
    cpdef add(self, int64_t records, int64_t bytes)
