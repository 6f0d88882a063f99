"""Encodes messages from the slots of Python objects, in one pass.

A fault is stored in a C struct. The path to its field is built while the calls return, so it has no cost without a
fault.
"""
from cpython.buffer cimport PyBUF_SIMPLE
from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject
from libc.stdint cimport INT16_MAX, INT32_MAX, INT64_MAX, INT64_MIN, UINT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove

from kafkacodec._core cimport base as k
from kafkacodec.messages cimport _pyobject as py
from kafkacodec.messages._program cimport (
    ANY_ARRAY, BOOL, BYTES, F_COMPACT, F_COUNT16, F_LAZY, F_NULLABLE, FLOAT64, INT8, INT16, INT32, INT32_ARRAY, INT64, KINDS,
    NULLABLE_STRUCT, RECORDS, STRING, STRUCT, STRUCT_ARRAY, UINT16, UINT32, UUID, Fault, Op, Plan, Program, path_of, step,
)
from kafkacodec.messages._objects cimport kc_as_part
from kafkacodec.messages._struct cimport UNKNOWN, look, part_type

import uuid as _uuid

from kafkacodec.errors import EncodeError

cdef enum:
    LENGTH_BYTES = 10              # the maximum size of an encoded length or count
    SIZE_BYTES = 5                 # the maximum size of the encoded size of a tagged field
    ROOM_AT_END = 64               # more than the room that is requested and then not used

# Kafka's limit on the size of a string in bytes.
cdef int64_t MAX_STRING_BYTES = 32767

cdef PyTypeObject *PART = part_type()
cdef object UNKNOWN_FIELDS = "unknown_tagged_fields"
cdef PyObject *UNKNOWN_NAME = <PyObject *> UNKNOWN_FIELDS

cdef object UUID_CLASS = _uuid.UUID
cdef object UUID_INT = _uuid.UUID.int    # a descriptor: uuid.UUID has slots


cdef struct Writer:
    uint8_t *start
    uint8_t *at
    uint8_t *end
    PyObject *bytes      # the output; its first `at - start` bytes are written
    Fault fault


# Writes a field, or an item of an array. Functions that run Python code (__index__, the export of a buffer) hold a
# reference to the object, since that code may drop others.
ctypedef bint (*Write)(Writer *w, const Op *op, PyObject *value) noexcept
cdef Write WRITERS[KINDS]
WRITERS[BOOL] = write_bool
WRITERS[INT8] = WRITERS[INT16] = WRITERS[INT32] = WRITERS[INT64] = write_integer
WRITERS[UINT16] = WRITERS[UINT32] = write_unsigned
WRITERS[FLOAT64] = write_float
WRITERS[UUID] = write_uuid
WRITERS[STRING] = write_string
WRITERS[BYTES] = WRITERS[RECORDS] = write_bytes
WRITERS[STRUCT] = write_struct
WRITERS[NULLABLE_STRUCT] = write_nullable_struct
WRITERS[INT32_ARRAY] = write_int32_array
WRITERS[STRUCT_ARRAY] = WRITERS[ANY_ARRAY] = write_array

# Errors for values that are not integers of the type, or out of its range.
cdef const char *WANTED[KINDS]
WANTED[INT8], WANTED[INT16], WANTED[INT32] = "expected an int8", "expected an int16", "expected an int32"
WANTED[INT64], WANTED[UINT16], WANTED[UINT32] = "expected an int64", "expected a uint16", "expected a uint32"


def encode(Program program not None, message):
    """encode(program: Program, message: Struct) -> bytes

    Raises EncodeError with the path of the value that the version cannot represent.
    """
    return encode_after(program, message, b"", False)


def encode_frame(Program program not None, message, bytes header not None):
    """encode_frame(program: Program, message: Struct, header: bytes) -> bytes

    An int32 with the size of the rest, the header, and the message.
    """
    return encode_after(program, message, b"\0\0\0\0" + header, True)


