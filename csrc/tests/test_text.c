/* Text of values, cells and rows. The expected texts are written by hand: JSON by RFC 8259, dates by the calendar. */
#include <stdlib.h>

#include "check.h"
#include "text/kc_text_cell.h"
#include "text/kc_text_rows.h"
#include "text/kc_text_strings.h"

/* What the tests know of characters: U+0080 to U+009F and U+200B are not printable, U+034F is blank, Chinese is wide,
 * combining marks have no columns, and U+263A widens. */
static uint8_t latin[KC_GLYPH_PAGE], marks[KC_GLYPH_PAGE], spaces[KC_GLYPH_PAGE], signs[KC_GLYPH_PAGE],
    chinese[KC_GLYPH_PAGE], smileys[KC_GLYPH_PAGE];
static kc_glyphs glyphs;
static kc_error error;

static kc_text begin(void) {
    memset(latin, KC_GLYPH_PRINTABLE | 1, sizeof latin);
    memset(latin + 0x80, 0, 0x20);
    memset(marks, KC_GLYPH_PRINTABLE, sizeof marks);
    marks[0x4f] |= KC_GLYPH_BLANK;
    memset(spaces, 0, sizeof spaces);
    memset(signs, KC_GLYPH_PRINTABLE | 1, sizeof signs);
    signs[0x3a] |= KC_GLYPH_WIDENS;
    memset(chinese, KC_GLYPH_PRINTABLE | 2, sizeof chinese);
    memset(smileys, KC_GLYPH_PRINTABLE | 2, sizeof smileys);
    glyphs.pages[0] = latin;
    glyphs.pages[3] = marks;
    glyphs.pages[0x20] = spaces;
    glyphs.pages[0x26] = signs;
    glyphs.pages[0x4e] = chinese;
    glyphs.pages[0xfe] = marks;
    glyphs.pages[0x1f6] = smileys;
    glyphs.pages[0xe01] = spaces;
    return (kc_text){.glyphs = &glyphs};
}

static bool is(kc_text *t, const char *want) {
    const size_t size = t->out.size; /* without data if it is 0 */
    const bool same = size == strlen(want) && (size == 0 || memcmp(t->out.data, want, size) == 0);
    kc_buffer_free(&t->out);
    return same;
}

