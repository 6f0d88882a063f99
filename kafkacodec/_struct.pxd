from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject


cdef class Struct:
    # {tag: bytes} of tagged fields that the schema does not know; None where there are none.
    cdef object _unknown


# A new object of a sealed class: its slots are empty, all but the one of the unknown tagged fields.
cdef PyObject *new_struct(PyTypeObject *cls) noexcept
