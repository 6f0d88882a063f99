"""Decodes messages directly into the slots of Python objects.

`decode` executes the operations of a `Program`. An array of structs is only validated, and created on first access:
until then its slot has the bytes, in a `Part` (see _struct.pyx). So the readers have two modes: with a slot they read a
value into it, without one they validate and skip it, with the same faults.

A fault is stored in a C struct. The path to its field is built while the calls return, so it has no cost without a
fault. Lengths are compared with the remaining bytes before they are added to anything, counts with the minimum size of
so many elements, so that memory stays proportional to the input.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kafkacodec._core cimport base as k
from kafkacodec.messages cimport _pyobject as py
from kafkacodec.messages._program cimport (
    ANY_ARRAY, BOOL, BYTES, F_COMPACT, F_COUNT16, F_LAZY, F_NULLABLE, FLOAT64, INT8, INT16, INT32, INT32_ARRAY, INT64, KINDS,
    NULLABLE_STRUCT, RECORDS, STRING, STRUCT, STRUCT_ARRAY, UINT16, UINT32, UUID, Fault, Op, Plan, Program, path_of, step,
)
from kafkacodec.messages._objects cimport kc_as_part, kc_int_new, kc_memory, kc_part, kc_part_new, kc_struct_new
from kafkacodec.messages._struct cimport UNKNOWN, Source, memory, new_source, part_type

import uuid as _uuid

from kafkacodec.errors import DecodeError, LimitExceeded, Truncated

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
    const uint8_t *at
    const uint8_t *end
    const uint8_t *start
    PyObject *data       # the argument, a memoryview or a copy of it
    PyObject *program    # the Program of the message
    PyObject *source     # a Source of the data, created with the first part; owned
    PyObject *nothing    # an empty part of record bytes; owned
    bint later           # whether arrays are created on first access: only if the bytes cannot change
    Fault fault


# Reads a field, or an item of an array, into its slot, which is empty before (and after, if that represents the value).
# If `slot` is NULL, only validates it. If a reader fails, the content of a slot is freed with its object.
ctypedef bint (*Read)(Reader *r, const Op *op, PyObject **slot) noexcept
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
    cdef Op root
    cdef PyObject *made = NULL
    cdef bint done, paused
    cdef bint later = is_constant(data)
    if not later and not program.has_records and end == NULL:
        data, later = copied(data), True
    elif not has_one_memory(<PyObject *> data):
        data = memoryview(data)
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    if start < 0 or start > buffer.len:
        PyBuffer_Release(&buffer)
        raise Truncated(f"position {start} is outside the {buffer.len} bytes", position=start)
    open_reader(&r, program, data, <const uint8_t *> buffer.buf, start, buffer.len)
    r.later = later
    root.plan = &program.plan
    paused = py.kc_pause_collector()
    done = read_struct(&r, &root, &made)
    py.kc_resume_collector(paused)
    close_reader(&r)
    PyBuffer_Release(&buffer)
    if end != NULL:
        end[0] = r.at - r.start
    elif done and r.at != r.end:
        done = fail(&r, k.KC_CORRUPT, "unexpected bytes after the message", r.end - r.at, 0)
    if not done:
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
    cdef bint done, paused
    open_reader(&r, program, source.data, source.start, items.data - source.start, items.data - source.start + items.size)
    r.later = False    # most users of one item use all of it: items are created with all their arrays
    r.source = items.source
    py.Py_INCREF(r.source)
    paused = py.kc_pause_collector()
    done = read_list(&r, <const Op *> items.array, &made, items.count)
    py.kc_resume_collector(paused)
    close_reader(&r)
    if not done:
        py.Py_XDECREF(made)
        raise_decode_error(&r, program)
    result = <list> made
    py.Py_DECREF(made)
    return result


cdef void open_reader(
    Reader *r, Program program, object data, const uint8_t *start, Py_ssize_t at, Py_ssize_t end
) noexcept:
    r.start, r.at, r.end = start, start + at, start + end
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
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
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
    raise cls(f"{what}, in {program.title}", position=r.at - r.start, path=path_of(fault) or None)


cdef bint fail(Reader *r, int code, const char *what, int64_t got, int64_t want) noexcept:
    r.fault.code, r.fault.what, r.fault.got, r.fault.want = code, what, got, want
    return False


cdef inline bint has(Reader *r, Py_ssize_t size, const char *what) noexcept:
    """Whether `size` bytes are left; if not, sets the fault."""
    return not py.kc_rarely(r.end - r.at < size) or fail(r, k.KC_TRUNCATED, what, r.end - r.at, size)


cdef inline bint read_uvarint(Reader *r, uint32_t *value) noexcept:
    cdef int n
    if r.at < r.end and r.at[0] < 0x80:
        value[0] = r.at[0]
        r.at += 1
        return True
    n = k.kc_uvarint32_decode(r.at, r.end, value)
    if n > 0:
        r.at += n
        return True
    if n == 0:
        return fail(r, k.KC_TRUNCATED, "an unsigned varint", r.end - r.at, r.end - r.at + 1)
    return fail(r, k.KC_CORRUPT, "an unsigned varint overflows 32 bits", 0, 0)


cdef inline bint put(PyObject **slot, PyObject *value) noexcept:
    """Stores a new object in a slot; NULL means that its creation failed."""
    slot[0] = value
    return value != NULL


cdef inline bint share(PyObject **slot, PyObject *value) noexcept:
    if slot != NULL:
        py.Py_INCREF(value)
        slot[0] = value
    return True


cdef bint read_struct(Reader *r, const Op *op, PyObject **slot) noexcept:
    return read_planned(r, op.plan, slot)


cdef inline PyObject **place(PyObject *made, const Op *op) noexcept:
    return py.kc_slot(made, op.offset) if made != NULL else NULL


cdef inline bint read_planned(Reader *r, const Plan *plan, PyObject **slot) noexcept:
    cdef PyObject *made = NULL
    cdef const Op *op
    cdef const Op *end
    if slot != NULL:
        made = slot[0] = new_struct(plan)
        if made == NULL:
            return False
    op, end = plan.ops, plan.ops + plan.op_count
    while op < end:
        if op.run and r.end - r.at >= op.run_bytes:
            if made == NULL:
                r.at += op.run_size
            elif not read_run(r, op, made):
                return False
            op += op.run
        elif READERS[op.kind](r, op, place(made, op)):
            op += 1
        else:
            step(&r.fault, op.name, -1)
            return False
    if not plan.flexible:
        return True
    if r.at < r.end and r.at[0] == 0:    # no tagged fields
        r.at += 1
        return True
    return read_tags(r, plan, made)


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


cdef inline bint read_run(Reader *r, const Op *op, PyObject *made) noexcept:
    """Consecutive signed integers; the caller has checked the bounds."""
    cdef const uint8_t *at = r.at
    cdef const Op *end = op + op.run
    cdef PyObject *value
    while op < end:
        value = kc_int_new(MEMORY, <int64_t> k.kc_load_u64(at) >> op.shift)
        if py.kc_rarely(value == NULL):
            return False
        py.kc_slot(made, op.offset)[0] = value
        at += op.width
        op += 1
    r.at = at
    return True


cdef bint read_nullable_struct(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int8_t marker
    if not has(r, 1, "the marker of a struct"):
        return False
    marker = <int8_t> r.at[0]
    if marker != -1 and marker != 1:
        return fail(r, k.KC_CORRUPT, "the marker of a struct is neither -1 nor 1", marker, 0)
    r.at += 1
    return share(slot, py.Py_None) if marker == -1 else read_struct(r, op, slot)


cdef bint read_bool(Reader *r, const Op *op, PyObject **slot) noexcept:
    if not has(r, 1, "a bool"):
        return False
    share(slot, py.Py_True if r.at[0] else py.Py_False)
    r.at += 1
    return True


cdef inline bint read_bits(Reader *r, const Op *op, uint64_t *bits) noexcept:
    """The bytes of an integer, as the first of eight."""
    cdef uint8_t[8] padded
    if r.end - r.at >= 8:
        bits[0] = k.kc_load_u64(r.at)
    elif not has(r, op.width, INTEGERS[op.kind]):
        return False
    else:
        memset(padded, 0, 8)
        memcpy(padded, r.at, op.width)
        bits[0] = k.kc_load_u64(padded)
    r.at += op.width
    return True


cdef bint read_integer(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef uint64_t bits
    if not read_bits(r, op, &bits):
        return False
    return slot == NULL or put(slot, kc_int_new(MEMORY, <int64_t> bits >> op.shift))


cdef bint read_unsigned(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef uint64_t bits
    if not read_bits(r, op, &bits):
        return False
    return slot == NULL or put(slot, kc_int_new(MEMORY, <int64_t> (bits >> op.shift)))


cdef bint read_float(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef uint64_t bits
    cdef double number
    if not has(r, 8, "a float64"):
        return False
    bits = k.kc_load_u64(r.at)
    memcpy(&number, &bits, 8)
    r.at += 8
    return slot == NULL or put(slot, py.PyFloat_FromDouble(number))


cdef inline bint read_length(Reader *r, bint compact, bint wide, int64_t *length) noexcept:
    """The length of a string (int16) or of bytes (`wide`: int32); -1 is null. Smaller lengths are rejected."""
    cdef uint32_t raw
    if compact:
        if not read_uvarint(r, &raw):
            return False
        length[0] = <int64_t> raw - 1
    elif wide:
        if not has(r, 4, "a length"):
            return False
        length[0] = <int32_t> k.kc_load_u32(r.at)
        r.at += 4
    else:
        if not has(r, 2, "a length"):
            return False
        length[0] = <int16_t> k.kc_load_u16(r.at)
        r.at += 2
    return not py.kc_rarely(length[0] < -1) or fail(r, k.KC_CORRUPT, "a length below -1", length[0], 0)


cdef bint read_string(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int64_t length
    cdef bint valid = True
    if not read_length(r, op.flags & F_COMPACT, False, &length):
        return False
    if length == 0:
        return share(slot, <PyObject *> EMPTY)
    if length < 0:
        return read_null(r, op, slot, "null for a string that is not nullable")
    if length > MAX_STRING_BYTES:
        return fail(r, k.KC_LIMIT, "length of a string", length, MAX_STRING_BYTES)
    if not has(r, length, "a string"):
        return False
    if slot == NULL:
        valid = k.kc_utf8_valid(r.at, length)
    elif not put(slot, py.PyUnicode_DecodeUTF8(<const char *> r.at, length, NULL)):
        if py.PyErr_ExceptionMatches(py.PyExc_MemoryError):
            return False
        py.PyErr_Clear()
        valid = False
    if not valid:
        return fail(r, k.KC_CORRUPT, "a string is not UTF-8", 0, 0)
    r.at += length
    return True


cdef bint read_null(Reader *r, const Op *op, PyObject **slot, const char *what) noexcept:
    if op.flags & F_NULLABLE:
        return share(slot, py.Py_None)
    return fail(r, k.KC_CORRUPT, what, 0, 0)


cdef bint read_bytes(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int64_t length
    if not read_length(r, op.flags & F_COMPACT, True, &length):
        return False
    if length < 0:
        return read_null(r, op, slot, "null for bytes that are not nullable")
    if not has(r, length, "a byte string"):
        return False
    r.at += length
    return slot == NULL or put(slot, py.PyBytes_FromStringAndSize(<const char *> r.at - length, length))


cdef bint read_records(Reader *r, const Op *op, PyObject **slot) noexcept:
    """Records, as a part of the input."""
    cdef int64_t length
    if not read_length(r, op.flags & F_COMPACT, True, &length):
        return False
    if py.kc_rarely(length < 0):
        return read_null(r, op, slot, "null for records that are not nullable")
    if not has(r, length, "a record set"):
        return False
    r.at += length
    if slot == NULL:
        return True
    if not open_source(r):
        return False
    if length:
        return put(slot, kc_part_new(MEMORY, PART, r.source, r.at - length, length))
    if r.nothing == NULL:
        r.nothing = kc_part_new(MEMORY, PART, r.source, r.start, 0)
    return r.nothing != NULL and share(slot, r.nothing)


cdef inline bint open_source(Reader *r) noexcept:
    if r.source == NULL:
        r.source = new_source(r.data, r.program, make_list)
    return r.source != NULL


cdef bint read_uuid(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef PyObject *number
    cdef bint done
    if not has(r, 16, "a uuid"):
        return False
    r.at += 16
    if k.kc_load_u64(r.at - 16) == 0 and k.kc_load_u64(r.at - 8) == 0:
        return share(slot, <PyObject *> UUID_ZERO)
    if slot == NULL:
        return True
    slot[0] = py.PyType_GenericAlloc(<PyTypeObject *> UUID_CLASS, 0)
    number = py.kc_int_from_16_bytes(r.at - 16)
    done = (
        slot[0] != NULL and number != NULL
        and py.PyObject_GenericSetAttr(slot[0], <PyObject *> UUID_INT, number) == 0
        and py.PyObject_GenericSetAttr(slot[0], <PyObject *> UUID_IS_SAFE, <PyObject *> UUID_SAFETY) == 0)
    py.Py_XDECREF(number)
    return done


cdef bint read_count(Reader *r, const Op *op, int64_t *count) noexcept:
    """The number of elements of an array, -1 for null, bounded by the remaining bytes."""
    if op.flags & F_COUNT16:
        if not read_length(r, False, False, count):
            return False
    elif not read_length(r, op.flags & F_COMPACT, True, count):
        return False
    if count[0] <= 0:
        return True
    # The count is less than 2**32, so that the product cannot overflow.
    return count[0] * op.least_bytes <= r.end - r.at or fail(
        r, k.KC_TRUNCATED, "an array", r.end - r.at, count[0] * op.least_bytes)


cdef inline bint begin_array(Reader *r, const Op *op, PyObject **slot, int64_t *count) noexcept:
    """The number of items; 0 if the array is complete."""
    if not read_count(r, op, count):
        return False
    if count[0] < 0:
        count[0] = 0
        return read_null(r, op, slot, "null for an array that is not nullable")
    if count[0] == 0 and slot != NULL and not op.flags & F_LAZY:
        return put(slot, py.PyList_New(0))
    return True


cdef bint read_int32_array(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int64_t count
    cdef Py_ssize_t i
    cdef PyObject **items
    if not begin_array(r, op, slot, &count):
        return False
    if count == 0 or slot == NULL:
        r.at += 4 * count
        return True
    if not put(slot, py.PyList_New(count)):
        return False
    items = py.kc_items(slot[0])
    for i in range(count):
        if not put(&items[i], kc_int_new(MEMORY, <int32_t> k.kc_load_u32(r.at))):
            return False
        r.at += 4
    return True


cdef bint read_array(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int64_t count
    if not begin_array(r, op, slot, &count):
        return False
    if count == 0:
        return True
    if slot == NULL:
        return read_items(r, op, NULL, count)
    return read_list(r, op, slot, count)


cdef bint read_struct_array(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int64_t count
    cdef const uint8_t *begin
    if not begin_array(r, op, slot, &count):
        return False
    if count == 0:
        return True
    if slot == NULL:
        return read_items(r, op, NULL, count)
    if not r.later or count < LEAST_LATER:
        return read_list(r, op, slot, count)
    begin = r.at
    if not read_items(r, op, NULL, count) or not open_source(r):
        return False
    if not put(slot, kc_part_new(MEMORY, PART, r.source, begin, r.at - begin)):
        return False
    kc_as_part(slot[0]).array, kc_as_part(slot[0]).count = op, count
    return True


cdef bint read_list(Reader *r, const Op *op, PyObject **slot, Py_ssize_t count) noexcept:
    """A list of `count` items. The caller has paused the collector, which could show it to other code."""
    if not put(slot, py.PyList_New(count)):
        return False
    py.kc_hide(slot[0])
    if not read_items(r, op, py.kc_items(slot[0]), count):
        return False
    py.kc_show(slot[0])
    return True


cdef bint read_items(Reader *r, const Op *op, PyObject **items, Py_ssize_t count) noexcept:
    cdef Py_ssize_t i
    cdef bint done
    cdef Read read = READERS[op.element.kind]
    for i in range(count):
        if op.kind == STRUCT_ARRAY:
            done = read_planned(r, op.plan, &items[i] if items != NULL else NULL)
        else:
            done = read(r, op.element, &items[i] if items != NULL else NULL)
        if not done:
            step(&r.fault, NULL, i)
            return False
    return True


cdef bint read_tags(Reader *r, const Plan *plan, PyObject *made) noexcept:
    """The tagged fields after a struct."""
    cdef uint32_t count, tag, size
    cdef int64_t previous = -1
    cdef Py_ssize_t i
    if not read_uvarint(r, &count):
        return False
    if count > <uint64_t> (r.end - r.at) // 2:
        return fail(r, k.KC_TRUNCATED, "a section of tagged fields", r.end - r.at, <int64_t> count * 2)
    for i in range(count):
        if not read_uvarint(r, &tag) or not read_uvarint(r, &size) or not has(r, size, "a tagged field"):
            return False
        if <int64_t> tag <= previous:
            return fail(r, k.KC_CORRUPT, "tags are not in ascending order", tag, 0)
        previous = tag
        if not read_tagged(r, plan, made, tag, size):
            return False
    return True


cdef bint read_tagged(Reader *r, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size) noexcept:
    cdef const Op *op
    cdef const uint8_t *outer_end = r.end
    cdef PyObject *value
    cdef bint done
    cdef Py_ssize_t i
    for i in range(plan.tagged_count):
        op = &plan.tagged[i]
        if <uint32_t> op.tag != tag:
            continue
        r.end = r.at + size    # the field cannot read beyond its bytes
        value = NULL
        done = read_tagged_value(r, op, &value if made != NULL else NULL)
        if done and r.at != r.end:
            done = fail(r, k.KC_CORRUPT, "unexpected bytes at the end of a tagged field", r.end - r.at, 0)
        r.end = outer_end
        if made != NULL:
            py.kc_replace(py.kc_slot(made, op.offset), value)
        if not done:
            step(&r.fault, op.name, -1)
        return done
    return keep_unknown(r, plan, made, tag, size)


cdef bint read_tagged_value(Reader *r, const Op *op, PyObject **slot) noexcept:
    """As other values, but the marker of a nullable struct is a varint: 0 null, 1 present."""
    cdef uint32_t marker
    if op.kind != NULLABLE_STRUCT:
        return READERS[op.kind](r, op, slot)
    if not read_uvarint(r, &marker):
        return False
    if marker > 1:
        return fail(r, k.KC_CORRUPT, "the marker of a tagged struct is neither 0 nor 1", marker, 0)
    return read_struct(r, op, slot) if marker else share(slot, py.Py_None)


cdef bint keep_unknown(Reader *r, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size) noexcept:
    cdef Py_ssize_t i
    if tag > MAX_TAG:
        return fail(r, k.KC_LIMIT, "a tag", tag, MAX_TAG)
    for i in range(plan.absent_count):
        if plan.absent[i].tag == <int64_t> tag:
            fail(r, k.KC_CORRUPT, "a tag that the schema defines for other versions only", tag, -1)
            step(&r.fault, plan.absent[i].name, -1)
            return False
    if made != NULL and not py.kc_keep_tag(py.kc_slot(made, UNKNOWN), tag, <const char *> r.at, size):
        return False
    r.at += size
    return True
