"""Text as tables of records: what is between delimiters, with keys or without."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t

from kafkacodec._core cimport text as k
from kafkacodec._core._errors cimport check
from kafkacodec.arrow._columns cimport Table, new_table


cdef class LineSplitter:
    """Splits text into records."""
    cdef k.kc_lines how
    cdef tuple kept

    def __cinit__(self, bytes delimiter not None, bytes key_delimiter, bytes key, bint empty_as_null):
        if not delimiter or key_delimiter == b"":
            raise ValueError("a delimiter has no bytes")
        self.kept = (delimiter, key_delimiter, key)
        self.how.delimiter = given(delimiter)
        self.how.key_delimiter = given(key_delimiter)
        self.how.key = given(key)
        self.how.empty_is_null = empty_as_null

    def __reduce_ex__(self, protocol):
        raise TypeError("a LineSplitter cannot be copied or pickled")

    def split(self, const uint8_t[::1] data not None, bint last, int64_t most):
        """The records that end in the data, at most so many, and where the next one begins."""
        cdef k.kc_error error
        cdef size_t used = 0, size = data.shape[0]
        cdef const uint8_t *start = &data[0] if size else NULL
        cdef int code
        cdef Table t = new_table(Table, k.kc_line_fields, k.KC_LINE_FIELDS, (1 << <int> k.KC_LINE_FIELDS) - 1, None)
        error.code = k.KC_OK
        with nogil:
            code = k.kc_lines_split(&self.how, start, size, last, most, t.table, &used, &error)
        if code:
            check(&error)
        return t, used


cdef k.kc_bytes_of given(bytes data):
    cdef k.kc_bytes_of made
    made.data, made.size = NULL, 0
    if data is not None:
        made.data, made.size = <const uint8_t *> PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
    return made
