from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec cimport _pyobject as py


cdef class Struct:
    # {tag: bytes} of tagged fields that the schema does not know; None where there are none.
    cdef object _unknown


cdef class Source:
    cdef object view           # a memoryview of bytes
    cdef py.Py_buffer buffer   # of the view


cdef class Slice:
    cdef Source source
    cdef const uint8_t *data   # inside the source's buffer
    cdef Py_ssize_t size
    cdef object look(self)


cdef PyObject *new_source(PyObject *data) noexcept
cdef PyObject *new_slice(PyObject *source, const uint8_t *data, Py_ssize_t size) noexcept

# Where the memory of dead objects of a sealed class is.
cdef py.kc_kept *kept_for(PyTypeObject *cls) noexcept
