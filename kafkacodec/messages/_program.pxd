# What the interpreter in _decode.pyx and _encode.pyx runs: operations, plans, and the place where a fault is noted.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t


# Type codes, in the order of _program.TYPES.
cdef enum:
    BOOL, INT8, INT16, INT32, INT64, UINT16, UINT32, FLOAT64, UUID, STRING, BYTES, RECORDS, STRUCT

# What a field is on the wire, besides the codes.
cdef enum:
    NULLABLE_STRUCT = 13
    INT32_ARRAY = 14
    STRUCT_ARRAY = 15
    ANY_ARRAY = 16
    KINDS = 17

# How a field is shaped.
cdef enum:
    F_NULLABLE = 1    # may be null
    F_COMPACT = 2     # lengths and counts are unsigned varints, one more than they stand for
    F_ARRAY = 4
    F_COUNT16 = 8     # an array whose count is an int16
    F_LAZY = 16       # an empty slot stands for the default, which is made on first access

cdef enum:
    MAX_STEPS = 64
    MAX_TAGGED = 64    # tagged fields of a struct: bits of a set


cdef struct Op:
    uint8_t code
    uint8_t kind         # the code, or one of those above: one look tells how to read and write the field
    uint8_t flags
    int32_t tag
    uint8_t width        # bytes of an integer
    uint8_t shift        # bits behind it in the eight bytes that begin with it
    uint8_t run          # how many signed integers lie side by side from this one on
    int32_t run_bytes    # the bytes in which all of them can be read eight at a time
    int32_t run_size     # the bytes that they take
    int32_t least_bytes  # of an item of the array
    Py_ssize_t offset
    Plan *plan           # of the struct, where there is one
    Op *element          # of the array, where there is one: what its items are
    PyObject *default    # borrowed from the Program
    PyObject *name


cdef struct Plan:
    PyTypeObject *type
    Op *ops              # fields in the order of the wire
    Op *tagged           # tagged fields in the order of their tags
    Op *absent           # fields that this version lacks
    Op *required         # of these, the ones that must hold their defaults to be encoded
    Op *filled           # tagged and absent fields that hold their defaults before anything is read
    Py_ssize_t op_count, tagged_count, absent_count, required_count, filled_count
    bint flexible
    Py_ssize_t least_bytes


# One step of the path to a faulty field: a name, or an index where there is no name.
cdef struct Step:
    PyObject *name
    Py_ssize_t index


cdef struct Fault:
    int code             # KC_OK, KC_TRUNCATED, KC_CORRUPT, KC_LIMIT, KC_CANNOT_ENCODE, KC_NO_MEMORY
    const char *what     # static text
    int64_t got, want
    PyObject *value      # what could not be encoded, owned; or NULL
    PyObject *expected   # the class that was needed instead, if it was one; or NULL
    Step steps[MAX_STEPS]
    int step_count


cdef class Program:
    cdef Plan plan
    cdef readonly object cls
    cdef readonly str title
    cdef object keep
    cdef Py_ssize_t slot_count
    cdef bint has_records          # here or in a struct inside
    cdef Py_ssize_t last_bytes     # how long the last message was that was encoded
    cdef Op *rows(self, list fields) except NULL
    cdef int row(self, Op *op, tuple field, Op *element) except -1


cdef void step(Fault *fault, PyObject *name, Py_ssize_t index) noexcept
cdef str path_of(const Fault *fault)
