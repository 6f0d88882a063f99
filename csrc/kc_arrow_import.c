#include "kc_arrow_import.h"

#include <string.h>

#include "kc_copy.h"

static bool bit_at(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

static int fail(kc_error *error, const char *what, int64_t row, int64_t got, int64_t want) {
    return kc_fail(error, KC_CANNOT_ENCODE, what, (uint64_t)row, got, want);
}

static const char dictionary[] = "the column is dictionary-encoded, which is not read here";

/* The first row of an array among its buffers, once everything that the struct itself says is plausible. */
static int check_array(const struct ArrowArray *array, int64_t offset, int64_t length, int64_t buffers, int64_t *first,
                       kc_error *error) {
    if (array->length < 0 || array->offset < 0 || array->offset > INT64_MAX / 32 || array->length > INT64_MAX / 32)
        return fail(error, "an impossible array length or offset", 0, array->length, array->offset);
    if (offset < 0 || length < 0 || offset > array->length || length > array->length - offset)
        return fail(error, "the column is shorter than its table", 0, array->length, offset + length);
    if (array->n_buffers < buffers || !array->buffers)
        return fail(error, "the array has too few buffers", 0, array->n_buffers, buffers);
    *first = array->offset + offset;
    return KC_OK;
}

static const uint8_t *validity_of(const struct ArrowArray *array) {
    return array->null_count == 0 ? NULL : (const uint8_t *)array->buffers[0];
}

/* The value at `i` of an offsets buffer. */
static int64_t offset_at(kc_layout layout, const void *index, int64_t i) {
    return layout == KC_LAYOUT_OFFSETS32 ? ((const int32_t *)index)[i] : ((const int64_t *)index)[i];
}

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

static kc_layout bytes_layout(const char *format) {
    if (strcmp(format, "z") == 0 || strcmp(format, "u") == 0) return KC_LAYOUT_OFFSETS32;
    if (strcmp(format, "Z") == 0 || strcmp(format, "U") == 0) return KC_LAYOUT_OFFSETS64;
    if (strcmp(format, "vz") == 0 || strcmp(format, "vu") == 0) return KC_LAYOUT_VIEWS;
    if (strncmp(format, "w:", 2) == 0) return KC_LAYOUT_FIXED;
    return KC_LAYOUT_ABSENT;
}

/* The number behind "w:". */
static int fixed_width(const char *format, int64_t *width, kc_error *error) {
    int64_t w = 0;
    for (const char *p = format + 2; *p; p++) {
        if (*p < '0' || *p > '9' || w > INT32_MAX / 16) return fail(error, "an impossible fixed size", 0, w, INT32_MAX);
        w = 10 * w + (*p - '0');
    }
    *width = w;
    return KC_OK;
}

static int import_views(kc_bytes_column *c, const struct ArrowArray *array, kc_error *error) {
    c->view_buffers = array->n_buffers - 3;
    c->view_data = array->buffers + 2;
    c->view_sizes = array->buffers[array->n_buffers - 1];
    if (c->view_buffers > 0 && !c->view_sizes) return fail(error, "the array has no buffer sizes", 0, 0, 0);
    return KC_OK;
}

static int import_offsets(kc_bytes_column *c, const struct ArrowArray *array, kc_error *error) {
    c->data = array->buffers[2];
    c->end = c->length ? offset_at(c->layout, c->index, c->first + c->length) : 0;
    if (c->end < 0 || (c->end > 0 && !c->data)) return fail(error, "the array has no data", 0, c->end, 0);
    return KC_OK;
}

int kc_bytes_column_import(kc_bytes_column *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                           int64_t offset, int64_t length, kc_error *error) {
    memset(c, 0, sizeof *c);
    c->length = length;
    if (strcmp(schema->format, "n") == 0) return KC_OK; /* the null type: absent */
    c->layout = bytes_layout(schema->format);
    if (schema->dictionary) return fail(error, dictionary, 0, 0, 0);
    if (c->layout == KC_LAYOUT_ABSENT)
        return fail(error, "the column is neither bytes nor text (binary, string, or their large and view forms)", 0, 0,
                    0);
    int64_t buffers = c->layout == KC_LAYOUT_FIXED ? 2 : 3;
    if (check_array(array, offset, length, buffers, &c->first, error)) return error->code;
    c->validity = validity_of(array);
    c->index = array->buffers[1];
    if (!c->index && length) {
        if (c->layout == KC_LAYOUT_FIXED && strcmp(schema->format, "w:0") == 0) return KC_OK;
        return fail(error, "the array has no data", 0, 0, 0);
    }
    if (c->layout == KC_LAYOUT_VIEWS) return import_views(c, array, error);
    if (c->layout == KC_LAYOUT_FIXED) return fixed_width(schema->format, &c->width, error);
    return import_offsets(c, array, error);
}

/* A pointer that is used only after its offset turned out to be good. */
static const uint8_t *displaced(const uint8_t *data, int64_t offset) {
    return (const uint8_t *)((uintptr_t)data + (uintptr_t)offset);
}

static int load_offsets32(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    const int32_t *offsets = (const int32_t *)c->index + c->first + row;
    int32_t bad = offsets[0];
    for (int64_t i = 0; i < n; i++) {
        int32_t size = (int32_t)((uint32_t)offsets[i + 1] - (uint32_t)offsets[i]);
        out->data[i] = displaced(c->data, offsets[i]);
        out->size[i] = size;
        bad |= offsets[i + 1] | size;
    }
    if (KC_UNLIKELY(bad < 0 || offsets[n] > c->end))
        return fail(error, "the array's offsets decrease or pass its end", row, 0, 0);
    out->wide = c->end - offsets[n] >= KC_COPY_SLACK;
    return KC_OK;
}

static int load_offsets64(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    const int64_t *offsets = (const int64_t *)c->index + c->first + row;
    int64_t bad = offsets[0], all = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = (int64_t)((uint64_t)offsets[i + 1] - (uint64_t)offsets[i]);
        out->data[i] = displaced(c->data, offsets[i]);
        out->size[i] = (int32_t)size;
        bad |= offsets[i + 1] | size;
        all |= size;
    }
    if (KC_UNLIKELY(bad < 0 || offsets[n] > c->end))
        return fail(error, "the array's offsets decrease or pass its end", row, 0, 0);
    if (KC_UNLIKELY(all > INT32_MAX)) {
        int64_t i = 0;
        while (i < n - 1 && offsets[i + 1] - offsets[i] <= INT32_MAX) i++;
        return fail(error, "a value is longer than the format can hold", row + i, offsets[i + 1] - offsets[i],
                    INT32_MAX);
    }
    out->wide = c->end - offsets[n] >= KC_COPY_SLACK;
    return KC_OK;
}

