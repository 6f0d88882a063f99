# A batch that grows record by record, and the final changes to a finished one. Keeps no reference to a value.
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_Clear
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkacodec._core cimport encode as k
from kafkacodec._core._buffer cimport has_objects
from kafkacodec._core._errors cimport exception_from

from collections.abc import Mapping

from kafkacodec.errors import EncodeError

cdef extern from "Python.h":
    Py_ssize_t PySequence_Fast_GET_SIZE(object)
    PyObject *PySequence_Fast_GET_ITEM(object, Py_ssize_t)      # borrowed
    const char *utf8_of "PyUnicode_AsUTF8AndSize"(object, Py_ssize_t *)

cdef enum:
    FEW_HEADERS = 16    # on the stack
    HEADER_BYTES = 61   # of a batch of magic 2


cdef bytes as_bytes(value, str what):
    """Key, value or part of a header as bytes; None stays None."""
    if value is None or type(value) is bytes:
        return value
    try:
        if isinstance(value, str):
            return (<str> value).encode()
        if has_objects(value):
            raise TypeError
        return bytes(memoryview(value).cast("B"))
    except (TypeError, ValueError, BufferError) as e:
        reason = f"str cannot be encoded as UTF-8: {e}" if isinstance(value, str) else (
            f"{type(value).__name__} is not bytes, str or None: pass a serializer")
        raise EncodeError(reason, path=what) from None


cdef inline bint is_cell(PyObject *value) noexcept:
    """Whether part of a header has its bytes, or its UTF-8, with it."""
    return PyBytes_CheckExact(<object> value) or PyUnicode_CheckExact(<object> value) or value == <PyObject *> None


cdef inline bint is_usual(PyObject *pair) noexcept:
    """Whether a header needs no conversion."""
    cdef PyObject *name
    if not PyTuple_CheckExact(<object> pair) or PyTuple_GET_SIZE(<object> pair) != 2:
        return False
    name = PyTuple_GET_ITEM(<object> pair, 0)
    return name != <PyObject *> None and is_cell(name) and is_cell(PyTuple_GET_ITEM(<object> pair, 1))


cdef object part_of(value):
    """Part of a header that needs no conversion."""
    return value if is_cell(<PyObject *> value) else as_bytes(value, "headers")


cdef tuple pair_of(pair):
    """A header as a pair."""
    try:
        if isinstance(pair, (str, bytes)):  # which may have two characters
            raise TypeError
        name, value = pair
    except (TypeError, ValueError):
        raise EncodeError("a header is not a pair of name and value", path="headers") from None
    if name is None:
        raise EncodeError("a header's name is null", path="headers")
    return part_of(name), part_of(value)


cdef object header_pairs(headers):
    """Headers as a list or tuple of pairs that need no conversion; None without headers."""
    cdef Py_ssize_t i
    cdef list found
    if type(headers) is tuple or type(headers) is list:
        for i in range(PySequence_Fast_GET_SIZE(headers)):
            if not is_usual(PySequence_Fast_GET_ITEM(headers, i)):
                break
        else:
            return headers if headers else None
    elif type(headers) is dict or isinstance(headers, Mapping):
        headers = headers.items()
    found = []
    try:
        pairs = iter(headers)
    except TypeError:
        raise EncodeError(f"headers must be pairs of name and value, not {type(headers).__name__}",
                          path="headers") from None
    for pair in pairs:
        found.append(pair if is_usual(<PyObject *> pair) else pair_of(pair))
    return found


cdef inline int fill_cell(k.kc_cell *cell, PyObject *value) except -1:
    """Point a cell to part of a header."""
    cdef Py_ssize_t size = -1
    if PyBytes_CheckExact(<object> value):
        cell.data, cell.size = <const uint8_t *> PyBytes_AS_STRING(<object> value), PyBytes_GET_SIZE(<object> value)
    elif value == <PyObject *> None:
        cell.data, cell.size = NULL, -1
    else:
        cell.data = <const uint8_t *> utf8_of(<object> value, &size)
        cell.size = size
        if cell.data == NULL:
            PyErr_Clear()
            as_bytes(<object> value, "headers")  # raises an error of this library
    return 0


