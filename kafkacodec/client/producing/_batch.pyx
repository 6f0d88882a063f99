# A batch that grows record by record, and the final changes to a finished one. Keeps no reference to a value.
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkacodec._core cimport encode as k
from kafkacodec._core._errors cimport exception_from

from kafkacodec.errors import EncodeError

cdef enum:
    FEW_CELLS = 32      # of headers on the stack
    HEADER_BYTES = 61   # of a batch of magic 2


cdef bytes as_bytes(value, str what):
    """Convert a key or value that is not bytes to bytes; None stays None."""
    if value is None or type(value) is bytes:
        return value
    try:
        return value.encode() if isinstance(value, str) else bytes(memoryview(value).cast("B"))
    except (TypeError, ValueError, BufferError) as e:
        reason = f"str cannot be encoded as UTF-8: {e}" if isinstance(value, str) else (
            f"{type(value).__name__} is not bytes, str or None: pass a serializer")
        raise EncodeError(reason, path=what) from None


cdef inline void fill(k.kc_cell *cell, bytes value) noexcept:
    if value is None:
        cell.data = NULL
        cell.size = -1
    else:
        cell.data = <const uint8_t *> PyBytes_AS_STRING(value)
        cell.size = PyBytes_GET_SIZE(value)


cdef list header_cells(headers):
    """Names and values of headers, alternating, as bytes."""
    found = []
    try:
        pairs = iter(headers.items() if isinstance(headers, dict) else headers)
    except TypeError:
        raise EncodeError(f"headers must be pairs of name and value, not {type(headers).__name__}",
                          path="headers") from None
    for pair in pairs:
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise EncodeError("a header is not a pair of name and value", path="headers") from None
        if name is None:
            raise EncodeError("a header's name is null", path="headers")
        found += [as_bytes(name, "headers"), as_bytes(value, "headers")]
    return found


cdef class BatchBuilder:
    cdef k.kc_appender appender
    cdef str allowed_by

    def __init__(self, str allowed_by="max_request_size"):
        self.allowed_by = allowed_by

    def __dealloc__(self):
        k.kc_appender_free(&self.appender)

    @property
    def count(self):
        return self.appender.open.count

    @property
    def size(self):
        return self.appender.open.size

    def append(self, key, value, headers, int64_t timestamp, int64_t limit, int64_t most):
        cdef k.kc_cell few[FEW_CELLS]
        cdef k.kc_cell *cells = few
        cdef k.kc_new_record record
        cdef bytes own_key = as_bytes(key, "key"), own_value = as_bytes(value, "value")
        cdef list own_headers = header_cells(headers) if headers else []
        fill(&record.key, own_key)
        fill(&record.value, own_value)
        record.timestamp = timestamp
        record.num_headers = len(own_headers) // 2
        if len(own_headers) > FEW_CELLS:
            cells = <k.kc_cell *> k.kc_alloc(len(own_headers) * sizeof(k.kc_cell))
            if cells == NULL:
                raise MemoryError("the headers of a record")
        try:
            record.headers = cells
            for i, item in enumerate(own_headers):
                fill(&cells[i], item)
            return self.add(&record, limit, most)
        finally:
            if cells != few:
                k.kc_free(cells)

    cdef int64_t add(self, const k.kc_new_record *record, int64_t limit, int64_t most) except -1:
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


def partition_of(key, int32_t partitions):
    cdef bytes own = as_bytes(key, "key")
    if own is None or partitions < 1:
        raise ValueError("a key and a number of partitions are needed")
    return k.kc_murmur2_partition(<const uint8_t *> PyBytes_AS_STRING(own), PyBytes_GET_SIZE(own), partitions)
