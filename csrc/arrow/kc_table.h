/* Columns in Arrow's memory layout, described by tables of fields, growing row by row.
 *
 * A column's buffers hold, by type: fixed-width values; bits (KC_BOOL); int32 offsets and data (KC_BINARY,
 * KC_STRING); views into the table's kc_views (KC_BINARY_VIEW); int32 offsets and a child (KC_LIST); children alone
 * (KC_STRUCT). Validity exists only once
 * something is null; it is then all ones over its whole capacity, so that only nulls write to it. */
#ifndef KC_TABLE_H
#define KC_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "arrow/kc_views.h"

typedef enum kc_type {
    KC_BOOL,
    KC_INT8,
    KC_INT16,
    KC_INT32,
    KC_INT64,
    KC_UINT32,
    KC_TIMESTAMP_MS, /* int64, milliseconds since the epoch, UTC */
    KC_BINARY,
    KC_BINARY_VIEW,
    KC_STRING,
    KC_LIST,
    KC_STRUCT,
} kc_type;

typedef struct kc_field {
    const char *name;
    kc_type type;
    int num_children;
    const struct kc_field *children;
} kc_field;

typedef struct kc_column {
    const kc_field *field;
    bool wanted;
    int64_t length, null_count;
    kc_buffer validity, values, data;
    struct kc_column *children;
    kc_budget *budget; /* the table's */
    kc_views *views;   /* the table's, for KC_BINARY_VIEW only */
    uint64_t viewed;   /* bytes of all values that are not in `data` */
} kc_column;

typedef struct kc_table {
    atomic_int references;
    int num_columns; /* columns[] has one entry per field; unwanted ones stay empty */
    int64_t length;
    kc_column *columns;
    kc_budget *budget; /* for the capacity of the columns; NULL: unlimited */
    kc_views views;    /* the buffers of the columns of views */
    uint64_t wanted;   /* a bit for each column that is wanted */
} kc_table;

/* The value of a null slot of a timestamp column: numpy's "not a time". */
#define KC_NOT_A_TIME INT64_MIN

/* A table with one reference. `wanted` has a bit per field. NULL if memory is exhausted. */
kc_table *kc_table_new(const kc_field *fields, int num_fields, uint64_t wanted);

/* The same, with columns whose memory is taken from a budget and returned to it; NULL is none. Fills the error. */
kc_table *kc_table_new_within(const kc_field *fields, int num_fields, uint64_t wanted, kc_budget *budget,
                              kc_error *error);
void kc_table_retain(kc_table *t);
void kc_table_release(kc_table *t);

/* Bytes in use by the buffers of all columns, without the source of views. */
size_t kc_table_bytes(const kc_table *t);

/* Room for `rows` more rows (and `bytes` more bytes of data, if the type has any). */
KC_MUST_CHECK int kc_column_reserve(kc_column *c, int64_t rows, size_t bytes, kc_error *error);

/* The same for an estimate: takes only a small part of a budget, and never fails. */
void kc_column_expect(kc_column *c, int64_t rows, size_t bytes);

/* Marks `row` null. It must have been reserved, but need not be counted in c->length yet. */
KC_MUST_CHECK int kc_column_set_null(kc_column *c, int64_t row, kc_error *error);

/* The bytes at `row` of KC_BINARY, KC_STRING or KC_BINARY_VIEW; *size is -1 for null. */
const uint8_t *kc_column_bytes(const kc_column *c, int64_t row, int32_t *size);

/* Append one value to columns with reserved room; bytes not to KC_BINARY_VIEW. */
KC_MUST_CHECK int kc_column_append_bytes(kc_column *c, const void *data, size_t size, kc_error *error);
KC_MUST_CHECK int kc_column_append_int(kc_column *c, int64_t value, kc_error *error);
KC_MUST_CHECK int kc_column_append_null(kc_column *c, kc_error *error);

/* Append `rows` nulls, to columns of any type but KC_STRUCT (KC_LIMIT). */
KC_MUST_CHECK int kc_column_append_nulls(kc_column *c, int64_t rows, kc_error *error);

/* Append `rows` copies of one integer (KC_BOOL: of its truth value). */
KC_MUST_CHECK int kc_column_append_repeated(kc_column *c, int64_t value, int64_t rows, kc_error *error);

/* Append `rows` copies of one value of KC_BINARY or KC_STRING. */
KC_MUST_CHECK int kc_column_append_repeated_bytes(kc_column *c, const void *data, size_t size, int64_t rows,
                                                  kc_error *error);

/* Whether `from` has the same columns, can be appended, and leaves `spare` bytes and entries below the limit of every
 * column. */
bool kc_table_fits(const kc_table *t, const kc_table *from, size_t spare);

/* Moves all rows of `from` after those of `t`, column by column; `from` is empty afterwards. Both have the same fields
 * and wanted columns, and there are no other references to `from`. */
KC_MUST_CHECK int kc_table_move(kc_table *t, kc_table *from, kc_error *error);

/* The size of a fixed-width value in bytes; 0 for the other types. */
size_t kc_type_width(kc_type type);

#endif
