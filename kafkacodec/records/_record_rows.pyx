"""Rows of tables as Python objects: named tuples, one by one or in lists."""
cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from kafkacodec._core cimport decode as k
from kafkacodec.arrow._columns cimport Table


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *)
    PyObject *PyTuple_GET_ITEM(tuple, Py_ssize_t)  # borrowed


cdef enum:
    RECORD_FIELDS = 6
    CONSUMER_FIELDS = 9


cdef tuple TIMESTAMP_TYPES = (-1, 0, 1)
cdef tuple NO_HEADERS = ()


cdef inline bint is_null(const k.kc_column *c, int64_t row) noexcept:
    return c.null_count and not c.validity.data[row >> 3] >> (row & 7) & 1


cdef inline bint find(const k.kc_column *c, int64_t row, const uint8_t **data, int32_t *size) noexcept:
    """The bytes at `row` of a binary column; returns whether they are not null."""
    cdef const int32_t *ends = <const int32_t *> c.values.data
    if c.views != NULL:
        data[0] = k.kc_column_bytes(c, row, size)
        return data[0] != NULL
    if is_null(c, row):
        return False
    data[0], size[0] = c.data.data + ends[row], ends[row + 1] - ends[row]
    return True


cdef inline object slice_of(const k.kc_column *c, int64_t row):
    """The bytes at `row` of a binary column, or None."""
    cdef const uint8_t *data
    cdef int32_t size
    return PyBytes_FromStringAndSize(<const char *> data, size) if find(c, row, &data, &size) else None


cdef inline int put_slice(PyObject *record, Py_ssize_t field, const k.kc_column *c, int64_t row) except -1:
    """Set a field to the bytes at `row` of a binary column, or None."""
    cdef const uint8_t *data
    cdef int32_t size
    if find(c, row, &data, &size):
        return kc_put_bytes(record, field, data, size)
    kc_put_shared(record, field, <PyObject *> None)
    return 0


cdef inline int put_timestamp_type(PyObject *record, Py_ssize_t field, int8_t number) except -1:
    if -1 <= number <= 1:
        kc_put_shared(record, field, PyTuple_GET_ITEM(TIMESTAMP_TYPES, number + 1))
        return 0
    return kc_put_int(record, field, number)


cdef inline tuple headers_of(const k.kc_column *headers, int64_t row):
    cdef const int32_t *ends = <const int32_t *> headers.values.data
    return () if ends[row] == ends[row + 1] else some_headers(&headers.children[0], ends[row], ends[row + 1])


cdef inline int put_headers(PyObject *record, Py_ssize_t field, const k.kc_column *headers, int64_t row) except -1:
    cdef const int32_t *ends = <const int32_t *> headers.values.data
    if ends[row] == ends[row + 1]:
        kc_put_shared(record, field, <PyObject *> NO_HEADERS)
        return 0
    pairs = some_headers(&headers.children[0], ends[row], ends[row + 1])
    kc_put_shared(record, field, <PyObject *> pairs)
    return 0


cdef tuple some_headers(const k.kc_column *pairs, int64_t first, int64_t end):
    cdef const k.kc_column *keys = &pairs.children[0]
    cdef const k.kc_column *values = &pairs.children[1]
    return tuple([(slice_of(keys, i).decode(), slice_of(values, i)) for i in range(first, end)])


cdef const k.kc_column *plain_columns(Table chunk) except NULL:
    """The six columns of a record, which are consecutive."""
    cdef k.kc_table *table = chunk.filled()
    cdef const k.kc_column *c = table.columns + <int> k.KC_COL_OFFSET
    cdef int i
    for i in range(RECORD_FIELDS):
        if table.num_columns <= <int> k.KC_COL_HEADERS or not c[i].wanted or c[i].field.type not in (
                k.kc_record_fields[<int> k.KC_COL_OFFSET + i].type, k.kc_record_view_fields[<int> k.KC_COL_OFFSET + i].type):
            raise TypeError("the table lacks columns of a record")
    return c