cdef bytes encode_after(Program program, object message, bytes prefix, bint framed):
    cdef Writer w
    cdef Op root
    # The size of the last message of this type, so that most messages need not grow.
    cdef Py_ssize_t capacity = len(prefix) + max(512, min(program.last_bytes + ROOM_AT_END, 1 << 20))
    w.bytes = py.PyBytes_FromStringAndSize(NULL, capacity)
    if w.bytes == NULL:
        raise MemoryError
    w.start = w.at = <uint8_t *> py.PyBytes_AS_STRING(w.bytes)
    w.end = w.start + capacity
    w.fault.code, w.fault.step_count, w.fault.value, w.fault.expected = k.KC_OK, 0, NULL, NULL
    write_raw(&w, <const char *> prefix, len(prefix))
    root.plan = &program.plan
    if not write_struct(&w, &root, <PyObject *> message):
        py.Py_XDECREF(w.bytes)
        raise_encode_error(&w.fault, program)
    if framed:
        if w.at - w.start - 4 > INT32_MAX:
            py.Py_DECREF(w.bytes)
            raise EncodeError(f"a frame of {w.at - w.start - 4} bytes does not fit its int32 length")
        k.kc_store_u32(w.start, <uint32_t> (w.at - w.start - 4))
    program.last_bytes = w.at - w.start
    if py._PyBytes_Resize(&w.bytes, w.at - w.start) < 0:
        raise MemoryError
    result = <object> w.bytes
    py.Py_DECREF(w.bytes)
    return result


cdef inline PyObject *shared(PyObject *value) noexcept:
    py.Py_INCREF(value)
    return value


cdef int raise_encode_error(Fault *fault, Program program) except -1:
    if py.PyErr_Occurred() != NULL:
        return -1
    if fault.value == NULL:
        raise MemoryError
    value = <object> fault.value
    py.Py_DECREF(fault.value)
    if fault.code != k.KC_CANNOT_ENCODE:
        raise value
    try:
        shown = repr(value)
    except MemoryError:
        raise
    except Exception:
        shown = type(value).__qualname__
    if len(shown) > 80:
        shown = shown[:77] + "..."
    what = fault.what.decode() if fault.expected == NULL else f"expected a {(<object> fault.expected).__qualname__}"
    raise EncodeError(f"{what}, got {shown}, in {program.title}", path=path_of(fault) or None)


cdef bint refuse(Writer *w, const char *what, PyObject *value) noexcept:
    if w.fault.code == k.KC_OK:
        w.fault.code, w.fault.what, w.fault.value = k.KC_CANNOT_ENCODE, what, shared(value)
    return False


cdef bint pass_over(Writer *w) noexcept:
    """Clears the exception, if any. Returns False for one that is not about the value, such as MemoryError or
    KeyboardInterrupt, which stays set.
    """
    if py.PyErr_Occurred() == NULL:
        return True
    if py.PyErr_ExceptionMatches(py.PyExc_MemoryError) or not py.PyErr_ExceptionMatches(py.PyExc_Exception):
        w.fault.code = k.KC_NO_MEMORY
        return False
    py.PyErr_Clear()
    return True


cdef bint refuse_raised(Writer *w, const char *what, PyObject *value) noexcept:
    """Rejects a value that raised an exception."""
    return pass_over(w) and refuse(w, what, value)


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


cdef inline bint write_raw(Writer *w, const void *data, Py_ssize_t size) noexcept:
    if not room(w, size):
        return False
    memcpy(w.at, data, size)
    w.at += size
    return True


cdef inline bint write_uvarint(Writer *w, uint64_t value) noexcept:
    if not room(w, 10):
        return False
    if value < 0x80:
        w.at[0] = <uint8_t> value
        w.at += 1
    else:
        w.at += k.kc_uvarint64_encode(w.at, value)
    return True


cdef bint write_struct(Writer *w, const Op *op, PyObject *made) noexcept:
    cdef const Plan *plan = op.plan
    cdef bint done
    if py.Py_TYPE(made) != plan.type:
        w.fault.expected = <PyObject *> plan.type
        return refuse(w, "an object of another class", made)
    shared(made)
    done = keeps_defaults(w, plan, made) and write_fields(w, plan, made) and (
        write_tags(w, plan, made) if plan.flexible else has_no_tags(w, made))
    py.Py_DECREF(made)
    return done


