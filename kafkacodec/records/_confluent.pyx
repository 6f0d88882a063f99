# Confluent's framing taken off a column: ids and views of the payloads, over the memory of the values.
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc
from libc.string cimport memset

from kafkacodec._core cimport decode as k
from kafkacodec.arrow._capsules cimport drop_array, drop_schema, new_capsule
from kafkacodec.arrow._reader cimport ImportedArray
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._value_columns cimport ByteColumn

from kafkacodec.errors import EncodeError


cdef void release_schema(k.ArrowSchema *schema) noexcept nogil:
    schema.release = NULL


cdef void release_array(k.ArrowArray *array) noexcept nogil:
    array.release = NULL
    with gil:
        Py_DECREF(<object> array.private_data)


cdef k.kc_buffer room(size_t size) except *:
    """Zeroed memory."""
    cdef k.kc_error error
    cdef k.kc_buffer buffer
    memset(&buffer, 0, sizeof(buffer))
    if k.kc_buffer_reserve(&buffer, size + 1, &error):
        raise exception_from(&error)
    memset(buffer.data, 0, size)
    buffer.size = size
    return buffer


cdef class SplitColumn:
    """One column that came out of `split`: exported to Arrow as often as wanted, over the same memory."""
    def __init__(self):
        raise TypeError("SplitColumn is what split_confluent returns; it is not made by hand")

    def __reduce_ex__(self, protocol):
        raise TypeError("SplitColumn is neither copied nor pickled; its Arrow form is")
    cdef const char *format
    cdef int64_t length
    cdef k.kc_buffer validity, values, pointers, sizes
    cdef list sources
    cdef int64_t buffers

    def __dealloc__(self):
        k.kc_buffer_free(&self.validity)
        k.kc_buffer_free(&self.values)
        k.kc_buffer_free(&self.pointers)
        k.kc_buffer_free(&self.sizes)

    def __len__(self):
        return self.length

    cdef void finish(self, int64_t data_buffers) noexcept:
        """List the buffers: validity, values, data, and for views the sizes of the data."""
        cdef const void **pointers = <const void **> self.pointers.data
        pointers[0] = self.validity.data
        pointers[1] = self.values.data
        self.buffers = 2
        if self.sizes.data != NULL:
            pointers[2 + data_buffers] = self.sizes.data
            self.buffers = 3 + data_buffers

    def __arrow_c_schema__(self):
        cdef k.ArrowSchema *schema
        if self.format == NULL:
            raise TypeError("a SplitColumn that split_confluent has made is needed")
        schema = <k.ArrowSchema *> calloc(1, sizeof(k.ArrowSchema))
        capsule = new_capsule(schema, "arrow_schema", drop_schema)
        schema.format = self.format
        schema.name = ""
        schema.flags = k.ARROW_FLAG_NULLABLE
        schema.release = release_schema
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        cdef k.ArrowArray *array
        schema = self.__arrow_c_schema__()
        array = <k.ArrowArray *> calloc(1, sizeof(k.ArrowArray))
        capsule = new_capsule(array, "arrow_array", drop_array)
        array.length = self.length
        array.null_count = -1
        array.n_buffers = self.buffers
        array.buffers = <const void **> self.pointers.data
        array.private_data = <void *> self
        array.release = release_array
        Py_INCREF(self)
        return schema, capsule


cdef SplitColumn new_column(const char *format, int64_t length, size_t width, int64_t data_buffers, bint views):
    cdef SplitColumn column = SplitColumn.__new__(SplitColumn)
    column.format = format
    column.length = length
    column.validity = room((length + 7) // 8)
    column.values = room(length * width)
    column.pointers = room((3 + data_buffers) * sizeof(void *))
    if views:
        column.sizes = room(data_buffers * sizeof(int64_t))
    return column


cdef class Values:
    """The values to split, one column for each chunk, and what keeps their memory."""
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
            raise TypeError("values: the column is dictionary-encoded, and payloads are views of values in place")
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
        """(ids, payloads) of all rows, each a `SplitColumn`."""
        cdef SplitColumn ids = new_column("i", self.rows, sizeof(int32_t), 0, False)
        cdef SplitColumn payloads = new_column("vz", self.rows, sizeof(k.kc_view), self.buffers, True)
        cdef k.kc_confluent_parts parts
        cdef k.kc_error error
        cdef const k.kc_arrow_bytes *c
        cdef int64_t chunk, i, row = 0, buffer = 0
        cdef int code = 0
        payloads.sources = self.sources
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
                    (<const void **> payloads.pointers.data)[2 + buffer] = k.kc_confluent_buffer(
                        c, i, &(<int64_t *> payloads.sizes.data)[buffer])
                    buffer += 1
                row += c.length
        if code:
            raise EncodeError(error.what.decode(), path=f"values[{row + <int64_t> error.position}]")
        ids.finish(0)
        payloads.finish(buffer)
        return ids, payloads
