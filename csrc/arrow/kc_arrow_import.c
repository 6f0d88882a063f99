#include "arrow/kc_arrow_import.h"

#include <string.h>

/* ---- integers and points in time ------------------------------------------------------------------------------ */

/* Arrow's format strings, up to a time zone, and the conversion to milliseconds. Plain integers are not converted. */
static const struct {
    const char *format;
    kc_layout layout;
    int64_t multiply, divide;
} int_types[] = {
    {"i", KC_LAYOUT_INT32, 1, 1},          {"l", KC_LAYOUT_INT64, 1, 1},       {"tss:", KC_LAYOUT_INT64, 1000, 1},
    {"tsm:", KC_LAYOUT_INT64, 1, 1},       {"tsu:", KC_LAYOUT_INT64, 1, 1000}, {"tsn:", KC_LAYOUT_INT64, 1, 1000000},
    {"tdD", KC_LAYOUT_INT32, 86400000, 1}, {"tdm", KC_LAYOUT_INT64, 1, 1},
};

int kc_arrow_ints_import(kc_arrow_ints *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                         int64_t offset, int64_t length, kc_error *error) {
    memset(c, 0, sizeof *c);
    c->length = length;
    if (strcmp(schema->format, "n") == 0) return KC_OK;
    if (schema->dictionary) return kc_cannot_encode(error, "dictionary-encoded numbers are not supported", 0, 0, 0);
    for (size_t i = 0; i < sizeof int_types / sizeof int_types[0]; i++) {
        const char *format = int_types[i].format;
        bool zoned = strchr(format, ':') != NULL;
        if ((zoned ? strncmp(schema->format, format, strlen(format)) : strcmp(schema->format, format)) != 0) continue;
        c->layout = int_types[i].layout;
        c->multiply = int_types[i].multiply;
        c->divide = int_types[i].divide;
        c->time = format[0] == 't';
        if (kc_array_check(array, offset, length, 2, &c->first, error)) return error->code;
        c->validity = kc_array_validity(array);
        c->values = array->buffers[1];
        if (!c->values && length) return kc_cannot_encode(error, "the array has no data", 0, 0, 0);
        return KC_OK;
    }
    return kc_cannot_encode(error, "the column is neither int32, int64, date nor timestamp", 0, 0, 0);
}

static int64_t divide_down(int64_t value, int64_t divisor) {
    int64_t q = value / divisor;
    return value % divisor < 0 ? q - 1 : q;
}

static int scale(const kc_arrow_ints *c, int64_t row, int64_t n, int64_t *out, kc_error *error) {
    for (int64_t i = 0; i < n; i++) {
        if (c->divide != 1) {
            out[i] = divide_down(out[i], c->divide);
        } else if (out[i] > INT64_MAX / c->multiply || out[i] < INT64_MIN / c->multiply) {
            if (c->validity && !kc_bit_at(c->validity, c->first + row + i)) continue;
            return kc_cannot_encode(error, "a timestamp in milliseconds does not fit 64 bits", row + i, out[i],
                                    INT64_MAX / c->multiply);
        } else {
            out[i] *= c->multiply;
        }
    }
    return KC_OK;
}

int kc_arrow_ints_load(const kc_arrow_ints *c, int64_t row, int64_t n, bool nulls, int64_t null_value, int64_t *out,
                       kc_error *error) {
    if (c->layout == KC_LAYOUT_ABSENT) {
        if (!nulls) return kc_cannot_encode(error, "null in a column that must not have nulls", row, 0, 0);
        for (int64_t i = 0; i < n; i++) out[i] = null_value;
        return KC_OK;
    }
    if (c->layout == KC_LAYOUT_INT64) {
        memcpy(out, (const int64_t *)c->values + c->first + row, (size_t)n * sizeof *out);
    } else {
        const int32_t *values = (const int32_t *)c->values + c->first + row;
        for (int64_t i = 0; i < n; i++) out[i] = values[i];
    }
    if ((c->multiply != 1 || c->divide != 1) && scale(c, row, n, out, error)) return error->code;
    if (!c->validity) return KC_OK;
    for (int64_t i = 0; i < n; i++) {
        if (kc_bit_at(c->validity, c->first + row + i)) continue;
        if (!nulls) return kc_cannot_encode(error, "null in a column that must not have nulls", row + i, 0, 0);
        out[i] = null_value;
    }
    return KC_OK;
}

/* ---- lists of pairs ------------------------------------------------------------------------------------------- */