cdef inline bint keeps_defaults(Writer *w, const Plan *plan, PyObject *made) noexcept:
    cdef const Op *op = plan.required
    cdef const Op *end = plan.required + plan.required_count
    cdef PyObject *value
    while op < end:
        value = py.kc_slot(made, op.offset)[0]
        if differs(w, op, value):
            refuse(w, "this version has no such field, so it must keep its default", value)
            step(&w.fault, op.name, -1)
            return False
        op += 1
    return True


cdef inline bint write_fields(Writer *w, const Plan *plan, PyObject *made) noexcept:
    cdef const Op *op = plan.ops
    cdef const Op *end = plan.ops + plan.op_count
    cdef PyObject *value
    while op < end:
        if op.run:
            op += write_run(w, op, made)
            if op == end:
                break
        value = py.kc_slot(made, op.offset)[0]
        if value == NULL:
            value = op.default if op.flags & F_LAZY else py.Py_None
        elif op.kind == STRUCT_ARRAY:
            value = list_at(w, py.kc_slot(made, op.offset))
        if value == py.Py_None and op.null_size and room(w, 4):
            k.kc_store_u32(w.at, 0 if op.flags & F_COMPACT else 0xffffffff)
            w.at += op.null_size
        elif value == NULL or not WRITERS[op.kind](w, op, value):
            step(&w.fault, op.name, -1)
            return False
        op += 1
    return True


cdef inline PyObject *list_at(Writer *w, PyObject **slot) noexcept:
    """The list in a slot, created now if there was no access yet; NULL if that fails."""
    if py.kc_rarely(py.Py_TYPE(slot[0]) == PART) and not make_list(w, slot):
        return NULL
    return slot[0]


cdef bint make_list(Writer *w, PyObject **slot) noexcept:
    try:
        look(slot)
        return True
    except BaseException as error:
        w.fault.code, w.fault.value = k.KC_NO_MEMORY, shared(<PyObject *> error)
        return False


cdef inline Py_ssize_t write_run(Writer *w, const Op *op, PyObject *made) noexcept:
    """Writes consecutive integers up to the first that is not a short int or does not fit; returns their number."""
    cdef const Op *first = op
    cdef const Op *end = op + op.run
    cdef uint8_t *at
    cdef PyObject *value
    cdef int64_t number
    if not room(w, op.run_bytes):
        return 0
    at = w.at
    while op < end:
        value = py.kc_slot(made, op.offset)[0]
        if value == NULL or not py.kc_short_int(value, &number):
            break
        if op.width < 4 and not INT64_MIN >> op.shift <= number <= INT64_MAX >> op.shift:    # short ints fit in all others
            break
        k.kc_store_u64(at, <uint64_t> number << op.shift)
        at += op.width
        op += 1
    w.at = at
    return op - first


cdef bint write_nullable_struct(Writer *w, const Op *op, PyObject *value) noexcept:
    if not room(w, 1):
        return False
    w.at[0] = 0xff if value == py.Py_None else 1
    w.at += 1
    return value == py.Py_None or write_struct(w, op, value)


cdef inline bint differs(Writer *w, const Op *op, PyObject *value) noexcept:
    """Whether the value of a slot differs from the default."""
    return value != NULL and value != op.default and not is_default(w, op, value)


cdef bint is_default(Writer *w, const Op *op, PyObject *value) noexcept:
    """Whether a value equals the default, and would be encoded in the same way. Not called for empty slots."""
    cdef int equal
    if py.Py_TYPE(value) == PART:    # the default of records is empty or null, that of an array is empty
        return kc_as_part(value).size == 0 and op.default != py.Py_None
    if py.Py_TYPE(value) != py.Py_TYPE(op.default) and op.code != BYTES and op.code != RECORDS:
        return False
    if op.kind == STRUCT and holds_same(value, op.default):
        return True
    shared(value)
    equal = py.PyObject_RichCompareBool(value, op.default, py.Py_EQ)
    py.Py_DECREF(value)
    if equal < 0:
        pass_over(w)
    return equal == 1


cdef bint holds_same(PyObject *a, PyObject *b) noexcept:
    """Whether two objects of a message class hold the same objects, as those that nobody has changed do."""
    return memcmp(py.kc_slot(a, UNKNOWN), py.kc_slot(b, UNKNOWN), py.Py_TYPE(a).tp_basicsize - UNKNOWN) == 0


