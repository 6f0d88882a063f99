from libc.stdint cimport int64_t


cdef class Awaitable:
    cdef readonly object _outcome
    cdef int64_t _index, _timestamp


cdef class Delivery(Awaitable):
    pass
