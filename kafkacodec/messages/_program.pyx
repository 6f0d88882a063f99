"""Programs: the wire format of a struct in one version, as C arrays of operations."""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport UINT8_MAX

from kafkacodec.messages._struct cimport slot_count, slot_offset

# The types of fields; the code of a type is its index here.
TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "uuid", "string", "bytes", "records", "struct",
)
NULLABLE, COMPACT, ARRAY, COUNT16, LAZY = F_NULLABLE, F_COMPACT, F_ARRAY, F_COUNT16, F_LAZY

# Sizes of the fixed-size types in bytes, by code.
cdef Py_ssize_t[9] FIXED_BYTES
FIXED_BYTES[:] = [1, 1, 2, 4, 8, 2, 4, 8, 16]

cdef object EMPTY_TEXT = ""
cdef object EMPTY_BYTES = b""


cdef class Program:
    """The operations of one struct in one version.

    Program(cls, fields, tagged, absent, required, flexible, title): each field is a tuple (name, type code, flags,
    tag, program of the struct or None, number of the slot, default). `fields` are in wire order, `tagged` in the order
    of tags; `absent` are the fields that the version does not have, `required` those of them that must have their
    default to be encoded. `title` names message and version in errors.
    """

    def __cinit__(
        self, type cls not None, list fields not None, list tagged not None, list absent not None, list required not None,
        bint flexible, str title not None,
    ):
        self.slot_count = slot_count(cls)
        if len(tagged) > MAX_TAGGED:
            raise ValueError(f"{len(tagged)} tagged fields exceed the limit of {MAX_TAGGED}")
        self.cls = cls
        self.title = title
        self.keep = (tuple(fields), tuple(tagged), tuple(absent), tuple(required))
        self.plan.type = <PyTypeObject *> cls
        self.plan.flexible = flexible
        self.plan.op_count, self.plan.ops = len(fields), self.rows(fields)
        self.plan.tagged_count, self.plan.tagged = len(tagged), self.rows(tagged)
        self.plan.absent_count, self.plan.absent = len(absent), self.rows(absent)
        self.plan.required_count, self.plan.required = len(required), self.rows(required)
        filled = [row for row in tagged + absent if not row[2] & F_LAZY]
        self.plan.filled_count, self.plan.filled = len(filled), self.rows(filled)
        self.plan.least_bytes = 1 if flexible else 0
        require_plans(self.plan.ops, self.plan.op_count)
        require_plans(self.plan.tagged, self.plan.tagged_count)
        for i in range(self.plan.op_count):
            self.plan.least_bytes += field_bytes(&self.plan.ops[i])

    cdef Op *rows(self, list fields) except NULL:
        """The operations of the fields in order, then those of the items of arrays."""
        cdef Py_ssize_t count = len(fields)
        cdef Op *ops = <Op *> PyMem_Calloc(2 * count + 1, sizeof(Op))
        if ops == NULL:
            raise MemoryError
        for i in range(count):
            self.row(&ops[i], fields[i], &ops[count + i])
        for i in range(count - 1, -1, -1):
            note_run(&ops[i], &ops[i + 1] if i + 1 < count else NULL)
        return ops

    cdef int row(self, Op *op, tuple field, Op *element) except -1:
        cdef Program inner
        name, code, flags, tag, program, slot, default = field
        if not 0 <= code <= STRUCT or not isinstance(name, str):
            raise ValueError(f"unknown type code {code!r} of field {name!r}")
        op.code, op.flags, op.tag = code, flags, tag
        if not 0 <= slot < self.slot_count:
            raise TypeError(f"{self.cls.__qualname__} has no slot {slot}")
        op.offset = slot_offset(slot)
        op.default = <PyObject *> default
        op.name = <PyObject *> name
        if program is not None:
            inner = program
            op.plan = &inner.plan
            self.has_records |= inner.has_records
        self.has_records |= op.code == RECORDS
        note_brief(op)
        if not op.flags & F_ARRAY:
            op.kind = NULLABLE_STRUCT if op.code == STRUCT and op.flags & F_NULLABLE else op.code
            op.null_size = length_bytes(op) if op.flags & F_NULLABLE else 0
            note_width(op)
            return 0
        op.null_size = length_bytes(op) if op.flags & F_NULLABLE else 0
        op.kind = INT32_ARRAY if op.code == INT32 else STRUCT_ARRAY if op.code == STRUCT else ANY_ARRAY
        op.element = element
        element.plan = op.plan
        element.flags = op.flags & F_COMPACT    # items are never null, even if the array is nullable
        # Records are memoryviews only as attributes; in a list they are copied.
        element.code = element.kind = BYTES if op.code == RECORDS else op.code
        note_width(element)
        op.least_bytes = max(1, element_bytes(element))    # 0 for a struct without fields, which no real schema has
        return 0

    def __dealloc__(self):
        PyMem_Free(self.plan.ops)
        PyMem_Free(self.plan.tagged)
        PyMem_Free(self.plan.absent)
        PyMem_Free(self.plan.required)
        PyMem_Free(self.plan.filled)


