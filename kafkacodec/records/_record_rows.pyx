"""Rows of tables as Python objects: named tuples, one by one or in lists."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from kafkacodec._core cimport decode as k
from kafkacodec.arrow._columns cimport Table


cdef extern from "Python.h":
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t Py_REFCNT(PyObject *)


cdef extern from *:
    """
    /* Versions whose tuples have no state that depends on the items, except the hash that is reset below. The free-threaded
     * build counts references in two places. */
    #if PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
    #define KC_FILLS_TUPLES 1
    #else
    #define KC_FILLS_TUPLES 0
    #endif

    /* Since CPython 3.14 a tuple caches its hash; -1 is none. */
    static inline void kc_forget_hash(PyObject *tuple) {
    #if KC_FILLS_TUPLES && PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)tuple)->ob_hash = -1;
    #else
        (void)tuple;
    #endif
    }

    static inline int kc_is_plain_tuple(PyTypeObject *cls) {
        return PyType_IsSubtype(cls, &PyTuple_Type) && cls->tp_basicsize == PyTuple_Type.tp_basicsize &&
            cls->tp_itemsize == PyTuple_Type.tp_itemsize && cls->tp_dictoffset == 0;
    }

    static inline PyObject *kc_blank_tuple(PyTypeObject *cls, Py_ssize_t size) {
        PyObject *tuple = cls->tp_alloc(cls, size);
        if (tuple == NULL) return NULL;
        PyObject_GC_UnTrack(tuple);
        kc_forget_hash(tuple);
        return tuple;
    }
    """
    bint KC_FILLS_TUPLES
    void kc_forget_hash(PyObject *tuple) noexcept
    bint kc_is_plain_tuple(PyTypeObject *cls) noexcept
    PyObject *kc_blank_tuple(PyTypeObject *cls, Py_ssize_t size) noexcept


cdef enum:
    RECORD_FIELDS = 6
    CONSUMER_FIELDS = 9


cdef inline object slice_of(const k.kc_column *c, int64_t row):
    """The bytes at `row` of a binary column, or None."""
    cdef const int32_t *ends = <const int32_t *> c.values.data
    cdef const uint8_t *data
    cdef int32_t size
    if c.views != NULL:
        data = k.kc_column_bytes(c, row, &size)
        return None if data == NULL else PyBytes_FromStringAndSize(<const char *> data, size)
    if c.null_count and not c.validity.data[row >> 3] >> (row & 7) & 1:
        return None
    return PyBytes_FromStringAndSize(<const char *> c.data.data + ends[row], ends[row + 1] - ends[row])


cdef tuple headers_of(const k.kc_column *headers, int64_t row):
    cdef const int32_t *ends = <const int32_t *> headers.values.data
    cdef const k.kc_column *keys = &headers.children[0].children[0]
    cdef const k.kc_column *values = &headers.children[0].children[1]
    if ends[row] == ends[row + 1]:
        return ()
    return tuple([(slice_of(keys, i).decode(), slice_of(values, i)) for i in range(ends[row], ends[row + 1])])


cdef inline void put(PyObject *record, Py_ssize_t i, object item) noexcept:
    """Sets a field and releases its old value."""
    cdef PyObject *before = PyTuple_GET_ITEM(<object> record, i)
    Py_INCREF(item)
    PyTuple_SET_ITEM(<object> record, i, item)
    Py_XDECREF(before)


cdef inline object timestamp_of(const k.kc_column *c, int64_t row):
    if c.null_count and not c.validity.data[row >> 3] >> (row & 7) & 1:
        return None
    return (<const int64_t *> c.values.data)[row]


cdef inline object epoch_of(const k.kc_column *c, int64_t row):
    if c.null_count and not c.validity.data[row >> 3] >> (row & 7) & 1:
        return None
    return (<const int32_t *> c.values.data)[row]


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


cdef class RecordIterator:
    """The rows of tables that have the six record columns, one by one, as instances of a named tuple of six fields.

    A record without other references is reused for a later row, as zip() does with its tuples, since creating and freeing
    the tuple is half the cost of a row. In a for loop that is the record before the last. `recycle` is whether this
    CPython version is known to allow it; otherwise the class creates every record.
    """
    cdef object chunks
    cdef type cls
    cdef bint recycle
    cdef bint filling         # a record is being filled: the collector may run any code meanwhile
    cdef k.kc_table *table    # of `columns`, retained
    cdef int64_t row
    cdef int64_t rows
    cdef const k.kc_column *columns
    cdef object last
    cdef object before_last

    def __cinit__(self, chunks, type cls not None, bint recycle=KC_FILLS_TUPLES):
        if not kc_is_plain_tuple(<PyTypeObject *> cls):
            raise TypeError(f"{cls.__qualname__} is not a named tuple class")
        self.chunks = iter(chunks)
        self.cls = cls
        self.recycle = recycle and KC_FILLS_TUPLES

    def __dealloc__(self):
        if self.table != NULL:
            k.kc_table_release(self.table)

    def __iter__(self):
        return self

    cdef int advance(self) except -1:
        """Opens the next chunk that has rows; StopIteration if there is none."""
        cdef Table chunk
        cdef const k.kc_column *columns
        if self.filling:
            raise RuntimeError("the iterator is already in use")
        while self.row == self.rows:
            chunk = next(self.chunks)
            columns = plain_columns(<Table?> chunk)
            if self.table != NULL:
                k.kc_table_release(self.table)
            self.table, self.columns = chunk.table, columns
            k.kc_table_retain(self.table)
            self.row = 0
            self.rows = self.table.length
        return 0

    cdef object blank(self):
        """A record without other references, not tracked by the garbage collector: it cannot be part of a cycle."""
        cdef PyObject *record
        if self.before_last is not None and Py_REFCNT(<PyObject *> self.before_last) == 1:
            kc_forget_hash(<PyObject *> self.before_last)
            return self.before_last
        record = kc_blank_tuple(<PyTypeObject *> self.cls, RECORD_FIELDS)
        if record == NULL:
            raise MemoryError
        item = <object> record
        Py_DECREF(item)  # the reference from alloc: `item` has another one
        return item

    def __next__(self):
        if self.row == self.rows:
            self.advance()
        self.filling = True
        try:
            item = self.filled(self.row) if self.recycle else self.made(self.row)
        finally:
            self.filling = False
        self.row += 1
        return item

    cdef object made(self, int64_t row):
        cdef const k.kc_column *c = self.columns
        return tuple.__new__(self.cls, ((<const int64_t *> c[0].values.data)[row], timestamp_of(&c[1], row),
                                        (<const int8_t *> c[2].values.data)[row], slice_of(&c[3], row),
                                        slice_of(&c[4], row), headers_of(&c[5], row)))

    cdef object filled(self, int64_t row):
        cdef const k.kc_column *c = self.columns
        cdef PyObject *record
        item = self.blank()
        record = <PyObject *> item
        put(record, 0, (<const int64_t *> c[0].values.data)[row])
        put(record, 1, timestamp_of(&c[1], row))
        put(record, 2, (<const int8_t *> c[2].values.data)[row])
        put(record, 3, slice_of(&c[3], row))
        put(record, 4, slice_of(&c[4], row))
        put(record, 5, headers_of(&c[5], row))
        self.before_last = self.last
        self.last = item
        return item


def consumer_records(
    list found not None, Table chunk not None, type cls not None, str topic, partition, key_of=None, value_of=None
):
    """Adds the rows of a table of one partition to a list, as named tuples of nine fields: topic and partition, the six of
    a record, and the leader epoch, for which the table has the column `partition_leader_epoch`.

    `key_of` and `value_of` are called with the bytes of each key and value that is not null. What they raise comes out,
    with the rows before in the list.
    """
    cdef k.kc_table *table = chunk.filled()
    cdef const k.kc_column *c = plain_columns(chunk)
    cdef const k.kc_column *epochs
    cdef int64_t row
    cdef PyObject *made
    cdef bint plain = key_of is None and value_of is None and KC_FILLS_TUPLES
    if not kc_is_plain_tuple(<PyTypeObject *> cls):
        raise TypeError(f"{cls.__qualname__} is not a named tuple class")
    epochs = table.columns + <int> k.KC_COL_PARTITION_LEADER_EPOCH
    if table.num_columns != <int> k.KC_NUM_RECORD_COLUMNS or not epochs.wanted:
        raise TypeError("the table lacks the column partition_leader_epoch")
    for row in range(table.length):
        key, value = slice_of(&c[3], row), slice_of(&c[4], row)
        if not plain:
            if key_of is not None and key is not None:
                key = key_of(key)
            if value_of is not None and value is not None:
                value = value_of(value)
            found.append(tuple.__new__(cls, (
                topic, partition, (<const int64_t *> c[0].values.data)[row], timestamp_of(&c[1], row),
                (<const int8_t *> c[2].values.data)[row], key, value, headers_of(&c[5], row), epoch_of(epochs, row))))
            continue
        made = kc_blank_tuple(<PyTypeObject *> cls, CONSUMER_FIELDS)
        if made == NULL:
            raise MemoryError
        item = <object> made
        Py_DECREF(item)  # the reference from alloc: `item` has another one
        put(made, 0, topic)
        put(made, 1, partition)
        put(made, 2, (<const int64_t *> c[0].values.data)[row])
        put(made, 3, timestamp_of(&c[1], row))
        put(made, 4, (<const int8_t *> c[2].values.data)[row])
        put(made, 5, key)
        put(made, 6, value)
        put(made, 7, headers_of(&c[5], row))
        put(made, 8, epoch_of(epochs, row))
        found.append(item)
