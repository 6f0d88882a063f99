# A batch that grows record by record, and the final changes to a finished one. Keeps no reference to a value.
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkacodec._core cimport encode as k
from kafkacodec._core._buffer cimport has_objects
from kafkacodec._core._errors cimport exception_from

from collections.abc import Mapping

from kafkacodec.errors import EncodeError

cdef enum:
    FEW_CELLS = 32      # of headers on the stack
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


cdef inline object cell(value):
    """Part of a header as bytes, None, or text that has its UTF-8 with it."""
    if type(value) is str:
        try:
            PyUnicode_AsUTF8AndSize(value, NULL)
            return value
        except UnicodeEncodeError:
            pass  # raised again, as an error of this library
    return as_bytes(value, "headers")


cdef tuple pair_of(pair):
    """A header as a pair."""
    try:
        if isinstance(pair, (str, bytes)):  # which may have two characters
            raise TypeError
        name, value = pair
    except (TypeError, ValueError):
        raise EncodeError("a header is not a pair of name and value", path="headers") from None
    return name, value


cdef list header_cells(headers):
    """Names and values of headers, alternating, as `cell` returns them; None without headers."""
    cdef list found
    cdef tuple own
    if type(headers) is tuple or type(headers) is list:
        if not headers:
            return None
    elif type(headers) is dict or isinstance(headers, Mapping):
        headers = headers.items()
    found = []
    try:
        pairs = iter(headers)
    except TypeError:
        raise EncodeError(f"headers must be pairs of name and value, not {type(headers).__name__}",
                          path="headers") from None
    for pair in pairs:
        own = <tuple> pair if type(pair) is tuple and len(<tuple> pair) == 2 else pair_of(pair)
        if own[0] is None:
            raise EncodeError("a header's name is null", path="headers")
        found.append(cell(own[0]))
        found.append(cell(own[1]))
    return found


cdef inline int fill_cell(k.kc_cell *cell, value) except -1:
    """Point a cell to what `header_cells` has returned."""
    cdef Py_ssize_t size
    if type(value) is str:
        cell.data = <const uint8_t *> PyUnicode_AsUTF8AndSize(value, &size)
        cell.size = size
    else:
        fill(cell, <bytes> value)
    return 0


cdef class BatchBuilder:
    def __init__(self, str allowed_by="max_request_size"):
        self.allowed_by = allowed_by

    def __dealloc__(self):
        k.kc_appender_free(&self.appender)

    cdef int64_t add(self, k.kc_new_record *record, list headers, int64_t limit, int64_t most) except -1:
        """Append a record with headers, which it does not have yet. These are of `header_cells`: so no Python code runs, and
        the record is whole or not there."""
        cdef k.kc_cell few[FEW_CELLS]
        cdef k.kc_cell *cells = few
        cdef Py_ssize_t i, count = 0 if headers is None else len(headers)
        record.num_headers = count // 2
        if count > FEW_CELLS:
            cells = <k.kc_cell *> k.kc_alloc(count * sizeof(k.kc_cell))
            if cells == NULL:
                raise MemoryError("the headers of a record")
        try:
            record.headers = cells
            for i in range(count):
                fill_cell(&cells[i], headers[i])
            return self.add_cells(record, limit, most)
        finally:
            if cells != few:
                k.kc_free(cells)

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
