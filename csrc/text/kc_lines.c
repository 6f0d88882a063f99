#include "text/kc_lines.h"

#include <string.h>

const kc_field kc_line_fields[KC_LINE_FIELDS] = {
    [KC_LINE_KEY] = {"key", KC_BINARY, 0, NULL},
    [KC_LINE_VALUE] = {"value", KC_BINARY, 0, NULL},
};

/* Where the bytes first occur; NULL if they do not. */
static const uint8_t *find(const uint8_t *s, const uint8_t *end, const kc_bytes_of *what) {
    while ((size_t)(end - s) >= what->size) {
        s = memchr(s, what->data[0], (size_t)(end - s) - what->size + 1);
        if (!s || memcmp(s, what->data, what->size) == 0) return s;
        s++;
    }
    return NULL;
}

static int append(kc_column *c, const uint8_t *data, size_t size, bool null, kc_error *error) {
    const int code = kc_column_reserve(c, 1, null ? 0 : size, error);
    if (code) return code;
    return null ? kc_column_append_null(c, error) : kc_column_append_bytes(c, data, size, error);
}

static int append_line(const kc_lines *how, const uint8_t *s, const uint8_t *end, kc_table *t, kc_error *error) {
    kc_bytes_of key = how->key;
    if (how->key_delimiter.data) {
        const uint8_t *found = find(s, end, &how->key_delimiter);
        if (found) {
            key = (kc_bytes_of){s, (size_t)(found - s)};
            s = found + how->key_delimiter.size;
        }
    }
    const size_t size = (size_t)(end - s);
    const bool no_key = !key.data || (how->empty_is_null && !key.size);
    int code = append(&t->columns[KC_LINE_KEY], key.data, key.size, no_key, error);
    if (!code) code = append(&t->columns[KC_LINE_VALUE], s, size, how->empty_is_null && !size, error);
    if (!code) t->length++;
    return code;
}

int kc_lines_split(const kc_lines *how, const uint8_t *data, size_t size, bool last, int64_t most, kc_table *t,
                   size_t *used, kc_error *error) {
    const uint8_t *s = data, *const end = data + size;
    int code = KC_OK;
    while (s < end && t->length < most && !code) {
        const uint8_t *stop = find(s, end, &how->delimiter);
        if (!stop && !last) break;
        code = append_line(how, s, stop ? stop : end, t, error);
        s = stop ? stop + how->delimiter.size : end;
    }
    *used = (size_t)(s - data);
    return code;
}
