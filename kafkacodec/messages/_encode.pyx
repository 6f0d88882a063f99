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
from kafkacodec._core._buffer cimport has_objects
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
    MOST_AT_FIRST = 1 << 20        # the most memory that is requested before it is needed
    PIECE_BYTES = 16384            # records of this size or more are a piece of their own, if pieces are wanted

# Kafka's limit on the size of a string in bytes.
cdef int64_t MAX_STRING_BYTES = 32767

cdef PyTypeObject *PART = part_type()
cdef object UNKNOWN_FIELDS = "unknown_tagged_fields"
cdef PyObject *UNKNOWN_NAME = <PyObject *> UNKNOWN_FIELDS

cdef object UUID_CLASS = _uuid.UUID
cdef object UUID_INT = _uuid.UUID.int    # a descriptor: uuid.UUID has slots


cdef struct Writer:
    uint8_t *start
    uint8_t *end
    PyObject *bytes      # the output
    PyObject *pieces     # a list of (position in the output, view), or NULL: everything is copied to the output
    Py_ssize_t outside   # the bytes of the views
    Fault fault


# Writes a field, or an item of an array, at a position; returns the position after it, or NULL if there is a fault. The
# position is an argument, not in the Writer, so that it stays in a register. Functions that run Python code (__index__,
# the export of a buffer) hold a reference to the object, since that code may drop others.
ctypedef uint8_t *(*Write)(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept
cdef Write WRITERS[KINDS]
WRITERS[BOOL] = write_bool
WRITERS[INT8] = WRITERS[INT16] = WRITERS[INT32] = WRITERS[INT64] = write_integer
WRITERS[UINT16] = WRITERS[UINT32] = write_unsigned
WRITERS[FLOAT64] = write_float
WRITERS[UUID] = write_uuid
WRITERS[STRING] = write_string
WRITERS[BYTES] = write_bytes
WRITERS[RECORDS] = write_records
WRITERS[STRUCT] = write_struct
WRITERS[NULLABLE_STRUCT] = write_nullable_struct
WRITERS[INT32_ARRAY] = write_int32_array
WRITERS[STRUCT_ARRAY] = write_struct_array
WRITERS[ANY_ARRAY] = write_array

# Errors for values that are not integers of the type, or out of its range.
cdef const char *WANTED[KINDS]
WANTED[INT8], WANTED[INT16], WANTED[INT32] = "expected an int8", "expected an int16", "expected an int32"
WANTED[INT64], WANTED[UINT16], WANTED[UINT32] = "expected an int64", "expected a uint16", "expected a uint32"


def encode(Program program not None, message):
    """encode(program: Program, message: Struct) -> bytes

    Raises EncodeError with the path of the value that the version cannot represent.
    """
    return encode_after(program, message, b"", False, None)


def encode_frame(Program program not None, message, bytes header not None):
    """encode_frame(program: Program, message: Struct, header: bytes) -> bytes

    An int32 with the size of the rest, the header, and the message.
    """
    # A large frame would outgrow what is requested first, and be copied again: its pieces need no more than their size.
    if program.has_records and program.last_bytes > MOST_AT_FIRST:
        return b"".join(encode_frame_pieces(program, message, header))
    return encode_after(program, message, b"\0\0\0\0" + header, True, None)


def encode_frame_pieces(Program program not None, message, bytes header not None):
    """encode_frame_pieces(program: Program, message: Struct, header: bytes) -> list[bytes | memoryview]

    What encode_frame returns, in pieces: large records are views of the message's, which are not copied.
    """
    cdef list cuts = []
    cdef Py_ssize_t begin = 0
    frame = encode_after(program, message, b"\0\0\0\0" + header, True, cuts)
    if not cuts:
        return [frame]
    whole = memoryview(frame)
    pieces = []
    for position, view in cuts:
        pieces.append(whole[begin:position])    # not += of both: without memory, CPython 3.11 loses them
        pieces.append(view)
        begin = position
    if begin < len(whole):
        pieces.append(whole[begin:])
    return pieces


cdef bytes encode_after(Program program, object message, bytes prefix, bint framed, list pieces):
    cdef Writer w
    cdef uint8_t *at
    cdef Py_ssize_t size
    # The size of the last message of this type, so that most messages need not grow.
    cdef Py_ssize_t expected = 0 if pieces is not None and program.has_records else program.last_bytes + ROOM_AT_END
    cdef Py_ssize_t capacity = len(prefix) + max(512, min(expected, MOST_AT_FIRST))
    w.bytes = py.PyBytes_FromStringAndSize(NULL, capacity)
    if w.bytes == NULL:
        raise MemoryError
    w.start = <uint8_t *> py.PyBytes_AS_STRING(w.bytes)
    w.end = w.start + capacity
    w.pieces = NULL if pieces is None else <PyObject *> pieces
    w.outside = 0
    w.fault.code, w.fault.step_count, w.fault.value, w.fault.expected = k.KC_OK, 0, NULL, NULL
    at = write_raw(&w, w.start, <const char *> prefix, len(prefix))
    if at != NULL:
        at = write_planned(&w, at, &program.plan, <PyObject *> message)
    if at == NULL:
        py.Py_XDECREF(w.bytes)
        raise_encode_error(&w.fault, program)
    size = at - w.start
    if framed:
        if size + w.outside - 4 > INT32_MAX:
            py.Py_DECREF(w.bytes)
            raise EncodeError(f"a frame of {size + w.outside - 4} bytes does not fit its int32 length")
        k.kc_store_u32(w.start, <uint32_t> (size + w.outside - 4))
    program.last_bytes = size + w.outside
    if py._PyBytes_Resize(&w.bytes, size) < 0:
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


cdef uint8_t *refuse(Writer *w, const char *what, PyObject *value) noexcept:
    if w.fault.code == k.KC_OK:
        w.fault.code, w.fault.what, w.fault.value = k.KC_CANNOT_ENCODE, what, shared(value)
    return NULL


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


cdef uint8_t *refuse_raised(Writer *w, const char *what, PyObject *value) noexcept:
    """Rejects a value that raised an exception."""
    return refuse(w, what, value) if pass_over(w) else NULL


cdef uint8_t *grow(Writer *w, const uint8_t *at, Py_ssize_t size) noexcept:
    cdef Py_ssize_t done = at - w.start
    cdef Py_ssize_t capacity = 2 * (w.end - w.start)
    if capacity - done < size:
        capacity = done + size
    if py._PyBytes_Resize(&w.bytes, capacity) < 0:    # sets w.bytes to NULL
        py.PyErr_Clear()
        w.fault.code = k.KC_NO_MEMORY
        return NULL
    w.start = <uint8_t *> py.PyBytes_AS_STRING(w.bytes)
    w.end = w.start + capacity
    return w.start + done


cdef inline bint room(Writer *w, uint8_t **at, Py_ssize_t size) noexcept:
    """Makes room for `size` bytes at the position, which changes if the output moves; returns whether there is memory."""
    if not py.kc_rarely(w.end - at[0] < size):
        return True
    at[0] = grow(w, at[0], size)
    return at[0] != NULL


cdef inline uint8_t *write_raw(Writer *w, uint8_t *at, const void *data, Py_ssize_t size) noexcept:
    if not room(w, &at, size):
        return NULL
    memcpy(at, data, size)
    return at + size


cdef inline uint8_t *write_uvarint(Writer *w, uint8_t *at, uint64_t value) noexcept:
    if not room(w, &at, LENGTH_BYTES):
        return NULL
    if value < 0x80:
        at[0] = <uint8_t> value
        return at + 1
    return at + k.kc_uvarint64_encode(at, value)


cdef uint8_t *write_struct(Writer *w, uint8_t *at, const Op *op, PyObject *made) noexcept:
    return write_planned(w, at, op.plan, made)


cdef inline uint8_t *write_planned(Writer *w, uint8_t *at, const Plan *plan, PyObject *made) noexcept:
    if py.kc_rarely(py.Py_TYPE(made) != plan.type):
        w.fault.expected = <PyObject *> plan.type
        return refuse(w, "an object of another class", made)
    shared(made)
    if plan.required_count and not keeps_defaults(w, plan, made):
        at = NULL
    else:
        at = write_fields(w, at, plan, made)
    if at != NULL:
        at = write_tags(w, at, plan, made) if plan.flexible else without_tags(w, at, made)
    py.Py_DECREF(made)
    return at


cdef bint keeps_defaults(Writer *w, const Plan *plan, PyObject *made) noexcept:
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


cdef inline uint8_t *write_fields(Writer *w, uint8_t *at, const Plan *plan, PyObject *made) noexcept:
    cdef const Op *op = plan.ops
    cdef const Op *end = plan.ops + plan.op_count
    cdef PyObject *value
    while op < end:
        if op.run:
            at = write_run(w, at, &op, made)
            if at == NULL or op == end:
                break
        value = py.kc_slot(made, op.offset)[0]
        if value == NULL:
            value = op.default if op.flags & F_LAZY else py.Py_None
        elif op.kind == STRUCT_ARRAY:
            value = list_at(w, py.kc_slot(made, op.offset))
        if value == NULL:
            at = NULL
        elif value == py.Py_None and op.null_size:
            at = write_nothing(w, at, op)
        elif py.Py_TYPE(value) == PART:    # records, written here since a Produce request consists of them
            if w.pieces == NULL or kc_as_part(value).size < PIECE_BYTES:
                at = write_any_bytes(w, at, op, value, kc_as_part(value).data, kc_as_part(value).size)
            else:
                value = list_at(w, py.kc_slot(made, op.offset))    # now a memoryview
                at = write_records(w, at, op, value) if value != NULL else NULL
        else:
            at = WRITERS[op.kind](w, at, op, value)
        if at == NULL:
            step(&w.fault, op.name, -1)
            break
        op += 1
    return at


cdef inline uint8_t *write_nothing(Writer *w, uint8_t *at, const Op *op) noexcept:
    """The length of null."""
    if not room(w, &at, 4):
        return NULL
    k.kc_store_u32(at, 0 if op.flags & F_COMPACT else 0xffffffff)
    return at + op.null_size


cdef inline PyObject *list_at(Writer *w, PyObject **slot) noexcept:
    """The list or the records in a slot, created now if there was no access yet; NULL if that fails."""
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


cdef inline uint8_t *write_run(Writer *w, uint8_t *at, const Op **first, PyObject *made) noexcept:
    """Writes consecutive integers up to the first that is not a short int or does not fit, at which `first` then is."""
    cdef const Op *op = first[0]
    cdef const Op *end = op + op.run
    cdef PyObject *value
    cdef int64_t number
    if not room(w, &at, op.run_bytes):
        return NULL
    while op < end:
        value = py.kc_slot(made, op.offset)[0]
        if value == NULL or not py.kc_short_int(value, &number):
            break
        if op.width < 4 and not INT64_MIN >> op.shift <= number <= INT64_MAX >> op.shift:    # short ints fit in all others
            break
        k.kc_store_u64(at, <uint64_t> number << op.shift)
        at += op.width
        op += 1
    first[0] = op
    return at


cdef uint8_t *write_nullable_struct(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    if not room(w, &at, 1):
        return NULL
    at[0] = 0xff if value == py.Py_None else 1
    return at + 1 if value == py.Py_None else write_struct(w, at + 1, op, value)


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


cdef uint8_t *write_bool(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    if value != py.Py_True and value != py.Py_False:
        return refuse(w, "expected a bool", value)
    if not room(w, &at, 1):
        return NULL
    at[0] = value == py.Py_True
    return at + 1


cdef uint8_t *write_integer(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    return write_number(w, at, op, value, INT64_MIN >> op.shift, INT64_MAX >> op.shift)


cdef uint8_t *write_unsigned(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    return write_number(w, at, op, value, 0, <int64_t> (UINT64_MAX >> op.shift))


cdef uint8_t *write_number(
    Writer *w, uint8_t *at, const Op *op, PyObject *value, int64_t low, int64_t high
) noexcept:
    cdef int64_t number = 0
    if not room(w, &at, 8) or not take_int(w, op, value, &number):
        return NULL
    if number < low or number > high:
        return refuse(w, WANTED[op.kind], value)
    k.kc_store_u64(at, <uint64_t> number << op.shift)
    return at + op.width


cdef inline bint take_int(Writer *w, const Op *op, PyObject *value, int64_t *number) noexcept:
    """The value of an int, or an object with __index__, except bools."""
    cdef int overflow = 0
    cdef PyObject *index
    if py.kc_short_int(value, number):
        return True
    if py.PyBool_Check(value) or not py.PyIndex_Check(value):
        refuse(w, WANTED[op.kind], value)
        return False
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


cdef uint8_t *write_float(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    cdef double real
    cdef uint64_t bits
    if not room(w, &at, 8):
        return NULL
    if not py.PyFloat_Check(value) and (not py.PyLong_Check(value) or py.PyBool_Check(value)):
        return refuse(w, "expected a float", value)
    real = py.PyFloat_AsDouble(value)
    if real == -1.0 and py.PyErr_Occurred() != NULL:
        return refuse_raised(w, "expected a float64", value)
    memcpy(&bits, &real, 8)
    k.kc_store_u64(at, bits)
    return at + 8


cdef uint8_t *write_uuid(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    cdef PyObject *number
    if not room(w, &at, 16):
        return NULL
    if not py.PyObject_TypeCheck(value, <PyTypeObject *> UUID_CLASS):
        return refuse(w, "expected a uuid.UUID", value)
    shared(value)
    number = py.kc_member(<PyObject *> UUID_INT, value)
    if number != NULL and py.kc_int_to_16_bytes(number, at) == 0:
        at += 16
    else:
        at = refuse_raised(w, "expected a uuid.UUID", value)
    py.Py_XDECREF(number)
    py.Py_DECREF(value)
    return at


cdef inline uint8_t *write_length(uint8_t *at, bint compact, bint wide, int64_t length) noexcept:
    """Writes a length or a count, -1 for null, as int32 (`wide`) or int16. The caller has checked range and room."""
    if compact and length < 0x7f:
        at[0] = <uint8_t> (length + 1)
        return at + 1
    if compact:
        return at + k.kc_uvarint64_encode(at, <uint64_t> (length + 1))
    if wide:
        k.kc_store_u32(at, <uint32_t> length)
        return at + 4
    k.kc_store_u16(at, <uint16_t> length)
    return at + 2


cdef uint8_t *write_null(Writer *w, uint8_t *at, const Op *op, bint wide) noexcept:
    if not op.flags & F_NULLABLE:
        return refuse(w, "null is not allowed in this version", py.Py_None)
    return write_length(at, op.flags & F_COMPACT, wide, -1) if room(w, &at, LENGTH_BYTES) else NULL


cdef uint8_t *write_string(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    cdef Py_ssize_t size = 0
    cdef const char *text = py.kc_ascii(value, &size)
    if text == NULL:
        if value == py.Py_None:
            return write_null(w, at, op, False)
        if not py.PyUnicode_Check(value):
            return refuse(w, "expected a str", value)
        text = py.PyUnicode_AsUTF8AndSize(value, &size)
    if text == NULL:
        return refuse_raised(w, "expected a str that UTF-8 can represent", value)
    if size > MAX_STRING_BYTES:
        return refuse(w, "expected a str of at most 32767 bytes", value)
    return write_sized(w, at, op, False, text, size)


cdef uint8_t *write_bytes(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    """Any contiguous buffer."""
    cdef py.Py_buffer buffer
    if py.Py_TYPE(value) == PART:
        return write_any_bytes(w, at, op, value, kc_as_part(value).data, kc_as_part(value).size)
    if py.PyBytes_CheckExact(value):
        return write_any_bytes(w, at, op, value, py.PyBytes_AS_STRING(value), py.Py_SIZE(value))
    if value == py.Py_None:
        return write_null(w, at, op, True)
    if has_objects(<object> value):
        return refuse(w, "expected bytes, not references to objects", value)
    shared(value)
    if py.PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0:
        at = refuse_raised(w, "expected bytes", value)
    else:
        at = write_any_bytes(w, at, op, value, buffer.buf, buffer.len)
        py.PyBuffer_Release(&buffer)
    py.Py_DECREF(value)
    return at


cdef uint8_t *write_records(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    """As write_bytes, but large records become a piece of their own, if pieces are wanted."""
    cdef Py_ssize_t size
    if w.pieces == NULL or value == py.Py_None or py.Py_TYPE(value) == PART:
        return write_bytes(w, at, op, value)
    try:
        records = <object> value
        if has_objects(records):
            return write_bytes(w, at, op, value)
        view = memoryview(records).cast("B")
        size = len(view)
        if size < PIECE_BYTES or size > INT32_MAX - 1:
            return write_bytes(w, at, op, value)
        if not room(w, &at, LENGTH_BYTES):
            return NULL
        at = write_length(at, op.flags & F_COMPACT, True, size)
        (<list> w.pieces).append((at - w.start, view))
        w.outside += size
        return at
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            return write_bytes(w, at, op, value)    # says what is wrong with it
        w.fault.code, w.fault.value = k.KC_NO_MEMORY, shared(<PyObject *> error)
        return NULL


cdef inline uint8_t *write_any_bytes(
    Writer *w, uint8_t *at, const Op *op, PyObject *value, const void *data, Py_ssize_t size
) noexcept:
    if size > INT32_MAX - 1:
        return refuse(w, "expected at most 2147483646 bytes", value)
    return write_sized(w, at, op, True, data, size)


cdef inline uint8_t *write_sized(
    Writer *w, uint8_t *at, const Op *op, bint wide, const void *data, Py_ssize_t size
) noexcept:
    if not room(w, &at, LENGTH_BYTES + size):
        return NULL
    at = write_length(at, op.flags & F_COMPACT, wide, size)
    if size:
        memcpy(at, data, size)
    return at + size


cdef uint8_t *write_int32_array(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    """The most frequent array. From the first item that is not a short int, items are written by write_items."""
    cdef Py_ssize_t i, count
    cdef int64_t number
    cdef PyObject **items
    at = write_count(w, at, op, value, 4, &count)
    if count <= 0:
        return at
    items = py.kc_items(value)
    for i in range(count):
        if not py.kc_short_int(items[i], &number):
            return write_items(w, at, op.element, value, i, count)
        k.kc_store_u32(at, <uint32_t> number)
        at += 4
    return at


cdef uint8_t *write_array(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    cdef Py_ssize_t count
    at = write_count(w, at, op, value, 0, &count)
    return write_items(w, at, op.element, value, 0, count) if count > 0 else at


cdef uint8_t *write_struct_array(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    """As write_array, which takes an eighth more time for an array of structs."""
    cdef Py_ssize_t i, count
    at = write_count(w, at, op, value, 0, &count)
    if count <= 0:
        return at
    shared(value)
    for i in range(count):
        if i < py.Py_SIZE(value):
            at = write_planned(w, at, op.plan, py.kc_items(value)[i])
        else:
            at = refuse_changed(w, value)
            break
        if at == NULL:
            step(&w.fault, NULL, i)
            break
    py.Py_DECREF(value)
    return at


cdef uint8_t *refuse_changed(Writer *w, PyObject *value) noexcept:
    return refuse(w, "the list changed while it was encoded", value)


cdef inline uint8_t *write_count(
    Writer *w, uint8_t *at, const Op *op, PyObject *value, Py_ssize_t item_bytes, Py_ssize_t *count
) noexcept:
    """Writes the number of items, and makes room for them; 0 of null, or if there is a fault."""
    count[0] = 0
    if value == py.Py_None:
        return write_null(w, at, op, not op.flags & F_COUNT16)
    if not py.PyList_Check(value) and not py.PyTuple_Check(value):
        return refuse(w, "expected a list", value)
    if py.Py_SIZE(value) > (INT16_MAX if op.flags & F_COUNT16 else INT32_MAX - 1):
        return refuse(w, "the list is too long", value)
    if not room(w, &at, LENGTH_BYTES + item_bytes * py.Py_SIZE(value)):
        return NULL
    count[0] = py.Py_SIZE(value)
    return write_length(at, op.flags & F_COMPACT, not op.flags & F_COUNT16, count[0])


cdef uint8_t *write_items(
    Writer *w, uint8_t *at, const Op *op, PyObject *value, Py_ssize_t first, Py_ssize_t count
) noexcept:
    """Writes the items of a list or tuple that had `count` items."""
    cdef Py_ssize_t i
    cdef Write write = WRITERS[op.kind]
    shared(value)
    for i in range(first, count):
        if i < py.Py_SIZE(value):
            at = write(w, at, op, py.kc_items(value)[i])
        else:
            at = refuse_changed(w, value)
            break
        if at == NULL:
            step(&w.fault, NULL, i)
            break
    py.Py_DECREF(value)
    return at


cdef inline uint8_t *without_tags(Writer *w, uint8_t *at, PyObject *made) noexcept:
    """As in Java, unknown tagged fields are not dropped silently in a version that cannot have them."""
    cdef PyObject *unknown = py.kc_slot(made, UNKNOWN)[0]
    if unknown == NULL or unknown == py.Py_None or not <object> unknown:
        return at
    return refuse_tags(w, "this version has no tagged fields, so unknown_tagged_fields must be empty", unknown)


cdef uint8_t *refuse_tags(Writer *w, const char *what, PyObject *unknown) noexcept:
    step(&w.fault, UNKNOWN_NAME, -1)
    return refuse(w, what, unknown)


cdef inline uint8_t *write_tags(Writer *w, uint8_t *at, const Plan *plan, PyObject *made) noexcept:
    """Writes tagged fields that differ from their defaults, and unknown ones, in the order of tags."""
    cdef uint64_t present = 0
    cdef PyObject *unknown = py.kc_slot(made, UNKNOWN)[0]
    cdef const Op *op = plan.tagged
    cdef const Op *end = plan.tagged + plan.tagged_count
    while op < end:
        if differs(w, op, py.kc_slot(made, op.offset)[0]):
            present |= <uint64_t> 1 << (op - plan.tagged)
        op += 1
    if w.fault.code != k.KC_OK:
        return NULL
    if unknown != NULL and unknown != py.Py_None:
        return write_mixed_tags(w, at, plan, made, present)
    if present:
        return write_known_tags(w, at, plan, made, present)
    return write_uvarint(w, at, 0)


cdef uint8_t *write_known_tags(
    Writer *w, uint8_t *at, const Plan *plan, PyObject *made, uint64_t present
) noexcept:
    cdef Py_ssize_t i
    cdef Py_ssize_t count = 0
    for i in range(plan.tagged_count):
        count += present >> i & 1
    at = write_uvarint(w, at, count)
    for i in range(plan.tagged_count):
        if at != NULL and present >> i & 1:
            at = write_tagged(w, at, &plan.tagged[i], made)
    return at


cdef uint8_t *write_mixed_tags(
    Writer *w, uint8_t *at, const Plan *plan, PyObject *made, uint64_t present
) noexcept:
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
        at = write_uvarint(w, at, len(order))
        for tag, i in order:
            if at != NULL and i >= 0:
                at = write_tagged(w, at, &plan.tagged[i], made)
            elif at != NULL:
                if has_objects(unknown[tag]):
                    return refuse_tags(w, fault, <PyObject *> unknown)
                at = write_unknown(w, at, tag, bytes(memoryview(unknown[tag])))
        return at
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            return refuse_tags(w, fault, <PyObject *> unknown)
        w.fault.code, w.fault.value = k.KC_NO_MEMORY, shared(<PyObject *> error)
        return NULL


cdef uint8_t *write_unknown(Writer *w, uint8_t *at, uint32_t tag, bytes data) noexcept:
    at = write_uvarint(w, at, tag)
    if at != NULL:
        at = write_uvarint(w, at, len(data))
    return write_raw(w, at, <const char *> data, len(data)) if at != NULL else NULL


cdef uint8_t *write_tagged(Writer *w, uint8_t *at, const Op *op, PyObject *made) noexcept:
    """Writes tag, size and value. The value is written after room for the maximum size, then moved: as one piece."""
    cdef PyObject *pieces = w.pieces
    cdef PyObject *value = py.kc_slot(made, op.offset)[0]
    cdef uint8_t *size_at
    cdef Py_ssize_t begin, size
    if value == NULL:
        value = py.Py_None
    elif op.kind == STRUCT_ARRAY:
        value = list_at(w, py.kc_slot(made, op.offset))
    at = write_uvarint(w, at, op.tag) if value != NULL else NULL
    if at != NULL and room(w, &at, SIZE_BYTES):
        begin = at - w.start
        w.pieces = NULL
        shared(value)
        at = write_tagged_value(w, at + SIZE_BYTES, op, value)
        py.Py_DECREF(value)
        w.pieces = pieces
    if at == NULL:
        step(&w.fault, op.name, -1)
        return NULL
    size_at = w.start + begin    # the output may have moved
    size = at - size_at - SIZE_BYTES
    at = size_at + k.kc_uvarint64_encode(size_at, size)
    memmove(at, size_at + SIZE_BYTES, size)
    return at + size


cdef uint8_t *write_tagged_value(Writer *w, uint8_t *at, const Op *op, PyObject *value) noexcept:
    if op.kind != NULLABLE_STRUCT:
        return WRITERS[op.kind](w, at, op, value)
    at = write_uvarint(w, at, value != py.Py_None)
    return at if at == NULL or value == py.Py_None else write_struct(w, at, op, value)
