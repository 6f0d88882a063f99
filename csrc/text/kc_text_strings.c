#include "text/kc_text_strings.h"

#include "base/kc_utf8.h"

/* What JSON and values have an escape for or take a closer look at: all but printable ASCII without quote and
 * backslash. */
#define HIGH_BITS UINT64_C(0x8080808080808080)
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The highest bit of each byte that is the given one, and perhaps of some above the first. */
static uint64_t bytes_that_are(uint64_t word, uint8_t byte) {
    const uint64_t difference = word ^ EACH(byte);
    return (difference - EACH(1)) & ~difference;
}

static bool is_plain(uint8_t c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

/* How many of the first characters are copied as they are. */
static size_t plain_run(const uint8_t *s, const uint8_t *end) {
    const uint8_t *p = s;
    while (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        const uint64_t controls = (word - EACH(0x20)) & ~word; /* below 0x20 */
        const uint64_t others = bytes_that_are(word, '"') | bytes_that_are(word, '\\') | bytes_that_are(word, 0x7f);
        if ((word | controls | others) & HIGH_BITS) break;
        p += 8;
    }
    while (p < end && is_plain(*p)) p++;
    return (size_t)(p - s);
}

/* The character of a well-formed sequence. */
static uint32_t character(const uint8_t *s, int size) {
    if (size == 1) return s[0];
    if (size == 2) return (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    if (size == 3) return (uint32_t)(s[0] & 0x0f) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
    return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3f) << 12 | (uint32_t)(s[2] & 0x3f) << 6 | (s[3] & 0x3f);
}

/* What is known of a character; KC_TEXT_PAGE if its page is missing. */
static int glyph_of(kc_text *t, uint32_t c) {
    const uint8_t *page = t->glyphs->pages[c / KC_GLYPH_PAGE];
    if (KC_LIKELY(page != NULL)) return page[c % KC_GLYPH_PAGE];
    t->missing = c / KC_GLYPH_PAGE;
    return KC_TEXT_PAGE;
}

static bool shows(int glyph) { return (glyph & (KC_GLYPH_PRINTABLE | KC_GLYPH_BLANK)) == KC_GLYPH_PRINTABLE; }

/* A backslash, a letter and hex digits, such as \u202e. */
static int add_escape(kc_text *t, char letter, int digits, uint32_t c, kc_error *error) {
    uint8_t text[10] = {'\\', (uint8_t)letter};
    for (int i = 0; i < digits; i++) text[2 + i] = (uint8_t)"0123456789abcdef"[c >> 4 * (digits - 1 - i) & 15];
    return kc_text_add(t, text, 2 + (size_t)digits, error);
}

/* The escape of one letter after a backslash, among `letters`, which follow the characters that they stand for. */
static int add_letter(kc_text *t, char letter, kc_error *error) {
    const char text[2] = {'\\', letter};
    return kc_text_add(t, text, sizeof text, error);
}

/* The letter of a pair in `pairs`, of a character and its letter; 0 without one. */
static char letter_of(const char *pairs, uint8_t c) {
    for (; *pairs; pairs += 2) {
        if ((uint8_t)pairs[0] == c) return pairs[1];
    }
    return 0;
}

static int add_json_escape(kc_text *t, uint32_t c, kc_error *error) {
    if (c < 0x10000) return add_escape(t, 'u', 4, c, error);
    const int code = add_escape(t, 'u', 4, 0xd800 + (c - 0x10000) / 0x400, error);
    return code ? code : add_escape(t, 'u', 4, 0xdc00 + (c - 0x10000) % 0x400, error);
}

static int add_visible_escape(kc_text *t, uint32_t c, kc_error *error) {
    const char letter = c < 0x20 ? letter_of("\nn\rr\tt", (uint8_t)c) : 0;
    if (letter) return add_letter(t, letter, error);
    if (c < 0x100) return add_escape(t, 'x', 2, c, error);
    return c < 0x10000 ? add_escape(t, 'u', 4, c, error) : add_escape(t, 'U', 8, c, error);
}

/* The characters beyond ASCII at s: how many bytes of them may be copied as they are. Then *size is that of a character
 * after them that may not, with its *glyph, or a negative one where they are not UTF-8; 0 where ASCII or the end is. */
static int shown_run(kc_text *t, const uint8_t *s, const uint8_t *end, size_t *run, int *size) {
    const uint8_t *p = s;
    int glyph = 0;
    *size = 0;
    while (p < end && *p >= 0x80) {
        *size = kc_utf8_sequence(p, end);
        if (*size < 0) break;
        glyph = glyph_of(t, character(p, *size));
        if (glyph < 0 || !shows(glyph)) break;
        p += *size;
        *size = 0;
    }
    *run = (size_t)(p - s);
    return glyph;
}

static int json_ascii(kc_text *t, uint8_t c, kc_error *error) {
    const char letter = letter_of("\"\"\\\\\nn\rr\tt\bb\ff", c);
    return letter ? add_letter(t, letter, error) : add_escape(t, 'u', 4, c, error);
}

/* Characters beyond ASCII, up to the first that is escaped, and that; *s is moved. */
static int json_others(kc_text *t, const uint8_t **s, const uint8_t *end, kc_error *error) {
    size_t run = 0;
    int size, code = KC_OK;
    if (t->ascii) {
        size = kc_utf8_sequence(*s, end);
    } else {
        const int glyph = shown_run(t, *s, end, &run, &size);
        if (glyph < 0) return glyph;
        code = kc_text_add(t, *s, run, error);
    }
    *s += run;
    if (size < 0) return KC_TEXT_NOT_UTF8;
    if (size && !code) code = add_json_escape(t, character(*s, size), error);
    *s += size;
    return code;
}

int kc_text_json_string(kc_text *t, const uint8_t *s, size_t size, kc_error *error) {
    const uint8_t *const end = s + size;
    int code = kc_text_add(t, "\"", 1, error);
    while (!code) {
        const size_t run = plain_run(s, end);
        code = kc_text_add(t, s, run, error);
        s += run;
        if (code || s == end) break;
        if (*s < 0x80) {
            code = json_ascii(t, *s++, error);
        } else {
            code = json_others(t, &s, end, error);
        }
    }
    return code ? code : kc_text_add(t, "\"", 1, error);
}

int kc_text_json_bytes(kc_text *t, const uint8_t *s, size_t size, kc_error *error) {
    static const char BEFORE[] = "{\"base64\":\"", AFTER[] = "\"}";
    const size_t start = t->out.size;
    int code = kc_text_json_string(t, s, size, error);
    if (code != KC_TEXT_NOT_UTF8) return code;
    t->out.size = start;
    code = kc_text_add(t, BEFORE, sizeof BEFORE - 1, error);
    if (!code) code = kc_text_base64(t, s, size, error);
    return code ? code : kc_text_add(t, AFTER, sizeof AFTER - 1, error);
}

int kc_text_visible(kc_text *t, const uint8_t *s, size_t size, kc_error *error) {
    const uint8_t *const end = s + size;
    int code = KC_OK;
    while (s < end && !code) {
        size_t run = 0;
        while (s + run < end && s[run] >= 0x20 && s[run] < 0x7f) run++;
        code = kc_text_add(t, s, run, error);
        s += run;
        if (code || s == end) break;
        if (*s < 0x80) {
            code = add_visible_escape(t, *s++, error);
            continue;
        }
        int bytes;
        const int glyph = shown_run(t, s, end, &run, &bytes);
        if (glyph < 0) return glyph;
        code = kc_text_add(t, s, run, error);
        s += run;
        if (bytes && !code) code = add_visible_escape(t, bytes < 0 ? 0xdc00u + *s : character(s, bytes), error);
        s += bytes < 0 ? 1 : bytes;
    }
    return code;
}

/* Text that is all printable; KC_TEXT_NOT_UTF8 otherwise. */
static int value_text(kc_text *t, const uint8_t *s, const uint8_t *end, kc_error *error) {
    int code = KC_OK;
    while (!code) {
        size_t run = plain_run(s, end);
        code = kc_text_add(t, s, run, error);
        s += run;
        if (code || s == end) break;
        if (*s == '"') {
            code = kc_text_add(t, s++, 1, error);
        } else if (*s < 0x80) {
            const char letter = letter_of("\\\\\nn\rr\tt", *s++);
            code = letter ? add_letter(t, letter, error) : KC_TEXT_NOT_UTF8;
        } else {
            int bytes;
            const int glyph = shown_run(t, s, end, &run, &bytes);
            if (glyph < 0) return glyph;
            if (bytes < 0 || (bytes && !(glyph & KC_GLYPH_PRINTABLE))) return KC_TEXT_NOT_UTF8;
            code = kc_text_add(t, s, run, error);
            s += run;
            if (bytes && !code) code = add_visible_escape(t, character(s, bytes), error);
            s += bytes;
        }
    }
    return code;
}

/* Whether the text is what stands for null, or what stands for bytes that are no text. */
static bool stands_for_other(const uint8_t *s, size_t size) {
    if (size == 4 && !memcmp(s, "null", 4)) return true;
    if (size < 4 || size % 2 || s[0] != '0' || s[1] != 'x') return false;
    for (size_t i = 2; i < size; i++) {
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f'))) return false;
    }
    return true;
}

int kc_text_value(kc_text *t, const uint8_t *s, size_t size, kc_error *error) {
    const size_t start = t->out.size;
    const bool quoted = stands_for_other(s, size);
    int code = quoted ? kc_text_add(t, "\"", 1, error) : KC_OK;
    if (!code) code = value_text(t, s, s + size, error);
    if (!code && quoted) code = kc_text_add(t, "\"", 1, error);
    if (code != KC_TEXT_NOT_UTF8) return code;
    t->out.size = start;
    code = kc_text_add(t, "0x", 2, error);
    return code ? code : kc_text_hex(t, s, size, error);
}