cdef bint write_bool(Writer *w, const Op *op, PyObject *value) noexcept:
    if value != py.Py_True and value != py.Py_False:
        return refuse(w, "expected a bool", value)
    if not room(w, 1):
        return False
    w.at[0] = value == py.Py_True
    w.at += 1
    return True


cdef bint write_integer(Writer *w, const Op *op, PyObject *value) noexcept:
    return write_number(w, op, value, INT64_MIN >> op.shift, INT64_MAX >> op.shift)


cdef bint write_unsigned(Writer *w, const Op *op, PyObject *value) noexcept:
    return write_number(w, op, value, 0, <int64_t> (UINT64_MAX >> op.shift))


cdef bint write_number(Writer *w, const Op *op, PyObject *value, int64_t low, int64_t high) noexcept:
    cdef int64_t number = 0
    if not room(w, 8) or not take_int(w, op, value, &number):
        return False
    if number < low or number > high:
        return refuse(w, WANTED[op.kind], value)
    k.kc_store_u64(w.at, <uint64_t> number << op.shift)
    w.at += op.width
    return True


cdef inline bint take_int(Writer *w, const Op *op, PyObject *value, int64_t *number) noexcept:
    """The value of an int, or an object with __index__, except bools."""
    cdef int overflow = 0
    cdef PyObject *index
    if py.kc_short_int(value, number):
        return True
    if py.PyBool_Check(value) or not py.PyIndex_Check(value):
        return refuse(w, WANTED[op.kind], value)
    shared(value)
    index = py.PyNumber_Index(value)
    if index == NULL:
        overflow = True
    else:
        number[0] = py.PyLong_AsLongLongAndOverflow(index, &overflow)
        py.Py_DECREF(index)
    if overflow:
        refuse_raised(w, WANTED[op.kind], value)
    py.Py_DECREF(value)
    return not overflow


cdef bint write_float(Writer *w, const Op *op, PyObject *value) noexcept:
    cdef double real
    cdef uint64_t bits
    if not room(w, 8):
        return False
    if not py.PyFloat_Check(value) and (not py.PyLong_Check(value) or py.PyBool_Check(value)):
        return refuse(w, "expected a float", value)
    real = py.PyFloat_AsDouble(value)
    if real == -1.0 and py.PyErr_Occurred() != NULL:
        return refuse_raised(w, "expected a float64", value)
    memcpy(&bits, &real, 8)
    k.kc_store_u64(w.at, bits)
    w.at += 8
    return True


cdef bint write_uuid(Writer *w, const Op *op, PyObject *value) noexcept:
    cdef PyObject *number
    cdef bint done
    if not room(w, 16):
        return False
    if not py.PyObject_TypeCheck(value, <PyTypeObject *> UUID_CLASS):
        return refuse(w, "expected a uuid.UUID", value)
    shared(value)
    number = py.kc_member(<PyObject *> UUID_INT, value)
    done = number != NULL and py.kc_int_to_16_bytes(number, w.at) == 0 or refuse_raised(w, "expected a uuid.UUID", value)
    py.Py_XDECREF(number)
    py.Py_DECREF(value)
    w.at += 16
    return done


cdef inline void write_length(Writer *w, bint compact, bint wide, int64_t length) noexcept:
    """Writes a length or a count, -1 for null, as int32 (`wide`) or int16. The caller has checked range and room."""
    if compact and length < 0x7f:
        w.at[0] = <uint8_t> (length + 1)
        w.at += 1
    elif compact:
        w.at += k.kc_uvarint64_encode(w.at, <uint64_t> (length + 1))
    elif wide:
        k.kc_store_u32(w.at, <uint32_t> length)
        w.at += 4
    else:
        k.kc_store_u16(w.at, <uint16_t> length)
        w.at += 2


cdef bint write_null(Writer *w, const Op *op, bint wide) noexcept:
    if not op.flags & F_NULLABLE:
        return refuse(w, "null is not allowed in this version", py.Py_None)
    if not room(w, LENGTH_BYTES):
        return False
    write_length(w, op.flags & F_COMPACT, wide, -1)
    return True


