#include <stdlib.h>
#include <string.h>

#include "arrow/kc_find_rows.h"
#include "check.h"

static kc_needle needle_of(const char *text) {
    kc_needle n;
    kc_error error;
    return kc_needle_init(&n, text, strlen(text), &error) ? (kc_needle){0} : n;
}

/* The position of the first occurrence, -1 for none; `data` has its exact size. */
static int64_t found_at(const char *needle, const char *data) {
    kc_needle n = needle_of(needle);
    const size_t size = strlen(data);
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return -2;
    if (size) memcpy(copy, data, size);
    kc_finder f = kc_finder_start(&n, copy, size);
    const uint8_t *hit = kc_find(&f, copy, size);
    const int64_t position = hit ? hit - copy : -1;
    free(copy);
    kc_needle_free(&n);
    return position;
}

TEST(find_gives_the_first_occurrence) {
    CHECK_EQ(found_at("", ""), 0);
    CHECK_EQ(found_at("", "abc"), 0);
    CHECK_EQ(found_at("a", ""), -1);
    CHECK_EQ(found_at("c", "abc"), 2);
    CHECK_EQ(found_at("abcd", "abc"), -1);
    CHECK_EQ(found_at("abc", "abc"), 0);
    CHECK_EQ(found_at("aab", "aaaaab"), 3);
    CHECK_EQ(found_at("abab", "abaabababab"), 3);
    CHECK_EQ(found_at("xyx", "xyzxyzxy"), -1);
}

/* Common bytes, in data of every size, at the end of its memory. */
TEST(find_reads_no_byte_after_the_data) {
    char data[101], needle[41];
    uint64_t state = 11;
    for (size_t size = 0; size <= 100; size++) {
        for (size_t i = 0; i < size; i++) data[i] = (char)('a' + (next_random(&state) & 1));
        data[size] = 0;
        for (size_t length = 1; length <= 40; length += length < 5 ? 1 : 7) {
            for (size_t i = 0; i < length; i++) needle[i] = (char)('a' + (next_random(&state) & 1));
            needle[length] = 0;
            const char *expected = strstr(data, needle);
            CHECK_EQ(found_at(needle, data), expected ? expected - data : -1);
        }
    }
}

/* Half a million candidates of 2000 bytes each would be 10^9 comparisons; the search notices and changes. */
TEST(find_changes_to_the_linear_algorithm) {
    enum { SIZE = 500000, HALF = 1000 };
    char *needle = malloc(2 * HALF + 2), *data = malloc(SIZE);
    CHECK(needle && data);
    memset(needle, 'a', 2 * HALF + 1);
    needle[HALF] = 'b';
    needle[2 * HALF + 1] = 0;
    memset(data, 'a', SIZE);
    for (size_t i = HALF; i < SIZE; i += HALF) data[i] = 'b';
    memset(data + SIZE - 3 * HALF, 'a', 3 * HALF);
    data[SIZE - HALF - 1] = 'b';
    kc_needle n = needle_of(needle);
    memset(data, 'a', SIZE - 3 * HALF);
    kc_finder f = {.needle = &n, .rare = 0, .second = 1};
    CHECK_EQ(kc_find(&f, (const uint8_t *)data, SIZE) - (const uint8_t *)data, SIZE - 2 * HALF - 1);
    CHECK(kc_finder_is_slow(&f));
    CHECK(f.compared < 5 * SIZE + 8192);
    kc_needle_free(&n);
    free(needle);
    free(data);
}

static const kc_field FIELDS[] = {{"flag", KC_BOOL, 0, NULL}, {"bytes", KC_BINARY, 0, NULL}};

static kc_table *two_columns(const char *const *values, int count) {
    kc_table *t = kc_table_new(FIELDS, 2, UINT64_MAX);
    kc_error error;
    for (int i = 0; t && i < count; i++) {
        int code = kc_column_append_int(&t->columns[0], i & 1, &error);
        if (!code && values[i])
            code = kc_column_append_bytes(&t->columns[1], values[i], strlen(values[i]), &error);
        else if (!code)
            code = kc_column_append_null(&t->columns[1], &error);
        if (code) return NULL;
        t->length++;
    }
    return t;
}

static int hits_of(const char *needle, kc_match match, const char *const *values, int count) {
    uint8_t hits[16] = {0};
    kc_table *t = two_columns(values, count);
    kc_needle n = needle_of(needle);
    if (!t || count > 16) return -1;
    kc_find_rows(&t->columns[1], &n, match, hits);
    int bits = 0;
    for (int i = 0; i < count; i++) bits |= hits[i] << i;
    kc_needle_free(&n);
    kc_table_release(t);
    return bits;
}

/* Two values together have what neither has alone. */
TEST(find_rows_does_not_look_across_values) {
    static const char *const VALUES[] = {"ab", "cab", NULL, "", "c", "xabcx", "a", "b", "c", "abc"};
    CHECK_EQ(hits_of("abc", KC_MATCH_INSIDE, VALUES, 10), 1 << 5 | 1 << 9);
    CHECK_EQ(hits_of("abc", KC_MATCH_WHOLE, VALUES, 10), 1 << 9);
    CHECK_EQ(hits_of("c", KC_MATCH_INSIDE, VALUES, 10), 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9);
    CHECK_EQ(hits_of("", KC_MATCH_INSIDE, VALUES, 10), 0x3ff & ~(1 << 2));
    CHECK_EQ(hits_of("", KC_MATCH_WHOLE, VALUES, 10), 1 << 3);
    CHECK_EQ(hits_of("a", KC_MATCH_INSIDE, VALUES, 0), 0);
}
