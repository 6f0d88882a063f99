# The bytes of a Python object, exported once and held while something reads them.
from libc.stdint cimport uint8_t, uint64_t


cdef class HeldBuffer:
    cdef Py_buffer view
    cdef const uint8_t *start
    cdef uint64_t size
