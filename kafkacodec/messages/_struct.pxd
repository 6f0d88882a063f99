from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec.messages cimport _memory as mem
from kafkacodec.messages cimport _pyobject as py


cdef class Struct:
    # {tag: bytes} of tagged fields that the schema does not know; None or NULL where there are none, so only for `unknown_of`.
    cdef object _unknown


cdef class Source:
    cdef object data
    cdef object view                # a memoryview of its bytes; None as long as none is needed
    cdef const uint8_t *start       # of its bytes
    cdef py.Py_buffer buffer        # of the view, unless the data are bytes


# Whether the class was sealed: its objects are slots and nothing else.
cdef bint is_sealed(PyTypeObject *type) noexcept

cdef PyObject *new_source(PyObject *data) noexcept

# Records in a decoded struct until they are looked at, when a memoryview takes their place: a part of a Source. A
# memoryview costs several times what decoding the rest of its struct does, and encoding needs none.
cdef PyTypeObject *slice_type() noexcept

# What the objects of sealed classes, their records and their ints are made from.
cdef mem.kc_memory *memory() noexcept