static int load_views(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    const kc_view *views = (const kc_view *)c->index + c->first + row;
    bool wide = (c->length - row - n) * (int64_t)sizeof *views >= KC_COPY_SLACK; /* for bytes that lie in a view */
    for (int64_t i = 0; i < n; i++) {
        const kc_view *v = views + i;
        out->data[i] = v->at.inlined;
        out->size[i] = v->size;
        if (c->validity && !bit_at(c->validity, c->first + row + i)) continue;
        if (KC_UNLIKELY(v->size < 0)) return fail(error, "a view has a negative length", row + i, v->size, 0);
        if (v->size <= 12) continue;
        int32_t buffer = v->at.far.buffer, position = v->at.far.position;
        if (KC_UNLIKELY(buffer < 0 || buffer >= c->view_buffers || !c->view_data[buffer]))
            return fail(error, "a view names a buffer that is not there", row + i, buffer, c->view_buffers);
        if (KC_UNLIKELY(position < 0 || v->size > c->view_sizes[buffer] - position))
            return fail(error, "a view passes the end of its buffer", row + i, position, c->view_sizes[buffer]);
        out->data[i] = (const uint8_t *)c->view_data[buffer] + position;
        wide = wide && c->view_sizes[buffer] - position - v->size >= KC_COPY_SLACK;
    }
    out->wide = wide;
    return KC_OK;
}

static int load_fixed(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out) {
    for (int64_t i = 0; i < n; i++) {
        out->data[i] = c->width ? (const uint8_t *)c->index + (c->first + row + i) * c->width : NULL;
        out->size[i] = (int32_t)c->width;
    }
    out->wide = c->width && (c->length - row - n) * c->width >= KC_COPY_SLACK;
    return KC_OK;
}

static void load_absent(int64_t n, kc_spans *out) {
    for (int64_t i = 0; i < n; i++) {
        out->data[i] = NULL;
        out->size[i] = -1;
    }
}

static void apply_nulls(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out) {
    for (int64_t i = 0; i < n; i++) {
        if (!bit_at(c->validity, c->first + row + i)) out->size[i] = -1;
    }
}

