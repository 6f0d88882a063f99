# Splits a column in Confluent's framing into schema ids and views of the payloads.
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from kafkacodec._core cimport decode as k
from kafkacodec.arrow._reader cimport ImportedArray
from kafkacodec.arrow._single_column cimport SingleColumn, new_single_column, room
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._value_columns cimport ByteColumn

from kafkacodec.errors import EncodeError


cdef class Values:
    """The values to split, one column for each chunk, and the objects that keep their memory alive."""
    cdef k.kc_buffer columns
    cdef list sources
    cdef int64_t chunks, rows, buffers

    def __cinit__(self):
        self.sources = []

    def __dealloc__(self):
        k.kc_buffer_free(&self.columns)

    cdef k.kc_arrow_bytes *column(self, int64_t i) noexcept nogil:
        return (<k.kc_arrow_bytes *> self.columns.data) + i

    cdef k.kc_arrow_bytes *add(self, object source) except NULL:
        cdef k.kc_error error
        if k.kc_buffer_reserve(&self.columns, sizeof(k.kc_arrow_bytes), &error):
            raise exception_from(&error)
        memset(self.column(self.chunks), 0, sizeof(k.kc_arrow_bytes))
        self.columns.size += sizeof(k.kc_arrow_bytes)
        self.sources.append(source)
        self.chunks += 1
        return self.column(self.chunks - 1)

    cdef void count(self, const k.kc_arrow_bytes *c) noexcept:
        self.rows += c.length
        self.buffers += k.kc_confluent_buffers(c)

    def add_array(self, ImportedArray array not None):
        cdef k.kc_error error
        cdef k.kc_arrow_bytes *c
        array.require()
        c = self.add(array)
        if k.kc_arrow_bytes_import(c, &array.owner.schema, &array.array, 0, array.array.length, &error):
            raise TypeError(f"values: {error.what.decode()}")
        if c.layout == k.KC_LAYOUT_DICTIONARY:
            raise TypeError("values: dictionary-encoded columns are not supported, since payloads are views of the values")
        self.count(c)

    def add_list(self, list values not None):
        cdef ByteColumn column = ByteColumn()
        cdef k.kc_arrow_bytes *c = self.add(column)
        for i, value in enumerate(values):
            try:
                column.append(value)
            except EncodeError as e:
                raise EncodeError(e.reason, path=f"values[{i}]") from None
        column.describe(c)
        self.count(c)

    def split(self):
        """(ids, payloads) of all rows."""
        cdef SingleColumn ids = new_single_column("i", self.rows, 0)
        cdef SingleColumn payloads = new_single_column("vz", self.rows, self.buffers)
        cdef k.kc_confluent_parts parts
        cdef k.kc_error error
        cdef const k.kc_arrow_bytes *c
        cdef int64_t chunk, i, row = 0, buffer = 0
        cdef int code = 0
        payloads.sources = self.sources
        ids.values, ids.validity = room(self.rows * sizeof(int32_t)), room((self.rows + 7) // 8)
        payloads.values, payloads.validity = room(self.rows * sizeof(k.kc_view)), room((self.rows + 7) // 8)
        payloads.sizes = room(self.buffers * sizeof(int64_t))
        parts.ids = <int32_t *> ids.values.data
        parts.id_validity = ids.validity.data
        parts.payload_validity = payloads.validity.data
        parts.payloads = <k.kc_view *> payloads.values.data
        with nogil:
            for chunk in range(self.chunks):
                c = self.column(chunk)
                code = k.kc_confluent_split(c, &parts, row, <int32_t> buffer, &error)
                if code:
                    break
                for i in range(k.kc_confluent_buffers(c)):
                    payloads.set_data(
                        buffer, k.kc_confluent_buffer(c, i, &(<int64_t *> payloads.sizes.data)[buffer]))
                    buffer += 1
                row += c.length
        if code:
            raise EncodeError(error.what.decode(), path=f"values[{row + <int64_t> error.position}]")
        ids.finish(0)
        payloads.finish(buffer)
        return ids, payloads