int kc_struct_check(const struct ArrowSchema *schema, const struct ArrowArray *array, kc_error *error) {
    int64_t first;
    if (strcmp(schema->format, "+s") != 0 || schema->n_children != array->n_children)
        return kc_cannot_encode(error, "the data is not a table: it has no named columns", 0, 0, 0);
    if (kc_array_check(array, 0, array->length, 1, &first, error)) return error->code;
    const uint8_t *validity = kc_array_validity(array);
    for (int64_t i = 0; validity && i < array->length; i++) {
        if (!kc_bit_at(validity, first + i)) return kc_cannot_encode(error, "the row is null", i, 0, 0);
    }
    return KC_OK;
}

/* The indexes of "key" and "value" among the fields of a pair; in a map they may have any names. */
static int pair_fields(const struct ArrowSchema *item, bool map, int64_t place[2], kc_error *error) {
    static const char *const names[2] = {"key", "value"};
    if (strcmp(item->format, "+s") != 0 || item->n_children < 2)
        return kc_cannot_encode(error, "the list's items are not structs of key and value", 0, 0, 0);
    for (int64_t f = 0; f < 2; f++) {
        place[f] = map ? f : -1;
        for (int64_t i = 0; i < item->n_children && !map; i++) {
            const char *name = item->children[i]->name;
            if (name && strcmp(name, names[f]) == 0) place[f] = i;
        }
        if (place[f] < 0) return kc_cannot_encode(error, "the list's items have no fields key and value", 0, 0, 0);
    }
    return KC_OK;
}

static int import_items(kc_arrow_pairs *c, const struct ArrowSchema *schema, const struct ArrowArray *array, bool map,
                        kc_error *error) {
    int64_t place[2];
    if (pair_fields(schema, map, place, error)) return error->code;
    if (schema->n_children != array->n_children)
        return kc_cannot_encode(error, "the array does not match its schema", 0, 0, 0);
    if (kc_array_check(array, 0, array->length, 1, &c->item_first, error)) return error->code;
    c->items = array->length;
    c->item_validity = kc_array_validity(array);
    int64_t k = place[0], v = place[1];
    if (kc_arrow_bytes_import(&c->key, schema->children[k], array->children[k], c->item_first, c->items, error))
        return error->code;
    return kc_arrow_bytes_import(&c->value, schema->children[v], array->children[v], c->item_first, c->items, error);
}

int kc_arrow_pairs_import(kc_arrow_pairs *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                          int64_t offset, int64_t length, kc_error *error) {
    memset(c, 0, sizeof *c);
    c->length = length;
    if (strcmp(schema->format, "n") == 0) return KC_OK;
    bool map = strcmp(schema->format, "+m") == 0;
    if (map || strcmp(schema->format, "+l") == 0)
        c->layout = KC_LAYOUT_OFFSETS32;
    else if (strcmp(schema->format, "+L") == 0)
        c->layout = KC_LAYOUT_OFFSETS64;
    else
        return kc_cannot_encode(error, "the column is not a map or a list of structs of key and value", 0, 0, 0);
    if (kc_array_check(array, offset, length, 2, &c->first, error)) return error->code;
    if (schema->n_children != 1 || array->n_children != 1)
        return kc_cannot_encode(error, "the list has no items column", 0, array->n_children, 1);
    c->validity = kc_array_validity(array);
    c->index = array->buffers[1];
    if (!c->index && length) return kc_cannot_encode(error, "the array has no data", 0, 0, 0);
    return import_items(c, schema->children[0], array->children[0], map, error);
}

int kc_arrow_pairs_load(const kc_arrow_pairs *c, int64_t row, int64_t n, int64_t *bounds, kc_error *error) {
    memset(bounds, 0, (size_t)n * 2 * sizeof *bounds);
    for (int64_t i = 0; c->layout != KC_LAYOUT_ABSENT && i < n; i++) {
        int64_t at = c->first + row + i;
        if (c->validity && !kc_bit_at(c->validity, at)) continue;
        int64_t start = kc_offset_at(c->layout, c->index, at), end = kc_offset_at(c->layout, c->index, at + 1);
        if (KC_UNLIKELY(start < 0 || end < start || end > c->items))
            return kc_cannot_encode(error, "the list's offsets decrease or exceed its items", row + i, end, c->items);
        bounds[2 * i] = start;
        bounds[2 * i + 1] = end;
    }
    return KC_OK;
}

int kc_arrow_pairs_items(const kc_arrow_pairs *c, int64_t item, int64_t n, kc_spans *keys, kc_spans *values,
                         kc_error *error) {
    if (kc_arrow_bytes_load(&c->key, item, n, keys, error)) return error->code;
    if (kc_arrow_bytes_load(&c->value, item, n, values, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        if (c->item_validity && !kc_bit_at(c->item_validity, c->item_first + item + i))
            return kc_cannot_encode(error, "a header is null", item + i, 0, 0);
        if (keys->size[i] < 0) return kc_cannot_encode(error, "a header's key is null", item + i, 0, 0);
    }
    return KC_OK;
}
