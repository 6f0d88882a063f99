"""Decodes messages: bytes straight into the slots of Python objects.

`decode` walks the operations of a `Program` once; nothing in between is built. A fault is noted in a C struct; the
path to its field is put together while the calls return, so it costs nothing until then.

Lengths are compared with the bytes left before they are added to anything, counts with the bytes that so many
elements need at least, so that memory stays in proportion to the input.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafkacodec cimport _kernel as k
from kafkacodec cimport _pyobject as py
from kafkacodec._program cimport (
    ANY_ARRAY, BOOL, BYTES, F_COMPACT, F_COUNT16, F_LAZY, F_NULLABLE, FLOAT64, INT8, INT16, INT32, INT32_ARRAY, INT64,
    NULLABLE_STRUCT, STRING, STRUCT, UINT16, UINT32, UUID, Fault, Op, Plan, Program, element_bytes, path_of, step,
)
from kafkacodec._struct cimport new_slice, new_source

import uuid as _uuid

from kafkacodec._struct import slot_offset
from kafkacodec.errors import DecodeError, LimitExceeded, Truncated

cdef enum:
    UNKNOWN = sizeof(PyObject)     # where the unknown tagged fields of a Struct are

# Kafka's own limit on the bytes of a string.
cdef int64_t MAX_STRING_BYTES = 32767
# The last tag that can be written: Kafka's reader keeps higher ones, its writer fails on them.
cdef uint32_t MAX_TAG = 0x7FFFFFFE

# uuid.UUID objects are filled through their slots: its constructor takes a microsecond.
cdef object UUID_CLASS = _uuid.UUID
cdef object UUID_ZERO = _uuid.UUID(int=0)
cdef object UUID_SAFETY = _uuid.SafeUUID.unknown
cdef Py_ssize_t UUID_INT = slot_offset(_uuid.UUID.int)
cdef Py_ssize_t UUID_IS_SAFE = slot_offset(_uuid.UUID.is_safe)

cdef object EMPTY = ""
py.kc_fill_small_ints()


cdef struct Reader:
    const uint8_t *at
    const uint8_t *end
    const uint8_t *start
    PyObject *data       # the object that was handed in
    PyObject *source     # a Source of it, made when the first records field is met; owned
    PyObject *nothing    # an empty Slice; owned
    Fault fault


def decode(Program program not None, data, Py_ssize_t start=0):
    """decode(program: Program, data: Buffer, start: int = 0) -> Struct

    The object that all of `data` from `start` on stands for. Raises DecodeError with position and path.
    """
    made, end = decode_front(program, data, start, True)
    return made


def decode_prefix(Program program not None, data, Py_ssize_t start=0):
    """decode_prefix(program: Program, data: Buffer, start: int = 0) -> tuple[Struct, int]

    The object at `start` and the position behind it, where more may follow.
    """
    return decode_front(program, data, start, False)


cdef tuple decode_front(Program program, object data, Py_ssize_t start, bint whole):
    cdef Py_buffer buffer
    cdef Reader r
    cdef PyObject *made
    cdef bint collecting
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    if start < 0 or start > buffer.len:
        PyBuffer_Release(&buffer)
        raise Truncated(f"position {start} lies outside {buffer.len} bytes", position=start)
    r.start = <const uint8_t *> buffer.buf
    r.at, r.end = r.start + start, r.start + buffer.len
    r.data = <PyObject *> data
    r.source = r.nothing = NULL
    r.fault.code, r.fault.step_count, r.fault.value = k.KC_OK, 0, NULL
    # Nothing that is built here can be garbage before it is handed out, so the collector need not look at it.
    collecting = py.PyGC_Disable()
    made = read_struct(&r, &program.plan)
    if collecting:
        py.PyGC_Enable()
    py.Py_XDECREF(r.source)
    py.Py_XDECREF(r.nothing)
    PyBuffer_Release(&buffer)
    if made != NULL and whole and r.at != r.end:
        py.Py_DECREF(made)
        made = NULL
        fail(&r, k.KC_CORRUPT, "bytes left over behind the message", r.end - r.at, 0)
    if made == NULL:
        raise_decode_error(&r, program)
    result = <object> made
    py.Py_DECREF(made)
    return result, r.at - r.start


cdef int raise_decode_error(Reader *r, Program program) except -1:
    cdef Fault *fault = &r.fault
    if fault.code == k.KC_OK:     # an exception of CPython's own is set: no memory
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


cdef PyObject *fail(Reader *r, int code, const char *what, int64_t got, int64_t want) noexcept:
    r.fault.code, r.fault.what, r.fault.got, r.fault.want = code, what, got, want
    return NULL


cdef inline bint has(Reader *r, Py_ssize_t size, const char *what) noexcept:
    """Whether `size` bytes are left; notes the fault where not."""
    if r.end - r.at >= size:
        return True
    fail(r, k.KC_TRUNCATED, what, r.end - r.at, size)
    return False


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
        fail(r, k.KC_TRUNCATED, "an unsigned varint", r.end - r.at, r.end - r.at + 1)
    else:
        fail(r, k.KC_CORRUPT, "an unsigned varint overflows 32 bits", 0, 0)
    return False


cdef inline PyObject *shared(PyObject *value) noexcept:
    py.Py_INCREF(value)
    return value


cdef PyObject *read_struct(Reader *r, const Plan *plan) noexcept:
    cdef PyObject *made = py.kc_struct_alloc(plan.type, plan.kept)
    cdef const Op *op = plan.filled
    cdef const Op *end = plan.filled + plan.filled_count
    if made == NULL:
        return NULL
    py.kc_slot(made, UNKNOWN)[0] = shared(py.Py_None)
    while op < end:
        py.kc_slot(made, op.offset)[0] = shared(op.default)
        op += 1
    op, end = plan.ops, plan.ops + plan.op_count
    while op < end:
        if not read_field(r, op, py.kc_slot(made, op.offset)):
            step(&r.fault, op.name, -1)
            py.Py_DECREF(made)
            return NULL
        op += 1
    if plan.flexible and not read_tags(r, plan, made):
        py.Py_DECREF(made)
        return NULL
    return made


cdef inline bint read_field(Reader *r, const Op *op, PyObject **slot) noexcept:
    """A field, or an item of an array, into its slot, which is empty and stays so where that stands for the value."""
    cdef const uint8_t *at = r.at
    if op.kind == INT32:
        if not has(r, 4, "an int32"):
            return False
        slot[0] = py.kc_int(<int32_t> k.kc_load_u32(at))
        r.at = at + 4
    elif op.kind == INT64:
        if not has(r, 8, "an int64"):
            return False
        slot[0] = py.kc_int(<int64_t> k.kc_load_u64(at))
        r.at = at + 8
    elif op.kind == INT16:
        if not has(r, 2, "an int16"):
            return False
        slot[0] = py.kc_int(<int16_t> k.kc_load_u16(at))
        r.at = at + 2
    elif op.kind == STRING:
        slot[0] = read_string(r, op.flags)
    elif op.kind == INT32_ARRAY or op.kind == ANY_ARRAY:
        return read_array(r, op, slot)
    elif op.kind == STRUCT:
        slot[0] = read_struct(r, op.plan)
    elif op.kind == NULLABLE_STRUCT:
        slot[0] = read_nullable_struct(r, op)
    elif op.kind == BOOL:
        if not has(r, 1, "a bool"):
            return False
        slot[0] = shared(py.Py_True if at[0] else py.Py_False)
        r.at = at + 1
    elif op.kind == INT8:
        if not has(r, 1, "an int8"):
            return False
        slot[0] = py.kc_int(<int8_t> at[0])
        r.at = at + 1
    elif op.kind == UINT16:
        if not has(r, 2, "a uint16"):
            return False
        slot[0] = py.kc_int(k.kc_load_u16(at))
        r.at = at + 2
    elif op.kind == UINT32:
        if not has(r, 4, "a uint32"):
            return False
        slot[0] = py.kc_int(k.kc_load_u32(at))
        r.at = at + 4
    elif op.kind == FLOAT64:
        slot[0] = read_float(r)
    elif op.kind == UUID:
        slot[0] = read_uuid(r)
    elif op.kind == BYTES:
        slot[0] = read_bytes(r, op.flags)
    else:
        slot[0] = read_records(r, op.flags)
    return slot[0] != NULL


cdef PyObject *read_nullable_struct(Reader *r, const Op *op) noexcept:
    cdef int8_t marker
    if not has(r, 1, "the marker of a struct"):
        return NULL
    marker = <int8_t> r.at[0]
    if marker == -1:
        r.at += 1
        return shared(py.Py_None)
    if marker != 1:
        return fail(r, k.KC_CORRUPT, "the marker of a struct is neither -1 nor 1", marker, 0)
    r.at += 1
    return read_struct(r, op.plan)


cdef PyObject *read_float(Reader *r) noexcept:
    cdef uint64_t bits
    cdef double number
    if not has(r, 8, "a float64"):
        return NULL
    bits = k.kc_load_u64(r.at)
    memcpy(&number, &bits, 8)
    r.at += 8
    return py.PyFloat_FromDouble(number)


cdef inline bint read_length(Reader *r, bint compact, bint wide, int64_t *length) noexcept:
    """The length of a string (int16) or of bytes (`wide`: int32); -1 is null. Nothing below -1 passes."""
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
    if length[0] < -1:
        fail(r, k.KC_CORRUPT, "a length below -1", length[0], 0)
        return False
    return True


cdef PyObject *read_string(Reader *r, int flags) noexcept:
    cdef int64_t length
    cdef PyObject *text
    if not read_length(r, flags & F_COMPACT, False, &length):
        return NULL
    if length == 0:
        return shared(<PyObject *> EMPTY)
    if length < 0:
        return read_null(r, flags, "null, where a string is needed")
    if length > MAX_STRING_BYTES:
        return fail(r, k.KC_LIMIT, "bytes of a string", length, MAX_STRING_BYTES)
    if not has(r, length, "a string"):
        return NULL
    text = py.PyUnicode_DecodeUTF8(<const char *> r.at, length, NULL)
    if text == NULL:
        if py.PyErr_ExceptionMatches(py.PyExc_MemoryError):
            return NULL
        py.PyErr_Clear()
        return fail(r, k.KC_CORRUPT, "a string is not UTF-8", 0, 0)
    r.at += length
    return text


cdef PyObject *read_null(Reader *r, int flags, const char *what) noexcept:
    if flags & F_NULLABLE:
        return shared(py.Py_None)
    return fail(r, k.KC_CORRUPT, what, 0, 0)


cdef PyObject *read_bytes(Reader *r, int flags) noexcept:
    cdef int64_t length
    if not read_length(r, flags & F_COMPACT, True, &length):
        return NULL
    if length < 0:
        return read_null(r, flags, "null, where bytes are needed")
    if not has(r, length, "a byte string"):
        return NULL
    r.at += length
    return py.PyBytes_FromStringAndSize(<const char *> r.at - length, length)


cdef PyObject *read_records(Reader *r, int flags) noexcept:
    """A Slice: the part of the input that holds the records."""
    cdef int64_t length
    if not read_length(r, flags & F_COMPACT, True, &length):
        return NULL
    if length < 0:
        return read_null(r, flags, "null, where records are needed")
    if not has(r, length, "a record set"):
        return NULL
    if r.source == NULL:
        r.source = new_source(r.data)
        if r.source == NULL:
            return NULL
    r.at += length
    if length:
        return new_slice(r.source, r.at - length, length)
    if r.nothing == NULL:
        r.nothing = new_slice(r.source, r.start, 0)
        if r.nothing == NULL:
            return NULL
    return shared(r.nothing)


cdef PyObject *read_uuid(Reader *r) noexcept:
    cdef PyObject *made
    cdef PyObject *number
    if not has(r, 16, "a uuid"):
        return NULL
    r.at += 16
    if k.kc_load_u64(r.at - 16) == 0 and k.kc_load_u64(r.at - 8) == 0:
        return shared(<PyObject *> UUID_ZERO)
    number = py.kc_int_from_16_bytes(r.at - 16)
    if number == NULL:
        return NULL
    made = py.kc_type_alloc(<py.PyTypeObject *> UUID_CLASS)
    if made == NULL:
        py.Py_DECREF(number)
        return NULL
    py.kc_slot(made, UUID_INT)[0] = number
    py.kc_slot(made, UUID_IS_SAFE)[0] = shared(<PyObject *> UUID_SAFETY)
    return made


cdef bint read_count(Reader *r, const Op *op, int64_t *count) noexcept:
    """The number of elements of an array, -1 for null, bounded by the bytes left."""
    cdef Py_ssize_t least
    if op.flags & F_COUNT16:
        if not read_length(r, False, False, count):
            return False
    elif not read_length(r, op.flags & F_COMPACT, True, count):
        return False
    least = element_bytes(op)
    if least == 0:   # a struct without fields: no real schema has an array of those
        least = 1
    if count[0] > (r.end - r.at) // least:
        fail(r, k.KC_TRUNCATED, "an array", r.end - r.at, count[0] * least)
        return False
    return True


cdef bint read_array(Reader *r, const Op *op, PyObject **slot) noexcept:
    cdef int64_t count
    cdef Py_ssize_t i
    cdef PyObject **items
    if not read_count(r, op, &count):
        return False
    if count < 0:
        slot[0] = read_null(r, op.flags, "null, where an array is needed")
        return slot[0] != NULL
    if count == 0 and op.flags & F_LAZY:
        return True
    slot[0] = py.PyList_New(count)
    if slot[0] == NULL:
        return False
    items = py.kc_items(slot[0])
    if op.kind == INT32_ARRAY:    # the most frequent one; the count has been checked
        for i in range(count):
            items[i] = py.kc_int(<int32_t> k.kc_load_u32(r.at))
            if items[i] == NULL:
                return False
            r.at += 4
        return True
    for i in range(count):
        if not read_field(r, op.element, &items[i]):
            step(&r.fault, NULL, i)
            return False
    return True


cdef bint read_tags(Reader *r, const Plan *plan, PyObject *made) noexcept:
    """The tagged fields behind a struct."""
    cdef uint32_t count, tag, size
    cdef int64_t previous = -1
    cdef Py_ssize_t i
    if r.at < r.end and r.at[0] == 0:
        r.at += 1
        return True
    if not read_uvarint(r, &count):
        return False
    if count > <uint64_t> (r.end - r.at) // 2:
        fail(r, k.KC_TRUNCATED, "a section of tagged fields", r.end - r.at, <int64_t> count * 2)
        return False
    for i in range(count):
        if not read_uvarint(r, &tag) or not read_uvarint(r, &size) or not has(r, size, "a tagged field"):
            return False
        if <int64_t> tag <= previous:
            fail(r, k.KC_CORRUPT, "tags are not in ascending order", tag, 0)
            return False
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
        r.end = r.at + size    # the field cannot see past its own bytes
        value = NULL
        done = read_tagged_value(r, op, &value)
        if done and r.at != r.end:
            fail(r, k.KC_CORRUPT, "bytes left over behind a tagged field", r.end - r.at, 0)
            done = False
        r.end = outer_end
        py.kc_replace(py.kc_slot(made, op.offset), value)
        if not done:
            step(&r.fault, op.name, -1)
        return done
    return keep_unknown(r, plan, made, tag, size)


cdef bint read_tagged_value(Reader *r, const Op *op, PyObject **slot) noexcept:
    """As read_field, but the marker of a nullable struct is a varint here: 0 null, 1 present."""
    cdef uint32_t marker
    if op.kind != NULLABLE_STRUCT:
        return read_field(r, op, slot)
    if not read_uvarint(r, &marker):
        return False
    if marker == 0:
        slot[0] = shared(py.Py_None)
    elif marker == 1:
        slot[0] = read_struct(r, op.plan)
    else:
        fail(r, k.KC_CORRUPT, "the marker of a tagged struct is neither 0 nor 1", marker, 0)
    return slot[0] != NULL


cdef bint keep_unknown(Reader *r, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size) noexcept:
    cdef Py_ssize_t i
    if tag > MAX_TAG:
        fail(r, k.KC_LIMIT, "a tag", tag, MAX_TAG)
        return False
    for i in range(plan.absent_count):
        if plan.absent[i].tag == <int64_t> tag:
            fail(r, k.KC_CORRUPT, "a tag that the schema has, but not in this version", tag, -1)
            step(&r.fault, plan.absent[i].name, -1)
            return False
    if not py.kc_keep(py.kc_slot(made, UNKNOWN), tag, <const char *> r.at, size):
        return False
    r.at += size
    return True
