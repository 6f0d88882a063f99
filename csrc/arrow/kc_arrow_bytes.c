#include "arrow/kc_arrow_bytes.h"

#include <string.h>

#include "base/kc_bytes.h"
#include "base/kc_copy.h"

static kc_layout bytes_layout(const char *format) {
    if (strcmp(format, "z") == 0 || strcmp(format, "u") == 0) return KC_LAYOUT_OFFSETS32;
    if (strcmp(format, "Z") == 0 || strcmp(format, "U") == 0) return KC_LAYOUT_OFFSETS64;
    if (strcmp(format, "vz") == 0 || strcmp(format, "vu") == 0) return KC_LAYOUT_VIEWS;
    if (strncmp(format, "w:", 2) == 0) return KC_LAYOUT_FIXED;
    return KC_LAYOUT_ABSENT;
}

/* The number after "w:". */
static int fixed_width(const char *format, int64_t *width, kc_error *error) {
    int64_t w = 0;
    for (const char *p = format + 2; *p; p++) {
        if (*p < '0' || *p > '9' || w > INT32_MAX / 16)
            return kc_cannot_encode(error, "invalid fixed-size width", 0, w, INT32_MAX);
        w = 10 * w + (*p - '0');
    }
    *width = w;
    return KC_OK;
}

static int import_views(kc_arrow_bytes *c, const struct ArrowArray *array, kc_error *error) {
    c->view_buffers = array->n_buffers - 3;
    c->view_data = array->buffers + 2;
    c->view_sizes = array->buffers[array->n_buffers - 1];
    if (c->view_buffers > 0 && !c->view_sizes) return kc_cannot_encode(error, "the array has no buffer sizes", 0, 0, 0);
    return KC_OK;
}

static int import_offsets(kc_arrow_bytes *c, const struct ArrowArray *array, kc_error *error) {
    c->data = array->buffers[2];
    c->end = c->length ? kc_offset_at(c->layout, c->index, c->first + c->length) : 0;
    if (c->end < 0 || (c->end > 0 && !c->data)) return kc_cannot_encode(error, "the array has no data", 0, c->end, 0);
    return KC_OK;
}

/* The dictionary is binary, string or null, and not dictionary-encoded. */
static int import_dictionary(kc_arrow_bytes *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                             int64_t offset, kc_error *error) {
    kc_arrow_bytes words;
    if (!array->dictionary || schema->dictionary->dictionary || strlen(schema->format) != 1 ||
        !strchr("cCsSiIlL", schema->format[0]))
        return kc_cannot_encode(error, "invalid dictionary type", 0, 0, 0);
    if (kc_arrow_bytes_import(&words, schema->dictionary, array->dictionary, 0, array->dictionary->length, error))
        return error->code;
    if (kc_array_check(array, offset, c->length, 2, &c->first, error)) return error->code;
    c->layout = KC_LAYOUT_DICTIONARY;
    c->validity = kc_array_validity(array);
    c->index = array->buffers[1];
    if (!c->index && c->length) return kc_cannot_encode(error, "the array has no data", 0, 0, 0);
    c->words_type = schema->dictionary;
    c->words = array->dictionary;
    c->number = schema->format[0];
    return KC_OK;
}

int kc_arrow_bytes_import(kc_arrow_bytes *c, const struct ArrowSchema *schema, const struct ArrowArray *array,
                          int64_t offset, int64_t length, kc_error *error) {
    memset(c, 0, sizeof *c);
    c->length = length;
    if (strcmp(schema->format, "n") == 0) return KC_OK; /* the null type: absent */
    if (schema->dictionary) return import_dictionary(c, schema, array, offset, error);
    c->layout = bytes_layout(schema->format);
    if (c->layout == KC_LAYOUT_ABSENT)
        return kc_cannot_encode(
            error, "the column is neither bytes nor text (binary, string, or their large and view forms)", 0, 0, 0);
    int64_t buffers = c->layout == KC_LAYOUT_FIXED ? 2 : 3;
    if (kc_array_check(array, offset, length, buffers, &c->first, error)) return error->code;
    c->validity = kc_array_validity(array);
    c->index = array->buffers[1];
    if (!c->index && length) {
        if (c->layout == KC_LAYOUT_FIXED && strcmp(schema->format, "w:0") == 0) return KC_OK;
        return kc_cannot_encode(error, "the array has no data", 0, 0, 0);
    }
    if (c->layout == KC_LAYOUT_VIEWS) return import_views(c, array, error);
    if (c->layout == KC_LAYOUT_FIXED) return fixed_width(schema->format, &c->width, error);
    return import_offsets(c, array, error);
}