cdef bint write_string(Writer *w, const Op *op, PyObject *value) noexcept:
    cdef Py_ssize_t size = 0
    cdef const char *text = py.kc_ascii(value, &size)
    if text == NULL:
        if value == py.Py_None:
            return write_null(w, op, False)
        if not py.PyUnicode_Check(value):
            return refuse(w, "expected a str", value)
        text = py.PyUnicode_AsUTF8AndSize(value, &size)
    if text == NULL:
        return refuse_raised(w, "expected a str that UTF-8 can represent", value)
    if size > MAX_STRING_BYTES:
        return refuse(w, "expected a str of at most 32767 bytes", value)
    return write_sized(w, op, False, text, size)


cdef bint write_bytes(Writer *w, const Op *op, PyObject *value) noexcept:
    """Any contiguous buffer."""
    cdef py.Py_buffer buffer
    cdef bint done
    if value == py.Py_None:
        return write_null(w, op, True)
    if py.Py_TYPE(value) == PART:
        return write_any_bytes(w, op, value, kc_as_part(value).data, kc_as_part(value).size)
    if py.PyBytes_CheckExact(value):
        return write_any_bytes(w, op, value, py.PyBytes_AS_STRING(value), py.Py_SIZE(value))
    shared(value)
    if py.PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0:
        done = refuse_raised(w, "expected bytes", value)
    else:
        done = write_any_bytes(w, op, value, buffer.buf, buffer.len)
        py.PyBuffer_Release(&buffer)
    py.Py_DECREF(value)
    return done


cdef bint write_any_bytes(Writer *w, const Op *op, PyObject *value, const void *data, Py_ssize_t size) noexcept:
    if size > INT32_MAX - 1:
        return refuse(w, "expected at most 2147483646 bytes", value)
    return write_sized(w, op, True, data, size)


cdef inline bint write_sized(Writer *w, const Op *op, bint wide, const void *data, Py_ssize_t size) noexcept:
    if not room(w, LENGTH_BYTES + size):
        return False
    write_length(w, op.flags & F_COMPACT, wide, size)
    if size:
        memcpy(w.at, data, size)
        w.at += size
    return True


cdef bint write_int32_array(Writer *w, const Op *op, PyObject *value) noexcept:
    """The most frequent array. From the first item that is not a short int, items are written by write_items."""
    cdef Py_ssize_t i
    cdef int64_t number
    cdef PyObject **items
    cdef Py_ssize_t count = write_count(w, op, value, 4)
    if count < 0:
        return w.fault.code == k.KC_OK
    items = py.kc_items(value)
    for i in range(count):
        if not py.kc_short_int(items[i], &number):
            return write_items(w, op.element, value, i, count)
        k.kc_store_u32(w.at, <uint32_t> number)
        w.at += 4
    return True


cdef bint write_array(Writer *w, const Op *op, PyObject *value) noexcept:
    cdef Py_ssize_t count = write_count(w, op, value, 0)
    if count < 0:
        return w.fault.code == k.KC_OK
    return write_items(w, op.element, value, 0, count)


cdef inline Py_ssize_t write_count(Writer *w, const Op *op, PyObject *value, Py_ssize_t item_bytes) noexcept:
    """Writes the number of items, and makes room for them; returns -1 for null or a fault."""
    cdef Py_ssize_t count
    if value == py.Py_None:
        write_null(w, op, not op.flags & F_COUNT16)
        return -1
    if not py.PyList_Check(value) and not py.PyTuple_Check(value):
        refuse(w, "expected a list", value)
        return -1
    count = py.Py_SIZE(value)
    if count > (INT16_MAX if op.flags & F_COUNT16 else INT32_MAX - 1):
        refuse(w, "the list is too long", value)
        return -1
    if not room(w, LENGTH_BYTES + item_bytes * count):
        return -1
    write_length(w, op.flags & F_COMPACT, not op.flags & F_COUNT16, count)
    return count


cdef bint write_items(Writer *w, const Op *op, PyObject *value, Py_ssize_t first, Py_ssize_t count) noexcept:
    """Writes the items of a list or tuple that had `count` items."""
    cdef Py_ssize_t i
    cdef Write write = WRITERS[op.kind]
    cdef bint done = True
    shared(value)
    for i in range(first, count):
        if i >= py.Py_SIZE(value):
            done = refuse(w, "the list changed while it was encoded", value)
        elif not write(w, op, py.kc_items(value)[i]):
            step(&w.fault, NULL, i)
            done = False
        if not done:
            break
    py.Py_DECREF(value)
    return done


