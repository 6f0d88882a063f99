# The bytes of a Python object, exported once and held while something reads them.
from libc.stdint cimport uint8_t, uint64_t

from kafkacodec._core cimport base as k


cdef class HeldBuffer:
    cdef Py_buffer view
    cdef const uint8_t *start
    cdef uint64_t size


# Exports the bytes of an object; PyBuffer_Release ends that. Raises TypeError, which says what to pass instead.
cdef int get_buffer(object data, Py_buffer *view) except -1


# Whether an object's bytes are references to Python objects, as those of numpy's arrays of objects: addresses, no data.
cdef bint has_objects(object data) noexcept


# Bytes that a Python object keeps, for views to point into; NULL where memory or the budget ends.
cdef k.kc_backing *backing_of(object holder, const uint8_t *data, size_t size, k.kc_budget *budget, k.kc_error *error)


# Bytes that can be changed, in memory of the pool. New memory from the system costs more than encoding, and a third of
# what LZ4 takes.
cdef class Block:
    cdef k.kc_buffer buffer


cdef Block new_block(size_t size)
