"""The binding of Kafka 0.6/0.7 message sets: holds buffers, releases the GIL, turns faults into exceptions."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafkacodec._core cimport kafka07 as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec.arrow._columns cimport Budget, Table
from kafkacodec.records._chunk_decoder cimport ChunkDecoder
from kafkacodec.records._compression cimport Decompressor
from kafkacodec._core._errors cimport exception_from

from kafkacodec.errors import DecodeError, EncodeError


cdef enum:
    LEAST_MESSAGE = 9  # bytes: magic 0, no payload


def columns():
    """The names of all columns, in order; the index is the bit in a mask of wanted ones."""
    cdef int i
    return [k.kc_msgset07_fields[i].name.decode() for i in range(<int> k.KC_NUM_MSGSET07_COLUMNS)]


@cython.no_gc_clear    # as its base
cdef class Decoder(ChunkDecoder):
    """Decodes one message set into tables, chunk by chunk."""
    cdef k.kc_msgset07_decoder decoder
    cdef uint64_t left    # the rest of the limit of the outermost message
    cdef uint64_t value_hint
    cdef list decompressors  # one for each level of nested compressed messages

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
        self.begin(
            k.kc_msgset07_fields, k.KC_NUM_MSGSET07_COLUMNS, wanted, limit, budget,
            &self.decoder.position, &self.decoder.size)
        self.decompressors = []

    @property
    def base_offset(self):
        """The offset of the damaged message; None if its length is unknown."""
        return self.decoder.options.initial_offset + self.decoder.position if self.decoder.located else None

    cdef object explain(self, object exception):
        """The exception with the message in its path."""
        cdef k.kc_msgset07_decoder *d = &self.decoder
        if isinstance(exception, DecodeError):
            exception.path = f"message at offset {d.options.initial_offset + <int64_t> d.position}"
            if d.depth:
                exception.path += f": nested message at depth {d.depth}" if d.depth > 1 else ": nested message"
        return exception

    cdef int provide(self, k.kc_error *error) except -1:
        """Decompresses the current message; on failure returns False and sets self.fault."""
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
        """The next chunk. Sets `done` or `fault` at the end; `skip` continues after a fault."""
        cdef Table chunk = self.empty_table(cls)
        cdef size_t size
        self.require_open()
        self.expect(chunk.table, max_rows, whole)
        self.fill(chunk.table, max_rows, max_bytes)
        size = chunk.table.columns[<int> k.KC_COL_VALUE].data.size
        self.value_hint = size + size // 8
        return chunk

    cdef k.kc_event advance(
        self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes, k.kc_error *error
    ) noexcept nogil:
        cdef k.kc_event event = k.kc_msgset07_run(&self.decoder, table, max_rows, max_bytes, error)
        if event == k.KC_EVENT_FAULT and error.code == k.KC_TOTAL_LIMIT:
            error.position = self.decoder.position
        return event

    def skip(self):
        """Skips the damaged message; returns its size in bytes."""
        self.require_open()
        return k.kc_msgset07_skip(&self.decoder)


def outermost(data, uint64_t max_payload):
    """outermost(data: Buffer, max_payload: int) -> tuple[int, int, int, bool]

    Size, number and compressed ones of the complete outermost messages; whether the next payload is too large.
    """
    cdef HeldBuffer held = HeldBuffer(data)
    cdef k.kc_msgset07_outline found
    cdef k.kc_error error
    cdef int code
    with nogil:
        code = k.kc_msgset07_outermost(held.start, held.size, max_payload, &found, &error)
    if code:
        raise exception_from(&error)
    return found.size, found.messages, found.compressed, found.too_large


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