cdef inline bint has_no_tags(Writer *w, PyObject *made) noexcept:
    """As in Java, unknown tagged fields are not dropped silently in a version that cannot have them."""
    cdef PyObject *unknown = py.kc_slot(made, UNKNOWN)[0]
    if unknown == NULL or unknown == py.Py_None or not <object> unknown:
        return True
    return refuse_tags(w, "this version has no tagged fields, so unknown_tagged_fields must be empty", unknown)


cdef bint refuse_tags(Writer *w, const char *what, PyObject *unknown) noexcept:
    step(&w.fault, UNKNOWN_NAME, -1)
    return refuse(w, what, unknown)


cdef bint write_tags(Writer *w, const Plan *plan, PyObject *made) noexcept:
    """Writes tagged fields that differ from their defaults, and unknown ones, in the order of tags."""
    cdef uint64_t present = 0
    cdef Py_ssize_t i
    cdef Py_ssize_t count = 0
    cdef PyObject *unknown = py.kc_slot(made, UNKNOWN)[0]
    cdef const Op *op = plan.tagged
    cdef const Op *end = plan.tagged + plan.tagged_count
    while op < end:
        if differs(w, op, py.kc_slot(made, op.offset)[0]):
            present |= <uint64_t> 1 << (op - plan.tagged)
            count += 1
        op += 1
    if w.fault.code != k.KC_OK:
        return False
    if unknown != NULL and unknown != py.Py_None:
        return write_mixed_tags(w, plan, made, present)
    if not write_uvarint(w, count):
        return False
    for i in range(plan.tagged_count):
        if present >> i & 1 and not write_tagged(w, &plan.tagged[i], made):
            return False
    return True


cdef bint write_mixed_tags(Writer *w, const Plan *plan, PyObject *made, uint64_t present) noexcept:
    cdef Py_ssize_t i
    cdef const char *fault = "expected bytes for tags from 0 to 2147483646 that the schema does not define"
    unknown = <object> py.kc_slot(made, UNKNOWN)[0]
    try:
        known = {plan.tagged[i].tag for i in range(plan.tagged_count)}
        known |= {plan.absent[i].tag for i in range(plan.absent_count)}
        for tag in unknown:
            if type(tag) is not int or not 0 <= tag < INT32_MAX or tag in known:
                return refuse_tags(w, fault, <PyObject *> unknown)
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
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            return refuse_tags(w, fault, <PyObject *> unknown)
        w.fault.code, w.fault.value = k.KC_NO_MEMORY, shared(<PyObject *> error)
        return False


cdef bint write_tagged(Writer *w, const Op *op, PyObject *made) noexcept:
    """Writes tag, size and value. The value is written after room for the maximum size, then moved."""
    cdef PyObject *value = py.kc_slot(made, op.offset)[0]
    cdef Py_ssize_t begin, size, size_bytes
    cdef bint done
    if value == NULL:
        value = py.Py_None
    elif op.kind == STRUCT_ARRAY:
        value = list_at(w, py.kc_slot(made, op.offset))
    if value == NULL or not write_uvarint(w, op.tag) or not room(w, SIZE_BYTES):
        step(&w.fault, op.name, -1)
        return False
    begin = w.at - w.start
    w.at += SIZE_BYTES
    shared(value)
    done = write_tagged_value(w, op, value)
    py.Py_DECREF(value)
    if not done:
        step(&w.fault, op.name, -1)
        return False
    size = w.at - w.start - begin - SIZE_BYTES
    size_bytes = k.kc_uvarint64_encode(w.start + begin, size)
    memmove(w.start + begin + size_bytes, w.start + begin + SIZE_BYTES, size)
    w.at -= SIZE_BYTES - size_bytes
    return True


cdef bint write_tagged_value(Writer *w, const Op *op, PyObject *value) noexcept:
    if op.kind == NULLABLE_STRUCT:
        if value == py.Py_None:
            return write_uvarint(w, 0)
        return write_uvarint(w, 1) and write_struct(w, op, value)
    return WRITERS[op.kind](w, op, value)