/* A pointer that must not be used before its offset is checked. */
static const uint8_t *displaced(const uint8_t *data, int64_t offset) {
    return (const uint8_t *)((uintptr_t)data + (uintptr_t)offset);
}

/* Four offsets in one load, since other threads may write to them. */
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint32_t four_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef uintptr_t four_pointers __attribute__((vector_size(4 * sizeof(uintptr_t))));

static void load_four(const int32_t *offsets, four *out) {
    *out = *(const volatile four_anywhere *)offsets;
    KC_LOADED(offsets, sizeof *out);
}

/* Start and end of each row are loaded once, four rows at a time, and checked independently: two rows may see different
 * values of the offset that they share. */
static int load_offsets32(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    const int32_t *offsets = (const int32_t *)c->index + c->first + row;
    const uint32_t end = (uint32_t)c->end; /* an offset itself, and not negative */
    four starts, ends, bad = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        load_four(offsets + i, &starts);
        load_four(offsets + i + 1, &ends);
        const four sizes = ends - starts;
        const four_pointers data = __builtin_convertvector(starts, four_pointers) + (uintptr_t)c->data;
        memcpy(out->data + i, &data, sizeof data);
        memcpy(out->size + i, &sizes, sizeof sizes);
        bad |= starts | ends | sizes | (end - ends);
    }
    for (; i < n; i++) {
        const uint32_t from = (uint32_t)kc_load_i32(offsets + i), to = (uint32_t)kc_load_i32(offsets + i + 1);
        out->data[i] = displaced(c->data, from);
        out->size[i] = (int32_t)(to - from);
        bad[0] |= from | to | (to - from) | (end - to);
    }
    if (KC_UNLIKELY((bad[0] | bad[1] | bad[2] | bad[3]) >> 31))
        return kc_cannot_encode(error, "the array's offsets decrease or exceed its data", row, 0, 0);
    const uintptr_t last = n ? (uintptr_t)out->data[n - 1] + (uintptr_t)out->size[n - 1] : (uintptr_t)c->data;
    out->wide = (uintptr_t)c->data + (uintptr_t)c->end - last >= KC_COPY_SLACK;
    return KC_OK;
}

static int load_offsets64(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    int64_t offsets[KC_BLOCK_ROWS + 1];
    kc_load_copy(offsets, (const int64_t *)c->index + c->first + row, (size_t)(n + 1) * sizeof *offsets);
    int64_t bad = offsets[0], all = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = (int64_t)((uint64_t)offsets[i + 1] - (uint64_t)offsets[i]);
        out->data[i] = displaced(c->data, offsets[i]);
        out->size[i] = (int32_t)size;
        bad |= offsets[i + 1] | size;
        all |= size;
    }
    if (KC_UNLIKELY(bad < 0 || offsets[n] > c->end))
        return kc_cannot_encode(error, "the array's offsets decrease or exceed its data", row, 0, 0);
    if (KC_UNLIKELY(all > INT32_MAX)) {
        int64_t i = 0;
        while (i < n - 1 && offsets[i + 1] - offsets[i] <= INT32_MAX) i++;
        return kc_cannot_encode(error, "a value exceeds the format's maximum length", row + i,
                                offsets[i + 1] - offsets[i], INT32_MAX);
    }
    out->wide = c->end - offsets[n] >= KC_COPY_SLACK;
    return KC_OK;
}

const uint8_t *kc_arrow_bytes_far(const kc_arrow_bytes *c, const kc_view *v, int64_t row, int64_t *buffer_size,
                                  kc_error *error) {
    const int32_t buffer = v->at.far.buffer, position = v->at.far.position;
    const uint8_t *data = buffer < 0 || buffer >= c->view_buffers ? NULL : c->view_data[buffer];
    if (KC_UNLIKELY(!data)) {
        (void)kc_cannot_encode(error, "invalid buffer index in a view", row, buffer, c->view_buffers);
        return NULL;
    }
    *buffer_size = kc_load_i64(&c->view_sizes[buffer]);
    if (KC_UNLIKELY(position < 0 || v->size > *buffer_size - position)) {
        (void)kc_cannot_encode(error, "a view extends past the end of its buffer", row, position, *buffer_size);
        return NULL;
    }
    return data + position;
}

