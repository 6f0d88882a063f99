"""Tables of columns as Python objects: Arrow capsules and numpy views of memory owned by C."""
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafkacodec._core cimport arrow as k
from kafkacodec.arrow._capsules cimport drop_array, drop_schema, new_capsule
from kafkacodec._core._errors cimport check

from kafkacodec.lazy import np

# numpy's codes of the types that it can hold as they are.
cdef dict CODES = {
    k.KC_BOOL: "?",
    k.KC_INT8: "i1",
    k.KC_INT16: "i2",
    k.KC_INT32: "i4",
    k.KC_INT64: "i8",
    k.KC_UINT32: "u4",
    k.KC_TIMESTAMP_MS: "M8[ms]",
}
# A view: prefix, buffer and position of a value longer than 12 bytes, else the value and zeros.
cdef list VIEW_CODES = [("size", "i4"), ("prefix", "u1", 4), ("buffer", "i4"), ("position", "i4")]
cdef dict DTYPES = {}
cdef dict TYPE_NAMES = {
    k.KC_BOOL: "bool",
    k.KC_INT8: "int8",
    k.KC_INT16: "int16",
    k.KC_INT32: "int32",
    k.KC_INT64: "int64",
    k.KC_UINT32: "uint32",
    k.KC_TIMESTAMP_MS: "timestamp[ms, tz=UTC]",
    k.KC_BINARY: "binary",
    k.KC_BINARY_VIEW: "binary_view",
    k.KC_STRING: "string",
}


cdef str type_name(const k.kc_field *field):
    if field.type == k.KC_LIST:
        return f"list<{type_name(&field.children[0])}>"
    if field.type == k.KC_STRUCT:
        inner = [f"{field.children[i].name.decode()}: {type_name(&field.children[i])}" for i in range(field.num_children)]
        return f"struct<{', '.join(inner)}>"
    return TYPE_NAMES[field.type]


cdef object dtype_of(k.kc_type type):
    """numpy's type, made at its first use: most programs need none."""
    found = DTYPES.get(type)
    if found is None:
        DTYPES[type] = found = np.dtype(CODES.get(type, VIEW_CODES))
    return found


cdef void drop_stream(object capsule) noexcept:
    cdef k.ArrowArrayStream *stream = <k.ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    k.kc_free(stream)


cdef class ColumnBuffer:
    """A read-only buffer inside a table, which it keeps alive."""
    cdef k.kc_table *table
    cdef void *start
    cdef Py_ssize_t size

    def __dealloc__(self):
        if self.table != NULL:
            k.kc_table_release(self.table)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, 1, flags)


cdef ColumnBuffer share(k.kc_table *table, const k.kc_buffer *buffer, size_t size):
    cdef ColumnBuffer shared = ColumnBuffer.__new__(ColumnBuffer)
    k.kc_table_retain(table)
    shared.table = table
    shared.start = buffer.data
    shared.size = <Py_ssize_t> size if buffer.data != NULL else 0
    return shared


# Error texts of budgets. C refers to them as long as any table exists, so they are never freed.
cdef dict REMEDIES = {}


cdef class Allowance:
    """A limit on the memory of the columns of each of many results, in bytes; `remedy` is the advice in its error."""
    def __cinit__(self, size_t limit, str remedy):
        text = f"the table would exceed max_total_bytes ({remedy}, or raise the limit)"
        self.limit, self.what = limit, REMEDIES.setdefault(text, text.encode())

    cpdef Budget budget(self):
        """The budget of one result."""
        cdef Budget made = Budget.__new__(Budget)
        made.budget = k.kc_budget_new(self.limit, self.what)
        if made.budget == NULL:
            raise MemoryError("no memory for a table budget")
        return made


cdef class Budget:
    """What is left of the limit on one result."""
    def __init__(self):
        raise TypeError("budgets are made by Allowance.budget()")

    def __dealloc__(self):
        if self.budget != NULL:
            k.kc_budget_release(self.budget)


cdef Table new_table(object cls, const k.kc_field *fields, int num_fields, uint64_t wanted, Budget budget):
    cdef k.kc_error error
    cdef Table t = cls.__new__(cls)
    error.code = k.KC_OK
    t.table = k.kc_table_new_within(fields, num_fields, wanted, NULL if budget is None else budget.budget, &error)
    check(&error)
    return t


