"""Decodes messages directly into the slots of Python objects.

`decode` executes the operations of a `Program`. An array of structs is only validated, and created on first access:
until then its slot has the bytes, in a `Part` (see _struct.pyx). So the readers have two modes: with a slot they read a
value into it, without one they validate and skip it, with the same faults.

A fault is stored in a C struct. The path to its field is built while the calls return, so it has no cost without a
fault. Lengths are compared with the remaining bytes before they are added to anything, counts with the minimum size of
so many elements, so that memory stays proportional to the input.
"""
from cpython.buffer cimport PyBuffer_Release
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kafkacodec._core cimport base as k
from kafkacodec._core._buffer cimport get_buffer
from kafkacodec.messages cimport _pyobject as py
from kafkacodec.messages._program cimport (
    ANY_ARRAY, BOOL, BYTES, F_BRIEF, F_COMPACT, F_COUNT16, F_LAZY, F_NULLABLE, FLOAT64, INT8, INT16, INT32, INT32_ARRAY, INT64, KINDS,
    NULLABLE_STRUCT, RECORDS, STRING, STRUCT, STRUCT_ARRAY, UINT16, UINT32, UUID, Fault, Op, Plan, Program, path_of, step,
)
from kafkacodec.messages._objects cimport kc_as_part, kc_int_new, kc_memory, kc_part, kc_part_new, kc_struct_new
from kafkacodec.messages._struct cimport UNKNOWN, Source, memory, new_source, part_type

import uuid as _uuid

from kafkacodec.errors import DecodeError, LimitExceeded, Truncated

cdef extern from "base/kc_bytes.h":
    uint8_t kc_load_u8(const uint8_t *p) noexcept

cdef enum:
    # Arrays of at least this many structs are created on first access. Below, a part costs as much as the structs.
    LEAST_LATER = 4

# Kafka's limit on the size of a string in bytes.
cdef int64_t MAX_STRING_BYTES = 32767
# The highest tag that can be written: Kafka's reader accepts higher ones, but its writer fails.
cdef uint32_t MAX_TAG = 0x7FFFFFFE

# uuid.UUID objects are filled here, since its constructor takes a microsecond.
cdef object UUID_CLASS = _uuid.UUID
cdef object UUID_ZERO = _uuid.UUID(int=0)
cdef object UUID_SAFETY = _uuid.SafeUUID.unknown
cdef object UUID_INT = "int"
cdef object UUID_IS_SAFE = "is_safe"

# Names of the integer types in errors.
cdef const char *INTEGERS[KINDS]
INTEGERS[INT8], INTEGERS[INT16], INTEGERS[INT32], INTEGERS[INT64] = "an int8", "an int16", "an int32", "an int64"
INTEGERS[UINT16], INTEGERS[UINT32] = "a uint16", "a uint32"

cdef object EMPTY = ""
cdef PyTypeObject *PART = part_type()
cdef kc_memory *MEMORY = memory()


cdef struct Reader:
    const uint8_t *end
    const uint8_t *start
    PyObject *data       # the argument, a memoryview or a copy of it
    PyObject *program    # the Program of the message
    PyObject *source     # a Source of the data, created with the first part; owned
    PyObject *nothing    # an empty part of record bytes; owned
    bint later           # whether arrays are created on first access: only if the bytes cannot change
    const uint8_t *wrong    # the position of the fault
    Fault fault


