/* Rows of tables as text. */
#include "check.h"
#include "text/kc_text_rows.h"

static const kc_field PAIR[] = {{"key", KC_STRING, 0, NULL}, {"value", KC_BINARY, 0, NULL}};
static const kc_field ITEM = {"item", KC_STRUCT, 2, PAIR};
enum { NUMBER, SMALL, TIME, YES, BYTES, NAME, HEADERS, COLUMNS };
static const kc_field FIELDS[COLUMNS] = {
    [NUMBER] = {"number", KC_INT64, 0, NULL},    [SMALL] = {"small", KC_INT8, 0, NULL},
    [TIME] = {"time", KC_TIMESTAMP_MS, 0, NULL}, [YES] = {"yes", KC_BOOL, 0, NULL},
    [BYTES] = {"bytes", KC_BINARY, 0, NULL},     [NAME] = {"name", KC_STRING, 0, NULL},
    [HEADERS] = {"headers", KC_LIST, 1, &ITEM}};

static kc_glyphs none;
static kc_error error;

static int add_bytes(kc_column *c, const char *text) {
    if (!text) return kc_column_reserve(c, 1, 0, &error) || kc_column_append_null(c, &error);
    return kc_column_reserve(c, 1, strlen(text), &error) || kc_column_append_bytes(c, text, strlen(text), &error);
}

static int add_number(kc_column *c, int64_t value) {
    return kc_column_reserve(c, 1, 0, &error) || kc_column_append_int(c, value, &error);
}

/* The entries of a list and their end are set by hand, as a decoder does. */
static int add_headers(kc_column *list, int count, const char *const *keys, const char *const *values) {
    int bad = kc_column_reserve(list, 1, 0, &error);
    for (int i = 0; i < count && !bad; i++) {
        kc_column *item = list->children;
        bad = add_bytes(&item->children[0], keys[i]) || add_bytes(&item->children[1], values[i]);
        item->length++;
    }
    if (bad) return bad;
    int32_t *ends = (int32_t *)(void *)list->values.data;
    if (list->length == 0) ends[0] = 0;
    ends[++list->length] = (int32_t)list->children->length;
    return 0;
}

static kc_table *filled(void) {
    static const char *const KEYS[] = {"h", "n"}, *const VALUES[] = {"x", NULL};
    kc_table *t = kc_table_new(FIELDS, COLUMNS, (1 << COLUMNS) - 1);
    kc_column *c = t->columns;
    bool bad = add_number(&c[NUMBER], 7) || add_number(&c[NUMBER], INT64_MIN) || add_number(&c[SMALL], -1) ||
               add_number(&c[SMALL], 1) || add_number(&c[TIME], 0) || add_bytes(&c[TIME], NULL) ||
               add_number(&c[YES], 1) || add_number(&c[YES], 0) || add_bytes(&c[BYTES], "a\"\x01") ||
               add_bytes(&c[BYTES], NULL) || add_bytes(&c[NAME], "zstd") || add_bytes(&c[NAME], "") ||
               add_headers(&c[HEADERS], 2, KEYS, VALUES) || add_headers(&c[HEADERS], 0, NULL, NULL);
    t->length = 2;
    return bad ? NULL : t;
}

#define TEXT(words) .text = (const uint8_t *)(words), .size = sizeof(words) - 1

/* Both rows by one piece and a line feed. */
static bool writes(kc_text_kind kind, int column, const char *want) {
    kc_table *table = filled();
    kc_text t = {.glyphs = &none};
    const kc_text_piece pieces[] = {{.kind = kind, .column = column < 0 ? NULL : &table->columns[column], TEXT("none")},
                                    {.kind = KC_TEXT_CONSTANT, TEXT("\n")}};
    int64_t next;
    const int code = kc_text_rows(&t, pieces, 2, 0, 2, SIZE_MAX, &next, &error);
    const bool same = !code && next == 2 && t.out.size == strlen(want) && memcmp(t.out.data, want, t.out.size) == 0;
    kc_buffer_free(&t.out);
    kc_table_release(table);
    return same;
}

TEST(text_rows_of_each_kind) {
    CHECK(writes(KC_TEXT_CONSTANT, -1, "none\nnone\n"));
    CHECK(writes(KC_TEXT_PLAIN, BYTES, "a\"\x01\nnone\n"));
    CHECK(writes(KC_TEXT_VISIBLE, BYTES, "a\"\\x01\nnone\n"));
    CHECK(writes(KC_TEXT_VALUE, BYTES, "0x612201\nnone\n"));
    CHECK(writes(KC_TEXT_NUMBER, NUMBER, "7\n-9223372036854775808\n"));
    CHECK(writes(KC_TEXT_NUMBER, SMALL, "-1\n1\n"));
    CHECK(writes(KC_TEXT_NUMBER, YES, "True\nFalse\n"));
    CHECK(writes(KC_TEXT_NUMBER, TIME, "0\nnone\n"));
    CHECK(writes(KC_TEXT_TIME, TIME, "1970-01-01 00:00:00.000\nnone\n"));
    CHECK(writes(KC_TEXT_SIZE, BYTES, "3\nnone\n"));
    CHECK(writes(KC_TEXT_SIZE, NAME, "4\n0\n"));
    CHECK(writes(KC_TEXT_JSON, BYTES, "\"a\\\"\\u0001\"\nnone\n"));
    CHECK(writes(KC_TEXT_JSON, NAME, "\"zstd\"\n\"\"\n"));
    CHECK(writes(KC_TEXT_JSON, YES, "true\nfalse\n"));
    CHECK(writes(KC_TEXT_JSON, TIME, "0\nnone\n"));
    CHECK(writes(KC_TEXT_JSON_HEADERS, HEADERS,
                 "[{\"key\":\"h\",\"value\":\"x\"},{\"key\":\"n\",\"value\":null}]\n[]\n"));
    CHECK(writes(KC_TEXT_PLAIN_HEADERS, HEADERS, "h=x,n=NULL\n\n"));
    CHECK(writes(KC_TEXT_VISIBLE_HEADERS, HEADERS, "h=x,n=NULL\n\n"));
    CHECK(writes(KC_TEXT_VALUE_HEADERS, HEADERS, "h=x n=null\n\n"));
    for (int kind = KC_TEXT_CONSTANT; kind < KC_TEXT_CELL; kind++) {
        if (kind != KC_TEXT_SIZE_BYTES) CHECK(writes((kc_text_kind)kind, -1, "none\nnone\n"));
    }
}