cdef object cell(const k.kc_column *c, int64_t row):
    """A value as a Python object: times as milliseconds, a list as a tuple of its entries, a struct of its fields."""
    cdef const uint8_t *data
    cdef const int32_t *ends
    cdef int32_t size
    cdef int i
    if c.null_count and not c.validity.data[row >> 3] >> (row & 7) & 1:
        return None
    if c.field.type in (k.KC_BINARY, k.KC_BINARY_VIEW, k.KC_STRING):
        data = k.kc_column_bytes(c, row, &size)
        found = PyBytes_FromStringAndSize(<const char *> data, size)
        return found.decode() if c.field.type == k.KC_STRING else found
    if c.field.type == k.KC_LIST:
        ends = <const int32_t *> c.values.data + row
        return tuple([cell(&c.children[0], i) for i in range(ends[0], ends[1])])
    if c.field.type == k.KC_STRUCT:
        return tuple([cell(&c.children[i], row) for i in range(c.field.num_children)])
    if c.field.type == k.KC_BOOL:
        return bool(c.values.data[row >> 3] >> (row & 7) & 1)
    if c.field.type == k.KC_INT8:
        return (<const int8_t *> c.values.data)[row]
    if c.field.type == k.KC_INT16:
        return (<const int16_t *> c.values.data)[row]
    if c.field.type == k.KC_INT32:
        return (<const int32_t *> c.values.data)[row]
    if c.field.type == k.KC_UINT32:
        return (<const uint32_t *> c.values.data)[row]
    return (<const int64_t *> c.values.data)[row]