static int load_views(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    const kc_view *views = (const kc_view *)c->index + c->first + row;
    bool wide = (c->length - row - n) * (int64_t)sizeof *views >= KC_COPY_SLACK; /* for bytes inside a view */
    for (int64_t i = 0; i < n; i++) {
        kc_view v;
        kc_load_copy(&v, views + i, sizeof v);
        const bool null = c->validity && !kc_bit_at(c->validity, c->first + row + i);
        out->data[i] = views[i].at.inlined;
        out->size[i] = null ? -1 : v.size;
        if (null) continue;
        if (KC_UNLIKELY(v.size < 0)) return kc_cannot_encode(error, "a view has a negative length", row + i, v.size, 0);
        if (v.size <= KC_VIEW_INLINED) continue;
        int64_t size = 0;
        out->data[i] = kc_arrow_bytes_far(c, &v, row + i, &size, error);
        if (KC_UNLIKELY(!out->data[i])) return error->code;
        wide = wide && size - v.at.far.position - v.size >= KC_COPY_SLACK;
    }
    out->wide = wide;
    return KC_OK;
}

static int load_fixed(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out) {
    for (int64_t i = 0; i < n; i++) {
        out->data[i] = c->width ? (const uint8_t *)c->index + (c->first + row + i) * c->width : NULL;
        out->size[i] = (int32_t)c->width;
    }
    out->wide = c->width && (c->length - row - n) * c->width >= KC_COPY_SLACK;
    return KC_OK;
}

static int64_t number_at(const kc_arrow_bytes *c, int64_t i) {
    switch (c->number) {
        case 'c':
            return ((const int8_t *)c->index)[i];
        case 'C':
            return ((const uint8_t *)c->index)[i];
        case 's':
            return ((const int16_t *)c->index)[i];
        case 'S':
            return ((const uint16_t *)c->index)[i];
        case 'i':
            return ((const int32_t *)c->index)[i];
        case 'I':
            return ((const uint32_t *)c->index)[i];
        default:
            return ((const int64_t *)c->index)[i];
    }
}

static int load_words(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
    kc_arrow_bytes words;
    kc_spans word;
    bool wide = true;
    if (kc_arrow_bytes_import(&words, c->words_type, c->words, 0, c->words->length, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = c->first + row + i;
        out->data[i] = NULL;
        out->size[i] = -1;
        if (c->validity && !kc_bit_at(c->validity, at)) continue;
        const int64_t number = number_at(c, at);
        if (KC_UNLIKELY(number < 0 || number >= words.length))
            return kc_cannot_encode(error, "invalid dictionary index", row + i, number, words.length);
        if (kc_arrow_bytes_load(&words, number, 1, &word, error)) return error->code;
        /* It loaded one. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
        out->data[i] = word.data[0];
        out->size[i] = word.size[0];
        wide = wide && word.wide;
    }
    out->wide = wide;
    return KC_OK;
}

static void load_absent(int64_t n, kc_spans *out) {
    for (int64_t i = 0; i < n; i++) {
        out->data[i] = NULL;
        out->size[i] = -1;
    }
}

static void apply_nulls(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out) {
    for (int64_t i = 0; i < n; i++) {
        if (!kc_bit_at(c->validity, c->first + row + i)) out->size[i] = -1;
    }
}

int kc_arrow_bytes_load(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error) {
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
            return load_views(c, row, n, out, error);
        case KC_LAYOUT_FIXED:
            code = load_fixed(c, row, n, out);
            break;
        case KC_LAYOUT_DICTIONARY:
            return load_words(c, row, n, out, error);
        default:
            load_absent(n, out);
            return KC_OK;
    }
    if (code == KC_OK && c->validity) apply_nulls(c, row, n, out);
    return code;
}

static size_t views_extent(const kc_arrow_bytes *c) {
    const kc_view *views = (const kc_view *)c->index + c->first;
    size_t extent = 0;
    for (int64_t i = 0; i < c->length; i++) {
        const int32_t size = kc_load_i32(&views[i].size);
        extent += size > 0 ? (size_t)size : 0;
    }
    return extent;
}

size_t kc_arrow_bytes_extent(const kc_arrow_bytes *c) {
    if (c->length == 0) return 0;
    if (c->layout == KC_LAYOUT_VIEWS) return views_extent(c);
    if (c->layout == KC_LAYOUT_FIXED) return (size_t)(c->length * c->width);
    if (c->layout != KC_LAYOUT_OFFSETS32 && c->layout != KC_LAYOUT_OFFSETS64) return 0; /* unknown for a dictionary */
    const int64_t start = kc_offset_at(c->layout, c->index, c->first);
    return start >= 0 && start <= c->end ? (size_t)(c->end - start) : 0;
}

bool kc_arrow_bytes_together(const kc_arrow_bytes *c, const uint8_t **data, size_t *size) {
    if (c->layout == KC_LAYOUT_FIXED) {
        *data = c->index;
        *size = (size_t)((c->first + c->length) * c->width);
        return true;
    }
    *data = c->data;
    *size = (size_t)c->end;
    return c->layout == KC_LAYOUT_OFFSETS32 || c->layout == KC_LAYOUT_OFFSETS64;
}
