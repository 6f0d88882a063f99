# Keys and values of the rows of Arrow data, for the open batches of a producer: no object for each of them.
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacodec._core cimport encode as k
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._reader cimport import_array

import sys

from kafkacodec.errors import EncodeError

cdef enum:
    MOST_PARTS = 16     # of a table that is worth asking for its rows one by one


cdef class RowCells:
    def __init__(self):
        raise TypeError("row_cells() makes them")

    def __len__(self):
        return self.array.array.length

    cdef bint has_keys(self) noexcept:
        """Whether there is a column of keys."""
        return self.keys.layout != k.KC_LAYOUT_ABSENT

    cdef int64_t size(self) noexcept:
        """The bytes of all keys and values."""
        return k.kc_arrow_bytes_extent(&self.keys) + k.kc_arrow_bytes_extent(&self.values)

    cdef int64_t largest(self) except -1:
        """The bytes of the largest row."""
        cdef k.kc_spans keys, values
        cdef int64_t row = 0, rows = self.array.array.length, count, i, most = 0
        while row < rows:
            count = self.load(row, rows, &keys, &values)
            for i in range(count):
                most = max(most, max(keys.size[i], <int32_t> 0) + <int64_t> max(values.size[i], <int32_t> 0))
            row += count
        return most

    def pair(self, int64_t row):
        """The key and the value of a row."""
        cdef k.kc_spans keys, values
        if not 0 <= row < self.array.array.length:
            raise IndexError(f"the table has {self.array.array.length} rows, not {row}")
        self.load(row, row + 1, &keys, &values)
        return cell(keys.data[0], keys.size[0]), cell(values.data[0], values.size[0])

    cdef int64_t load(self, int64_t row, int64_t end, k.kc_spans *keys, k.kc_spans *values) except -1:
        """Where the cells of the next rows are; returns how many rows these are, up to `end`."""
        cdef k.kc_error error
        cdef int64_t count = min(end - row, <int64_t> k.KC_BLOCK_ROWS)
        if k.kc_arrow_bytes_load(&self.keys, row, count, keys, &error):
            raise damaged(&error, "key")
        if k.kc_arrow_bytes_load(&self.values, row, count, values, &error):
            raise damaged(&error, "value")
        return count


cdef object cell(const uint8_t *data, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char *> data, size)


cdef object damaged(const k.kc_error *error, str column):
    return EncodeError(error.what.decode(), path=column) if error.code == k.KC_CANNOT_ENCODE else exception_from(error)


def row_cells(data):
    cdef RowCells made = RowCells.__new__(RowCells)
    schema, array = data.__arrow_c_array__()
    made.array = import_array(schema, array)
    plain = k.kc_key_values_import(&made.keys, &made.values, &made.array.owner.schema, &made.array.array)
    return made if plain else None


cdef object table_class = None     # pyarrow's, if that is loaded


cdef bint is_table(data) except -1:
    global table_class
    if table_class is None:
        pyarrow = sys.modules.get("pyarrow")
        if pyarrow is None:
            return False
        table_class = pyarrow.Table
    return isinstance(data, table_class)


cpdef list parts_of(data):
    cdef list found = []
    if is_table(data):
        parts = data.to_batches()
        if not 0 < len(parts) <= MOST_PARTS:
            return None
    elif hasattr(data, "__arrow_c_array__"):
        parts = [data]
    else:
        return None
    for part in parts:
        cells = row_cells(part)
        if cells is None:
            return None
        found.append(cells)
    return found
