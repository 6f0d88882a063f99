# Columns and Python records into record batches: holds the memory, calls the kernels without the GIL.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memmove

from kafkacodec cimport _kernel as k
from kafkacodec._arrow_import cimport ImportedArray
from kafkacodec._errors cimport exception_from
from kafkacodec._value_columns cimport ByteColumn, IntColumn

from kafkacodec.errors import EncodeError

cdef extern from "Python.h":
    # Bytes that are still being made: the declarations of cpython.bytes take finished ones.
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **object, Py_ssize_t size) except -1
    char *bytes_data "PyBytes_AS_STRING"(PyObject *object) nogil
    Py_ssize_t bytes_size "PyBytes_GET_SIZE"(PyObject *object) nogil


cdef object fault(const k.kc_error *error, str column, bint located):
    """The exception for `error`, with the column and, where one row is at fault, the row as its path."""
    if error.code != k.KC_CANNOT_ENCODE:
        return exception_from(error)
    what = error.what.decode()
    reason = what if error.got == 0 and error.want == 0 else f"{what}: got {error.got}, limit {error.want}"
    path = f"records[{error.position}]" if located else "records"
    return EncodeError(reason, path=f"{path}.{column}" if column else path)


cdef class RecordChunk:
    """Rows that the kernels can read: imported columns, or ones made from Python records."""
    cdef k.kc_record_chunk columns

    def __len__(self):
        return self.columns.rows


cdef class ArrowChunk(RecordChunk):
    cdef ImportedArray array

    def __init__(self, ImportedArray array not None):
        cdef k.kc_error error
        cdef const char *column = NULL
        self.array = array
        if k.kc_record_chunk_import(&self.columns, &array.owner.schema, &array.array, &column, &error):
            raise fault(&error, column.decode() if column != NULL else None, False)


cdef class ListChunk(RecordChunk):
    """Columns made from Python records, one pass, no object kept."""
    cdef ByteColumn key, value, header_key, header_value
    cdef IntColumn offset, timestamp, header_bounds

    def __init__(self):
        self.key, self.value = ByteColumn(), ByteColumn()
        self.header_key, self.header_value = ByteColumn(), ByteColumn()
        self.offset, self.timestamp, self.header_bounds = IntColumn(), IntColumn(), IntColumn()
        self.header_bounds.append(0, 0)

    def append_record(self, offset, timestamp, key, value, headers):
        if offset is not None:
            self.offset.append(offset, 0)
        self.timestamp.append(timestamp, -1)
        try:
            pairs = iter(headers or ())
        except TypeError:
            raise EncodeError(f"headers are pairs of key and value, not {type(headers).__name__}") from None
        for pair in pairs:
            try:
                name, content = pair
            except (TypeError, ValueError):
                raise EncodeError("a header is no pair of key and value") from None
            if name is None:
                raise EncodeError("a header's key is null")
            self.header_key.append(name)
            self.header_value.append(content)
        self.header_bounds.append(self.header_key.rows, 0)
        self.key.append(key)
        self.value.append(value)
        self.columns.rows += 1

    def finish(self):
        """Let the kernels see the rows. None may be added afterwards."""
        cdef k.kc_pairs_column *headers = &self.columns.headers
        self.key.describe(&self.columns.key)
        self.value.describe(&self.columns.value)
        self.offset.describe(&self.columns.offset)
        self.timestamp.describe(&self.columns.timestamp)
        if self.header_key.rows:
            headers.layout = k.KC_LAYOUT_OFFSETS64
            headers.length = self.columns.rows
            headers.index = self.header_bounds.values.data
            headers.items = self.header_key.rows
            self.header_key.describe(&headers.key)
            self.header_value.describe(&headers.value)
        return self


