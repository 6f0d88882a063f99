"""Rows of a table: which ones contain given bytes, and a table of chosen ones."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

from kafkacodec._core cimport arrow as k
from kafkacodec._core._errors cimport check
from kafkacodec.arrow._columns cimport Table, cell, new_table

from array import array

from kafkacodec.lazy import np


cdef class Needle:
    """Bytes to find, prepared once for any number of searches."""
    cdef k.kc_needle needle
    cdef bytes wanted

    def __cinit__(self, bytes needle not None):
        cdef k.kc_error error
        self.wanted = needle
        error.code = k.KC_OK
        if k.kc_needle_init(&self.needle, PyBytes_AS_STRING(needle), PyBytes_GET_SIZE(needle), &error):
            check(&error)

    def __dealloc__(self):
        k.kc_needle_free(&self.needle)

    def __reduce__(self):
        return Needle, (self.wanted,)

    def rows(self, Table table not None, str name not None, bint whole=False):
        """Which rows of a column of bytes contain the bytes or, with `whole`, are equal to them."""
        return self.found(table, table.column(name), whole)

    def header_values(self, Table table not None, bint whole=False):
        """The same for all headers of all rows, in order."""
        return self.found(table, part_of_headers(table, 1), whole)

    def header_keys(self, Table table not None, bint whole=True):
        """The same for the keys of the headers."""
        return self.found(table, part_of_headers(table, 0), whole)

    cdef object found(self, Table table, const k.kc_column *column, bint whole):
        cdef k.kc_match match = k.KC_MATCH_WHOLE if whole else k.KC_MATCH_INSIDE
        cdef uint8_t[::1] hits
        if column.field.type not in (k.KC_BINARY, k.KC_STRING, k.KC_BINARY_VIEW):
            raise TypeError(f"column {column.field.name.decode()!r} is not bytes")
        result = np.zeros(column.length, np.bool_)
        if column.length:
            hits = result.view(np.uint8)
            with nogil:
                k.kc_find_rows(column, &self.needle, match, &hits[0])
        return result


cdef const k.kc_column *part_of_headers(Table table, int part) except NULL:
    """The keys (0) or values (1) of the entries of the column headers."""
    cdef const k.kc_column *headers = table.column("headers")
    return &headers.children[0].children[part]


def cells(Table table not None, str name not None, int64_t first=0, object end=None):
    """The values of a column, of the rows from `first` to before `end`, as Python objects: bytes, text, numbers, tuples of
    pairs; None is null."""
    cdef const k.kc_column *column = table.column(name)
    cdef int64_t row, stop = column.length if end is None else end
    if not 0 <= first <= stop <= column.length:
        raise IndexError(f"rows {first} to {stop} of {column.length}")
    return [cell(column, row) for row in range(first, stop)]


def header_ends(Table table not None):
    """The end of each row's headers among those of all rows."""
    cdef const k.kc_column *headers = table.column("headers")
    cdef const int32_t *ends = <const int32_t *> <const void *> headers.values.data
    if headers.length == 0:
        return np.zeros(0, np.int32)
    return np.array(<int32_t[:headers.length]> <int32_t *> &ends[1])


def runs(Table table not None, str name not None, str last not None):
    """The runs of rows with the same value in a column of integers: (value, that of column `last` in the run's last row).

    None is a null.
    """
    cdef const k.kc_column *column = table.column(name)
    cdef const k.kc_column *lasts = table.column(last)
    cdef size_t width = {k.KC_INT32: sizeof(int32_t), k.KC_INT64: sizeof(int64_t)}[column.field.type]
    cdef int64_t row, count = column.length
    found = []
    for row in range(count):
        if row + 1 == count or differs(column, row, width):
            found.append((cell(column, row), cell(lasts, row)))
    return found


cdef bint differs(const k.kc_column *column, int64_t row, size_t width) noexcept:
    """Whether the row after a row has another value."""
    cdef const uint8_t *value = column.values.data + row * width
    cdef const uint8_t *bits = column.validity.data
    cdef int64_t after = row + 1
    if column.null_count and (bits[row >> 3] >> (row & 7) & 1) != (bits[after >> 3] >> (after & 7) & 1):
        return True
    return memcmp(value, value + width, width) != 0


def take(Table table not None, rows):
    """A table with the rows of these numbers, in their order. Raises IndexError for one that does not exist, TypeError."""
    cdef k.kc_error error
    cdef int code = k.KC_OK
    chosen = array("q", rows) if type(rows) is range else integers(rows)
    if memoryview(chosen).ndim != 1:
        raise TypeError("the numbers of rows must be one array")
    cdef const int64_t[::1] numbers = chosen
    cdef int64_t i, count = numbers.shape[0]
    cdef const int64_t *first = &numbers[0] if count else NULL
    cdef k.kc_table *source = table.filled()
    for i in range(count):
        if not 0 <= first[i] < source.length:
            raise IndexError(f"row {first[i]} of {source.length}")
    cdef Table made = new_table_like(table)
    error.code = k.KC_OK
    with nogil:
        code = k.kc_table_take(made.table, source, first, count, &error)
    if code:
        check(&error)
    return made


cdef object integers(rows):
    """Numbers of rows as an array. Raises TypeError for anything else, such as the mask that `filter` takes."""
    found = np.asarray(rows)
    if found.size and found.dtype.kind not in "iu":
        hint = "; filter takes a mask" if found.dtype.kind == "b" else ""
        raise TypeError(f"the numbers of rows must be integers, not {found.dtype}{hint}")
    return np.ascontiguousarray(found, np.int64)


cdef Table new_table_like(Table table):
    cdef unsigned long long wanted = 0
    cdef int i
    for i in range(table.table.num_columns):
        if table.table.columns[i].wanted:
            wanted |= (<unsigned long long> 1) << i
    return new_table(type(table), table.fields(), table.table.num_columns, wanted, None)