int kc_bytes_column_load(const kc_bytes_column *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    int code = KC_OK;
    out->wide = false;
    switch (c->layout) {
        case KC_LAYOUT_OFFSETS32:
            code = load_offsets32(c, row, n, out, error);
            break;
        case KC_LAYOUT_OFFSETS64:
            code = load_offsets64(c, row, n, out, error);
            break;
        case KC_LAYOUT_VIEWS:
            code = load_views(c, row, n, out, error);
            break;
        case KC_LAYOUT_FIXED:
            code = load_fixed(c, row, n, out);
            break;
        default:
            load_absent(n, out);
            return KC_OK;
    }
    if (code == KC_OK && c->validity) apply_nulls(c, row, n, out);
    return code;
}

static size_t views_extent(const kc_bytes_column *c) {
    const kc_view *views = (const kc_view *)c->index + c->first;
    size_t extent = 0;
    for (int64_t i = 0; i < c->length; i++) extent += views[i].size > 0 ? (size_t)views[i].size : 0;
    return extent;
}

size_t kc_bytes_column_extent(const kc_bytes_column *c) {
    if (c->length == 0) return 0;
    if (c->layout == KC_LAYOUT_VIEWS) return views_extent(c);
    if (c->layout == KC_LAYOUT_FIXED) return (size_t)(c->length * c->width);
    if (c->layout == KC_LAYOUT_ABSENT) return 0;
    const int64_t start = offset_at(c->layout, c->index, c->first);
    return start >= 0 && start <= c->end ? (size_t)(c->end - start) : 0;
}

/* ---- integers and points in time ------------------------------------------------------------------------------ */

/* Arrow's format strings, up to a time zone, and how to make milliseconds of them. Plain integers stay as they are. */
static const struct {
    const char *format;
    kc_layout layout;
    int64_t multiply, divide;
} int_types[] = {
    {"i", KC_LAYOUT_INT32, 1, 1},          {"l", KC_LAYOUT_INT64, 1, 1},       {"tss:", KC_LAYOUT_INT64, 1000, 1},
    {"tsm:", KC_LAYOUT_INT64, 1, 1},       {"tsu:", KC_LAYOUT_INT64, 1, 1000}, {"tsn:", KC_LAYOUT_INT64, 1, 1000000},
    {"tdD", KC_LAYOUT_INT32, 86400000, 1}, {"tdm", KC_LAYOUT_INT64, 1, 1},
};

int kc_int_column_import(kc_int_column *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                         int64_t offset, int64_t length, kc_error *error) {
    memset(c, 0, sizeof *c);
    c->length = length;
    if (strcmp(schema->format, "n") == 0) return KC_OK;
    if (schema->dictionary) return fail(error, dictionary, 0, 0, 0);
    for (size_t i = 0; i < sizeof int_types / sizeof int_types[0]; i++) {
        const char *format = int_types[i].format;
        bool zoned = strchr(format, ':') != NULL;
        if (zoned ? strncmp(schema->format, format, strlen(format)) : strcmp(schema->format, format)) continue;
        c->layout = int_types[i].layout;
        c->multiply = int_types[i].multiply;
        c->divide = int_types[i].divide;
        if (check_array(array, offset, length, 2, &c->first, error)) return error->code;
        c->validity = validity_of(array);
        c->values = array->buffers[1];
        if (!c->values && length) return fail(error, "the array has no data", 0, 0, 0);
        return KC_OK;
    }
    return fail(error, "the column is neither int32, int64, date nor timestamp", 0, 0, 0);
}

static int64_t divide_down(int64_t value, int64_t divisor) {
    int64_t q = value / divisor;
    return value % divisor < 0 ? q - 1 : q;
}

static int scale(const kc_int_column *c, int64_t row, int64_t n, int64_t *out, kc_error *error) {
    for (int64_t i = 0; i < n; i++) {
        if (c->divide != 1) {
            out[i] = divide_down(out[i], c->divide);
        } else if (out[i] > INT64_MAX / c->multiply || out[i] < INT64_MIN / c->multiply) {
            if (c->validity && !bit_at(c->validity, c->first + row + i)) continue;
            return fail(error, "a time does not fit 64 bits of milliseconds", row + i, out[i], INT64_MAX / c->multiply);
        } else {
            out[i] *= c->multiply;
        }
    }
    return KC_OK;
}

int kc_int_column_load(const kc_int_column *c, int64_t row, int64_t n, bool nulls, int64_t null_value, int64_t *out,
                       kc_error *error) {
    if (c->layout == KC_LAYOUT_ABSENT) {
        if (!nulls) return fail(error, "null, where a value is needed", row, 0, 0);
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
        if (bit_at(c->validity, c->first + row + i)) continue;
        if (!nulls) return fail(error, "null, where a value is needed", row + i, 0, 0);
        out[i] = null_value;
    }
    return KC_OK;
}

