#include "encode/kc_input.h"

#include <string.h>

#include "arrow/kc_arrow_check.h"
#include "base/kc_varint.h"
#include "decode/kc_record_table.h"

/* ---- chunks --------------------------------------------------------------------------------------------------- */

static const char *const column_names[] = {"key", "value", "offset", "timestamp", "headers"};
enum { KEY, VALUE, OFFSET, TIMESTAMP, HEADERS, COLUMNS };

static int column_of(const char *name) {
    int column = 0;
    while (name && column < COLUMNS && strcmp(name, column_names[column]) != 0) column++;
    return name ? column : COLUMNS;
}

bool kc_is_record_column(const char *name) {
    /* Of Kafka 0.7 and of Spark, of typed keys and values, and the beginning of the columns of an index of pandas. */
    static const char *const others[] = {"next_offset", "timestampType",   "key_schema_id",
                                         "key_error",   "value_schema_id", "value_error"};
    static const char pandas[] = "__index_level_";
    for (int i = 0; i < KC_NUM_RECORD_COLUMNS; i++)
        if (strcmp(name, kc_record_fields[i].name) == 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0) return true;
    return strncmp(name, pandas, sizeof pandas - 1) == 0;
}

int kc_plain_int_import(kc_arrow_ints *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                        int64_t offset, int64_t rows, kc_error *error) {
    if (strchr("iln", schema->format[0]) == NULL || schema->format[1])
        return kc_fail(error, KC_CANNOT_ENCODE, "the column is neither int32 nor int64", 0, 0, 0);
    return kc_arrow_ints_import(c, schema, array, offset, rows, error);
}

static int import_column(kc_input_chunk *chunk, int column, const struct ArrowSchema *schema,
                         const struct ArrowArray *array, int64_t offset, kc_error *error) {
    switch (column) {
        case KEY:
            return kc_arrow_bytes_import(&chunk->key, schema, array, offset, chunk->rows, error);
        case VALUE:
            return kc_arrow_bytes_import(&chunk->value, schema, array, offset, chunk->rows, error);
        case OFFSET:
            return kc_plain_int_import(&chunk->offset, schema, array, offset, chunk->rows, error);
        case TIMESTAMP:
            return kc_arrow_ints_import(&chunk->timestamp, schema, array, offset, chunk->rows, error);
        default:
            return kc_arrow_pairs_import(&chunk->headers, schema, array, offset, chunk->rows, error);
    }
}

int kc_input_chunk_import(kc_input_chunk *chunk, const struct ArrowSchema *schema, const struct ArrowArray *array,
                          const char **name, kc_error *error) {
    memset(chunk, 0, sizeof *chunk);
    *name = NULL;
    if (kc_struct_check(schema, array, error)) return error->code;
    chunk->rows = array->length;
    unsigned seen = 0;
    for (int64_t i = 0; i < schema->n_children; i++) {
        const char *found = schema->children[i]->name ? schema->children[i]->name : "";
        int column = column_of(found);
        if (column == COLUMNS && kc_is_record_column(found)) continue;
        if (column == COLUMNS) {
            *name = found;
            return kc_fail(error, KC_CANNOT_ENCODE, "unknown column", 0, 0, 0);
        }
        *name = column_names[column];
        if (seen & 1u << column) return kc_fail(error, KC_CANNOT_ENCODE, "duplicate column name", 0, 0, 0);
        seen |= 1u << column;
        if (import_column(chunk, column, schema->children[i], array->children[i], array->offset, error))
            return error->code;
    }
    *name = NULL;
    if (!(seen & (1u << KEY | 1u << VALUE)))
        return kc_fail(error, KC_CANNOT_ENCODE, "no column is named key or value", 0, 0, 0);
    return KC_OK;
}

static bool is_text(const struct ArrowSchema *column) {
    return !column->dictionary && column->format && column->format[0] && strchr("zuZU", column->format[0]) &&
           !column->format[1];
}

