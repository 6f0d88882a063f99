from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t

from kafkacodec.messages cimport _pyobject as py


cdef extern from *:
    """
    /* The content of a slot of a decoded message until first access: records, or an array of structs. */
    typedef struct {
        PyObject_HEAD
        PyObject *source;
        const uint8_t *data; /* of its first item */
        Py_ssize_t size;
        Py_ssize_t count;
        const void *array; /* the Op of an array; NULL for records */
    } kc_part;

    static inline kc_part *kc_as_part(PyObject *self) { return (kc_part *)self; }

    static inline PyObject *kc_part_new(PyTypeObject *type, PyObject *source, const uint8_t *data, Py_ssize_t size) {
        PyObject *self = (PyObject *)PyObject_New(kc_part, type);
        if (self == NULL) return NULL;
        kc_as_part(self)->source = Py_NewRef(source);
        kc_as_part(self)->data = data;
        kc_as_part(self)->size = size;
        kc_as_part(self)->count = 0;
        kc_as_part(self)->array = NULL;
        return self;
    }
    """
    ctypedef struct kc_part:
        PyObject *source
        const uint8_t *data
        Py_ssize_t size
        Py_ssize_t count
        const void *array

    kc_part *kc_as_part(PyObject *self) noexcept
    PyObject *kc_part_new(PyTypeObject *type, PyObject *source, const uint8_t *data, Py_ssize_t size) noexcept


cdef class Struct:
    # {tag: bytes} of tagged fields that the schema does not define; None or NULL if there are none. Use `unknown_of`.
    cdef object _unknown


cdef enum:
    UNKNOWN = sizeof(PyObject)      # where `_unknown` is; the slots of the fields follow


cdef inline Py_ssize_t slot_offset(Py_ssize_t i) noexcept:
    return UNKNOWN + (i + 1) * sizeof(PyObject *)


# The number of fields of a class from `new_class`; raises TypeError for other classes.
cdef Py_ssize_t slot_count(type cls) except -1

# An object of a class from `new_class`, with empty slots.
cdef PyObject *new_object(PyTypeObject *type) noexcept

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

# Replaces a part in its slot by its value; returns the content of the slot.
cdef object look(PyObject **slot)
