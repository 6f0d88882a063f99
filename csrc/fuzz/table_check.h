/* Invariants of every table that a decoder filled. */
#ifndef TABLE_CHECK_H
#define TABLE_CHECK_H

#include <string.h>

#include "arrow/kc_table.h"
#include "base/kc_utf8.h"
#include "fuzz.h"

/* Every byte of an exported buffer has been written: otherwise earlier contents of the memory would leak. Checked only
 * under MemorySanitizer. */
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

/* Every view is valid in Arrow: inline and padded with zeros, or a prefix and a range inside its buffer. */
static inline void check_views(const kc_column *c) {
    static const uint8_t zeros[KC_VIEW_INLINED];
    const kc_view *views = (const kc_view *)(const void *)c->values.data;
    uint64_t viewed = 0;
    for (int64_t row = 0; row < c->length; row++) {
        const kc_view *v = &views[row];
        MUST(v->size >= 0);
        viewed += (uint32_t)v->size;
        if (v->size <= KC_VIEW_INLINED) {
            MUST(memcmp(v->at.inlined + v->size, zeros, (size_t)(KC_VIEW_INLINED - v->size)) == 0);
            continue;
        }
        MUST(v->at.far.buffer >= 0 && v->at.far.buffer < kc_views_count(c->views) && v->at.far.position >= 0);
        const kc_view_buffer *b = kc_views_at(c->views, v->at.far.buffer);
        MUST((size_t)v->at.far.position <= b->size && (size_t)v->size <= b->size - (size_t)v->at.far.position);
#if !defined(KC_CHANGING_INPUT)
        MUST(memcmp(b->data + v->at.far.position, v->at.far.prefix, sizeof v->at.far.prefix) == 0);
#endif
        MUST(!c->null_count || c->validity.data[row / 8] >> (row % 8) & 1);
    }
    MUST(viewed == c->viewed);
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
        if (type == KC_BINARY_VIEW) check_views(c);
    }
    check_validity(c);
}

static inline void check_table(const kc_table *t) {
    for (int i = 0; i < t->num_columns; i++) {
        if (t->columns[i].wanted) check_column(&t->columns[i], t->length);
    }
}

/* FNV-1a over the bytes of a column's rows, with their lengths, so that chunks can be compared with one table. */
static inline uint64_t mix(uint64_t hash, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return (hash ^ size) * UINT64_C(0x100000001b3);
}

static inline uint64_t mix_rows(uint64_t hash, const kc_column *c, int64_t row) {
    const kc_type type = c->field->type;
    if (c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1)) return mix(hash, NULL, 0);
    if (type == KC_BINARY || type == KC_STRING || type == KC_BINARY_VIEW) {
        int32_t size;
        const uint8_t *data = kc_column_bytes(c, row, &size);
        return mix(hash, data, (size_t)size);
    }
    const size_t width = kc_type_width(type);
    if (width) return mix(hash, c->values.data + (size_t)row * width, width);
    const int32_t *ends = (const int32_t *)(const void *)c->values.data;
    if (type == KC_LIST) {
        const kc_column *entries = c->children->children;
        for (int32_t i = ends[row]; i < ends[row + 1]; i++) {
            hash = mix_rows(mix_rows(hash, &entries[0], i), &entries[1], i);
        }
    }
    return hash;
}

#endif
