# Operations, plans and faults: the input of the interpreter in _decode.pyx and _encode.pyx.
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t


# Type codes, in the order of _program.TYPES.
cdef enum:
    BOOL, INT8, INT16, INT32, INT64, UINT16, UINT32, FLOAT64, UUID, STRING, BYTES, RECORDS, STRUCT

# Kinds of fields on the wire, in addition to the type codes.
cdef enum:
    NULLABLE_STRUCT = 13
    INT32_ARRAY = 14
    STRUCT_ARRAY = 15
    ANY_ARRAY = 16
    KINDS = 17

# Flags of a field.
cdef enum:
    F_NULLABLE = 1    # may be null
    F_COMPACT = 2     # lengths and counts are unsigned varints, plus one
    F_ARRAY = 4
    F_COUNT16 = 8     # an array whose count is an int16
    F_LAZY = 16       # the default is created on first access; until then the slot is empty
    F_BRIEF = 32      # has brief values

cdef enum:
    MAX_STEPS = 64
    MAX_TAGGED = 64    # tagged fields of a struct: bits of a set


cdef struct Op:
    uint8_t code
    uint8_t kind         # the code, or a kind above: selects the functions that read and write the field
    uint8_t flags
    int32_t tag
    uint8_t width        # size of an integer in bytes
    uint8_t shift        # bits after it in the eight bytes that start with it
    uint8_t run          # number of consecutive signed integers, starting with this one
    int32_t run_bytes    # bytes needed to read each of them as part of eight bytes
    int32_t run_size     # their size in bytes
    uint8_t null_size    # bytes of null: zeros if F_COMPACT, else ones; 0 if null is not allowed
    int32_t least_bytes  # minimum size of an item of the array
    Py_ssize_t offset
    Plan *plan           # of a struct
    Op *element          # of the items of an array
    PyObject *default    # borrowed from the Program
    PyObject *brief[2]   # the immutable values that the single bytes 0 and 1 represent; NULL for others
    PyObject *name


cdef struct Plan:
    PyTypeObject *type
    Op *ops              # fields in wire order
    Op *tagged           # tagged fields in the order of their tags
    Op *absent           # fields that this version does not have
    Op *required         # absent fields that must have their defaults to be encoded
    Op *filled           # tagged and absent fields, which are set to their defaults before reading
    Py_ssize_t op_count, tagged_count, absent_count, required_count, filled_count
    bint flexible
    Py_ssize_t least_bytes


# One step of the path to an invalid field: a name, or an index if the name is NULL.
cdef struct Step:
    PyObject *name
    Py_ssize_t index


cdef struct Fault:
    int code             # KC_OK, KC_TRUNCATED, KC_CORRUPT, KC_LIMIT, KC_CANNOT_ENCODE, KC_NO_MEMORY
    const char *what     # static text
    int64_t got, want
    PyObject *value      # the value that could not be encoded, owned; or NULL
    PyObject *expected   # the expected class, or NULL
    Step steps[MAX_STEPS]
    int step_count


cdef class Program:
    cdef Plan plan
    cdef readonly object cls
    cdef readonly str title
    cdef object keep
    cdef Py_ssize_t slot_count
    cdef bint has_records          # in this struct or a nested one
    cdef Py_ssize_t last_bytes     # size of the last encoded message
    cdef Op *rows(self, list fields) except NULL
    cdef int row(self, Op *op, tuple field, Op *element) except -1


cdef void step(Fault *fault, PyObject *name, Py_ssize_t index) noexcept
cdef str path_of(const Fault *fault)