typedef int writer(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

static bool writes(writer *write, const char *bytes, const char *want) {
    kc_text t = begin();
    return write(&t, (const uint8_t *)bytes, strlen(bytes), &error) == KC_OK && is(&t, want);
}

TEST(text_json_escapes) {
    CHECK(writes(kc_text_json_string, "", "\"\""));
    CHECK(writes(kc_text_json_string, "plain text, longer than a word", "\"plain text, longer than a word\""));
    CHECK(writes(kc_text_json_string, "\"\\/\n\r\t\b\f\x01\x1f\x7f",
                 "\"\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f\""));
    CHECK(writes(kc_text_json_string, "\xc3\xa9\xe4\xb8\xad", "\"\xc3\xa9\xe4\xb8\xad\""));
    CHECK(writes(kc_text_json_string, "\xc2\x85z\xe2\x80\xaez", "\"\\u0085z\\u202ez\""));
    CHECK(writes(kc_text_json_string, "\xcd\x8f", "\"\\u034f\""));
    CHECK(writes(kc_text_json_string, "\xf3\xa0\x84\x80", "\"\\udb40\\udd00\"")); /* U+E0100: by UTF-16 */
}

TEST(text_json_in_ascii) {
    kc_text t = begin();
    t.ascii = true;
    t.glyphs = NULL; /* not asked */
    CHECK_EQ(kc_text_json_string(&t, (const uint8_t *)"a\xc3\xa9\xf0\x9f\x98\x80", 7, &error), KC_OK);
    CHECK(is(&t, "\"a\\u00e9\\ud83d\\ude00\""));
}

/* Every byte at every place of a word: what is copied in words is what is copied one by one. */
TEST(text_json_each_byte_anywhere) {
    for (unsigned c = 0; c < 0x80; c++) {
        for (size_t at = 0; at < 24; at++) {
            uint8_t text[24];
            memset(text, 'x', sizeof text);
            text[at] = (uint8_t)c;
            kc_text t = begin();
            CHECK_EQ(kc_text_json_string(&t, text, sizeof text, &error), KC_OK);
            const bool escaped = c < 0x20 || c == 0x7f || c == '"' || c == '\\';
            CHECK_EQ(t.out.size > sizeof text + 2, escaped);
            CHECK_EQ(t.out.data[1 + at], escaped ? '\\' : (int)c);
            kc_buffer_free(&t.out);
        }
    }
}

TEST(text_json_of_other_bytes_is_base64) {
    CHECK(writes(kc_text_json_bytes, "text", "\"text\""));
    CHECK(writes(kc_text_json_bytes, "\xff", "{\"base64\":\"/w==\"}")); /* RFC 4648 */
    CHECK(writes(kc_text_json_bytes, "ab\xff", "{\"base64\":\"YWL/\"}"));
    CHECK(writes(kc_text_json_bytes, "\xed\xa0\x80z", "{\"base64\":\"7aCAeg==\"}"));
    CHECK(writes(kc_text_json_bytes, "\xe2\x82", "{\"base64\":\"4oI=\"}"));
}

TEST(text_visible) {
    CHECK(writes(kc_text_visible, "a\\\"b", "a\\\"b"));
    CHECK(writes(kc_text_visible, "\n\r\t\x1b\x7f\x01", "\\n\\r\\t\\x1b\\x7f\\x01"));
    CHECK(writes(kc_text_visible, "\xc2\x85\xe2\x80\xae\xf3\xa0\x84\x80\xcd\x8f", "\\x85\\u202e\\U000e0100\\u034f"));
    CHECK(writes(kc_text_visible, "z\xffz\xe2\x82z\xed\xa0\x80", "z\\udcffz\\udce2\\udc82z\\udced\\udca0\\udc80"));
    CHECK(writes(kc_text_visible, "\xe4\xb8\xad\xf0\x9f\x98\x80", "\xe4\xb8\xad\xf0\x9f\x98\x80"));
}

TEST(text_value) {
    CHECK(writes(kc_text_value, "a\"b\\c\n\r\t", "a\"b\\\\c\\n\\r\\t"));
    CHECK(writes(kc_text_value, "a\x01", "0x6101"));
    CHECK(writes(kc_text_value, "\x7f", "0x7f"));
    CHECK(writes(kc_text_value, "a\xff", "0x61ff"));
    CHECK(writes(kc_text_value, "a\xe2\x80\xae", "0x61e280ae"));
    CHECK(writes(kc_text_value, "\xe4\xb8\xad\xcd\x8f", "\xe4\xb8\xad\\u034f")); /* printable, yet blank */
    CHECK(writes(kc_text_value, "null", "\"null\""));
    CHECK(writes(kc_text_value, "0x6101", "\"0x6101\""));
    static const char *const OTHERS[] = {"", "nul", "nulls", "NULL", "0x", "0x6", "0x6g", "0xAB", "1x61", "0x611"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) CHECK(writes(kc_text_value, OTHERS[i], OTHERS[i]));
}

TEST(text_asks_for_pages) {
    kc_text t = begin();
    CHECK_EQ(kc_text_value(&t, (const uint8_t *)"\xd0\x96", 2, &error), KC_TEXT_PAGE); /* U+0416 */
    CHECK_EQ(t.missing, 4);
    CHECK_EQ(kc_text_json_string(&t, (const uint8_t *)"\xea\xb0\x80", 3, &error), KC_TEXT_PAGE); /* U+AC00 */
    CHECK_EQ(t.missing, 0xac);
    kc_buffer_free(&t.out);
}

static bool number_is(int64_t value, const char *want) {
    kc_text t = begin();
    return kc_text_number(&t, value, &error) == KC_OK && is(&t, want);
}

static bool time_is(int64_t value, const char *want) {
    kc_text t = begin();
    return kc_text_time(&t, value, &error) == KC_OK && is(&t, want);
}

TEST(text_numbers) {
    CHECK(number_is(0, "0"));
    CHECK(number_is(9, "9") && number_is(10, "10") && number_is(99, "99") && number_is(100, "100"));
    CHECK(number_is(-1, "-1") && number_is(-1234567, "-1234567"));
    CHECK(number_is(INT64_MAX, "9223372036854775807") && number_is(INT64_MIN, "-9223372036854775808"));
}

TEST(text_times) {
    CHECK(time_is(0, "1970-01-01 00:00:00.000"));
    CHECK(time_is(951782399999, "2000-02-28 23:59:59.999"));
    CHECK(time_is(951782400000, "2000-02-29 00:00:00.000"));
    CHECK(time_is(951868800000, "2000-03-01 00:00:00.000"));
    CHECK(time_is(4107542400000, "2100-03-01 00:00:00.000")); /* 2100 has no leap day */
    CHECK(time_is(4107542399999, "2100-02-28 23:59:59.999"));
    CHECK(time_is(1700000000123, "2023-11-14 22:13:20.123"));
    CHECK(time_is(253402300799999, "9999-12-31 23:59:59.999"));
    CHECK(time_is(253402300800000, "253402300800000"));
    CHECK(time_is(-1, "-") && time_is(-2, "-2"));
}

static bool cell_is(const char *text, kc_text_cell cell, const char *want) {
    kc_text t = begin();
    if (kc_text_add(&t, "| ", 2, &error) || kc_text_add(&t, text, strlen(text), &error)) return false;
    if (kc_text_fit(&t, 2, &cell, &error)) return false;
    t.out.size -= 2;
    memmove(t.out.data, t.out.data + 2, t.out.size);
    return is(&t, want);
}

#define DOTS "\xe2\x80\xa6"
#define WIDE "\xe4\xb8\xad"
#define ACUTE "\xcc\x81"
#define SMILE "\xe2\x98\xba"
#define PICTURE "\xef\xb8\x8f"

TEST(text_cells_are_padded) {
    CHECK(cell_is("abc", (kc_text_cell){0, 5, false}, "abc  "));
    CHECK(cell_is("abc", (kc_text_cell){0, 5, true}, "  abc"));
    CHECK(cell_is("abcdef", (kc_text_cell){0, 5, false}, "abcdef"));
    CHECK(cell_is(WIDE, (kc_text_cell){0, 5, false}, WIDE "   "));
    CHECK(cell_is("a" ACUTE, (kc_text_cell){0, 3, true}, "  a" ACUTE));
    CHECK(cell_is(SMILE PICTURE, (kc_text_cell){0, 4, false}, SMILE PICTURE "  "));
    CHECK(cell_is("a" PICTURE, (kc_text_cell){0, 3, false}, "a" PICTURE "  "));
    CHECK(cell_is("", (kc_text_cell){4, 2, false}, "  "));
}

TEST(text_cells_are_cut) {
    CHECK(cell_is("abcdef", (kc_text_cell){6, 0, false}, "abcdef"));
    CHECK(cell_is("abcdefg", (kc_text_cell){6, 0, false}, "abcde" DOTS));
    CHECK(cell_is("abcdefg", (kc_text_cell){6, 8, false}, "abcde" DOTS "  "));
    CHECK(cell_is("abcdefg", (kc_text_cell){1, 0, false}, DOTS));
    CHECK(cell_is(WIDE WIDE, (kc_text_cell){4, 0, false}, WIDE WIDE));
    CHECK(cell_is(WIDE WIDE WIDE, (kc_text_cell){5, 0, false}, WIDE WIDE DOTS));
    CHECK(cell_is(WIDE WIDE WIDE, (kc_text_cell){4, 0, false}, WIDE " " DOTS)); /* half of a character is a space */
    CHECK(cell_is("ab" ACUTE "cd", (kc_text_cell){3, 0, false}, "ab" ACUTE DOTS));
    CHECK(cell_is("a" SMILE PICTURE "bc", (kc_text_cell){3, 0, false}, "a " DOTS)); /* it is wide with the mark */
    CHECK(cell_is("a" SMILE "bc", (kc_text_cell){3, 0, false}, "a" SMILE DOTS));
    CHECK(cell_is(WIDE "a", (kc_text_cell){1, 0, false}, DOTS));
}

TEST(text_lines_end_without_spaces) {
    kc_text t = begin();
    CHECK_EQ(kc_text_add(&t, "  ab   ", 7, &error), KC_OK);
    CHECK_EQ(kc_text_end_line(&t, 2, 0, &error), KC_OK);
    CHECK(is(&t, "  ab"));
    t = begin();
    CHECK_EQ(kc_text_add(&t, "abcdef  ", 8, &error), KC_OK);
    CHECK_EQ(kc_text_end_line(&t, 0, 4, &error), KC_OK);
    CHECK(is(&t, "abc" DOTS));
}