cdef class BatchEncoder:
    """Spreads chunks over batches and writes those that are complete."""
    cdef k.kc_plan plan
    cdef list chunks
    cdef k.kc_buffer pointers
    cdef int64_t first_chunk, rows
    cdef size_t taken, header_bytes
    cdef bytearray scratch

    def __cinit__(self, *, int magic, bint drop_unsupported, int64_t base_offset, int64_t batch_bytes,
                  int64_t producer_id, int producer_epoch, int base_sequence, int leader_epoch, int attributes):
        cdef k.kc_batch_options options
        options.magic = <signed char> magic
        options.drop_unsupported = drop_unsupported
        options.base_offset = base_offset
        options.batch_bytes = batch_bytes
        options.producer_id = producer_id
        options.producer_epoch = <short> producer_epoch
        options.base_sequence = base_sequence
        options.leader_epoch = leader_epoch
        options.attributes = <short> attributes
        self.header_bytes = k.kc_batch_header_bytes(&options)
        k.kc_plan_begin(&self.plan, &options)
        self.chunks = []
        self.scratch = bytearray()

    def __dealloc__(self):
        k.kc_plan_free(&self.plan)
        k.kc_buffer_free(&self.pointers)

    @property
    def ready(self):
        return k.kc_plan_batches(&self.plan) - self.taken

    def add(self, RecordChunk chunk not None):
        cdef k.kc_error error
        cdef int code
        cdef int64_t number = self.first_chunk + len(self.chunks)
        if k.kc_buffer_reserve(&self.pointers, sizeof(void *), &error):
            raise exception_from(&error)
        (<k.kc_record_chunk **> self.pointers.data)[len(self.chunks)] = &chunk.columns
        self.pointers.size += sizeof(void *)
        self.chunks.append(chunk)
        with nogil:
            code = k.kc_plan_add(&self.plan, &chunk.columns, number, &error)
        if code:
            error.position += self.rows
            raise fault(&error, None, True)
        self.rows += chunk.columns.rows

    def finish(self):
        cdef k.kc_error error
        if k.kc_plan_finish(&self.plan, &error):
            raise exception_from(&error)

    cdef const k.kc_batch_plan *next_batch(self) except NULL:
        if self.taken >= k.kc_plan_batches(&self.plan):
            raise IndexError("no batch is complete")
        self.taken += 1
        return k.kc_plan_batch(&self.plan, self.taken - 1)

    cdef int write_records(self, const k.kc_batch_plan *batch, uint8_t *out, size_t capacity, size_t *size,
                           k.kc_error *error) noexcept nogil:
        cdef int64_t skipped = batch.chunk - self.first_chunk
        cdef int64_t held = <int64_t> (self.pointers.size // sizeof(void *))
        return k.kc_batch_write_records(batch, &self.plan.options, (<const k.kc_record_chunk **> self.pointers.data) + skipped,
                                        held - skipped, out, capacity, size, error)

    cdef int write_batch(self, const k.kc_batch_plan *batch, uint8_t *out, k.kc_error *error) noexcept nogil:
        cdef size_t size
        cdef uint8_t *records = out + self.header_bytes
        error.code = k.KC_OK
        if self.write_records(batch, records, <size_t> batch.size - self.header_bytes, &size, error):
            return error.code
        k.kc_batch_write_header(batch, &self.plan.options, records, size, out)
        return k.KC_OK

    def write_all(self, compress=None):
        """Every complete batch."""
        result = self.write_all_compressed(compress) if compress is not None else self.write_all_plain()
        self.forget()
        return result

    cdef bytes write_all_plain(self):
        cdef k.kc_error error
        cdef int code = 0
        cdef const k.kc_batch_plan *batch
        cdef size_t batches = k.kc_plan_batches(&self.plan)
        result = PyBytes_FromStringAndSize(NULL, self.plan.closed_bytes)
        cdef uint8_t *out = <uint8_t *> PyBytes_AS_STRING(result)
        with nogil:
            k.kc_advise_huge(out, <size_t> self.plan.closed_bytes)
            while self.taken < batches and not code:
                batch = k.kc_plan_batch(&self.plan, self.taken)
                code = self.write_batch(batch, out, &error)
                out += batch.size
                self.taken += 1
        if code:
            raise fault(&error, None, False)
        return result

    cdef bytes write_all_compressed(self, compress):
        """Into memory for the uncompressed size, of which the system gives only what is used."""
        cdef PyObject *result = new_bytes(NULL, self.plan.closed_bytes)
        cdef Py_ssize_t used = 0
        try:
            while self.ready:
                used = self.add_compressed(&result, used, compress, self.next_batch())
            _PyBytes_Resize(&result, used)
            return <bytes> result
        finally:
            Py_XDECREF(result)

    cdef Py_ssize_t add_compressed(self, PyObject **into, Py_ssize_t at, compress,
                                   const k.kc_batch_plan *batch) except -1:
        """Write one batch at a place in the bytes, which grow where they must; the place behind it."""
        cdef Py_buffer view
        cdef uint8_t *out
        cdef Py_ssize_t header = self.header_bytes
        PyObject_GetBuffer(self.compressed(batch, compress), &view, PyBUF_SIMPLE)
        try:
            if view.len > 0x7fffffff - header:
                raise EncodeError(f"a batch of {view.len} compressed bytes is larger than a batch may be")
            if bytes_size(into[0]) - at < header + view.len:
                _PyBytes_Resize(into, at + at // 2 + header + view.len)
            out = <uint8_t *> bytes_data(into[0]) + at
            memcpy(out + header, view.buf, view.len)
            k.kc_batch_write_header(batch, &self.plan.options, out + header, view.len, out)
            return at + header + view.len
        finally:
            PyBuffer_Release(&view)

    cdef object compressed(self, const k.kc_batch_plan *batch, compress):
        cdef k.kc_error error
        cdef int code
        cdef size_t size
        cdef size_t capacity = <size_t> batch.size - self.header_bytes
        if <size_t> len(self.scratch) < capacity:
            self.scratch = bytearray(2 * capacity)
        cdef uint8_t *room = <uint8_t *> PyByteArray_AS_STRING(self.scratch)
        error.code = k.KC_OK
        with nogil:
            code = self.write_records(batch, room, capacity, &size, &error)
        if code:
            raise fault(&error, None, False)
        return compress(memoryview(self.scratch)[:size])

    def write_next(self, compress=None):
        """The next complete batch and what an index needs of it."""
        cdef k.kc_error error
        cdef int code
        cdef const k.kc_batch_plan *batch = self.next_batch()
        cdef PyObject *result = new_bytes(NULL, batch.size)
        cdef uint8_t *out = <uint8_t *> bytes_data(result)
        try:
            if compress is not None:
                _PyBytes_Resize(&result, self.add_compressed(&result, 0, compress, batch))
            else:
                with nogil:
                    code = self.write_batch(batch, out, &error)
                if code:
                    raise fault(&error, None, False)
            return <bytes> result, batch.base_offset, batch.last_offset, batch.max_timestamp, batch.count
        finally:
            Py_XDECREF(result)

    def forget(self):
        """Let go of the chunks whose rows are all in batches that were written."""
        cdef int64_t needed = self.first_chunk + len(self.chunks)
        cdef int64_t gone
        if self.taken < k.kc_plan_batches(&self.plan):
            needed = k.kc_plan_batch(&self.plan, self.taken).chunk
        else:
            k.kc_plan_clear(&self.plan)
            self.taken = 0
            if self.plan.open.count:
                needed = self.plan.open.chunk
        gone = needed - self.first_chunk
        if gone:
            del self.chunks[:gone]
            self.pointers.size -= gone * sizeof(void *)
            memmove(self.pointers.data, self.pointers.data + gone * sizeof(void *), self.pointers.size)
            self.first_chunk = needed