cdef class Rows:
    """The rows of a table that has the six record columns, as instances of a named tuple, one by one.

    A record without other references is reused for a later row, as zip() does with its tuples, and so are its bytes and
    its offset where they have the size of the new ones: creating and freeing them is most of the cost of a row. In a for
    loop that is the record before the last. `recycle` is whether this CPython version is known to allow it; otherwise the
    class creates every record.
    """
    cdef type cls
    cdef bint recycle
    cdef bint filling         # a record is being filled: the collector may run any code meanwhile
    cdef k.kc_table *table    # of `columns`, retained
    cdef int64_t row
    cdef int64_t rows
    cdef const k.kc_column *columns
    cdef object last
    cdef object before_last
    cdef object time          # of the last record that had one, as records of a batch often have the same
    cdef int64_t time_ms

    def __dealloc__(self):
        if self.table != NULL:
            k.kc_table_release(self.table)

    def __iter__(self):
        return self

    @cython.final
    cdef inline int use(self, type cls, bint recycle) except -1:
        """Make records of this class."""
        if not kc_is_plain_tuple(<PyTypeObject *> cls):
            raise TypeError(f"{cls.__qualname__} is not a named tuple class")
        self.cls = cls
        self.recycle = recycle and KC_FILLS_TUPLES

    @cython.final
    cdef inline int read(self, Table chunk) except -1:
        """Begin with the rows of a table."""
        cdef const k.kc_column *columns = plain_columns(chunk)
        if self.table != NULL:
            k.kc_table_release(self.table)
        self.table, self.columns = chunk.table, columns
        k.kc_table_retain(self.table)
        self.row = 0
        self.rows = self.table.length
        return 0

    @cython.final
    cdef inline object blank(self, Py_ssize_t fields):
        """A record without other references, not tracked by the garbage collector: it cannot be part of a cycle."""
        cdef PyObject *record
        if self.before_last is not None and Py_REFCNT(<PyObject *> self.before_last) == 1:
            kc_forget_hash(<PyObject *> self.before_last)
            return self.before_last
        record = kc_blank_tuple(<PyTypeObject *> self.cls, fields)
        if record == NULL:
            raise MemoryError
        item = <object> record
        Py_DECREF(item)  # the reference from alloc: `item` has another one
        return item

    @cython.final
    cdef inline object timestamp(self):
        cdef const k.kc_column *c = &self.columns[1]
        if is_null(c, self.row):
            return None
        self.share((<const int64_t *> c.values.data)[self.row])
        return self.time

    @cython.final
    cdef inline int share(self, int64_t ms) except -1:
        if self.time is None or ms != self.time_ms:
            self.time, self.time_ms = ms, ms
        return 0

    @cython.final
    cdef inline int put_timestamp(self, PyObject *record, Py_ssize_t at) except -1:
        cdef const k.kc_column *c = &self.columns[1]
        cdef int64_t ms
        if is_null(c, self.row):
            kc_put_shared(record, at, <PyObject *> None)
            return 0
        ms = (<const int64_t *> c.values.data)[self.row]
        if kc_has(record, at) and (self.time is None or ms != self.time_ms):
            return kc_put_int(record, at, ms)  # of a record that is used again
        self.share(ms)
        kc_put_shared(record, at, <PyObject *> self.time)
        return 0

    @cython.final
    cdef inline tuple six(self):
        """The values of the row, for a tuple that is made of others."""
        cdef const k.kc_column *c = self.columns
        return ((<const int64_t *> c[0].values.data)[self.row], self.timestamp(),
                (<const int8_t *> c[2].values.data)[self.row], slice_of(&c[3], self.row), slice_of(&c[4], self.row),
                headers_of(&c[5], self.row))

    @cython.final
    cdef inline int fill(self, PyObject *record, Py_ssize_t at) except -1:
        """Set the six fields of the row, from the field `at` on."""
        cdef const k.kc_column *c = self.columns
        cdef int64_t row = self.row
        kc_put_int(record, at, (<const int64_t *> c[0].values.data)[row])
        self.put_timestamp(record, at + 1)
        put_timestamp_type(record, at + 2, (<const int8_t *> c[2].values.data)[row])
        put_slice(record, at + 3, &c[3], row)
        put_slice(record, at + 4, &c[4], row)
        put_headers(record, at + 5, &c[5], row)
        return 0

    @cython.final
    cdef inline object keep(self, item):
        self.before_last = self.last
        self.last = item
        return item


cdef class RecordIterator(Rows):
    """The rows of tables as named tuples of six fields."""
    cdef object chunks

    def __cinit__(self, chunks, type cls not None, bint recycle=KC_FILLS_TUPLES):
        self.use(cls, recycle)
        self.chunks = iter(chunks)

    cdef int advance(self) except -1:
        """Open the next chunk that has rows; StopIteration if there is none. RuntimeError inside a call of `__next__`."""
        if self.filling:
            raise RuntimeError("the iterator is already in use")
        while self.row == self.rows:
            self.read(<Table?> next(self.chunks))
        return 0

    def __next__(self):
        if self.row == self.rows or self.filling:
            self.advance()
        self.filling = True
        try:
            item = self.filled() if self.recycle else tuple.__new__(self.cls, self.six())
        finally:
            self.filling = False
        self.row += 1
        return item

    @cython.final
    cdef inline object filled(self):
        item = self.blank(RECORD_FIELDS)
        self.fill(<PyObject *> item, 0)
        return self.keep(item)


