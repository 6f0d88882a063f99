"""The binding of Kafka 0.6/0.7 message sets: holds buffers, releases the GIL, turns faults into exceptions."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafkacodec._core cimport kafka07 as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec.arrow._columns cimport Budget, Table, new_table
from kafkacodec.records._compression cimport Decompressor
from kafkacodec._core._errors cimport exception_from

from kafkacodec.errors import DecodeError, EncodeError


cdef enum:
    LEAST_MESSAGE = 9  # bytes: magic 0, no payload


def columns():
    """The names of all columns, in order; the index is the bit in a mask of wanted ones."""
    cdef int i
    return [k.kc_msgset07_fields[i].name.decode() for i in range(<int> k.KC_NUM_MSGSET07_COLUMNS)]


# As in _decoder.Decoder: what the C struct points into goes with the object, not before it.
@cython.no_gc_clear
cdef class Decoder:
    """Reads one message set into tables, chunk by chunk. The same face as `_decoder.Decoder`."""
    cdef HeldBuffer held
    cdef bint working
    cdef k.kc_msgset07_decoder decoder
    cdef uint64_t wanted
    cdef uint64_t limit   # bytes that the outermost message may decompress to
    cdef uint64_t left    # what is left of it
    cdef Budget budget    # of the tables that are made; None: nothing bounds them
    cdef uint64_t value_hint
    cdef list decompressors  # one for each level of compressed messages inside one another
    cdef readonly object fault
    cdef readonly bint exhausted  # the fault is one of the budget
    cdef readonly bint done

    def __cinit__(
        self, data, *, uint64_t wanted, bint verify_crc, bint deep, int64_t initial_offset, uint64_t limit,
        Budget budget=None,
    ):
        cdef k.kc_msgset07_options options
        self.held = HeldBuffer(data)
        if not 0 <= initial_offset <= <int64_t> (INT64_MAX - self.held.size):
            raise ValueError(f"initial_offset is {initial_offset}; offsets of the data must be from 0 to 2^63 - 1")
        options.verify_crc = verify_crc
        options.deep = deep
        options.initial_offset = initial_offset
        k.kc_msgset07_init(&self.decoder, self.held.start, self.held.size, &options)
        self.wanted = wanted
        self.limit = limit
        self.budget = budget
        self.decompressors = []

    cdef int require_open(self) except -1:
        if self.working:
            raise RuntimeError("the decoder is in use by another thread")
        if self.held is None:
            raise ValueError("the decoder is closed")
        return 0

    def close(self):
        """Gives the bytes back. Only what was found out before can still be asked for."""
        if self.held is not None:
            self.require_open()
            self.held = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    @property
    def position(self):
        """Bytes that were whole messages, without the one in work."""
        return self.decoder.position

    @property
    def size(self):
        return self.decoder.size

    @property
    def base_offset(self):
        """The offset of the faulty message; None where the fault hides how long it is."""
        return self.decoder.options.initial_offset + self.decoder.position if self.decoder.located else None

    cdef object explain(self, object exception):
        """The exception with the place inside the set."""
        cdef k.kc_msgset07_decoder *d = &self.decoder
        if isinstance(exception, DecodeError):
            exception.path = f"message at offset {d.options.initial_offset + <int64_t> d.position}"
            if d.depth:
                exception.path += f": nested message at depth {d.depth}" if d.depth > 1 else ": nested message"
        return exception

    cdef int provide(self, k.kc_error *error) except -1:
        """Decompresses the announced message; True where that went well, else self.fault is set."""
        cdef k.kc_msgset07_decoder *d = &self.decoder
        cdef Decompressor payload
        if d.depth == 0:
            self.left = self.limit
        if d.depth == len(self.decompressors):
            self.decompressors.append(Decompressor())
        payload = self.decompressors[d.depth]
        try:
            payload.run(d.codec, d.payload, d.payload_size, 0, self.left)
        except DecodeError as exception:
            exception.position = d.position
            self.fault = self.explain(exception)
            return False
        self.left -= payload.size
        if k.kc_msgset07_provide(d, payload.content, payload.size, error):
            self.fault = self.explain(exception_from(error))
            return False
        return True

    cdef void expect(self, k.kc_table *table, int64_t max_rows, bint whole) noexcept:
        """Room for as much as the chunk before took: growing step by step would copy all of it again."""
        cdef int i
        cdef uint64_t left = self.decoder.size - self.decoder.position
        cdef int64_t rows = 0 if whole else min(max_rows, <int64_t> (left // LEAST_MESSAGE + 1))
        cdef size_t values = left if whole else self.value_hint
        for i in range(table.num_columns):
            if table.columns[i].wanted:
                k.kc_column_expect(&table.columns[i], rows, values if i == k.KC_COL_VALUE else 0)

    def read(self, cls, int64_t max_rows, uint64_t max_bytes, bint whole=False):
        """The next chunk. Afterwards `done` or `fault` may be set; `skip` goes on behind a fault."""
        cdef Table chunk = new_table(cls, k.kc_msgset07_fields, k.KC_NUM_MSGSET07_COLUMNS, self.wanted, self.budget)
        cdef size_t size
        self.require_open()
        self.expect(chunk.table, max_rows, whole)
        self.read_on(chunk, max_rows, max_bytes)
        size = chunk.table.columns[<int> k.KC_COL_VALUE].data.size
        self.value_hint = size + size // 8
        return chunk

    def read_on(self, Table chunk not None, int64_t max_rows, uint64_t max_bytes):
        """Adds to a chunk that `read` gave, after a fault."""
        self.require_open()
        self.working = True
        try:
            self.run(chunk.growing(k.kc_msgset07_fields), max_rows, max_bytes)
        finally:
            self.working = False

    cdef int run(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1:
        cdef k.kc_error error
        cdef k.kc_event event
        error.code = k.KC_OK
        error.what = NULL
        while True:
            with nogil:
                event = k.kc_msgset07_run(&self.decoder, table, max_rows, max_bytes, &error)
            if event == k.KC_EVENT_COMPRESSED and self.provide(&error):
                continue
            break
        if event == k.KC_EVENT_FAULT:
            self.exhausted = error.code == k.KC_TOTAL_LIMIT
            if self.exhausted:
                error.position = self.decoder.position
            self.fault = self.explain(exception_from(&error))
        self.done = event == k.KC_EVENT_END
        return 0

    def skip(self):
        """Passes over the faulty message; returns its size in bytes."""
        self.require_open()
        return k.kc_msgset07_skip(&self.decoder)

    def take_fault(self):
        """The fault, which is forgotten here: a decoder that keeps what is raised would be in a cycle with it."""
        fault = self.fault
        self.fault = None
        return fault


def encode_message(payload, int magic, int codec):
    """encode_message(payload: Buffer, magic: int, codec: int) -> bytes"""
    cdef HeldBuffer held = HeldBuffer(payload)
    cdef size_t header = k.KC_MSGSET07_HEADER(magic)
    cdef uint8_t *out
    if held.size > INT32_MAX - header:
        raise EncodeError(f"a message of {held.size} bytes does not fit its length field")
    message = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (held.size + header))
    out = <uint8_t *> PyBytes_AS_STRING(message)
    k.kc_msgset07_write_header(out, magic, codec, held.start, <uint32_t> held.size)
    memcpy(out + header, held.start, held.size)
    return message
