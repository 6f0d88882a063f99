/* Text as records. */
#include <string.h>

#include "check.h"
#include "text/kc_lines.h"

#define BYTES(text) ((kc_bytes_of){(const uint8_t *)(text), sizeof(text) - 1})

static kc_error error;

/* The records as KEY=VALUE; with a dot for null. */
static bool splits(const kc_lines *how, const char *text, bool last, int64_t most, const char *want, size_t want_used) {
    kc_table *t = kc_table_new(kc_line_fields, KC_LINE_FIELDS, 3);
    char got[256] = "";
    size_t used;
    if (!t || kc_lines_split(how, (const uint8_t *)text, strlen(text), last, most, t, &used, &error)) return false;
    for (int64_t row = 0; row < t->length; row++) {
        for (int i = 0; i < KC_LINE_FIELDS; i++) {
            int32_t size;
            const uint8_t *s = kc_column_bytes(&t->columns[i], row, &size);
            if (size < 0) strcat(got, ".");
            if (size > 0) strncat(got, (const char *)s, (size_t)size);
            strcat(got, i ? ";" : "=");
        }
    }
    kc_table_release(t);
    return used == want_used && strcmp(got, want) == 0;
}

TEST(lines_are_values) {
    const kc_lines how = {.delimiter = BYTES("\n")};
    CHECK(splits(&how, "", true, 9, "", 0));
    CHECK(splits(&how, "a\n\nbc\n", false, 9, ".=a;.=;.=bc;", 6));
    CHECK(splits(&how, "a\nrest", false, 9, ".=a;", 2));
    CHECK(splits(&how, "a\nrest", true, 9, ".=a;.=rest;", 6));
    CHECK(splits(&how, "a\nb\nc\n", false, 2, ".=a;.=b;", 4));
}

TEST(lines_have_keys) {
    kc_lines how = {.delimiter = BYTES("\n"), .key_delimiter = BYTES("::")};
    CHECK(splits(&how, "k::v\n::v\nk::\nnone\na:b\nk::a::b\n", false, 9, "k=v;=v;k=;.=none;.=a:b;k=a::b;", 30));
    how.empty_is_null = true;
    CHECK(splits(&how, "::\nk::\n\n", false, 9, ".=.;k=.;.=.;", 8));
    const kc_lines same = {.delimiter = BYTES("\n"), .key = BYTES("key")};
    CHECK(splits(&same, "a\nb\n", false, 9, "key=a;key=b;", 4));
}

TEST(lines_end_with_any_bytes) {
    const kc_lines how = {.delimiter = BYTES("aab")};
    CHECK(splits(&how, "xaaaab1aab", false, 9, ".=xaa;.=1;", 10));
    CHECK(splits(&how, "xaa", false, 9, "", 0));
    CHECK(splits(&how, "xaa", true, 9, ".=xaa;", 3));
}
