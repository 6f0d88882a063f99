from libc.stdint cimport int64_t

from kafkacodec._core.base cimport kc_buffer


cdef class Callback:
    cdef readonly object _outcome
    cdef object function
    cdef readonly int64_t _index
    cdef int64_t _timestamp
    cdef int run(self) except -1
    cdef int call(self, delivery) except -1
    cdef bint settle(self) except -1


cdef Callback callback(function, delivery, int64_t index)

# A callback whose first function is that of the application, made when the outcome is known.
ctypedef Callback (*Maker)(outcome, int64_t index, int64_t timestamp)


cdef class Callbacks:
    cdef readonly list parts
    cdef readonly object loop
    cdef public int64_t resolved, queued
    cdef public bint whole
    cdef public object failure
    cdef public object unseen   # what was given up; None without that
    cdef public object shortcut # while its batch is under way past the loop
    cdef public list waiters
    cdef list callbacks     # and functions of records whose delivery nobody has
    cdef kc_buffer places   # of these records, in the order of their functions
    cdef Maker maker
    cdef Callback newest    # for rows of tables
    cdef list runs
    cdef Py_ssize_t settled # of these
    cdef int forks
    cpdef find(self, int64_t index)
    cdef int append(self, Callback made) except -1
    cdef bint append_first(self, Callback made) except -1
    cdef bint append_function(self, function, int64_t index, int64_t timestamp, Maker maker) except -1
    cdef bint is_first(self)
