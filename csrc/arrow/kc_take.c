#include "arrow/kc_take.h"

#include <string.h>

static int take_column(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error);

static bool is_null(const kc_column *c, int64_t row) {
    return c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1);
}

static int take_nulls(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    for (int64_t i = 0; from->null_count && i < count; i++) {
        if (is_null(from, rows[i]) && kc_column_set_null(c, i, error)) return error->code;
    }
    return KC_OK;
}

static int take_bits(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    for (int64_t i = 0; i < count; i++) {
        const int bit = from->values.data[rows[i] / 8] >> (rows[i] % 8) & 1;
        if (kc_column_append_int(c, bit, error)) return error->code;
    }
    return KC_OK;
}

static int take_bytes(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    const int32_t *ends = (const int32_t *)(const void *)from->values.data;
    for (int64_t i = 0; i < count; i++) {
        const int32_t start = ends[rows[i]], end = ends[rows[i] + 1];
        if (kc_column_append_bytes(c, from->data.data + start, (size_t)(end - start), error)) return error->code;
    }
    return KC_OK;
}

static int take_numbers(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    const size_t width = kc_type_width(c->field->type);
    if (kc_column_reserve(c, count, 0, error)) return error->code;
    for (int64_t i = 0; i < count; i++)
        memcpy(c->values.data + (size_t)i * width, from->values.data + (size_t)rows[i] * width, width);
    c->length = count;
    c->values.size = (size_t)count * width;
    return KC_OK;
}

static int take_views(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    for (int64_t i = 0; i < count; i++) {
        const kc_view *v = (const kc_view *)(const void *)from->values.data + rows[i];
        c->viewed += (uint64_t)v->size;
    }
    return take_numbers(c, from, rows, count, error);
}

/* The entries of the lists become the rows of the child. */
static int take_lists(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    const int32_t *ends = (const int32_t *)(const void *)from->values.data;
    if (kc_column_reserve(c, count, 0, error)) return error->code;
    int32_t *out = (int32_t *)(void *)c->values.data;
    int64_t entries = 0;
    for (int64_t i = 0; i < count; i++) {
        entries += ends[rows[i] + 1] - ends[rows[i]];
        if (entries > INT32_MAX)
            return kc_fail(error, KC_LIMIT, "a list column exceeds 2^31 entries", 0, entries, INT32_MAX);
        out[i + 1] = (int32_t)entries;
    }
    c->length = count;
    c->values.size = (size_t)(count + 1) * sizeof(int32_t);
    if (!entries) return KC_OK;
    const bool fits = (uint64_t)entries <= PTRDIFF_MAX / sizeof(int64_t);
    int64_t *children = fits ? kc_alloc((size_t)entries * sizeof *children) : NULL;
    if (!children) return kc_fail(error, KC_NO_MEMORY, "no memory for the chosen rows", 0, 0, 0);
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        for (int32_t entry = ends[rows[i]]; entry < ends[rows[i] + 1]; entry++) children[at++] = entry;
    }
    const int code = take_column(&c->children[0], &from->children[0], children, entries, error);
    kc_free(children);
    return code;
}

static int take_structs(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    for (int i = 0; i < c->field->num_children; i++) {
        if (take_column(&c->children[i], &from->children[i], rows, count, error)) return error->code;
    }
    c->length = count;
    return KC_OK;
}

static int take_column(kc_column *c, const kc_column *from, const int64_t *rows, int64_t count, kc_error *error) {
    int code;
    switch (c->field->type) {
        case KC_BOOL:
            code = take_bits(c, from, rows, count, error);
            break;
        case KC_BINARY:
        case KC_STRING:
            code = take_bytes(c, from, rows, count, error);
            break;
        case KC_BINARY_VIEW:
            code = take_views(c, from, rows, count, error);
            break;
        case KC_LIST:
            code = take_lists(c, from, rows, count, error);
            break;
        case KC_STRUCT:
            return take_structs(c, from, rows, count, error);
        default:
            code = take_numbers(c, from, rows, count, error);
    }
    return code ? code : take_nulls(c, from, rows, count, error);
}

int kc_table_take(kc_table *t, const kc_table *from, const int64_t *rows, int64_t count, kc_error *error) {
    if (kc_views_share(&t->views, &from->views, t->budget, error)) return error->code;
    for (int i = 0; i < t->num_columns; i++) {
        if (t->columns[i].wanted && take_column(&t->columns[i], &from->columns[i], rows, count, error))
            return error->code;
    }
    t->length = count;
    return KC_OK;
}