cdef class ConsumerRecords(Rows):
    """The rows of a table of one partition as named tuples of nine fields: topic and partition, the six of a record, and
    the leader epoch, for which the table has the column `partition_leader_epoch`."""
    cdef object topic
    cdef object partition
    cdef const k.kc_column *epochs
    cdef object epoch         # of the last record that had one
    cdef int32_t epoch_number
    cdef list keys            # made of the bytes by the application; None: the bytes
    cdef list values

    def __cinit__(self, Table chunk not None, type cls not None, str topic, partition):
        self.use(cls, KC_FILLS_TUPLES)
        self.read(chunk)
        self.epochs = self.table.columns + <int> k.KC_COL_PARTITION_LEADER_EPOCH
        if self.table.num_columns != <int> k.KC_NUM_RECORD_COLUMNS or not self.epochs.wanted:
            raise TypeError("the table lacks the column partition_leader_epoch")
        self.topic = topic
        self.partition = partition

    @property
    def total(self):
        return self.rows

    @property
    def taken(self):
        return self.row

    def offset(self, int64_t row):
        self.check(row)
        return (<const int64_t *> self.columns[0].values.data)[row]

    def leader_epoch(self, int64_t row):
        self.check(row)
        return self.epoch_of(row)

    cdef int check(self, int64_t row) except -1:
        if not 0 <= row < self.table.length:
            raise IndexError(f"the table has {self.table.length} rows, not {row}")
        return 0

    def stop(self):
        self.rows = self.row

    def deserialize(self, key_of=None, value_of=None):
        cdef list made
        cdef int64_t row, rows = self.rows
        self.recycle = False  # values may refer to their records
        self.rows = 0         # up to what an exception leaves out
        self.keys = None if key_of is None else []
        self.values = None if value_of is None else []
        for row in range(rows):
            for of, at, made in ((key_of, 3, self.keys), (value_of, 4, self.values)):
                if of is not None:
                    data = slice_of(&self.columns[<int> at], row)
                    made.append(None if data is None else of(data))
            self.rows += 1

    def __length_hint__(self):
        return self.rows - self.row

    def __next__(self):
        if self.row >= self.rows:
            raise StopIteration
        if self.filling:
            raise RuntimeError("the iterator is already in use")
        self.filling = True
        try:
            item = self.filled() if self.recycle else self.made()
        finally:
            self.filling = False
        self.row += 1
        return item

    @cython.final
    cdef inline object epoch_of(self, int64_t row):
        cdef const k.kc_column *c = self.epochs
        cdef int32_t number
        if is_null(c, row):
            return None
        number = (<const int32_t *> c.values.data)[row]
        if self.epoch is None or number != self.epoch_number:
            self.epoch, self.epoch_number = number, number
        return self.epoch

    @cython.final
    cdef inline int put_epoch(self, PyObject *record, Py_ssize_t field) except -1:
        if self.epoch is None or is_null(self.epochs, self.row) or (
                (<const int32_t *> self.epochs.values.data)[self.row] != self.epoch_number):
            epoch = self.epoch_of(self.row)
            kc_put_shared(record, field, <PyObject *> epoch)
        else:
            kc_put_shared(record, field, <PyObject *> self.epoch)
        return 0

    cdef object made(self):
        offset, timestamp, kind, key, value, headers = self.six()
        if self.keys is not None:
            key = self.keys[self.row]
        if self.values is not None:
            value = self.values[self.row]
        return tuple.__new__(self.cls, (self.topic, self.partition, offset, timestamp, kind, key, value, headers,
                                        self.epoch_of(self.row)))

    @cython.final
    cdef inline object filled(self):
        item = self.blank(CONSUMER_FIELDS)
        cdef PyObject *record = <PyObject *> item
        kc_put_shared(record, 0, <PyObject *> self.topic)
        kc_put_shared(record, 1, <PyObject *> self.partition)
        self.fill(record, 2)
        self.put_epoch(record, 8)
        return self.keep(item)