TEST(text_rows_have_sizes_in_bytes) {
    kc_table *table = filled();
    kc_text t = {.glyphs = &none};
    const kc_text_piece piece = {.kind = KC_TEXT_SIZE_BYTES, .column = &table->columns[BYTES]};
    int64_t next;
    CHECK_EQ(kc_text_rows(&t, &piece, 1, 0, 2, SIZE_MAX, &next, &error), KC_OK);
    CHECK(t.out.size == 8 && memcmp(t.out.data, "\0\0\0\3\xff\xff\xff\xff", 8) == 0);
    kc_buffer_free(&t.out);
    kc_table_release(table);
}

TEST(text_rows_given_in_place_of_a_column) {
    static const kc_text_given GIVEN[] = {{(const uint8_t *)"12", 2}, {NULL, 0}};
    static const kc_text_kind KINDS[] = {KC_TEXT_PLAIN, KC_TEXT_NUMBER, KC_TEXT_SIZE, KC_TEXT_JSON};
    static const char *const WANT[] = {"12;none;", "12;none;", "2;none;", "\"12\";none;"};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        kc_text t = {.glyphs = &none};
        const kc_text_piece pieces[] = {{.kind = KINDS[i], .given = GIVEN, TEXT("none")},
                                        {.kind = KC_TEXT_CONSTANT, TEXT(";")}};
        int64_t next;
        CHECK_EQ(kc_text_rows(&t, pieces, 2, 5, 7, SIZE_MAX, &next, &error), KC_OK);
        CHECK(t.out.size == strlen(WANT[i]) && memcmp(t.out.data, WANT[i], t.out.size) == 0);
        kc_buffer_free(&t.out);
    }
}

TEST(text_rows_of_a_table) {
    kc_table *table = filled();
    kc_text t = {.glyphs = &none};
    const kc_text_piece pieces[] = {{.kind = KC_TEXT_NUMBER, .column = &table->columns[SMALL]},
                                    {.kind = KC_TEXT_CELL, TEXT("  "), .cell = {0, 4, true}},
                                    {.kind = KC_TEXT_VALUE, .column = &table->columns[NAME], TEXT("null")},
                                    {.kind = KC_TEXT_CELL, .cell = {3, 3, false}},
                                    {.kind = KC_TEXT_LINE_END, TEXT("\n")}};
    static const char WANT[] = "  -1  zs\xe2\x80\xa6\n   1\n";
    int64_t next;
    CHECK_EQ(kc_text_rows(&t, pieces, 5, 0, 2, SIZE_MAX, &next, &error), KC_OK);
    CHECK(t.out.size == sizeof WANT - 1 && memcmp(t.out.data, WANT, t.out.size) == 0);
    kc_buffer_free(&t.out);
    kc_table_release(table);
}

TEST(text_rows_stop_when_there_is_enough) {
    kc_text t = {.glyphs = &none};
    const kc_text_piece piece = {.kind = KC_TEXT_CONSTANT, TEXT("1234567890")};
    int64_t next;
    CHECK_EQ(kc_text_rows(&t, &piece, 1, 3, 100, 25, &next, &error), KC_OK);
    CHECK_EQ(next, 6);
    CHECK_EQ(t.out.size, 30);
    kc_buffer_free(&t.out);
}

TEST(text_rows_end_before_one_that_needs_a_page) {
    static const kc_text_given GIVEN[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"b\xc3\xa9", 3}};
    static uint8_t page[KC_GLYPH_PAGE];
    kc_glyphs glyphs = none;
    kc_text t = {.glyphs = &glyphs};
    const kc_text_piece piece = {.kind = KC_TEXT_VALUE, .given = GIVEN};
    int64_t next;
    memset(page, KC_GLYPH_PRINTABLE | 1, sizeof page);
    CHECK_EQ(kc_text_rows(&t, &piece, 1, 0, 2, SIZE_MAX, &next, &error), KC_TEXT_PAGE);
    CHECK(next == 1 && t.missing == 0 && t.out.size == 1);
    glyphs.pages[0] = page;
    t.out.size = 0;
    CHECK_EQ(kc_text_rows(&t, &piece, 1, 0, 2, SIZE_MAX, &next, &error), KC_OK);
    CHECK(next == 2 && t.out.size == 4 && memcmp(t.out.data, "ab\xc3\xa9", 4) == 0);
    kc_buffer_free(&t.out);
}
