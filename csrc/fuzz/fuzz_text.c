/* Values as text: JSON is text of printable characters that reads back as the bytes, a cell has its width, and no text
 * has a control character. The first byte chooses which pages of characters are known, and how. */
#include <string.h>

#include "base/kc_utf8.h"
#include "fuzz.h"
#include "text/kc_text_cell.h"
#include "text/kc_text_strings.h"

static uint8_t pages[KC_GLYPH_PAGES][KC_GLYPH_PAGE];
static kc_glyphs glyphs;
static kc_error error;

typedef int writer(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

/* A page by the choice: characters of all kinds, the same ones each time. */
static void fill(uint32_t number, uint8_t choice) {
    for (unsigned i = 0; i < KC_GLYPH_PAGE; i++) {
        const unsigned kind = (i * 7 + number * 3 + choice) % 8;
        static const uint8_t KINDS[8] = {0, 5, 6, 4, 13, 22, 21, 5};
        pages[number][i] = number || i >= 0x80 ? KINDS[kind] : i >= 0x20 && i < 0x7f ? 5 : 0;
    }
    glyphs.pages[number] = pages[number];
}

/* Runs a writer until it has all pages that it asks for. */
static void write_all(kc_text *t, writer *write, const uint8_t *data, size_t size, uint8_t choice) {
    int code;
    const size_t start = t->out.size;
    while ((code = write(t, data, size, &error)) == KC_TEXT_PAGE) {
        MUST(!glyphs.pages[t->missing]);
        fill(t->missing, choice);
        t->out.size = start;
    }
    MUST(code == KC_OK || code == KC_TEXT_NOT_UTF8);
}

static int hex(uint8_t c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/* Reads four digits as UTF-16 has them and appends UTF-8. */
static uint8_t *put(uint8_t *p, uint32_t c) {
    if (c < 0x80) {
        *p++ = (uint8_t)c;
    } else if (c < 0x800) {
        *p++ = (uint8_t)(0xc0 | c >> 6);
        *p++ = (uint8_t)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *p++ = (uint8_t)(0xe0 | c >> 12);
        *p++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *p++ = (uint8_t)(0x80 | (c & 63));
    } else {
        *p++ = (uint8_t)(0xf0 | c >> 18);
        *p++ = (uint8_t)(0x80 | (c >> 12 & 63));
        *p++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *p++ = (uint8_t)(0x80 | (c & 63));
    }
    return p;
}

static uint32_t digits(const uint8_t *s) {
    return (uint32_t)(hex(s[0]) << 12 | hex(s[1]) << 8 | hex(s[2]) << 4 | hex(s[3]));
}

/* The bytes that a string of JSON stands for. */
static size_t unescaped(const uint8_t *s, size_t size, uint8_t *out) {
    static const char LETTERS[] = "nrtbf\"\\", MEANINGS[] = "\n\r\t\b\f\"\\";
    uint8_t *p = out;
    for (const uint8_t *end = s + size; s < end; s++) {
        if (*s != '\\') {
            *p++ = *s;
        } else if (*++s == 'u') {
            uint32_t c = digits(s + 1);
            s += 4;
            if (c >= 0xd800 && c < 0xdc00) {
                MUST(s[1] == '\\' && s[2] == 'u');
                c = 0x10000 + (c - 0xd800) * 0x400 + (digits(s + 3) - 0xdc00);
                s += 6;
            }
            p = put(p, c);
        } else {
            const char *at = strchr(LETTERS, *s);
            MUST(at && *s);
            *p++ = (uint8_t)MEANINGS[at - LETTERS];
        }
    }
    return (size_t)(p - out);
}

static void must_be_printable(const kc_text *t) {
    MUST(kc_utf8_valid(t->out.data, t->out.size));
    for (size_t i = 0; i < t->out.size; i++) MUST(t->out.data[i] >= 0x20 && t->out.data[i] != 0x7f);
}

static void check_json(const uint8_t *data, size_t size, uint8_t choice, bool ascii) {
    kc_text t = {.glyphs = &glyphs, .ascii = ascii};
    write_all(&t, kc_text_json_bytes, data, size, choice);
    must_be_printable(&t);
    const bool is_text = kc_utf8_valid(data, size);
    MUST(t.out.data[0] == (is_text ? '"' : '{'));
    if (ascii) MUST(kc_utf8_is_ascii(t.out.data, t.out.size));
    if (is_text) {
        uint8_t *back = malloc(t.out.size + 1);
        MUST(back != NULL);
        MUST(unescaped(t.out.data + 1, t.out.size - 2, back) == size && (!size || memcmp(back, data, size) == 0));
        free(back);
    } else {
        MUST(t.out.size == strlen("{\"base64\":\"\"}") + (size + 2) / 3 * 4);
    }
    kc_buffer_free(&t.out);
}

static int fit(kc_text *t, const uint8_t *data, size_t size, kc_error *failure) {
    const kc_text_cell cell = {size ? (size_t)data[0] + 1 : 0, 20, size & 1};
    int code = kc_text_visible(t, data, size, failure);
    if (!code) code = kc_text_fit(t, 0, &cell, failure);
    return code ? code : kc_text_end_line(t, 0, size % 50, failure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t choice = size ? data[0] : 0;
    memset(&glyphs, 0, sizeof glyphs);
    check_json(data, size, choice, false);
    check_json(data, size, choice, true);
    static writer *const WRITERS[] = {kc_text_visible, kc_text_value, fit};
    for (size_t i = 0; i < sizeof WRITERS / sizeof *WRITERS; i++) {
        kc_text t = {.glyphs = &glyphs};
        write_all(&t, WRITERS[i], data, size, choice);
        must_be_printable(&t);
        kc_buffer_free(&t.out);
    }
    return 0;
}