cdef class Table:
    """A table of columns. Without a decoder it has no columns and no rows."""

    def __init__(self, *args, **kwargs):
        raise TypeError(f"{type(self).__qualname__} cannot be created directly; the decoding functions return it")

    def __reduce_ex__(self, protocol):
        raise TypeError(f"{type(self).__qualname__} cannot be copied or pickled; convert it with to_arrow() instead")

    def __dealloc__(self):
        if self.table != NULL:
            k.kc_table_release(self.table)

    cdef k.kc_table *filled(self) except NULL:
        """The table; an empty one is created if there is none."""
        cdef k.kc_error error
        if self.table == NULL:
            error.code = k.KC_OK
            self.table = k.kc_table_new_within(NULL, 0, 0, NULL, &error)
            check(&error)
        return self.table

    def __len__(self):
        return 0 if self.table == NULL else self.table.length

    cdef k.kc_column *column(self, str name) except NULL:
        cdef int i
        raw = name.encode()
        if self.table != NULL:
            for i in range(self.table.num_columns):
                if self.table.columns[i].wanted and self.table.columns[i].field.name == raw:
                    return &self.table.columns[i]
        from kafkacodec.arguments import columns_hint

        raise KeyError(f"no column {name!r}; {columns_hint(name, self.column_names)}")

    cdef const k.kc_field *fields(self) noexcept:
        if self.table == NULL or self.table.num_columns == 0:
            return NULL
        return self.table.columns[0].field

    cdef k.kc_table *with_fields(self, const k.kc_field *fields) except NULL:
        """The table; raises TypeError unless its columns have these fields."""
        if self.table == NULL or self.table.num_columns == 0 or self.table.columns[0].field != fields:
            raise TypeError("the table has other columns")
        return self.table

    cdef k.kc_table *growing(self, const k.kc_field *fields) except NULL:
        """The same, for adding rows: this may move memory, so there must not be other references to it."""
        if self.with_fields(fields).references != 1:
            raise BufferError("rows cannot be added to a table that is in use")
        return self.table

    @property
    def nbytes(self):
        """The memory of the columns in bytes."""
        return 0 if self.table == NULL else k.kc_table_bytes(self.table)

    @property
    def columns(self):
        """(name, Arrow type as a string) of each column."""
        cdef int i
        self.filled()
        return [
            (self.table.columns[i].field.name.decode(), type_name(self.table.columns[i].field))
            for i in range(self.table.num_columns)
            if self.table.columns[i].wanted
        ]

    def view(self, str name):
        cdef k.kc_column *c = self.column(name)
        if c.field.type not in CODES:
            raise TypeError(f"column {name!r} is {type_name(c.field)}, which numpy cannot view; use buffers({name!r}) or Arrow")
        return self.values_of(c)

    cdef object values_of(self, k.kc_column *c):
        """The values of a fixed-width type, booleans unpacked."""
        if c.field.type == k.KC_BOOL:
            bits = np.ndarray((c.values.size,), np.uint8, share(self.table, &c.values, c.values.size))
            return np.unpackbits(bits, count=c.length, bitorder="little").view(np.bool_)
        return np.ndarray((c.length,), dtype_of(c.field.type), share(self.table, &c.values, c.values.size))

    def buffers(self, str name):
        return self.buffers_of(self.column(name))

    cdef dict buffers_of(self, k.kc_column *c):
        cdef size_t bits = (c.length + 7) // 8
        cdef int i
        parts = {
            "validity": np.ndarray((bits,), np.uint8, share(self.table, &c.validity, bits)) if c.null_count else None,
        }
        if c.field.type in (k.KC_BINARY, k.KC_STRING, k.KC_LIST):
            parts["offsets"] = np.ndarray((c.length + 1,), np.int32, share(self.table, &c.values, c.values.size))
        if c.field.type in (k.KC_BINARY, k.KC_STRING):
            parts["data"] = np.ndarray((c.data.size,), np.uint8, share(self.table, &c.data, c.data.size))
        elif c.field.type == k.KC_LIST:
            parts["items"] = self.buffers_of(&c.children[0])
        elif c.field.type == k.KC_STRUCT:
            for i in range(c.field.num_children):
                parts[c.children[i].field.name.decode()] = self.buffers_of(&c.children[i])
        elif c.field.type == k.KC_BINARY_VIEW:
            parts["views"] = np.ndarray((c.length,), dtype_of(c.field.type), share(self.table, &c.values, c.values.size))
            parts["data"] = [self.view_buffer(i) for i in range(k.kc_views_count(c.views))]
        else:
            parts["values"] = self.values_of(c)
        return parts

    def _is_fixed(self, str name):
        """Whether numpy can hold the column's values as they are."""
        return self.column(name).field.type in CODES

    def _cells(self, str name):
        """The values of a column as Python objects in an array: bytes, text, numbers, tuples of pairs; None is null."""
        cdef k.kc_column *c = self.column(name)
        cdef int64_t row
        found = np.empty(c.length, object)
        for row in range(c.length):
            found[row] = cell(c, row)
        return found

    def _row(self, int64_t row):
        """The cells of a row."""
        cdef int i
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return tuple([cell(&self.table.columns[i], row) for i in range(self.table.num_columns) if self.table.columns[i].wanted])

    cdef object view_buffer(self, int32_t i):
        """One of the buffers of views."""
        cdef const k.kc_view_buffer *buffer = k.kc_views_at(&self.table.views, i)
        cdef k.kc_buffer stretch
        stretch.data = <uint8_t *> buffer.data
        return np.ndarray((buffer.size,), np.uint8, share(self.table, &stretch, buffer.size))

    def __arrow_c_schema__(self):
        cdef k.kc_error error
        cdef k.ArrowSchema *schema = <k.ArrowSchema *> k.kc_alloc_zeroed(sizeof(k.ArrowSchema))
        error.code = k.KC_OK
        capsule = new_capsule(schema, "arrow_schema", drop_schema)
        if k.kc_arrow_export_schema(self.filled(), schema, &error):
            check(&error)
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        cdef k.kc_error error
        cdef k.ArrowArray *array = <k.ArrowArray *> k.kc_alloc_zeroed(sizeof(k.ArrowArray))
        error.code = k.KC_OK
        capsule = new_capsule(array, "arrow_array", drop_array)
        if k.kc_arrow_export_array(self.filled(), array, &error):
            check(&error)
        return self.__arrow_c_schema__(), capsule

    def __arrow_c_stream__(self, requested_schema=None):
        cdef k.kc_error error
        cdef k.ArrowArrayStream *stream = <k.ArrowArrayStream *> k.kc_alloc_zeroed(sizeof(k.ArrowArrayStream))
        error.code = k.KC_OK
        capsule = new_capsule(stream, "arrow_array_stream", drop_stream)
        if k.kc_arrow_export_stream(self.filled(), stream, &error):
            check(&error)
        return capsule


def fits(Table into not None, Table part not None, size_t spare):
    """Whether the columns are the same and `append` has room, with `spare` bytes and entries left in each column."""
    cdef const k.kc_table *other = part.with_fields(into.fields())
    return k.kc_table_fits(into.table, other, spare)


def append(Table into not None, Table part not None):
    """Moves the rows of `part` to the end of `into`; `part` is empty afterwards."""
    cdef k.kc_table *table = into.growing(into.fields())
    cdef k.kc_table *other = part.growing(into.fields())
    cdef k.kc_error error
    cdef int code
    error.code = k.KC_OK
    if table == other or not k.kc_table_fits(table, other, 0):
        raise ValueError("the table has other columns, or the rows do not fit")
    with nogil:
        code = k.kc_table_move(table, other, &error)
    if code:
        check(&error)
