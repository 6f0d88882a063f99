from libc.stdint cimport int64_t


cdef class Callback:
    cdef readonly object _outcome
    cdef object function
    cdef readonly int64_t _index
    cdef int64_t _timestamp
    cdef int run(self) except -1
    cdef int call(self, delivery) except -1


cdef Callback callback(function, delivery, int64_t index)


cdef class Callbacks:
    cdef readonly list parts
    cdef readonly object loop
    cdef list callbacks
    cdef int forks
    cpdef find(self, int64_t index)
    cdef bint append_first(self, Callback made)
