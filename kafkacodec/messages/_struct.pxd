from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec.messages cimport _pyobject as py
from kafkacodec.messages._objects cimport kc_memory


cdef class Struct:
    # {tag: bytes} of tagged fields that the schema does not define; None or NULL if there are none. Use `unknown_of`.
    cdef object _unknown


cdef enum:
    UNKNOWN = sizeof(PyObject)      # where `_unknown` is; the slots of the fields follow


cdef inline Py_ssize_t slot_offset(Py_ssize_t i) noexcept:
    return UNKNOWN + (i + 1) * sizeof(PyObject *)


# The number of fields of a class from `new_class`; raises TypeError for other classes.
cdef Py_ssize_t slot_count(type cls) except -1

# Creates the list for a part.
ctypedef list (*MakeList)(PyObject *part)


cdef class Source:
    cdef object data
    cdef object view                # a memoryview of its bytes; None until it is needed
    cdef const uint8_t *start       # of its bytes
    cdef py.Py_buffer buffer        # of the view, unless the data is a bytes object
    cdef object program             # keeps the operations of its parts alive
    cdef MakeList make_list


cdef PyObject *new_source(PyObject *data, PyObject *program, MakeList make_list) noexcept

cdef PyTypeObject *part_type() noexcept

# The memory of dead objects.
cdef kc_memory *memory() noexcept

# Replaces a part in its slot by its value; returns the content of the slot.
cdef object look(PyObject **slot)
