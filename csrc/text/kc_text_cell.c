#include "text/kc_text_cell.h"

#include "base/kc_utf8.h"

static const char ELLIPSIS[] = "\xe2\x80\xa6";
enum { ELLIPSIS_SIZE = 3, VARIATION_16 = 0xfe0f };

/* The character at s, and its size in bytes. The text is one that this library made: it is well-formed. */
static uint32_t character_at(const uint8_t *s, const uint8_t *end, size_t *size) {
    const int n = kc_utf8_sequence(s, end);
    *size = n < 1 ? 1 : (size_t)n;
    uint32_t c = n < 2 ? s[0] : s[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) c = c << 6 | (s[i] & 0x3f);
    return c;
}

/* What is known of a character; KC_TEXT_PAGE if its page is missing. */
static int glyph_of(kc_text *t, uint32_t c) {
    const uint8_t *page = t->glyphs->pages[c / KC_GLYPH_PAGE];
    if (page) return page[c % KC_GLYPH_PAGE];
    t->missing = c / KC_GLYPH_PAGE;
    return KC_TEXT_PAGE;
}

/* What a terminal shows in one place: a character, and those without columns after it. */
typedef struct span {
    size_t size, columns;
} span;

/* The first one; there are bytes. */
static int first_span(kc_text *t, const uint8_t *s, const uint8_t *end, span *found) {
    const uint8_t *p = s;
    size_t size;
    int glyph = glyph_of(t, character_at(p, end, &size));
    if (glyph < 0) return glyph;
    found->columns = glyph & KC_GLYPH_COLUMNS;
    bool widens = glyph & KC_GLYPH_WIDENS;
    for (p += size; p < end && *p >= 0x80; p += size) {
        const uint32_t c = character_at(p, end, &size);
        if (c == VARIATION_16) {
            found->columns += widens;
            widens = false;
            continue;
        }
        glyph = glyph_of(t, c);
        if (glyph < 0) return glyph;
        if (glyph & KC_GLYPH_COLUMNS) break;
    }
    found->size = (size_t)(p - s);
    return KC_OK;
}

/* How much of the text fits into so many columns, and how many it takes. */
static int fitting(kc_text *t, const uint8_t *s, const uint8_t *end, size_t most, span *found) {
    *found = (span){0, 0};
    while (s + found->size < end) {
        span next;
        const int code = first_span(t, s + found->size, end, &next);
        if (code) return code;
        if (found->columns + next.columns > most) return KC_OK;
        found->size += next.size;
        found->columns += next.columns;
    }
    return KC_OK;
}

/* The end of the first so many characters. */
static const uint8_t *after(const uint8_t *s, const uint8_t *end, size_t characters) {
    for (size_t size; s < end && characters; characters--, s += size) character_at(s, end, &size);
    return s;
}

static int add_spaces(kc_text *t, size_t count, kc_error *error) {
    const int code = kc_buffer_reserve(&t->out, count, error);
    if (code) return code;
    memset(t->out.data + t->out.size, ' ', count);
    t->out.size += count;
    return KC_OK;
}

/* Cuts the text from `start` on to `most` columns, if it takes more; *columns is how many it takes then. */
static int cut(kc_text *t, size_t start, size_t most, size_t *columns, kc_error *error) {
    const size_t size = t->out.size - start;
    *columns = 0;
    if (!size) return KC_OK; /* there may be no data yet */
    const uint8_t *const s = t->out.data + start, *const end = s + size;
    span kept = {most - 1, most - 1};
    if (kc_utf8_is_ascii(s, size)) {
        *columns = size;
        if (size <= most) return KC_OK;
    } else {
        int code = fitting(t, s, end, most, &kept);
        *columns = kept.columns;
        if (code || kept.size == size) return code;
        code = fitting(t, s, after(s, end, most > 1 ? most : 0), most - 1, &kept);
        if (code) return code;
    }
    *columns = most;
    t->out.size = start + kept.size;
    const int code = add_spaces(t, most - 1 - kept.columns, error); /* for half of a wide character */
    return code ? code : kc_text_add(t, ELLIPSIS, ELLIPSIS_SIZE, error);
}

int kc_text_fit(kc_text *t, size_t start, const kc_text_cell *cell, kc_error *error) {
    size_t columns;
    int code = cut(t, start, cell->most ? cell->most : SIZE_MAX, &columns, error);
    if (code || columns >= cell->width) return code;
    const size_t spaces = cell->width - columns, size = t->out.size - start;
    code = add_spaces(t, spaces, error);
    if (code || !cell->right) return code;
    uint8_t *text = t->out.data + start;
    memmove(text + spaces, text, size);
    memset(text, ' ', spaces);
    return KC_OK;
}

int kc_text_end_line(kc_text *t, size_t start, size_t most, kc_error *error) {
    while (t->out.size > start && t->out.data[t->out.size - 1] == ' ') t->out.size--;
    size_t columns;
    return most ? cut(t, start, most, &columns, error) : KC_OK;
}