# Reads a field, or an item of an array, at a position into its slot, which is empty before (and after, if that
# represents the value). If `slot` is NULL, only validates it. Returns the position after it, or NULL if there is a
# fault. The position is an argument, not in the Reader, so that it stays in a register. If a reader fails, the content
# of a slot is freed with its object.
ctypedef const uint8_t *(*Read)(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept
cdef Read READERS[KINDS]
READERS[BOOL] = read_bool
READERS[INT8] = READERS[INT16] = READERS[INT32] = READERS[INT64] = read_integer
READERS[UINT16] = READERS[UINT32] = read_unsigned
READERS[FLOAT64] = read_float
READERS[UUID] = read_uuid
READERS[STRING] = read_string
READERS[BYTES] = read_bytes
READERS[RECORDS] = read_records
READERS[STRUCT] = read_struct
READERS[NULLABLE_STRUCT] = read_nullable_struct
READERS[INT32_ARRAY] = read_int32_array
READERS[STRUCT_ARRAY] = read_struct_array
READERS[ANY_ARRAY] = read_array


def decode(Program program not None, data, Py_ssize_t start=0):
    """decode(program: Program, data: Buffer, start: int = 0) -> Struct

    The object encoded by all of `data` from `start`. Raises DecodeError with position and path.
    """
    return decode_front(program, data, start, NULL)


def decode_prefix(Program program not None, data, Py_ssize_t start=0):
    """decode_prefix(program: Program, data: Buffer, start: int = 0) -> tuple[Struct, int]

    The object at `start` and the position after it; more data may follow.
    """
    cdef Py_ssize_t end
    made = decode_front(program, data, start, &end)
    return made, end


cdef object decode_front(Program program, object data, Py_ssize_t start, Py_ssize_t *end):
    """The object at `start`; *end is the position after it. If `end` is NULL, this must be the end of the data."""
    cdef Py_buffer buffer
    cdef Reader r
    cdef PyObject *made = NULL
    cdef const uint8_t *at
    cdef bint paused
    cdef bint later = is_constant(data)
    if not later and not program.has_records and end == NULL:
        data, later = copied(data), True
    elif not has_one_memory(<PyObject *> data):
        data = memoryview(data)
    get_buffer(data, &buffer)
    if start < 0 or start > buffer.len:
        PyBuffer_Release(&buffer)
        raise Truncated(f"position {start} is outside the {buffer.len} bytes", position=start)
    open_reader(&r, program, data, <const uint8_t *> buffer.buf, <const uint8_t *> buffer.buf + buffer.len)
    r.later = later
    paused = py.kc_pause_collector()
    at = read_planned(&r, r.start + start, &program.plan, &made)
    py.kc_resume_collector(paused)
    close_reader(&r)
    PyBuffer_Release(&buffer)
    if at != NULL and end != NULL:
        end[0] = at - r.start
    elif at != NULL and at != r.end:
        at = fail(&r, at, k.KC_CORRUPT, "unexpected bytes after the message", r.end - at, 0)
    if at == NULL:
        py.Py_XDECREF(made)
        raise_decode_error(&r, program)
    result = <object> made
    py.Py_DECREF(made)
    return result


cdef list make_list(PyObject *part):
    """The structs of an array that was validated when its message was decoded."""
    cdef const kc_part *items = kc_as_part(part)
    cdef Source source = <Source> items.source
    cdef Program program = <Program> source.program
    cdef Reader r
    cdef PyObject *made = NULL
    cdef const uint8_t *at
    cdef bint paused
    open_reader(&r, program, source.data, source.start, items.data + items.size)
    r.later = False    # most users of one item use all of it: items are created with all their arrays
    r.source = items.source
    py.Py_INCREF(r.source)
    paused = py.kc_pause_collector()
    at = read_list(&r, items.data, <const Op *> items.array, &made, items.count)
    py.kc_resume_collector(paused)
    close_reader(&r)
    if at == NULL:
        py.Py_XDECREF(made)
        raise_decode_error(&r, program)
    result = <list> made
    py.Py_DECREF(made)
    return result


cdef void open_reader(Reader *r, Program program, object data, const uint8_t *start, const uint8_t *end) noexcept:
    r.start, r.end = start, end
    r.data, r.program = <PyObject *> data, <PyObject *> program
    r.source = r.nothing = NULL
    r.fault.code, r.fault.step_count, r.fault.value = k.KC_OK, 0, NULL


cdef void close_reader(Reader *r) noexcept:
    py.Py_XDECREF(r.source)
    py.Py_XDECREF(r.nothing)


cdef inline bint is_constant(object data):
    """Whether the bytes cannot change: they belong to a bytes object."""
    return isinstance(data, bytes) or isinstance(data, memoryview) and isinstance(data.obj, bytes)


cdef bytes copied(object data):
    cdef Py_buffer buffer
    get_buffer(data, &buffer)
    try:
        return (<const char *> buffer.buf)[:buffer.len]
    finally:
        PyBuffer_Release(&buffer)


cdef inline bint has_one_memory(PyObject *data) noexcept:
    """Whether each export has the same memory while one is held. Other exporters may return a copy each time, so they
    are exported once, by a memoryview that is then decoded.
    """
    return py.PyBytes_CheckExact(data) or py.PyMemoryView_Check(data) or py.PyByteArray_CheckExact(data)


cdef int raise_decode_error(Reader *r, Program program) except -1:
    cdef Fault *fault = &r.fault
    if fault.code == k.KC_OK:     # an exception is set already: MemoryError
        return -1
    what = fault.what.decode()
    cls = DecodeError
    if fault.code == k.KC_TRUNCATED:
        cls, what = Truncated, f"{what} needs {fault.want} bytes, {fault.got} left"
    elif fault.code == k.KC_LIMIT:
        cls, what = LimitExceeded, f"{what}: {fault.got} exceeds {fault.want}"
    elif fault.got != fault.want:
        what = f"{what}: {fault.got}"
    raise cls(f"{what}, in {program.title}", position=r.wrong - r.start, path=path_of(fault) or None)


cdef const uint8_t *fail(
    Reader *r, const uint8_t *at, int code, const char *what, int64_t got, int64_t want
) noexcept:
    r.wrong = at
    r.fault.code, r.fault.what, r.fault.got, r.fault.want = code, what, got, want
    return NULL


cdef inline bint has(Reader *r, const uint8_t *at, Py_ssize_t size, const char *what) noexcept:
    """Whether `size` bytes are left; if not, sets the fault."""
    return not py.kc_rarely(r.end - at < size) or fail(r, at, k.KC_TRUNCATED, what, r.end - at, size) != NULL


cdef inline const uint8_t *read_uvarint(Reader *r, const uint8_t *at, uint32_t *value) noexcept:
    if at < r.end and at[0] < 0x80:
        value[0] = at[0]
        return at + 1
    return read_long_uvarint(r, at, value)


cdef const uint8_t *read_long_uvarint(Reader *r, const uint8_t *at, uint32_t *value) noexcept:
    cdef int n = k.kc_uvarint32_decode(at, r.end, value)
    if n > 0:
        return at + n
    if n == 0:
        return fail(r, at, k.KC_TRUNCATED, "an unsigned varint", r.end - at, r.end - at + 1)
    return fail(r, at, k.KC_CORRUPT, "an unsigned varint overflows 32 bits", 0, 0)


cdef inline bint put(PyObject **slot, PyObject *value) noexcept:
    """Stores a new object in a slot; NULL means that its creation failed."""
    slot[0] = value
    return value != NULL


cdef inline void share(PyObject **slot, PyObject *value) noexcept:
    if slot != NULL:
        py.Py_INCREF(value)
        slot[0] = value


cdef const uint8_t *read_struct(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    return read_planned(r, at, op.plan, slot)


cdef inline PyObject **place(PyObject *made, const Op *op) noexcept:
    return py.kc_slot(made, op.offset) if made != NULL else NULL


cdef inline const uint8_t *read_planned(
    Reader *r, const uint8_t *at, const Plan *plan, PyObject **slot
) noexcept:
    cdef PyObject *made = NULL
    cdef PyObject *brief
    cdef const Op *op
    cdef const Op *end
    if slot != NULL:
        made = slot[0] = new_struct(plan)
        if made == NULL:
            return NULL
    op, end = plan.ops, plan.ops + plan.op_count
    while op < end:
        if op.run and r.end - at >= op.run_bytes:
            if made != NULL and not read_run(at, op, made):
                return NULL
            at += op.run_size
            op += op.run
            continue
        brief = brief_value(op, at, r.end) if op.flags & F_BRIEF else NULL
        if brief != NULL:
            share(place(made, op), brief)
            at += 1
        else:
            at = READERS[op.kind](r, at, op, place(made, op))
            if at == NULL:
                step(&r.fault, op.name, -1)
                return NULL
        op += 1
    if not plan.flexible:
        return at
    if at < r.end and at[0] == 0:    # no tagged fields
        return at + 1
    return read_tags(r, at, plan, made)


cdef inline PyObject *brief_value(const Op *op, const uint8_t *at, const uint8_t *end) noexcept:
    """The null or empty value that one byte represents; NULL for any other."""
    cdef uint8_t only
    if at >= end:
        return NULL
    only = kc_load_u8(at)
    return op.brief[only] if only <= 1 else NULL


cdef inline PyObject *new_struct(const Plan *plan) noexcept:
    """An object with defaults in the fields that are not read."""
    cdef PyObject *made = kc_struct_new(MEMORY, plan.type)
    cdef const Op *op = plan.filled
    cdef const Op *end = plan.filled + plan.filled_count
    if made != NULL:
        while op < end:
            share(py.kc_slot(made, op.offset), op.default)
            op += 1
    return made


cdef inline bint read_run(const uint8_t *at, const Op *op, PyObject *made) noexcept:
    """Consecutive signed integers; the caller has checked the bounds."""
    cdef const Op *end = op + op.run
    cdef PyObject *value
    while op < end:
        value = kc_int_new(MEMORY, <int64_t> k.kc_load_u64(at) >> op.shift)
        if py.kc_rarely(value == NULL):
            return False
        py.kc_slot(made, op.offset)[0] = value
        at += op.width
        op += 1
    return True


cdef const uint8_t *read_nullable_struct(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot
) noexcept:
    cdef int8_t marker
    if not has(r, at, 1, "the marker of a struct"):
        return NULL
    marker = <int8_t> at[0]
    if marker != -1 and marker != 1:
        return fail(r, at, k.KC_CORRUPT, "the marker of a struct is neither -1 nor 1", marker, 0)
    if marker == 1:
        return read_struct(r, at + 1, op, slot)
    share(slot, py.Py_None)
    return at + 1


cdef const uint8_t *read_bool(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    if not has(r, at, 1, "a bool"):
        return NULL
    share(slot, py.Py_True if at[0] else py.Py_False)
    return at + 1


cdef inline bint read_bits(Reader *r, const uint8_t *at, const Op *op, uint64_t *bits) noexcept:
    """The bytes of an integer, as the first of eight."""
    cdef uint8_t[8] padded
    if r.end - at >= 8:
        bits[0] = k.kc_load_u64(at)
    elif not has(r, at, op.width, INTEGERS[op.kind]):
        return False
    else:
        memset(padded, 0, 8)
        memcpy(padded, at, op.width)
        bits[0] = k.kc_load_u64(padded)
    return True


cdef const uint8_t *read_integer(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef uint64_t bits
    if not read_bits(r, at, op, &bits) or slot != NULL and not put(slot, kc_int_new(MEMORY, <int64_t> bits >> op.shift)):
        return NULL
    return at + op.width


cdef const uint8_t *read_unsigned(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef uint64_t bits
    if not read_bits(r, at, op, &bits) or slot != NULL and not put(slot, kc_int_new(MEMORY, <int64_t> (bits >> op.shift))):
        return NULL
    return at + op.width


cdef const uint8_t *read_float(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef uint64_t bits
    cdef double number
    if not has(r, at, 8, "a float64"):
        return NULL
    bits = k.kc_load_u64(at)
    memcpy(&number, &bits, 8)
    return at + 8 if slot == NULL or put(slot, py.PyFloat_FromDouble(number)) else NULL


cdef inline const uint8_t *read_length(
    Reader *r, const uint8_t *at, bint compact, bint wide, int64_t *length
) noexcept:
    """The length of a string (int16) or of bytes (`wide`: int32); -1 is null. Smaller lengths are rejected."""
    cdef uint32_t raw
    if compact:
        at = read_uvarint(r, at, &raw)
        if at == NULL:
            return NULL
        length[0] = <int64_t> raw - 1
        return at
    if not has(r, at, 4 if wide else 2, "a length"):
        return NULL
    if wide:
        length[0] = <int32_t> k.kc_load_u32(at)
        at += 4
    else:
        length[0] = <int16_t> k.kc_load_u16(at)
        at += 2
    if py.kc_rarely(length[0] < -1):
        return fail(r, at, k.KC_CORRUPT, "a length below -1", length[0], 0)
    return at


cdef const uint8_t *read_string(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef int64_t length
    cdef bint valid = True
    at = read_length(r, at, op.flags & F_COMPACT, False, &length)
    if at == NULL:
        return NULL
    if length == 0:
        share(slot, <PyObject *> EMPTY)
        return at
    if length < 0:
        return read_null(r, at, op, slot, "null for a string that is not nullable")
    if length > MAX_STRING_BYTES:
        return fail(r, at, k.KC_LIMIT, "length of a string", length, MAX_STRING_BYTES)
    if not has(r, at, length, "a string"):
        return NULL
    if slot == NULL:
        valid = k.kc_utf8_valid(at, length)
    elif not put(slot, py.PyUnicode_DecodeUTF8(<const char *> at, length, NULL)):
        if py.PyErr_ExceptionMatches(py.PyExc_MemoryError):
            return NULL
        py.PyErr_Clear()
        valid = False
    if not valid:
        return fail(r, at, k.KC_CORRUPT, "a string is not UTF-8", 0, 0)
    return at + length


cdef const uint8_t *read_null(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot, const char *what
) noexcept:
    if not op.flags & F_NULLABLE:
        return fail(r, at, k.KC_CORRUPT, what, 0, 0)
    share(slot, py.Py_None)
    return at


cdef const uint8_t *read_bytes(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef int64_t length
    at = read_length(r, at, op.flags & F_COMPACT, True, &length)
    if at == NULL:
        return NULL
    if length < 0:
        return read_null(r, at, op, slot, "null for bytes that are not nullable")
    if not has(r, at, length, "a byte string"):
        return NULL
    if slot != NULL and not put(slot, py.PyBytes_FromStringAndSize(<const char *> at, length)):
        return NULL
    return at + length


cdef const uint8_t *read_records(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    """Records, as a part of the input."""
    cdef int64_t length
    at = read_length(r, at, op.flags & F_COMPACT, True, &length)
    if at == NULL:
        return NULL
    if py.kc_rarely(length < 0):
        return read_null(r, at, op, slot, "null for records that are not nullable")
    if not has(r, at, length, "a record set"):
        return NULL
    if slot == NULL:
        return at + length
    if not open_source(r):
        return NULL
    if length:
        return at + length if put(slot, kc_part_new(MEMORY, PART, r.source, at, length)) else NULL
    if r.nothing == NULL:
        r.nothing = kc_part_new(MEMORY, PART, r.source, r.start, 0)
        if r.nothing == NULL:
            return NULL
    share(slot, r.nothing)
    return at


cdef inline bint open_source(Reader *r) noexcept:
    if r.source == NULL:
        r.source = new_source(r.data, r.program, make_list)
    return r.source != NULL


cdef const uint8_t *read_uuid(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef PyObject *number
    cdef bint done
    if not has(r, at, 16, "a uuid"):
        return NULL
    if k.kc_load_u64(at) == 0 and k.kc_load_u64(at + 8) == 0:
        share(slot, <PyObject *> UUID_ZERO)
        return at + 16
    if slot == NULL:
        return at + 16
    slot[0] = py.PyType_GenericAlloc(<PyTypeObject *> UUID_CLASS, 0)
    number = py.kc_int_from_16_bytes(at)
    done = (
        slot[0] != NULL and number != NULL
        and py.PyObject_GenericSetAttr(slot[0], <PyObject *> UUID_INT, number) == 0
        and py.PyObject_GenericSetAttr(slot[0], <PyObject *> UUID_IS_SAFE, <PyObject *> UUID_SAFETY) == 0)
    py.Py_XDECREF(number)
    return at + 16 if done else NULL


cdef inline const uint8_t *read_count(Reader *r, const uint8_t *at, const Op *op, int64_t *count) noexcept:
    """The number of elements of an array, -1 for null, bounded by the remaining bytes."""
    if op.flags & F_COUNT16:
        at = read_length(r, at, False, False, count)
    else:
        at = read_length(r, at, op.flags & F_COMPACT, True, count)
    # The count is less than 2**32, so that the product cannot overflow.
    if at != NULL and count[0] > 0 and py.kc_rarely(count[0] * op.least_bytes > r.end - at):
        return fail(r, at, k.KC_TRUNCATED, "an array", r.end - at, count[0] * op.least_bytes)
    return at


cdef inline const uint8_t *begin_array(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot, int64_t *count
) noexcept:
    """The number of items; 0 if the array is complete."""
    count[0] = 0
    at = read_count(r, at, op, count)
    if at == NULL:
        return NULL
    if count[0] < 0:
        count[0] = 0
        return read_null(r, at, op, slot, "null for an array that is not nullable")
    if count[0] == 0 and slot != NULL and not op.flags & F_LAZY and not put(slot, py.PyList_New(0)):
        return NULL
    return at


cdef const uint8_t *read_int32_array(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot
) noexcept:
    cdef int64_t count
    cdef Py_ssize_t i
    cdef PyObject **items
    at = begin_array(r, at, op, slot, &count)
    if at == NULL or count == 0 or slot == NULL:
        return at + 4 * count if at != NULL else NULL
    if not put(slot, py.PyList_New(count)):
        return NULL
    items = py.kc_items(slot[0])
    for i in range(count):
        if not put(&items[i], kc_int_new(MEMORY, <int32_t> k.kc_load_u32(at))):
            return NULL
        at += 4
    return at


cdef const uint8_t *read_array(Reader *r, const uint8_t *at, const Op *op, PyObject **slot) noexcept:
    cdef int64_t count
    at = begin_array(r, at, op, slot, &count)
    if at == NULL or count == 0:
        return at
    return read_items(r, at, op, NULL, count) if slot == NULL else read_list(r, at, op, slot, count)


cdef const uint8_t *read_struct_array(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot
) noexcept:
    cdef int64_t count
    cdef const uint8_t *begin
    at = begin_array(r, at, op, slot, &count)
    if at == NULL or count == 0:
        return at
    if slot == NULL:
        return read_items(r, at, op, NULL, count)
    if not r.later or count < LEAST_LATER:
        return read_list(r, at, op, slot, count)
    begin = at
    at = read_items(r, at, op, NULL, count)
    if at == NULL or not open_source(r):
        return NULL
    if not put(slot, kc_part_new(MEMORY, PART, r.source, begin, at - begin)):
        return NULL
    kc_as_part(slot[0]).array, kc_as_part(slot[0]).count = op, count
    return at


cdef const uint8_t *read_list(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot, Py_ssize_t count
) noexcept:
    """A list of `count` items. The caller has paused the collector, which could show it to other code."""
    if not put(slot, py.PyList_New(count)):
        return NULL
    py.kc_hide(slot[0])
    at = read_items(r, at, op, py.kc_items(slot[0]), count)
    if at != NULL:
        py.kc_show(slot[0])
    return at


cdef const uint8_t *read_items(
    Reader *r, const uint8_t *at, const Op *op, PyObject **items, Py_ssize_t count
) noexcept:
    cdef Py_ssize_t i
    cdef Read read = READERS[op.element.kind]
    for i in range(count):
        if op.kind == STRUCT_ARRAY:
            at = read_planned(r, at, op.plan, &items[i] if items != NULL else NULL)
        else:
            at = read(r, at, op.element, &items[i] if items != NULL else NULL)
        if at == NULL:
            step(&r.fault, NULL, i)
            return NULL
    return at


cdef const uint8_t *read_tags(Reader *r, const uint8_t *at, const Plan *plan, PyObject *made) noexcept:
    """The tagged fields after a struct."""
    cdef uint32_t count, tag, size
    cdef int64_t previous = -1
    cdef Py_ssize_t i
    at = read_uvarint(r, at, &count)
    if at == NULL:
        return NULL
    if count > <uint64_t> (r.end - at) // 2:
        return fail(r, at, k.KC_TRUNCATED, "a section of tagged fields", r.end - at, <int64_t> count * 2)
    for i in range(count):
        at = read_uvarint(r, at, &tag)
        if at != NULL:
            at = read_uvarint(r, at, &size)
        if at == NULL or not has(r, at, size, "a tagged field"):
            return NULL
        if <int64_t> tag <= previous:
            return fail(r, at, k.KC_CORRUPT, "tags are not in ascending order", tag, 0)
        previous = tag
        if not read_tagged(r, at, plan, made, tag, size):
            return NULL
        at += size
    return at


cdef bint read_tagged(
    Reader *r, const uint8_t *at, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size
) noexcept:
    cdef const Op *op
    cdef const uint8_t *outer_end = r.end
    cdef PyObject *value
    cdef Py_ssize_t i
    for i in range(plan.tagged_count):
        op = &plan.tagged[i]
        if <uint32_t> op.tag != tag:
            continue
        r.end = at + size    # the field cannot read beyond its bytes
        value = NULL
        at = read_tagged_value(r, at, op, &value if made != NULL else NULL)
        if at != NULL and at != r.end:
            at = fail(r, at, k.KC_CORRUPT, "unexpected bytes at the end of a tagged field", r.end - at, 0)
        r.end = outer_end
        if made != NULL:
            py.kc_replace(py.kc_slot(made, op.offset), value)
        if at == NULL:
            step(&r.fault, op.name, -1)
        return at != NULL
    return keep_unknown(r, at, plan, made, tag, size)


cdef const uint8_t *read_tagged_value(
    Reader *r, const uint8_t *at, const Op *op, PyObject **slot
) noexcept:
    """As other values, but the marker of a nullable struct is a varint: 0 null, 1 present."""
    cdef uint32_t marker
    if op.kind != NULLABLE_STRUCT:
        return READERS[op.kind](r, at, op, slot)
    at = read_uvarint(r, at, &marker)
    if at == NULL:
        return NULL
    if marker > 1:
        return fail(r, at, k.KC_CORRUPT, "the marker of a tagged struct is neither 0 nor 1", marker, 0)
    if marker:
        return read_struct(r, at, op, slot)
    share(slot, py.Py_None)
    return at


cdef bint keep_unknown(
    Reader *r, const uint8_t *at, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size
) noexcept:
    cdef Py_ssize_t i
    if tag > MAX_TAG:
        fail(r, at, k.KC_LIMIT, "a tag", tag, MAX_TAG)
        return False
    for i in range(plan.absent_count):
        if plan.absent[i].tag == <int64_t> tag:
            fail(r, at, k.KC_CORRUPT, "a tag that the schema defines for other versions only", tag, -1)
            step(&r.fault, plan.absent[i].name, -1)
            return False
    return made == NULL or py.kc_keep_tag(py.kc_slot(made, UNKNOWN), tag, <const char *> at, size)
