# csrc/values as Cython sees it, a section per header; with all of base.pxd.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacodec._core.base cimport *


cdef extern from "values/kc_avro.h" nogil:
    ctypedef struct kc_avro_node:
        int32_t kind
        int32_t first
        int32_t count
        int32_t limit
        int64_t width
        int64_t least

    ctypedef struct kc_avro_schema:
        const kc_avro_node *nodes
        int32_t count

    ctypedef struct kc_avro_fault:
        const char *what
        int64_t position
        int64_t got
        int64_t want
        int32_t node

    bint kc_avro_schema_valid(const kc_avro_schema *schema)
    int64_t kc_avro_check(const kc_avro_schema *schema, const uint8_t *data, const int64_t *ends, int64_t start,
                          int64_t rows, int64_t *budget, kc_avro_fault *fault)


cdef extern from "values/kc_protobuf.h" nogil:
    ctypedef struct kc_protobuf_field:
        uint32_t number
        int32_t kind
        int32_t repeated
        int32_t once
        int32_t child
        int32_t width

    ctypedef struct kc_protobuf_message:
        int32_t first
        int32_t count
        int32_t closed

    ctypedef struct kc_protobuf_enum:
        int32_t first
        int32_t count

    ctypedef struct kc_protobuf_schema:
        const kc_protobuf_message *messages
        const kc_protobuf_field *fields
        const kc_protobuf_enum *enums
        const int32_t *numbers
        int32_t message_count
        int32_t field_count
        int32_t enum_count
        int32_t number_count
        int32_t marks
        int32_t width

    ctypedef struct kc_protobuf_row:
        int32_t form
        int32_t field
        int64_t position

    bint kc_protobuf_schema_valid(const kc_protobuf_schema *schema)
    int kc_protobuf_sort(const kc_protobuf_schema *schema, const uint8_t *data, const int64_t *ends, int64_t rows,
                         int64_t *budget, kc_protobuf_row *out, kc_error *error)