/* ---- lists of pairs ------------------------------------------------------------------------------------------- */

int kc_struct_check(const struct ArrowSchema *schema, const struct ArrowArray *array, kc_error *error) {
    int64_t first;
    if (strcmp(schema->format, "+s") != 0 || schema->n_children != array->n_children)
        return fail(error, "the data is no table: it has no named columns", 0, 0, 0);
    if (check_array(array, 0, array->length, 1, &first, error)) return error->code;
    const uint8_t *validity = validity_of(array);
    for (int64_t i = 0; validity && i < array->length; i++) {
        if (!bit_at(validity, first + i)) return fail(error, "the row is null as a whole", i, 0, 0);
    }
    return KC_OK;
}

/* The places of "key" and "value" among the pair's fields; maps may name them anything. */
static int pair_fields(const struct ArrowSchema *item, bool map, int64_t place[2], kc_error *error) {
    static const char *const names[2] = {"key", "value"};
    if (strcmp(item->format, "+s") != 0 || item->n_children < 2)
        return fail(error, "the list's items are no structs of key and value", 0, 0, 0);
    for (int64_t f = 0; f < 2; f++) {
        place[f] = map ? f : -1;
        for (int64_t i = 0; i < item->n_children && !map; i++) {
            const char *name = item->children[i]->name;
            if (name && strcmp(name, names[f]) == 0) place[f] = i;
        }
        if (place[f] < 0) return fail(error, "the list's items have no fields key and value", 0, 0, 0);
    }
    return KC_OK;
}

static int import_items(kc_pairs_column *c, const struct ArrowSchema *schema, const struct ArrowArray *array, bool map,
                        kc_error *error) {
    int64_t place[2];
    if (pair_fields(schema, map, place, error)) return error->code;
    if (schema->n_children != array->n_children) return fail(error, "the array is not of its schema", 0, 0, 0);
    if (check_array(array, 0, array->length, 1, &c->item_first, error)) return error->code;
    c->items = array->length;
    c->item_validity = validity_of(array);
    int64_t k = place[0], v = place[1];
    if (kc_bytes_column_import(&c->key, schema->children[k], array->children[k], c->item_first, c->items, error))
        return error->code;
    return kc_bytes_column_import(&c->value, schema->children[v], array->children[v], c->item_first, c->items, error);
}

int kc_pairs_column_import(kc_pairs_column *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
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
        return fail(error, "the column is no list of structs of key and value, and no map", 0, 0, 0);
    if (check_array(array, offset, length, 2, &c->first, error)) return error->code;
    if (schema->n_children != 1 || array->n_children != 1)
        return fail(error, "the list has no items column", 0, array->n_children, 1);
    c->validity = validity_of(array);
    c->index = array->buffers[1];
    if (!c->index && length) return fail(error, "the array has no data", 0, 0, 0);
    return import_items(c, schema->children[0], array->children[0], map, error);
}

int kc_pairs_column_load(const kc_pairs_column *c, int64_t row, int64_t n, int64_t *bounds, kc_error *error) {
    memset(bounds, 0, (size_t)n * 2 * sizeof *bounds);
    for (int64_t i = 0; c->layout != KC_LAYOUT_ABSENT && i < n; i++) {
        int64_t at = c->first + row + i;
        if (c->validity && !bit_at(c->validity, at)) continue;
        int64_t start = offset_at(c->layout, c->index, at), end = offset_at(c->layout, c->index, at + 1);
        if (KC_UNLIKELY(start < 0 || end < start || end > c->items))
            return fail(error, "the list's offsets decrease or pass its items", row + i, end, c->items);
        bounds[2 * i] = start;
        bounds[2 * i + 1] = end;
    }
    return KC_OK;
}

int kc_pairs_column_items(const kc_pairs_column *c, int64_t item, int64_t n, kc_spans *keys, kc_spans *values,
                          kc_error *error) {
    if (kc_bytes_column_load(&c->key, item, n, keys, error)) return error->code;
    if (kc_bytes_column_load(&c->value, item, n, values, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        if (c->item_validity && !bit_at(c->item_validity, c->item_first + item + i))
            return fail(error, "a header is null", item + i, 0, 0);
        if (keys->size[i] < 0) return fail(error, "a header's key is null", item + i, 0, 0);
    }
    return KC_OK;
}
