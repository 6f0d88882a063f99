# csrc/arrow as Cython sees it, a section per header; with all of base.pxd.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkacodec._core.base cimport *


cdef extern from "arrow/kc_arrow_abi.h" nogil:
    int ARROW_FLAG_NULLABLE

    cdef struct ArrowSchema:
        const char *format
        const char *name
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil

    cdef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

    cdef struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept nogil
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *) noexcept nogil
        void (*release)(ArrowArrayStream *) noexcept nogil
        void *private_data


cdef extern from "arrow/kc_view.h" nogil:
    ctypedef struct kc_view:
        int32_t size


cdef extern from "arrow/kc_views.h" nogil:
    ctypedef struct kc_view_buffer:
        const uint8_t *data
        size_t size

    ctypedef struct kc_views:
        bint wanted

    int32_t kc_views_count(const kc_views *v)
    const kc_view_buffer *kc_views_at(const kc_views *v, int32_t i)
    int kc_views_own(kc_views *v, const kc_backing *backing, kc_budget *budget, kc_error *error)


cdef extern from "arrow/kc_table.h" nogil:
    ctypedef enum kc_type:
        KC_BOOL
        KC_INT8
        KC_INT16
        KC_INT32
        KC_INT64
        KC_UINT32
        KC_TIMESTAMP_MS
        KC_BINARY
        KC_BINARY_VIEW
        KC_STRING
        KC_LIST
        KC_STRUCT

    ctypedef struct kc_field:
        const char *name
        kc_type type
        int num_children
        const kc_field *children

    ctypedef struct kc_column:
        const kc_field *field
        bint wanted
        int64_t length
        int64_t null_count
        kc_buffer validity
        kc_buffer values
        kc_buffer data
        kc_column *children
        kc_views *views
        uint64_t viewed

    ctypedef struct kc_table:
        int references      # atomic
        int num_columns
        int64_t length
        kc_column *columns
        kc_budget *budget
        kc_views views

    kc_table *kc_table_new_within(const kc_field *fields, int num_fields, uint64_t wanted, kc_budget *budget, kc_error *error)
    void kc_table_retain(kc_table *t)
    void kc_table_release(kc_table *t)
    size_t kc_table_bytes(const kc_table *t)
    const uint8_t *kc_column_bytes(const kc_column *c, int64_t row, int32_t *size)
    void kc_column_expect(kc_column *c, int64_t rows, size_t bytes)
    int kc_column_append_nulls(kc_column *c, int64_t rows, kc_error *error)
    int kc_column_append_repeated(kc_column *c, int64_t value, int64_t rows, kc_error *error)
    int kc_column_append_repeated_bytes(kc_column *c, const void *data, size_t size, int64_t rows, kc_error *error)
    bint kc_table_fits(const kc_table *t, const kc_table *source, size_t spare)
    int kc_table_move(kc_table *t, kc_table *source, kc_error *error)
    size_t kc_type_width(kc_type type)


cdef extern from "arrow/kc_find_rows.h" nogil:
    ctypedef enum kc_match:
        KC_MATCH_INSIDE
        KC_MATCH_WHOLE

    void kc_find_rows(const kc_column *c, const kc_needle *n, kc_match match, uint8_t *hits)


cdef extern from "arrow/kc_take.h" nogil:
    int kc_table_take(kc_table *t, const kc_table *source, const int64_t *rows, int64_t count, kc_error *error)


cdef extern from "arrow/kc_arrow_export.h" nogil:
    int kc_arrow_export_schema(const kc_table *t, ArrowSchema *out, kc_error *error)
    int kc_arrow_export_array(kc_table *t, ArrowArray *out, kc_error *error)
    int kc_arrow_export_stream(kc_table *t, ArrowArrayStream *out, kc_error *error)


cdef extern from "arrow/kc_arrow_check.h" nogil:
    ctypedef enum kc_layout:
        KC_LAYOUT_ABSENT
        KC_LAYOUT_OFFSETS32
        KC_LAYOUT_OFFSETS64
        KC_LAYOUT_VIEWS
        KC_LAYOUT_FIXED
        KC_LAYOUT_DICTIONARY
        KC_LAYOUT_INT32
        KC_LAYOUT_INT64


cdef extern from "arrow/kc_arrow_bytes.h" nogil:
    int KC_BLOCK_ROWS

    ctypedef struct kc_spans:
        const uint8_t **data
        int32_t *size

    ctypedef struct kc_arrow_bytes:
        kc_layout layout
        const uint8_t *validity
        int64_t first
        int64_t length
        int64_t end
        const void *index
        const uint8_t *data

    int kc_arrow_bytes_import(kc_arrow_bytes *c, const ArrowSchema *schema, const ArrowArray *array, int64_t offset,
                               int64_t length, kc_error *error)
    bint kc_arrow_bytes_together(const kc_arrow_bytes *c, const uint8_t **data, size_t *size)
    size_t kc_arrow_bytes_extent(const kc_arrow_bytes *c)
    int kc_arrow_bytes_load(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error)


cdef extern from "arrow/kc_arrow_import.h" nogil:
    ctypedef struct kc_arrow_ints:
        kc_layout layout
        const uint8_t *validity
        int64_t first
        int64_t length
        const void *values
        int64_t multiply
        int64_t divide
        bint time

    ctypedef struct kc_arrow_pairs:
        kc_layout layout
        const uint8_t *validity
        int64_t first
        int64_t length
        const void *index
        int64_t items
        kc_arrow_bytes key
        kc_arrow_bytes value

    int kc_arrow_ints_import(kc_arrow_ints *c, const ArrowSchema *schema, const ArrowArray *array, int64_t offset,
                             int64_t length, kc_error *error)
    int kc_arrow_ints_load(const kc_arrow_ints *c, int64_t row, int64_t n, bint nulls, int64_t null_value, int64_t *out,
                           kc_error *error)
