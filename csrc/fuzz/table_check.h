/* What must hold of every table that a decoder filled. */
#ifndef TABLE_CHECK_H
#define TABLE_CHECK_H

#include "arrow/kc_table.h"
#include "base/kc_utf8.h"
#include "fuzz.h"

/* Every byte that goes out with a buffer has been written: what was in the memory before would leak. Known to
 * MemorySanitizer alone. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define CHECK_WRITTEN(data, size) __msan_check_mem_is_initialized((data), (size))
#endif
#endif
#ifndef CHECK_WRITTEN
#define CHECK_WRITTEN(data, size) ((void)(data), (void)(size))
#endif

static inline void check_written(const kc_column *c) {
    if (c->null_count) CHECK_WRITTEN(c->validity.data, ((size_t)c->length + 7) / 8);
    if (c->values.size) CHECK_WRITTEN(c->values.data, c->values.size);
    if (c->data.size) CHECK_WRITTEN(c->data.data, c->data.size);
}

static inline void check_validity(const kc_column *c) {
    int64_t nulls = 0;
    if (c->null_count) {
        for (int64_t row = 0; row < c->length; row++) nulls += !(c->validity.data[row / 8] >> (row % 8) & 1);
    }
    MUST(nulls == c->null_count);
}

static inline void check_column(const kc_column *c, int64_t length) {
    const kc_type type = c->field->type;
    MUST(c->length == length);
    check_written(c);
    if (type == KC_BINARY || type == KC_STRING || type == KC_LIST) {
        const int32_t *ends = (const int32_t *)(const void *)c->values.data;
        MUST(c->values.size == ((size_t)length + 1) * sizeof *ends && ends[0] == 0);
        for (int64_t row = 0; row < length; row++) MUST(ends[row] <= ends[row + 1]);
        if (type != KC_LIST) MUST((size_t)ends[length] == c->data.size);
        if (type == KC_LIST) check_column(&c->children[0], ends[length]);
        if (type == KC_STRING && c->data.size) MUST(kc_utf8_valid(c->data.data, c->data.size));
    } else if (type == KC_STRUCT) {
        for (int i = 0; i < c->field->num_children; i++) check_column(&c->children[i], length);
    } else if (type != KC_BOOL) {
        MUST(c->values.size == (size_t)length * kc_type_width(type));
    }
    check_validity(c);
}

static inline void check_table(const kc_table *t) {
    for (int i = 0; i < t->num_columns; i++) {
        if (t->columns[i].wanted) check_column(&t->columns[i], t->length);
    }
}

/* FNV-1a over the bytes of a column's rows, cells kept apart, so that chunked and whole tables can be compared. */
static inline uint64_t mix(uint64_t hash, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return (hash ^ size) * UINT64_C(0x100000001b3);
}

static inline uint64_t mix_rows(uint64_t hash, const kc_column *c, int64_t row) {
    if (c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1)) return mix(hash, NULL, 0);
    const size_t width = kc_type_width(c->field->type);
    if (width) return mix(hash, c->values.data + (size_t)row * width, width);
    const int32_t *ends = (const int32_t *)(const void *)c->values.data;
    if (c->field->type == KC_BINARY || c->field->type == KC_STRING) {
        const size_t size = (size_t)(ends[row + 1] - ends[row]);
        return mix(hash, size ? c->data.data + ends[row] : NULL, size);
    }
    if (c->field->type == KC_LIST) {
        const kc_column *entries = c->children->children;
        for (int32_t i = ends[row]; i < ends[row + 1]; i++) {
            hash = mix_rows(mix_rows(hash, &entries[0], i), &entries[1], i);
        }
    }
    return hash;
}

#endif