static bool is_sent_too(const char *name) {
    static const char *const names[] = {"timestamp", "headers", "topic", "partition"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

bool kc_key_values_import(kc_arrow_bytes *key, kc_arrow_bytes *value, const struct ArrowSchema *schema,
                          const struct ArrowArray *array) {
    kc_error error;
    memset(key, 0, sizeof *key);
    memset(value, 0, sizeof *value);
    if (kc_struct_check(schema, array, &error)) return false;
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *kind = schema->children[i];
        const int column = column_of(kind->name);
        if (column != KEY && column != VALUE) {
            if (!kind->name || is_sent_too(kind->name) || !kc_is_record_column(kind->name)) return false;
            continue;
        }
        kc_arrow_bytes *found = column == KEY ? key : value;
        if (found->layout != KC_LAYOUT_ABSENT || !is_text(kind)) return false;
        if (kc_arrow_bytes_import(found, kind, array->children[i], array->offset, array->length, &error)) return false;
    }
    return key->layout != KC_LAYOUT_ABSENT || value->layout != KC_LAYOUT_ABSENT;
}

size_t kc_input_chunk_bytes(const kc_input_chunk *chunk) {
    enum { RECORD_BYTES = 24, HEADER_BYTES = 2 }; /* lengths and deltas, with some to spare */
    const kc_arrow_pairs *headers = &chunk->headers;
    const int64_t rows = chunk->rows;
    return kc_arrow_bytes_extent(&chunk->key) + kc_arrow_bytes_extent(&chunk->value) +
           kc_arrow_bytes_extent(&headers->key) + kc_arrow_bytes_extent(&headers->value) + (size_t)rows * RECORD_BYTES +
           (size_t)headers->items * HEADER_BYTES;
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* The bytes of header items [start, end), without their count. */
static int add_items(const kc_arrow_pairs *c, int64_t start, int64_t end, int64_t *bytes, kc_error *error) {
    kc_spans keys, values;
    while (start < end) {
        int64_t n = end - start < KC_BLOCK_ROWS ? end - start : KC_BLOCK_ROWS;
        if (kc_arrow_pairs_items(c, start, n, &keys, &values, error)) return error->code;
        for (int64_t i = 0; i < n; i++) *bytes += kc_span_bytes(keys.size[i]) + kc_span_bytes(values.size[i]);
        start += n;
    }
    return KC_OK;
}

static int add_headers(kc_input_block *block, const kc_input_chunk *chunk, int64_t row, int64_t n, kc_error *error) {
    if (kc_arrow_pairs_load(&chunk->headers, row, n, block->header_bounds, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        int64_t start = block->header_bounds[2 * i], end = block->header_bounds[2 * i + 1];
        if (start == end) continue;
        if (KC_UNLIKELY(end - start > INT32_MAX))
            return kc_fail(error, KC_CANNOT_ENCODE, "too many headers", (uint64_t)(row + i), end - start, INT32_MAX);
        block->fixed_bytes[i] += (int64_t)kc_varint32_size((int32_t)(end - start)) - 1;
        if (add_items(&chunk->headers, start, end, &block->fixed_bytes[i], error)) {
            error->position = (uint64_t)(row + i);
            return error->code;
        }
    }
    return KC_OK;
}

/* -1 is the mark for no timestamp: as a time, it would be read as none. */
static int refuse_mark(const kc_arrow_ints *c, const kc_input_block *block, int64_t row, kc_error *error) {
    if (!c->time) return KC_OK;
    const int64_t *const times = block->timestamp, rows = block->rows;
    for (int64_t i = 0; i < rows; i++) {
        if (times[i] != -1 || (c->validity && !kc_bit_at(c->validity, c->first + row + i))) continue;
        return kc_cannot_encode(error, "1969-12-31 23:59:59.999 is the mark for no timestamp", row + i, -1, 0);
    }
    return KC_OK;
}

int kc_input_block_load(kc_input_block *block, const kc_input_chunk *chunk, int64_t row, int64_t n, int64_t next_offset,
                        kc_error *error) {
    block->rows = n;
    if (chunk->offset.layout == KC_LAYOUT_ABSENT) {
        for (int64_t i = 0; i < n; i++) block->offset[i] = (int64_t)((uint64_t)next_offset + (uint64_t)i);
    } else if (kc_arrow_ints_load(&chunk->offset, row, n, false, 0, block->offset, error)) {
        return error->code;
    }
    if (kc_arrow_ints_load(&chunk->timestamp, row, n, true, -1, block->timestamp, error)) return error->code;
    if (refuse_mark(&chunk->timestamp, block, row, error)) return error->code;
    if (kc_arrow_bytes_load(&chunk->key, row, n, &block->key, error)) return error->code;
    if (kc_arrow_bytes_load(&chunk->value, row, n, &block->value, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        /* attributes, key, value and an empty list's count */
        block->fixed_bytes[i] = 2 + kc_span_bytes(block->key.size[i]) + kc_span_bytes(block->value.size[i]);
    }
    block->has_headers = chunk->headers.layout != KC_LAYOUT_ABSENT;
    return block->has_headers ? add_headers(block, chunk, row, n, error) : KC_OK;
}
