/* Text for terminals and files, in UTF-8, that is appended to one buffer: the parts of which kc_text_rows makes rows.
 *
 * A function returns KC_OK, KC_NO_MEMORY with the error filled, or one of KC_TEXT_*; then `out` has some of the text.
 * The input must not change meanwhile. */
#ifndef KC_TEXT_H
#define KC_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "base/kc_alloc.h"
#include "text/kc_glyphs.h"

enum {
    KC_TEXT_PAGE = -1,    /* the page of characters `missing` is needed */
    KC_TEXT_NOT_UTF8 = -2 /* the bytes are not UTF-8 */
};

typedef struct kc_text {
    kc_buffer out;
    const kc_glyphs *glyphs;
    bool ascii; /* JSON has no other characters */
    uint32_t missing;
} kc_text;

static inline int kc_text_add(kc_text *t, const void *data, size_t size, kc_error *error) {
    const int code = kc_buffer_reserve(&t->out, size, error);
    if (KC_UNLIKELY(code)) return code;
    if (size) memcpy(t->out.data + t->out.size, data, size);
    t->out.size += size;
    return KC_OK;
}

/* A decimal number. */
KC_MUST_CHECK int kc_text_number(kc_text *t, int64_t value, kc_error *error);

/* Milliseconds since 1970 as ``2026-05-01 12:00:00.000`` in UTC; ``-`` for -1; the number for others before 1970 and
 * for those after the year 9999. */
KC_MUST_CHECK int kc_text_time(kc_text *t, int64_t milliseconds, kc_error *error);

KC_MUST_CHECK int kc_text_hex(kc_text *t, const uint8_t *data, size_t size, kc_error *error);
KC_MUST_CHECK int kc_text_base64(kc_text *t, const uint8_t *data, size_t size, kc_error *error);

#endif
