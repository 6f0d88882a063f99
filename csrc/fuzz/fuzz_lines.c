/* Text as records: keys, values and delimiters put together are the text again. The first bytes choose the options. */
#include <string.h>

#include "base/kc_bytes.h"
#include "fuzz.h"
#include "text/kc_lines.h"

static kc_error error;

static bool holds(const uint8_t *s, size_t size, const kc_bytes_of *what) {
    for (size_t at = 0; at + what->size <= size; at++) {
        if (memcmp(s + at, what->data, what->size) == 0) return true;
    }
    return false;
}

/* Compares bytes at *s with some of a row, and moves *s behind them. */
static void must_follow(const uint8_t **s, const uint8_t *end, const uint8_t *data, size_t size) {
    MUST((size_t)(end - *s) >= size && (!size || memcmp(*s, data, size) == 0));
    *s += size;
}

static void check_rows(const kc_lines *how, const kc_table *t, const uint8_t *s, const uint8_t *end) {
    for (int64_t row = 0; row < t->length; row++) {
        int32_t key_size, value_size;
        const uint8_t *key = kc_column_bytes(&t->columns[KC_LINE_KEY], row, &key_size);
        const uint8_t *value = kc_column_bytes(&t->columns[KC_LINE_VALUE], row, &value_size);
        if (key_size >= 0) {
            MUST(!holds(key, (size_t)key_size, &how->key_delimiter));
            must_follow(&s, end, key, (size_t)key_size);
            must_follow(&s, end, how->key_delimiter.data, how->key_delimiter.size);
        } else if (how->key_delimiter.data) {
            MUST(!holds(value, (size_t)value_size, &how->key_delimiter));
        }
        must_follow(&s, end, value, (size_t)value_size);
        if (s < end) must_follow(&s, end, how->delimiter.data, how->delimiter.size);
    }
    MUST(s == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    const kc_lines how = {.delimiter = {data, 1 + (data[3] & 1)},
                          .key_delimiter = {data[3] & 2 ? data + 2 : NULL, data[3] & 2 ? 1 : 0}};
    const uint8_t *text = data + 4;
    for (int last = 0; last < 2; last++) {
        kc_table *t = kc_table_new(kc_line_fields, KC_LINE_FIELDS, 3);
        size_t used;
        MUST(t != NULL);
        MUST(kc_lines_split(&how, text, size - 4, last, data[3] & 4 ? 3 : INT64_MAX, t, &used, &error) == KC_OK);
        MUST(used <= size - 4);
        check_rows(&how, t, text, text + used);
        kc_table_release(t);
    }
    return 0;
}
