# Sorts Protobuf values into plain, odd and damaged ones, without the GIL.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacodec._core cimport values as k
from kafkacodec._core._errors cimport check
from kafkacodec.values._rows cimport in_order


cdef class Sorter:
    """A schema as the tables of kc_protobuf.h."""
    cdef bytes messages, fields, enums, numbers
    cdef k.kc_protobuf_schema schema

    def __init__(self, bytes messages not None, bytes fields not None, bytes enums not None, bytes numbers not None,
                 int32_t marks, int32_t width):
        self.messages, self.fields, self.enums, self.numbers = messages, fields, enums, numbers
        self.schema.messages = <const k.kc_protobuf_message *> <const char *> messages
        self.schema.fields = <const k.kc_protobuf_field *> <const char *> fields
        self.schema.enums = <const k.kc_protobuf_enum *> <const char *> enums
        self.schema.numbers = <const int32_t *> <const char *> numbers
        self.schema.message_count = count_of(messages, sizeof(k.kc_protobuf_message))
        self.schema.field_count = count_of(fields, sizeof(k.kc_protobuf_field))
        self.schema.enum_count = count_of(enums, sizeof(k.kc_protobuf_enum))
        self.schema.number_count = count_of(numbers, sizeof(int32_t))
        self.schema.marks = marks
        self.schema.width = width
        if not k.kc_protobuf_schema_valid(&self.schema):
            self.schema.message_count = 0
            raise ValueError("the tables are not a schema")

    def sort(self, const uint8_t[::1] data not None, const int64_t[::1] ends not None, int64_t budget,
             uint8_t[::1] out not None):
        cdef k.kc_error error
        cdef int64_t rows = ends.shape[0]
        cdef const uint8_t *first = &data[0] if data.shape[0] else <const uint8_t *> <const char *> self.messages
        if self.schema.message_count == 0 or not in_order(ends, data.shape[0]):
            raise ValueError("the ends of rows are out of order or after the data")
        if <size_t> out.shape[0] != <size_t> rows * sizeof(k.kc_protobuf_row):
            raise ValueError("the result has not the size of the rows")
        if rows == 0:
            return budget
        with nogil:
            error.code = k.kc_protobuf_sort(&self.schema, first, &ends[0], rows, &budget, <k.kc_protobuf_row *> &out[0],
                                            &error)
        check(&error)
        return budget


cdef int32_t count_of(bytes table, size_t size) except -1:
    cdef size_t count = <size_t> len(table) // size
    if count * size != <size_t> len(table) or count > (1 << 24):
        raise ValueError("a table has a wrong size")
    return <int32_t> count
