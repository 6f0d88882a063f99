/* Bytes in a column, against a comparison at every position. The input is the needle and the values; the needle has its
 * exact size. */
#include <string.h>

#include "arrow/kc_find_rows.h"
#include "base/kc_bytes.h"
#include "fuzz.h"

enum { MOST_ROWS = 512 };

static const kc_field FIELDS[] = {{"bytes", KC_BINARY, 0, NULL}};

static bool has(const uint8_t *value, size_t size, const uint8_t *needle, size_t length) {
    for (size_t at = 0; at + length <= size; at++) {
        if (!length || memcmp(value + at, needle, length) == 0) return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t hits[MOST_ROWS];
    kc_error error = {0};
    kc_needle n;
    kc_bytes in = kc_bytes_over(data, size);
    size_t length = kc_take_u8(&in);
    if (length > kc_bytes_left(&in)) length = kc_bytes_left(&in);
    const uint8_t *needle = data + (size - kc_bytes_left(&in));
    MUST(kc_needle_init(&n, needle, length, &error) == KC_OK);
    const uint8_t *rest = needle + length, *end = data + size;
    kc_table *t = kc_table_new(FIELDS, 1, 1);
    MUST(t != NULL);
    kc_column *c = &t->columns[0];
    while (rest < end && c->length < MOST_ROWS) {
        const uint8_t given = *rest++;
        const size_t left = (size_t)(end - rest), value = given < 0xff && given < left ? given : left;
        if (given == 0x7f)
            MUST(kc_column_append_null(c, &error) == KC_OK);
        else
            MUST(kc_column_append_bytes(c, rest, value, &error) == KC_OK);
        rest += given == 0x7f ? 0 : value;
    }
    for (int match = KC_MATCH_INSIDE; match <= KC_MATCH_WHOLE; match++) {
        memset(hits, 0, sizeof hits);
        kc_find_rows(c, &n, (kc_match)match, hits);
        for (int64_t row = 0; row < c->length; row++) {
            int32_t bytes;
            const uint8_t *value = kc_column_bytes(c, row, &bytes);
            const bool fits = bytes >= 0 && (match == KC_MATCH_INSIDE || (size_t)bytes == length);
            MUST(hits[row] == (fits && has(value, (size_t)bytes, needle, length)));
        }
    }
    kc_table_release(t);
    kc_needle_free(&n);
    return 0;
}
