# Encoding of columns and Python records as record batches: owns the memory, calls the kernels without the GIL.
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_FromObject
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from kafkacodec._core cimport encode as k
from kafkacodec.arrow._single_column cimport SingleColumn, new_single_column
from kafkacodec._core._buffer cimport Block, new_block
from kafkacodec._core._errors cimport exception_from
from kafkacodec.records._compression cimport Lz4Frames
from kafkacodec.records._record_chunks cimport ArrowChunk, RecordChunk, fault

from kafkacodec.errors import EncodeError

# Limit on the memory reserved for a chunk before its rows are checked.
cdef size_t FIRST_GUESS_BYTES = 256 << 20

cdef extern from *:
    """
    /* Shortens a bytes object to which there are no other references. */
    static inline void kc_end_bytes(PyObject *bytes, Py_ssize_t size) {
        Py_SET_SIZE((PyVarObject *)bytes, size);
        PyBytes_AS_STRING(bytes)[size] = 0;
    }
    """
    void kc_end_bytes(PyObject *bytes, Py_ssize_t size) noexcept


cdef extern from "base/kc_copy.h":
    enum: KC_COPY_SLACK


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    # For unfinished bytes objects; the declarations of cpython.bytes require finished ones.
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **object, Py_ssize_t size) except -1
    char *bytes_data "PyBytes_AS_STRING"(PyObject *object) nogil
    Py_ssize_t bytes_size "PyBytes_GET_SIZE"(PyObject *object) nogil


