"""The interpreter of message schemas: bytes to slots of Python objects and back.

`decode` walks the operations of a `Program` once and stores straight into the slots of a fresh object; `encode` walks
them the other way. Nothing in between is built. A fault is noted in a C struct; the path to its field is put together
while the calls return, so it costs nothing until then.

Lengths are compared with the bytes left before they are added to anything, counts with the bytes that so many
elements need at least, so that memory stays in proportion to the input.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport PyObject
from libc.stdint cimport (
    INT8_MAX, INT8_MIN, INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UINT16_MAX, UINT32_MAX,
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.string cimport memcpy, memmove

from kafkacodec cimport _kernel as k
from kafkacodec cimport _pyobject as py
from kafkacodec._program cimport (
    BOOL, BYTES, F_ARRAY, F_COMPACT, F_COUNT16, F_LAZY, F_NULLABLE, FLOAT64, INT8, INT16, INT32, INT64, MAX_STEPS, RECORDS,
    STRING, STRUCT, UINT16, UINT32, UUID, Fault, Op, Plan, Program, element_bytes, path_of, step,
)

import uuid as _uuid

from kafkacodec._struct import slot_offset
from kafkacodec.errors import DecodeError, EncodeError, LimitExceeded, Truncated

cdef enum:
    SIZE_BYTES = 5                 # the longest size of a tagged field
    UNKNOWN = sizeof(PyObject)     # where the unknown tagged fields of a Struct are

# Kafka's own limit on the bytes of a string.
cdef int64_t MAX_STRING_BYTES = 32767

# uuid.UUID objects are filled through their slots: its constructor takes a microsecond.
cdef object UUID_CLASS = _uuid.UUID
cdef object UUID_ZERO = _uuid.UUID(int=0)
cdef object UUID_SAFETY = _uuid.SafeUUID.unknown
cdef Py_ssize_t UUID_INT = slot_offset(_uuid.UUID.int)
cdef Py_ssize_t UUID_IS_SAFE = slot_offset(_uuid.UUID.is_safe)


# ---------------------------------------------------------------------------------------------------------- decoding

cdef struct Reader:
    const uint8_t *at
    const uint8_t *end
    const uint8_t *start
    PyObject *source     # the object that was handed in
    PyObject *view       # a memoryview of it, made when the first records field is met; owned
    PyObject *nothing    # an empty memoryview; owned
    Fault fault


def decode(Program program not None, data):
    """decode(program: Program, data: Buffer) -> Struct

    The object that all of `data` stands for. Raises DecodeError with position and path.
    """
    cdef Py_buffer buffer
    cdef Reader r
    cdef PyObject *made
    cdef bint collecting
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    r.start = r.at = <const uint8_t *> buffer.buf
    r.end = r.start + buffer.len
    r.source = <PyObject *> data
    r.view = r.nothing = NULL
    r.fault.code, r.fault.step_count, r.fault.value = k.KC_OK, 0, NULL
    # Nothing that is built here can be garbage before it is handed out, so the collector need not look at it.
    collecting = py.PyGC_Disable()
    made = read_struct(&r, &program.plan)
    if collecting:
        py.PyGC_Enable()
    py.Py_XDECREF(r.view)
    py.Py_XDECREF(r.nothing)
    PyBuffer_Release(&buffer)
    if made != NULL and r.at != r.end:
        py.Py_DECREF(made)
        made = NULL
        fail(&r, k.KC_CORRUPT, "bytes left over behind the message", r.end - r.at, 0)
    if made == NULL:
        raise_decode_error(&r, program)
    result = <object> made
    py.Py_DECREF(made)
    return result


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
    cdef PyObject *made = py.kc_type_alloc(plan.type)
    cdef PyObject *value
    cdef const Op *op = plan.ops
    cdef const Op *end = plan.ops + plan.op_count
    if made == NULL:
        return NULL
    py.kc_slot(made, UNKNOWN)[0] = shared(py.Py_None)
    while op < end:
        value = read_field(r, op)
        if value == NULL:
            step(&r.fault, op.name, -1)
            py.Py_DECREF(made)
            return NULL
        py.kc_slot(made, op.offset)[0] = value
        op += 1
    if plan.flexible and not read_tags(r, plan, made):
        py.Py_DECREF(made)
        return NULL
    op, end = plan.absent, plan.absent + plan.absent_count
    while op < end:
        if not op.flags & F_LAZY:
            py.kc_slot(made, op.offset)[0] = shared(op.default)
        op += 1
    return made


cdef inline PyObject *read_field(Reader *r, const Op *op) noexcept:
    cdef int8_t marker
    if op.flags & F_ARRAY:
        return read_array(r, op)
    if op.flags & F_NULLABLE and op.code == STRUCT:
        if not has(r, 1, "the marker of a struct"):
            return NULL
        marker = <int8_t> r.at[0]
        if marker == -1:
            r.at += 1
            return shared(py.Py_None)
        if marker != 1:
            return fail(r, k.KC_CORRUPT, "the marker of a struct is neither -1 nor 1", marker, 0)
        r.at += 1
    return read_value(r, op)


cdef PyObject *read_value(Reader *r, const Op *op) noexcept:
    """One value of any type but array."""
    cdef const uint8_t *at = r.at
    cdef uint64_t bits
    cdef double number
    if op.code == INT32:
        if not has(r, 4, "an int32"):
            return NULL
        r.at += 4
        return py.PyLong_FromLong(<int32_t> k.kc_load_u32(at))
    if op.code == INT64:
        if not has(r, 8, "an int64"):
            return NULL
        r.at += 8
        return py.PyLong_FromLongLong(<int64_t> k.kc_load_u64(at))
    if op.code == STRING:
        return read_string(r, op.flags)
    if op.code == INT16:
        if not has(r, 2, "an int16"):
            return NULL
        r.at += 2
        return py.PyLong_FromLong(<int16_t> k.kc_load_u16(at))
    if op.code == STRUCT:
        return read_struct(r, op.plan)
    if op.code == BOOL:
        if not has(r, 1, "a bool"):
            return NULL
        r.at += 1
        return shared(py.Py_True if at[0] else py.Py_False)
    if op.code == INT8:
        if not has(r, 1, "an int8"):
            return NULL
        r.at += 1
        return py.PyLong_FromLong(<int8_t> at[0])
    if op.code == UINT16:
        if not has(r, 2, "a uint16"):
            return NULL
        r.at += 2
        return py.PyLong_FromLong(k.kc_load_u16(at))
    if op.code == UINT32:
        if not has(r, 4, "a uint32"):
            return NULL
        r.at += 4
        return py.PyLong_FromLongLong(k.kc_load_u32(at))
    if op.code == FLOAT64:
        if not has(r, 8, "a float64"):
            return NULL
        r.at += 8
        bits = k.kc_load_u64(at)
        memcpy(&number, &bits, 8)
        return py.PyFloat_FromDouble(number)
    if op.code == UUID:
        return read_uuid(r)
    if op.code == BYTES:
        return read_bytes(r, op.flags)
    return read_records(r, op.flags)


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
    """A memoryview of the part of the input that holds the records."""
    cdef int64_t length
    cdef Py_ssize_t begin
    if not read_length(r, flags & F_COMPACT, True, &length):
        return NULL
    if length < 0:
        return read_null(r, flags, "null, where records are needed")
    if not has(r, length, "a record set"):
        return NULL
    if r.view == NULL:
        r.view = py.kc_byte_view(r.source)
        if r.view == NULL:
            return NULL
    begin = r.at - r.start
    r.at += length
    if length:
        return py.PySequence_GetSlice(r.view, begin, begin + length)
    if r.nothing == NULL:
        r.nothing = py.PySequence_GetSlice(r.view, 0, 0)
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


cdef PyObject *read_array(Reader *r, const Op *op) noexcept:
    cdef int64_t count
    cdef Py_ssize_t i
    cdef PyObject *made
    cdef PyObject *item
    if not read_count(r, op, &count):
        return NULL
    if count < 0:
        return read_null(r, op.flags, "null, where an array is needed")
    made = py.PyList_New(count)
    if made == NULL:
        return NULL
    if op.code == INT32:    # the most frequent one: the count has been checked
        for i in range(count):
            item = py.PyLong_FromLong(<int32_t> k.kc_load_u32(r.at))
            if item == NULL:
                py.Py_DECREF(made)
                return NULL
            r.at += 4
            py.PyList_SET_ITEM(made, i, item)
        return made
    for i in range(count):
        item = read_element(r, op)
        if item == NULL:
            step(&r.fault, NULL, i)
            py.Py_DECREF(made)
            return NULL
        py.PyList_SET_ITEM(made, i, item)
    return made


cdef inline PyObject *read_element(Reader *r, const Op *op) noexcept:
    """Elements are never null, whatever the array may be."""
    cdef Op element
    if op.code == STRUCT:
        return read_struct(r, op.plan)
    element.code = op.code
    element.flags = op.flags & F_COMPACT
    return read_value(r, &element)


cdef bint read_tags(Reader *r, const Plan *plan, PyObject *made) noexcept:
    """The tagged fields behind a struct; those that are not there get their defaults."""
    cdef uint32_t count, tag, size
    cdef int64_t previous = -1
    cdef Py_ssize_t i
    cdef PyObject **slot
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
    for i in range(plan.tagged_count):
        slot = py.kc_slot(made, plan.tagged[i].offset)
        if slot[0] == NULL and not plan.tagged[i].flags & F_LAZY:
            slot[0] = shared(plan.tagged[i].default)
    return True


cdef bint read_tagged(Reader *r, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size) noexcept:
    cdef const Op *op
    cdef const uint8_t *outer_end = r.end
    cdef PyObject *value
    cdef Py_ssize_t i
    for i in range(plan.tagged_count):
        op = &plan.tagged[i]
        if <uint32_t> op.tag != tag:
            continue
        r.end = r.at + size    # the field cannot see past its own bytes
        value = read_tagged_value(r, op)
        if value != NULL and r.at != r.end:
            py.Py_DECREF(value)
            value = fail(r, k.KC_CORRUPT, "bytes left over behind a tagged field", r.end - r.at, 0)
        r.end = outer_end
        if value == NULL:
            step(&r.fault, op.name, -1)
            return False
        py.kc_slot(made, op.offset)[0] = value
        return True
    return keep_unknown(r, plan, made, tag, size)


cdef PyObject *read_tagged_value(Reader *r, const Op *op) noexcept:
    """As read_field, but the marker of a nullable struct is a varint here: 0 null, 1 present."""
    cdef uint32_t marker
    if op.flags & F_NULLABLE and op.code == STRUCT and not op.flags & F_ARRAY:
        if not read_uvarint(r, &marker):
            return NULL
        if marker == 0:
            return shared(py.Py_None)
        if marker != 1:
            return fail(r, k.KC_CORRUPT, "the marker of a tagged struct is neither 0 nor 1", marker, 0)
        return read_struct(r, op.plan)
    return read_field(r, op)


cdef bint keep_unknown(Reader *r, const Plan *plan, PyObject *made, uint32_t tag, uint32_t size) noexcept:
    cdef Py_ssize_t i
    for i in range(plan.absent_count):
        if plan.absent[i].tag == <int64_t> tag:
            fail(r, k.KC_CORRUPT, "a tag that the schema has, but not in this version", tag, -1)
            step(&r.fault, plan.absent[i].name, -1)
            return False
    if not py.kc_keep(py.kc_slot(made, UNKNOWN), tag, <const char *> r.at, size):
        return False
    r.at += size
    return True


# ---------------------------------------------------------------------------------------------------------- encoding

cdef struct Writer:
    uint8_t *start
    uint8_t *at
    uint8_t *end
    PyObject *bytes      # what is written to; its first `at - start` bytes are done
    Fault fault


def encode(Program program not None, message):
    """encode(program: Program, message: Struct) -> bytes

    Raises EncodeError with the path of the value that the version cannot hold.
    """
    cdef Writer w
    w.bytes = py.PyBytes_FromStringAndSize(NULL, 512)
    if w.bytes == NULL:
        raise MemoryError
    w.start = w.at = <uint8_t *> py.PyBytes_AS_STRING(w.bytes)
    w.end = w.start + 512
    w.fault.code, w.fault.step_count, w.fault.value = k.KC_OK, 0, NULL
    if not write_struct(&w, &program.plan, <PyObject *> message):
        py.Py_XDECREF(w.bytes)
        raise_encode_error(&w.fault, program)
    if py._PyBytes_Resize(&w.bytes, w.at - w.start) < 0:
        raise MemoryError
    result = <object> w.bytes
    py.Py_DECREF(w.bytes)
    return result


cdef int raise_encode_error(Fault *fault, Program program) except -1:
    if fault.code != k.KC_CANNOT_ENCODE:
        raise MemoryError
    value = <object> fault.value
    py.Py_DECREF(fault.value)
    try:
        shown = repr(value)
    except Exception:
        shown = type(value).__qualname__
    if len(shown) > 80:
        shown = shown[:77] + "..."
    raise EncodeError(f"{fault.what.decode()}, got {shown}, in {program.title}", path=path_of(fault) or None)


cdef bint refuse(Writer *w, const char *what, PyObject *value) noexcept:
    if w.fault.code == k.KC_OK:
        w.fault.code, w.fault.what, w.fault.value = k.KC_CANNOT_ENCODE, what, shared(value)
    return False


cdef bint grow(Writer *w, Py_ssize_t size) noexcept:
    cdef Py_ssize_t done = w.at - w.start
    cdef Py_ssize_t capacity = 2 * (w.end - w.start)
    if capacity - done < size:
        capacity = done + size
    if py._PyBytes_Resize(&w.bytes, capacity) < 0:    # sets w.bytes to NULL
        py.PyErr_Clear()
        w.fault.code = k.KC_NO_MEMORY
        return False
    w.start = <uint8_t *> py.PyBytes_AS_STRING(w.bytes)
    w.at, w.end = w.start + done, w.start + capacity
    return True


cdef inline bint room(Writer *w, Py_ssize_t size) noexcept:
    return w.end - w.at >= size or grow(w, size)


cdef inline bint write_uvarint(Writer *w, uint64_t value) noexcept:
    if not room(w, 10):
        return False
    if value < 0x80:
        w.at[0] = <uint8_t> value
        w.at += 1
    else:
        w.at += k.kc_uvarint64_encode(w.at, value)
    return True


cdef bint write_struct(Writer *w, const Plan *plan, PyObject *made) noexcept:
    cdef const Op *op = plan.required
    cdef const Op *end = plan.required + plan.required_count
    cdef PyObject *value
    if py.Py_TYPE(made) != plan.type:
        return refuse(w, "an object of another class is needed", made)
    while op < end:
        value = py.kc_slot(made, op.offset)[0]
        if value != op.default and not is_default(op, value):
            refuse(w, "a field that this version lacks must keep its default", value)
            step(&w.fault, op.name, -1)
            return False
        op += 1
    op, end = plan.ops, plan.ops + plan.op_count
    while op < end:
        value = py.kc_slot(made, op.offset)[0]
        if value == NULL:
            value = op.default if op.flags & F_LAZY else py.Py_None
        if not write_field(w, op, value):
            step(&w.fault, op.name, -1)
            return False
        op += 1
    return not plan.flexible or write_tags(w, plan, made)


cdef inline bint write_field(Writer *w, const Op *op, PyObject *value) noexcept:
    if op.flags & F_ARRAY:
        return write_array(w, op, value)
    if op.flags & F_NULLABLE and op.code == STRUCT:
        if not room(w, 1):
            return False
        w.at[0] = 0xff if value == py.Py_None else 1
        w.at += 1
        if value == py.Py_None:
            return True
    return write_value(w, op, value)


cdef bint is_default(const Op *op, PyObject *value) noexcept:
    """Whether a value equals the default, and would be written in the same way."""
    cdef int equal
    if value == op.default or (value == NULL and op.flags & F_LAZY):
        return True
    if value == NULL:
        return False
    if py.Py_TYPE(value) != py.Py_TYPE(op.default) and op.code != BYTES and op.code != RECORDS:
        return False
    equal = py.PyObject_RichCompareBool(value, op.default, py.Py_EQ)
    if equal < 0:
        py.PyErr_Clear()
    return equal == 1


cdef inline bint take_int(Writer *w, PyObject *value, int64_t low, int64_t high, const char *what, int64_t *out) noexcept:
    cdef int overflow = 0
    cdef PyObject *index
    if py.PyLong_CheckExact(value):
        out[0] = py.PyLong_AsLongLongAndOverflow(value, &overflow)
    else:
        if py.PyBool_Check(value) or not py.PyIndex_Check(value):
            return refuse(w, what, value)
        shared(value)    # what follows may run Python code, which may drop it elsewhere
        index = py.PyNumber_Index(value)
        if index == NULL:
            py.PyErr_Clear()
            refuse(w, what, value)
            py.Py_DECREF(value)
            return False
        out[0] = py.PyLong_AsLongLongAndOverflow(index, &overflow)
        py.Py_DECREF(index)
        py.Py_DECREF(value)
    if overflow or out[0] < low or out[0] > high:
        return refuse(w, what, value)
    return True


cdef bint write_value(Writer *w, const Op *op, PyObject *value) noexcept:
    """One value of any type but array."""
    cdef int64_t number = 0
    cdef double real
    cdef uint64_t bits
    if op.code == STRING:
        return write_string(w, op.flags, value)
    if op.code == STRUCT:
        return write_struct(w, op.plan, value)
    if op.code >= BYTES:
        return write_bytes(w, op.flags, value)
    if not room(w, 16):
        return False
    if op.code == INT32:
        if not take_int(w, value, INT32_MIN, INT32_MAX, "an int32 is needed", &number):
            return False
        k.kc_store_u32(w.at, <uint32_t> number)
        w.at += 4
    elif op.code == INT64:
        if not take_int(w, value, INT64_MIN, INT64_MAX, "an int64 is needed", &number):
            return False
        k.kc_store_u64(w.at, <uint64_t> number)
        w.at += 8
    elif op.code == INT16:
        if not take_int(w, value, INT16_MIN, INT16_MAX, "an int16 is needed", &number):
            return False
        k.kc_store_u16(w.at, <uint16_t> number)
        w.at += 2
    elif op.code == BOOL:
        if value != py.Py_True and value != py.Py_False:
            return refuse(w, "a bool is needed", value)
        w.at[0] = value == py.Py_True
        w.at += 1
    elif op.code == INT8:
        if not take_int(w, value, INT8_MIN, INT8_MAX, "an int8 is needed", &number):
            return False
        w.at[0] = <uint8_t> number
        w.at += 1
    elif op.code == UINT16:
        if not take_int(w, value, 0, UINT16_MAX, "a uint16 is needed", &number):
            return False
        k.kc_store_u16(w.at, <uint16_t> number)
        w.at += 2
    elif op.code == UINT32:
        if not take_int(w, value, 0, UINT32_MAX, "a uint32 is needed", &number):
            return False
        k.kc_store_u32(w.at, <uint32_t> number)
        w.at += 4
    elif op.code == FLOAT64:
        if not py.PyFloat_Check(value) and (not py.PyLong_Check(value) or py.PyBool_Check(value)):
            return refuse(w, "a float is needed", value)
        real = py.PyFloat_AsDouble(value)
        if real == -1.0 and py.PyErr_Occurred() != NULL:
            py.PyErr_Clear()
            return refuse(w, "a float64 is needed", value)
        memcpy(&bits, &real, 8)
        k.kc_store_u64(w.at, bits)
        w.at += 8
    else:
        if not py.PyObject_TypeCheck(value, <py.PyTypeObject *> UUID_CLASS):
            return refuse(w, "a uuid.UUID is needed", value)
        if py.kc_int_to_16_bytes(py.kc_slot(value, UUID_INT)[0], w.at) < 0:
            py.PyErr_Clear()
            return refuse(w, "a uuid.UUID is needed", value)
        w.at += 16
    return True


cdef bint write_length(Writer *w, bint compact, bint wide, int64_t length) noexcept:
    """A length or a count, -1 for null; `wide` is int32, otherwise int16. The caller has checked its range."""
    if compact:
        return write_uvarint(w, <uint64_t> (length + 1))
    if not room(w, 4):
        return False
    if wide:
        k.kc_store_u32(w.at, <uint32_t> length)
        w.at += 4
    else:
        k.kc_store_u16(w.at, <uint16_t> length)
        w.at += 2
    return True


cdef bint write_null(Writer *w, int flags, bint wide) noexcept:
    if not flags & F_NULLABLE:
        return refuse(w, "this version does not allow null here", py.Py_None)
    return write_length(w, flags & F_COMPACT, wide, -1)


cdef bint write_string(Writer *w, int flags, PyObject *value) noexcept:
    cdef Py_ssize_t size = 0
    cdef const char *text
    if value == py.Py_None:
        return write_null(w, flags, False)
    if not py.PyUnicode_Check(value):
        return refuse(w, "a str is needed", value)
    text = py.PyUnicode_AsUTF8AndSize(value, &size)
    if text == NULL:
        py.PyErr_Clear()
        return refuse(w, "a str that UTF-8 can hold is needed", value)
    if size > MAX_STRING_BYTES:
        return refuse(w, "a str of at most 32767 bytes is needed", value)
    return write_length(w, flags & F_COMPACT, False, size) and write_raw(w, text, size)


cdef inline bint write_raw(Writer *w, const void *data, Py_ssize_t size) noexcept:
    if not room(w, size):
        return False
    memcpy(w.at, data, size)
    w.at += size
    return True


cdef bint write_bytes(Writer *w, int flags, PyObject *value) noexcept:
    """Any contiguous buffer."""
    cdef py.Py_buffer buffer
    cdef bint done
    if value == py.Py_None:
        return write_null(w, flags, True)
    if py.PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0:
        py.PyErr_Clear()
        return refuse(w, "bytes are needed", value)
    if buffer.len > INT32_MAX - 1:
        refuse(w, "at most 2147483646 bytes are needed", value)
        done = False
    else:
        done = write_length(w, flags & F_COMPACT, True, buffer.len) and write_raw(w, buffer.buf, buffer.len)
    py.PyBuffer_Release(&buffer)
    return done


cdef bint write_array(Writer *w, const Op *op, PyObject *value) noexcept:
    cdef Py_ssize_t count, i
    cdef PyObject *item
    cdef Op element
    cdef bint done = True
    if value == py.Py_None:
        return write_null(w, op.flags, not op.flags & F_COUNT16)
    if not py.PyList_Check(value) and not py.PyTuple_Check(value):
        return refuse(w, "a list is needed", value)
    count = py.Py_SIZE(value)
    if count > (INT16_MAX if op.flags & F_COUNT16 else INT32_MAX - 1):
        return refuse(w, "a shorter list is needed", value)
    if not write_length(w, op.flags & F_COMPACT, not op.flags & F_COUNT16, count):
        return False
    element = op[0]
    element.flags = op.flags & F_COMPACT
    shared(value)
    for i in range(count):
        if i >= py.Py_SIZE(value):
            done = refuse(w, "the list changed meanwhile", value)
            break
        item = shared(py.kc_item(value, i))
        done = write_value(w, &element, item)
        py.Py_DECREF(item)
        if not done:
            step(&w.fault, NULL, i)
            break
    py.Py_DECREF(value)
    return done


cdef bint write_tags(Writer *w, const Plan *plan, PyObject *made) noexcept:
    """The tagged fields that differ from their defaults, and the unknown ones, in the order of their tags."""
    cdef uint64_t present = 0
    cdef Py_ssize_t i
    cdef Py_ssize_t count = 0
    cdef PyObject *unknown = py.kc_slot(made, UNKNOWN)[0]
    for i in range(plan.tagged_count):
        if not is_default(&plan.tagged[i], py.kc_slot(made, plan.tagged[i].offset)[0]):
            present |= <uint64_t> 1 << i
            count += 1
    if unknown != py.Py_None:
        return write_mixed_tags(w, plan, made, present)
    if not write_uvarint(w, count):
        return False
    for i in range(plan.tagged_count):
        if present >> i & 1 and not write_tagged(w, &plan.tagged[i], made):
            return False
    return True


cdef bint write_mixed_tags(Writer *w, const Plan *plan, PyObject *made, uint64_t present) noexcept:
    cdef Py_ssize_t i
    cdef const char *fault = "tags from 0 to 2147483646 that the schema lacks, with bytes, are needed"
    unknown = <object> py.kc_slot(made, UNKNOWN)[0]
    try:
        known = {plan.tagged[i].tag for i in range(plan.tagged_count)}
        known |= {plan.absent[i].tag for i in range(plan.absent_count)}
        for tag in unknown:
            if type(tag) is not int or not 0 <= tag < INT32_MAX or tag in known:
                return refuse(w, fault, <PyObject *> unknown)
        order = [(plan.tagged[i].tag, i) for i in range(plan.tagged_count) if present >> i & 1]
        order = sorted([*order, *[(tag, -1) for tag in unknown]])
        if not write_uvarint(w, len(order)):
            return False
        for tag, i in order:
            if i >= 0:
                if not write_tagged(w, &plan.tagged[i], made):
                    return False
            else:
                data = bytes(memoryview(unknown[tag]))
                if not write_uvarint(w, tag) or not write_uvarint(w, len(data)):
                    return False
                if not write_raw(w, <const char *> data, len(data)):
                    return False
        return True
    except Exception:
        return refuse(w, fault, <PyObject *> unknown)


cdef bint write_tagged(Writer *w, const Op *op, PyObject *made) noexcept:
    """Tag, size and value. Room for the longest size is left, then the value is moved up to the real one."""
    cdef PyObject *value = py.kc_slot(made, op.offset)[0]
    cdef Py_ssize_t begin, size, size_bytes
    if value == NULL:
        value = py.Py_None
    if not write_uvarint(w, op.tag) or not room(w, SIZE_BYTES):
        step(&w.fault, op.name, -1)
        return False
    begin = w.at - w.start
    w.at += SIZE_BYTES
    if not write_tagged_value(w, op, value):
        step(&w.fault, op.name, -1)
        return False
    size = w.at - w.start - begin - SIZE_BYTES
    size_bytes = k.kc_uvarint64_encode(w.start + begin, size)
    memmove(w.start + begin + size_bytes, w.start + begin + SIZE_BYTES, size)
    w.at -= SIZE_BYTES - size_bytes
    return True


cdef bint write_tagged_value(Writer *w, const Op *op, PyObject *value) noexcept:
    if op.flags & F_NULLABLE and op.code == STRUCT and not op.flags & F_ARRAY:
        if value == py.Py_None:
            return write_uvarint(w, 0)
        return write_uvarint(w, 1) and write_struct(w, op.plan, value)
    return write_field(w, op, value)
