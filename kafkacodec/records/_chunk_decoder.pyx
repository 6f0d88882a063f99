# distutils: define_macros=CYTHON_VECTORCALL_TPNEW=0
# With that macro on, what Cython 3.3.1 generates for a subclass in another module frees garbage if memory runs out.
"""The base class of decoders: holds the buffer and the fault, allows one caller at a time, fills constant columns."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint64_t

from kafkacodec._core cimport decode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec._core._errors cimport check, exception_from
from kafkacodec.arrow._columns cimport Budget, Table, new_table

from kafkacodec.errors import _OutOfOrder


# The C structs point into objects held here, so these must not be cleared before the struct is freed.
@cython.no_gc_clear
cdef class ChunkDecoder:
    """Decodes a range of bytes into tables, chunk by chunk. A context manager that releases the buffer at the end."""
    cdef int begin(
        self, const k.kc_field *fields, int num_fields, uint64_t wanted, uint64_t limit, Budget budget,
        const uint64_t *at, const uint64_t *end
    ) except -1:
        """Set what does not change; for the constructors of subclasses."""
        self.fields, self.num_fields = fields, num_fields
        self.wanted = wanted
        self.limit = limit
        self.budget = budget
        self.at, self.end = at, end
        return 0

    @property
    def position(self):
        """Number of bytes in complete batches or messages, without the current one."""
        return self.at[0] if self.at != NULL else 0

    @property
    def size(self):
        """Number of bytes to decode."""
        return self.end[0] if self.end != NULL else 0

    cdef int require_idle(self) except -1:
        """Refuse concurrent use."""
        if self.working:
            raise RuntimeError("the decoder is in use by another thread")
        return 0

    cdef int require_open(self) except -1:
        self.require_idle()
        if self.held is None:
            raise ValueError("the decoder is closed")
        return 0

    def close(self):
        """Release the buffer. Attributes remain available."""
        self.require_idle()
        self.held = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def set_place(self, str topic, partition):
        """Set topic and partition of the rows that follow, for the columns of these names; None is null."""
        cdef int32_t number = 0 if partition is None else partition
        self.require_idle()
        self.topic = None if topic is None else topic.encode()
        self.partition = None if partition is None else number

    def empty_table(self, cls):
        """A table with this decoder's columns and without rows."""
        if self.fields == NULL:
            raise TypeError("the decoder is empty: its base class was created directly")
        return new_table(cls, self.fields, self.num_fields, self.wanted, self.budget)

    def read_on(self, Table chunk not None, int64_t max_rows, uint64_t max_bytes):
        """Add rows to a chunk from `read`, after a fault."""
        self.fill(chunk.growing(self.fields), max_rows, max_bytes)

    def take_fault(self):
        """Return the fault and clear it, which avoids a reference cycle between decoder and exception."""
        fault = self.fault
        self.fault = None
        return fault

    cdef int fill(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1:
        """Add rows to the table; set `fault` and `done`."""
        self.require_open()
        self.working = True
        try:
            self.run(table, max_rows, max_bytes)
            return self.append_place(table)
        finally:
            self.working = False

    cdef int run(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1:
        """Add rows until the table is full, to a fault, or to the end of the data."""
        cdef k.kc_error error
        cdef k.kc_event event
        error.code = k.KC_OK
        error.what = NULL
        while True:
            with nogil:
                event = self.advance(table, max_rows, max_bytes, &error)
            if event != k.KC_EVENT_COMPRESSED or not self.provide(&error):
                break
        return self.end_of_run(event, &error)

    cdef k.kc_event advance(
        self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes, k.kc_error *error
    ) noexcept nogil:
        """Call the C decoder."""
        return k.KC_EVENT_END

    cdef int provide(self, k.kc_error *error) except -1:
        """Decompress for the C decoder; return False and set `fault` on failure."""
        raise NotImplementedError

    cdef object explain(self, object exception):
        """The exception with its place in the data."""
        return exception

    cdef int end_of_run(self, k.kc_event event, k.kc_error *error) except -1:
        """Set `fault` and `done`. A fault of compressed data is set already."""
        if event == k.KC_EVENT_FAULT:
            if error.code == k.KC_OUT_OF_ORDER:
                self.fault = _OutOfOrder(error.what.decode(), position=error.position)
            else:
                self.fault = self.explain(exception_from(error))
            self.exhausted = error.code == k.KC_TOTAL_LIMIT or error.code == k.KC_OUT_OF_ORDER
        self.done = event == k.KC_EVENT_END
        return 0

    cdef int append_place(self, k.kc_table *table) except -1:
        """Fill topic and partition of the rows added since the last call, if these columns are wanted."""
        cdef k.kc_column *topics = &table.columns[<int> k.KC_COL_TOPIC]
        cdef k.kc_column *partitions = &table.columns[<int> k.KC_COL_PARTITION]
        cdef k.kc_error error
        cdef int code = k.KC_OK
        if topics.wanted:
            rows = table.length - topics.length
            if self.topic is None:
                code = k.kc_column_append_nulls(topics, rows, &error)
            else:
                code = k.kc_column_append_repeated_bytes(
                    topics, PyBytes_AS_STRING(self.topic), len(self.topic), rows, &error)
        if partitions.wanted and code == k.KC_OK:
            rows = table.length - partitions.length
            if self.partition is None:
                code = k.kc_column_append_nulls(partitions, rows, &error)
            else:
                code = k.kc_column_append_repeated(partitions, self.partition, rows, &error)
        if code != k.KC_OK:
            check(&error)
        return 0