cdef class GrowingBytes:
    """A bytes object that is written from front to back and gets its final size at the end.

    The operating system provides memory when it is first written, so unused room costs nothing.
    """
    cdef PyObject *object
    cdef Py_ssize_t used
    cdef Py_ssize_t limit

    def __cinit__(self, Py_ssize_t limit=PY_SSIZE_T_MAX):
        self.limit = limit

    def __dealloc__(self):
        Py_XDECREF(self.object)

    cdef k.kc_room room(self) noexcept:
        cdef k.kc_room room
        room.at = <uint8_t *> bytes_data(self.object) + self.used
        room.end = <uint8_t *> bytes_data(self.object) + bytes_size(self.object)
        return room

    cdef int reserve(self, Py_ssize_t size) except -1:
        """Make room for `size` more bytes."""
        cdef Py_ssize_t capacity = 0 if self.object == NULL else bytes_size(self.object)
        if self.object != NULL and capacity - self.used >= size:
            return 0
        if size > self.limit - self.used:
            raise EncodeError("the record sets would exceed max_total_bytes")
        capacity = min(max(self.used + size, capacity + capacity // 2), self.limit)
        if self.object == NULL:
            self.object = new_bytes(NULL, capacity)
        else:
            _PyBytes_Resize(&self.object, capacity)
        k.kc_advise_huge(bytes_data(self.object) + self.used, capacity - self.used)
        return 0

    cdef bytes finish(self):
        """The bytes written. Unused room is released only if it is large: an allocator keeps a freed block of the size
        that the next call requests, which then does not need new memory from the system.
        """
        if self.object == NULL:
            return b""
        if bytes_size(self.object) - self.used > bytes_size(self.object) // 8:
            _PyBytes_Resize(&self.object, self.used)
        else:
            kc_end_bytes(self.object, self.used)
        return <bytes> self.object

    cdef bytes take(self):
        """The bytes written; then there are none."""
        done = self.finish()
        Py_XDECREF(self.object)
        self.object = NULL
        self.used = 0
        return done


cdef class BatchEncoder:
    """Divides the rows of chunks into batches, in one pass. A chunk is not needed after its rows are written."""
    cdef k.kc_encoder encoder
    cdef k.kc_buffer batch     # the open batch, if batches are returned one by one and compressed or writable
    cdef GrowingBytes plain    # the open batch, if they are returned as they are written
    cdef bint in_plain         # whether the open batch is there
    cdef Py_ssize_t guess      # the bytes that it is expected to need
    cdef size_t given          # the capacity of the last batch that was given away with its memory
    cdef size_t header_bytes
    cdef int64_t rows          # number of rows in the previous chunks
    cdef bint working
    cdef public bint writable
    cdef readonly size_t plain_bytes

    def __cinit__(self, *, int magic, bint drop_unsupported, int64_t base_offset, int64_t batch_bytes,
                  int64_t producer_id, int producer_epoch, int base_sequence, int leader_epoch, int attributes,
                  int64_t first_offset=-1, int64_t last_offset=-1, int64_t default_timestamp=-1):
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
        options.has_time = default_timestamp != -1
        options.time = default_timestamp
        options.has_range = first_offset >= 0
        options.first_offset = first_offset
        options.last_offset = last_offset
        self.header_bytes = k.kc_batch_header_bytes(&options)
        self.plain = GrowingBytes()
        self.guess = self.header_bytes + KC_COPY_SLACK
        k.kc_encoder_begin(&self.encoder, &options)

    def __dealloc__(self):
        k.kc_buffer_free(&self.batch)

    cdef int begin(self) except -1:
        """Allows one caller at a time: excludes other threads, and calls from `compress` or the chunks."""
        if self.working:
            raise RuntimeError("the encoder is already in use")
        self.working = True
        return 0

    def encode(self, chunks, compress=None):
        self.begin()
        try:
            return self.encode_all(chunks, compress)
        finally:
            self.working = False

    def encode_again(self, chunks, compress=None):
        self.begin()
        try:
            k.kc_encoder_restart(&self.encoder, 0)
            self.rows = 0
            return self.encode_all(chunks, compress)
        finally:
            self.working = False

    cdef bytes encode_all(self, chunks, compress):
        cdef GrowingBytes out = GrowingBytes()
        cdef RecordChunk chunk
        for chunk in chunks:
            if chunk is None:
                raise TypeError("expected a chunk of rows, not None")
            out.reserve(min(k.kc_input_chunk_bytes(&chunk.columns), FIRST_GUESS_BYTES))
            self.put_rows(chunk, out, compress)
        self.put_last(out, compress)
        return out.finish()

    def encode_rows(self, chunks, compress=None, int64_t num_rows=-1, int64_t max_total_bytes=PY_SSIZE_T_MAX):
        self.begin()
        try:
            return self.encode_all_rows(chunks, compress, num_rows, max_total_bytes)
        finally:
            self.working = False

    cdef SingleColumn encode_all_rows(self, chunks, compress, int64_t num_rows, int64_t max_total_bytes):
        cdef GrowingBytes out = GrowingBytes(max_total_bytes)
        cdef SingleColumn column = new_single_column("Z", 0, 1)    # large_binary
        cdef RecordChunk part = RecordChunk()
        cdef k.kc_row_runs runs
        cdef k.kc_error error
        cdef ArrowChunk chunk
        cdef int64_t at, end
        cdef Py_ssize_t guess
        k.kc_row_runs_begin(&runs)
        for chunk in chunks:
            if chunk is None:
                raise TypeError("expected a chunk of rows, not None")
            if chunk.array is None:
                raise TypeError("expected a chunk of an Arrow array")
            if k.kc_row_runs_open(&runs, &chunk.array.owner.schema, &chunk.array.array, &error):
                raise fault(&error, "row", False)
            guess = min(k.kc_input_chunk_bytes(&chunk.columns), FIRST_GUESS_BYTES)
            out.reserve(min(guess, out.limit - out.used))
            part.columns = chunk.columns    # `part` ends with the current run
            at = end = 0
            while True:
                before = runs.row
                if k.kc_row_runs_next(&runs, &end, &error):
                    error.position += self.rows
                    raise fault(&error, "row", True)
                if end == at:
                    break
                if runs.row != before:
                    if 0 <= num_rows <= runs.row:
                        reason = f"row {runs.row} is not below num_rows ({num_rows})"
                        raise EncodeError(reason, path=f"records[{self.rows + at}].row")
                    self.put_last(out, compress)
                    self.end_blobs(column, out, runs.row)
                    k.kc_encoder_restart(&self.encoder, at)
                part.columns.rows = end
                self.put_rows(part, out, compress)
                self.rows -= end    # the chunk is not at its end
                at = end
            self.rows += chunk.columns.rows
        self.put_last(out, compress)
        self.end_blobs(column, out, runs.row + 1 if num_rows < 0 else num_rows)
        data = out.finish()
        column.sources = data
        column.set_data(0, PyBytes_AS_STRING(data))
        column.finish(1)
        return column

    cdef int end_blobs(self, SingleColumn column, GrowingBytes out, int64_t rows) except -1:
        """Extend the column to `rows` rows: the current one, then empty ones."""
        cdef k.kc_error error
        cdef size_t size
        if rows - column.length > (out.limit - out.used) // <Py_ssize_t> sizeof(int64_t) - 1:
            raise EncodeError(f"{rows} rows would exceed max_total_bytes")
        size = (rows + 1) * sizeof(int64_t) - column.values.size
        if k.kc_buffer_reserve(&column.values, size, &error):
            raise exception_from(&error)
        if column.values.size == 0:
            (<int64_t *> column.values.data)[0] = 0
        for row in range(column.length, rows):
            (<int64_t *> column.values.data)[row + 1] = out.used
        column.values.size += size
        column.length = rows
        out.limit -= size
        return 0

    cdef int put_rows(self, RecordChunk chunk, GrowingBytes out, compress) except -1:
        """Write all rows of the chunk; a batch may stay open."""
        if compress is None:
            return self.write_rows(chunk, out)
        while self.fill_batch(chunk):
            self.put_compressed(out, compress)
        return 0

    cdef int put_last(self, GrowingBytes out, compress) except -1:
        """Write the open batch, if there is one."""
        cdef k.kc_room room
        self.end_range()
        if self.has_no_records():
            return self.put_empty(out, -1)
        if not self.encoder.open.count:
            return 0
        if compress is not None:
            return self.put_compressed(out, compress)
        room = out.room()
        k.kc_encoder_close_in_place(&self.encoder, &room)
        return 0

    cdef bint has_no_records(self) noexcept:
        """After the last row: whether there is a range of offsets, but no record in it."""
        return self.encoder.options.has_range and not self.encoder.started

    cdef int end_range(self) except -1:
        cdef k.kc_error error
        if k.kc_encoder_end(&self.encoder, &error):
            raise fault(&error, None, False)
        return 0

    cdef int put_empty(self, GrowingBytes out, int64_t max_timestamp) except -1:
        cdef k.kc_room room
        out.reserve(self.header_bytes)
        room = out.room()
        k.kc_batch_write_empty(&self.encoder.options, max_timestamp, room.at)
        out.used += self.header_bytes
        return 0

    def empty_batch(self, int64_t max_timestamp):
        cdef GrowingBytes out = GrowingBytes()
        self.put_empty(out, max_timestamp)
        return out.finish()

    def next_batch(self, RecordChunk chunk not None, compress=None):
        self.begin()
        try:
            if self.is_plain(compress):
                return self.take_plain() if self.fill_plain(chunk) else None
            return self.take_batch(compress) if self.fill_batch(chunk) else None
        finally:
            self.working = False

    def last_batch(self, compress=None):
        self.begin()
        try:
            self.end_range()
            if self.has_no_records():
                return self.empty_batch(-1), self.encoder.options.first_offset, self.encoder.options.last_offset, -1, 0
            if not self.encoder.open.count:
                return None
            return self.take_plain() if self.is_plain(compress) else self.take_batch(compress)
        finally:
            self.working = False

    cdef int write_rows(self, RecordChunk chunk, GrowingBytes out) except -1:
        """Write all rows of the chunk, uncompressed."""
        cdef k.kc_error error
        cdef k.kc_encode_event event
        cdef k.kc_room room
        while True:
            room = out.room()
            with nogil:
                event = k.kc_encoder_run(&self.encoder, &chunk.columns, &room, &error)
            out.used = room.at - <uint8_t *> bytes_data(out.object)
            if event != k.KC_ENCODE_NO_ROOM:
                break
            out.reserve(self.encoder.wanted)
        self.end_rows(chunk, event, &error)
        return 0

    cdef bint fill_batch(self, RecordChunk chunk) except -1:
        """Write rows of the chunk to `self.batch` until it is complete; returns False if the chunk ends first."""
        cdef k.kc_error error
        cdef k.kc_encode_event event
        cdef k.kc_room room
        if not self.encoder.open.count:
            self.in_plain = False
            self.batch.size = 0
            if self.batch.data == NULL and self.given and k.kc_buffer_reserve(&self.batch, self.given, &error):
                raise exception_from(&error)
        while True:
            room.at, room.end = self.batch.data + self.batch.size, self.batch.data + self.batch.capacity
            with nogil:
                event = k.kc_encoder_fill(&self.encoder, &chunk.columns, &room, &error)
            self.batch.size = room.at - self.batch.data
            if event != k.KC_ENCODE_NO_ROOM:
                break
            if k.kc_buffer_reserve(&self.batch, self.encoder.wanted, &error):
                raise exception_from(&error)
        if event == k.KC_ENCODE_BATCH:
            return True
        self.end_rows(chunk, event, &error)
        return False

    cdef bint is_plain(self, compress) noexcept:
        """Whether the open batch, or the next one, is in `self.plain`."""
        return self.in_plain if self.encoder.open.count else compress is None and not self.writable

    cdef bint fill_plain(self, RecordChunk chunk) except -1:
        """The same with `self.plain`: a batch that is neither compressed nor writable is not copied."""
        cdef k.kc_error error
        cdef k.kc_encode_event event
        cdef k.kc_room room
        cdef GrowingBytes plain = self.plain
        if not self.encoder.open.count:
            self.in_plain = True
            plain.used = 0
            plain.reserve(self.guess)
        while True:
            room = plain.room()
            with nogil:
                event = k.kc_encoder_fill(&self.encoder, &chunk.columns, &room, &error)
            plain.used = room.at - <uint8_t *> bytes_data(plain.object)
            if event != k.KC_ENCODE_NO_ROOM:
                break
            try:
                plain.reserve(self.encoder.wanted)
            except MemoryError:
                self.encoder.open.count = 0    # its bytes are gone
                raise
        if event == k.KC_ENCODE_BATCH:
            return True
        self.end_rows(chunk, event, &error)
        return False

    cdef int end_rows(self, RecordChunk chunk, k.kc_encode_event event, k.kc_error *error) except -1:
        if event == k.KC_ENCODE_FAULT:
            error.position += self.rows
            raise fault(error, None, True)
        self.rows += chunk.columns.rows
        return 0

    cdef int put_compressed(self, GrowingBytes out, compress) except -1:
        """Write the batch in `self.batch`, its records compressed."""
        cdef Py_buffer records
        self.compress_records(compress, &records)
        try:
            out.reserve(self.header_bytes + records.len)
            out.used += self.close_compressed(&records, out.room().at)
        finally:
            PyBuffer_Release(&records)
        return 0

    cdef Block compressed_batch(self, compress):
        """The batch in `self.batch`, its records compressed: by LZ4 where the batch is returned, whose memory is then
        as large as the uncompressed one."""
        cdef Py_buffer records
        cdef Block made
        cdef size_t header = self.header_bytes
        if isinstance(compress, Lz4Frames):
            made = (<Lz4Frames> compress).frame_after(header, self.batch.data + header, self.batch.size - header)
            self.check_size(made.buffer.size - header)
            k.kc_encoder_close(&self.encoder, made.buffer.data + header, made.buffer.size - header, made.buffer.data)
            return made
        self.compress_records(compress, &records)
        try:
            made = new_block(self.header_bytes + records.len)
            self.close_compressed(&records, made.buffer.data)
            return made
        finally:
            PyBuffer_Release(&records)

    cdef Block plain_batch(self):
        """The batch in `self.batch`, which is complete: with its memory, if little of that is unused."""
        cdef size_t size = self.batch.size
        cdef Block made
        if self.batch.capacity - size > size // 8:
            made = new_block(size)
            memcpy(made.buffer.data, self.batch.data, size)
            return made
        made = Block.__new__(Block)
        self.given = self.batch.capacity
        made.buffer = self.batch
        self.batch.data = NULL
        self.batch.size = self.batch.capacity = 0
        return made

    cdef int compress_records(self, compress, Py_buffer *records) except -1:
        cdef Py_ssize_t header = self.header_bytes
        plain = PyMemoryView_FromMemory(<char *> self.batch.data + header, self.batch.size - header, PyBUF_READ)
        PyObject_GetBuffer(compress(plain), records, PyBUF_SIMPLE)
        try:
            self.check_size(records.len)
        except EncodeError:
            PyBuffer_Release(records)
            raise
        return 0

    cdef int check_size(self, size_t compressed) except -1:
        if compressed > 0x7fffffff - self.header_bytes:
            raise EncodeError(f"a batch of {compressed} compressed bytes exceeds the maximum batch size")
        return 0

    cdef Py_ssize_t close_compressed(self, const Py_buffer *records, uint8_t *at) noexcept:
        """Write the batch with these records; returns its size."""
        cdef Py_ssize_t header = self.header_bytes
        memcpy(at + header, records.buf, records.len)
        k.kc_encoder_close(&self.encoder, at + header, records.len, at)
        return header + records.len

    cdef tuple take_batch(self, compress):
        """The batch in `self.batch`, with the values that an index needs."""
        cdef GrowingBytes out
        cdef k.kc_room room
        cdef k.kc_open_batch batch = self.encoder.open
        self.plain_bytes = self.batch.size
        if compress is not None and self.writable:
            data = PyMemoryView_FromObject(self.compressed_batch(compress))
        elif compress is not None:
            out = GrowingBytes()
            self.put_compressed(out, compress)
            data = out.finish()
        else:
            room.at = room.end = self.batch.data + self.batch.size
            k.kc_encoder_close_in_place(&self.encoder, &room)
            data = PyMemoryView_FromObject(self.plain_batch())
        return data, batch.base_offset, batch.last_offset, batch.max_timestamp, batch.count

    cdef tuple take_plain(self):
        """The batch in `self.plain`, likewise."""
        cdef k.kc_open_batch batch = self.encoder.open
        cdef GrowingBytes plain = self.plain
        cdef k.kc_room room = plain.room()
        cdef Py_ssize_t limit = self.encoder.options.batch_bytes
        k.kc_encoder_close_in_place(&self.encoder, &room)
        self.guess = plain.used if plain.used <= limit // 2 else max(plain.used, limit)
        self.guess += KC_COPY_SLACK
        return plain.take(), batch.base_offset, batch.last_offset, batch.max_timestamp, batch.count
