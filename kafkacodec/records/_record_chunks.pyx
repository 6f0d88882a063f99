# Rows to encode: imported columns, or columns made of Python records.
from libc.stdint cimport int64_t

from kafkacodec._core cimport encode as k
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._reader cimport ImportedArray
from kafkacodec.arrow._value_columns cimport ByteColumn, IntColumn

from datetime import date

from kafkacodec.arguments import suggestion
from kafkacodec.errors import EncodeError
from kafkacodec.moments import milliseconds


cdef object fault(const k.kc_error *error, str column, bint located):
    """The exception for `error`; its path is the column and, if `located`, the row."""
    if error.code != k.KC_CANNOT_ENCODE:
        return exception_from(error)
    what = error.what.decode()
    reason = what if error.got == 0 and error.want == 0 else f"{what}: got {error.got}, limit {error.want}"
    path = f"records[{error.position}]" if located else "records"
    return EncodeError(reason, path=f"{path}.{column}" if column else path)


ENCODED = ("key", "value", "timestamp", "headers", "offset")


def is_record_column(str name not None):
    return bool(k.kc_is_record_column(name.encode(errors="replace")))


def refuse_unknown_columns(names, used):
    for name in names:
        if not is_record_column(name):
            raise EncodeError(f"unknown column; {suggestion(name, used, 'columns')}", path=f"records.{name}")


cdef object in_milliseconds(moment):
    try:
        return milliseconds(moment, "it")
    except ValueError as e:
        raise EncodeError(str(e)) from None


cdef class RecordChunk:
    """Rows for the kernels: imported columns, or columns of Python records."""
    def __len__(self):
        return self.columns.rows


cdef class ArrowChunk(RecordChunk):
    def __init__(self, ImportedArray array not None):
        cdef k.kc_error error
        cdef const char *column = NULL
        array.require()
        self.array = array
        if k.kc_input_chunk_import(&self.columns, &array.owner.schema, &array.array, &column, &error):
            name = column.decode(errors="replace") if column != NULL else None
            if name is not None:
                refuse_unknown_columns([name], ENCODED)
            raise fault(&error, name, False)


cdef class ListChunk(RecordChunk):
    """Columns of Python records; no reference to the objects is kept."""
    def __cinit__(self):
        self.key, self.value = ByteColumn(), ByteColumn()
        self.header_key, self.header_value = ByteColumn(), ByteColumn()
        self.offset, self.timestamp, self.header_bounds = IntColumn(), IntColumn(), IntColumn()
        self.header_bounds.append_int(0)

    def append_record(self, offset, timestamp, key, value, headers):
        if self.finished:
            raise ValueError("the chunk is finished")
        self.add(offset, timestamp, key, value, headers)

    def extend(self, rows, int64_t first, int64_t most, ListChunk before=None):
        """Add rows of an iterator, the first of which has that number in `records`, until the chunk has `most`.

        `before` is the chunk of the rows that came before.
        """
        cdef bint known = before is not None
        if self.finished:
            raise ValueError("the chunk is finished")
        self.numbered = known and before.numbered
        for record in rows:
            try:
                numbered = self.add_shaped(record)
            except EncodeError as e:
                path = f"records[{first + self.columns.rows}]"
                raise EncodeError(e.reason, path=f"{path}.{e.path}" if e.path else path) from None
            if not known:
                self.numbered, known = numbered, True
            elif self.numbered != numbered:
                path = f"records[{first + self.columns.rows - 1}]"
                raise EncodeError("records with and without an offset cannot be mixed", path=path)
            if self.columns.rows >= most:
                break

    cdef bint add_shaped(self, record) except -1:
        """Add a pair of key and value, or a row shaped like `Record`; returns whether it has an offset."""
        cdef Py_ssize_t shape = len(record) if isinstance(record, (tuple, list)) else 0
        if shape == 2:
            key, value = record
            self.add(None, None, key, value, ())
            return False
        if shape != 6:
            raise EncodeError(f"expected a Record or a pair of key and value, not {type(record).__name__}")
        offset, timestamp, _, key, value, headers = record
        self.add(offset, timestamp, key, value, headers)
        return offset is not None

    cdef int add(self, offset, timestamp, key, value, headers) except -1:
        cdef str field = "offset"
        try:
            if offset is not None:
                self.offset.append(offset, 0)
            field = "timestamp"
            if timestamp is not None and type(timestamp) is not int and isinstance(timestamp, (date, str)):
                timestamp = in_milliseconds(timestamp)
            self.timestamp.append(timestamp, -1)
            field = "headers"
            self.append_headers(headers)
            field = "key"
            self.key.append(key)
            field = "value"
            self.value.append(value)
        except EncodeError as e:
            raise EncodeError(e.reason, path=field) from None
        self.columns.rows += 1
        return 0

    cdef int append_headers(self, headers) except -1:
        if headers is None or headers is ():
            return self.header_bounds.append_int(self.header_key.rows)
        try:
            pairs = iter(headers or ())
        except TypeError:
            raise EncodeError(f"headers must be pairs of key and value, not {type(headers).__name__}") from None
        for pair in pairs:
            try:
                if isinstance(pair, (str, bytes)):  # which may have two characters
                    raise TypeError
                name, content = pair
            except (TypeError, ValueError):
                raise EncodeError("a header is not a pair of key and value") from None
            if name is None:
                raise EncodeError("a header's key is null")
            self.header_key.append(name)
            self.header_value.append(content)
        return self.header_bounds.append_int(self.header_key.rows)

    def finish(self):
        """Make the rows available to the kernels. No rows can be added afterwards."""
        cdef k.kc_arrow_pairs *headers = &self.columns.headers
        self.finished = True
        self.key.describe(&self.columns.key)
        self.value.describe(&self.columns.value)
        self.offset.describe(&self.columns.offset)
        self.timestamp.describe(&self.columns.timestamp)
        if self.header_key.rows:
            headers.layout = k.KC_LAYOUT_OFFSETS64
            headers.length = self.columns.rows
            headers.index = self.header_bounds.values.data
            headers.items = self.header_key.rows
            self.header_key.describe(&headers.key)
            self.header_value.describe(&headers.value)
        return self