cdef int fill_cells(k.kc_cell *cells, headers, Py_ssize_t count) except -1:
    """Point cells to the parts of headers. No Python code runs."""
    cdef Py_ssize_t i
    cdef PyObject *pair
    for i in range(count):
        pair = PySequence_Fast_GET_ITEM(headers, i)
        if not is_usual(pair):  # if it is the application's list
            raise EncodeError("another thread has changed the headers", path="headers")
        fill_cell(&cells[2 * i], PyTuple_GET_ITEM(<object> pair, 0))
        fill_cell(&cells[2 * i + 1], PyTuple_GET_ITEM(<object> pair, 1))
    return 0


cdef class BatchBuilder:
    def __init__(self, str allowed_by="max_request_size"):
        self.allowed_by = allowed_by

    def __dealloc__(self):
        k.kc_appender_free(&self.appender)

    cdef int64_t add(self, k.kc_new_record *record, headers, int64_t limit, int64_t most) except -1:
        """Append a record with headers, which it does not have yet. These are of `header_pairs`: so no Python code runs,
        and the record is whole or not there."""
        cdef k.kc_cell few[2 * FEW_HEADERS]
        cdef k.kc_cell *many
        cdef Py_ssize_t count = 0 if headers is None else PySequence_Fast_GET_SIZE(headers)
        record.num_headers, record.headers = count, few
        if count <= FEW_HEADERS:
            if count:
                fill_cells(few, headers, count)
            return self.add_cells(record, limit, most)
        many = <k.kc_cell *> k.kc_alloc(2 * <size_t> count * sizeof(k.kc_cell))
        if many == NULL:
            raise MemoryError("the headers of a record")
        try:
            record.headers = many
            fill_cells(many, headers, count)
            return self.add_cells(record, limit, most)
        finally:
            k.kc_free(many)

    cdef int64_t add_cells(self, const k.kc_new_record *record, int64_t limit, int64_t most) except -1:
        cdef k.kc_error error
        cdef int64_t added
        if k.kc_appender_add(&self.appender, record, limit, most, &added, &error):
            if error.code == k.KC_CANNOT_ENCODE:
                raise EncodeError(
                    f"{error.what.decode()}: it takes {error.got} bytes, {error.want} are allowed by {self.allowed_by}"
                )
            raise exception_from(&error)
        return added

    def close(self, int codec=0, compress=None):
        cdef Py_buffer view
        cdef uint8_t *start = self.appender.batch.data
        cdef Py_ssize_t size = self.appender.batch.size - HEADER_BYTES
        if not self.appender.open.count:
            raise ValueError("the batch has no records")
        if compress is None:
            return self.closed(0, start + HEADER_BYTES, size)
        compressed = compress(PyMemoryView_FromMemory(<char *> start + HEADER_BYTES, size, PyBUF_READ))
        PyObject_GetBuffer(compressed, &view, PyBUF_SIMPLE)
        try:
            return self.closed(codec, <const uint8_t *> view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    cdef closed(self, int codec, const uint8_t *records, Py_ssize_t size):
        if size > 0x7fffffff - HEADER_BYTES:
            raise EncodeError(f"a batch of {size} compressed bytes exceeds the maximum batch size")
        batch = PyByteArray_FromStringAndSize(NULL, HEADER_BYTES + size)
        cdef uint8_t *out = <uint8_t *> PyByteArray_AS_STRING(batch)
        memcpy(out + HEADER_BYTES, records, size)
        k.kc_appender_close(&self.appender, codec, out + HEADER_BYTES, size, out)
        k.kc_appender_free(&self.appender)
        return batch


def set_producer(batch, int64_t producer_id, int epoch, int32_t sequence, bint transactional):
    cdef Py_buffer view
    cdef k.kc_producer producer
    cdef k.kc_error error
    cdef int code
    producer.id = producer_id
    producer.epoch = <short> epoch
    producer.base_sequence = sequence
    producer.transactional = transactional
    PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
    try:
        with nogil:
            code = k.kc_batch_set_producer(<uint8_t *> view.buf, view.len, &producer, &error)
        if code:
            raise exception_from(&error)
    finally:
        PyBuffer_Release(&view)
