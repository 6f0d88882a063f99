#include "arrow/kc_find_rows.h"

#include <string.h>

/* The rows from `row` on, one by one. */
static void search_each(const kc_column *c, kc_finder *f, int64_t row, uint8_t *hits) {
    for (; row < c->length; row++) {
        int32_t size;
        const uint8_t *value = kc_column_bytes(c, row, &size);
        if (size >= 0 && (size_t)size >= f->needle->size && kc_find(f, value, (size_t)size)) hits[row] = 1;
    }
}

/* The row that has the byte at a position; `row` is not after it. */
static int64_t row_at(const int32_t *ends, int64_t row, int64_t length, size_t position) {
    int64_t step = 1;
    while (row + step < length && (size_t)ends[row + step] <= position) {
        row += step;
        step *= 2;
    }
    int64_t end = row + step < length ? row + step : length;
    while (end - row > 1) {
        const int64_t middle = row + (end - row) / 2;
        if ((size_t)ends[middle] <= position)
            row = middle;
        else
            end = middle;
    }
    return row;
}

/* The values are contiguous, so all of them are searched at once. A hit counts if it ends in the row in which it
 * starts; otherwise, so would every hit that starts later in this row. */
static void search_together(const kc_column *c, kc_finder *f, uint8_t *hits) {
    const int32_t *ends = (const int32_t *)(const void *)c->values.data;
    const size_t total = (size_t)ends[c->length];
    size_t at = 0;
    int64_t row = 0;
    while (at < total && !kc_finder_is_slow(f)) {
        const uint8_t *hit = kc_find(f, c->data.data + at, total - at);
        if (!hit) return;
        const size_t start = (size_t)(hit - c->data.data);
        row = row_at(ends, row, c->length, start);
        at = (size_t)ends[row + 1];
        if (start + f->needle->size <= at) hits[row] = 1;
    }
    if (at < total) search_each(c, f, row_at(ends, row, c->length, at), hits);
}

static void compare_each(const kc_column *c, const kc_needle *n, uint8_t *hits) {
    for (int64_t row = 0; row < c->length; row++) {
        int32_t size;
        const uint8_t *value = kc_column_bytes(c, row, &size);
        if (size >= 0 && (size_t)size == n->size) hits[row] = size == 0 || memcmp(value, n->bytes, n->size) == 0;
    }
}

/* Where the data for a sample starts, and how much of it there is: all values, or the first long view. */
static const uint8_t *sample_of(const kc_column *c, size_t *size) {
    if (c->field->type != KC_BINARY_VIEW) {
        *size = (size_t)((const int32_t *)(const void *)c->values.data)[c->length];
        return c->data.data;
    }
    const bool any = c->views && kc_views_count(c->views) > 0;
    *size = any ? kc_views_at(c->views, 0)->size : 0;
    return any ? kc_views_at(c->views, 0)->data : NULL;
}

void kc_find_rows(const kc_column *c, const kc_needle *n, kc_match match, uint8_t *hits) {
    if (!c->length) return;
    if (match == KC_MATCH_WHOLE) {
        compare_each(c, n, hits);
        return;
    }
    size_t size;
    const uint8_t *sample = sample_of(c, &size);
    kc_finder f = kc_finder_start(n, sample, size);
    if (c->field->type == KC_BINARY_VIEW || !n->size)
        search_each(c, &f, 0, hits);
    else
        search_together(c, &f, hits);
}