cdef int require_plans(const Op *ops, Py_ssize_t count) except -1:
    for i in range(count):
        if ops[i].code == STRUCT and ops[i].plan == NULL:
            raise ValueError("a struct field needs its program")
    return 0


cdef void note_width(Op *op) noexcept:
    if INT8 <= op.kind <= UINT32:
        op.width = FIXED_BYTES[op.code]
        op.shift = 64 - 8 * op.width


cdef void note_brief(Op *op) noexcept:
    """Null and empty values of compact fields, which are frequent, but for records."""
    if not op.flags & F_COMPACT or length_bytes(op) == 0 or op.code == RECORDS:
        return
    if op.flags & F_NULLABLE:
        op.brief[0] = <PyObject *> None
    if not op.flags & F_ARRAY:
        op.brief[1] = <PyObject *> EMPTY_TEXT if op.code == STRING else <PyObject *> EMPTY_BYTES if op.code == BYTES else NULL
    if op.brief[0] != NULL or op.brief[1] != NULL:
        op.flags |= F_BRIEF


cdef void note_run(Op *op, const Op *following) noexcept:
    if not INT8 <= op.kind <= INT64:
        return
    op.run, op.run_bytes, op.run_size = 1, 8, op.width
    if following != NULL and 0 < following.run < UINT8_MAX:
        op.run += following.run
        op.run_bytes = op.width + following.run_bytes
        op.run_size = op.width + following.run_size


cdef Py_ssize_t field_bytes(const Op *op) noexcept:
    """The minimum size of a field on the wire."""
    if op.flags & F_ARRAY:
        return length_bytes(op)
    if op.flags & F_NULLABLE and op.code == STRUCT:
        return 1
    return element_bytes(op)


cdef Py_ssize_t element_bytes(const Op *op) noexcept:
    """The minimum size of a value, ignoring arrays and nulls."""
    if op.code == STRUCT:
        return op.plan.least_bytes if op.plan != NULL else 0    # NULL if the version does not have the field
    return FIXED_BYTES[op.code] if op.code < STRING else length_bytes(op)


cdef Py_ssize_t length_bytes(const Op *op) noexcept:
    """The minimum size of a length or count, which is also that of null; 0 for other types."""
    if op.code < STRING and not op.flags & F_ARRAY or op.code == STRUCT and not op.flags & F_ARRAY:
        return 0
    if op.flags & F_ARRAY and op.flags & F_COUNT16:
        return 2
    if op.flags & F_COMPACT:
        return 1
    return 2 if op.code == STRING and not op.flags & F_ARRAY else 4


cdef void step(Fault *fault, PyObject *name, Py_ssize_t index) noexcept:
    """Record a step of the path; steps are recorded from the inside out."""
    if fault.step_count < MAX_STEPS:
        fault.steps[fault.step_count].name = name
        fault.steps[fault.step_count].index = index
        fault.step_count += 1


cdef str path_of(const Fault *fault):
    """``topics[3].partitions[0].leader_id``."""
    path = ""
    for i in range(fault.step_count - 1, -1, -1):
        if fault.steps[i].name == NULL:
            path += f"[{fault.steps[i].index}]"
        else:
            path += ("." if path else "") + <str> fault.steps[i].name
    return path
