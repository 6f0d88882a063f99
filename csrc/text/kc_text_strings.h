/* Bytes as text: JSON's strings, text without control characters, values as tables show them. */
#ifndef KC_TEXT_STRINGS_H
#define KC_TEXT_STRINGS_H

#include "text/kc_text.h"

/* A string of JSON, in which invisible characters are escapes; KC_TEXT_NOT_UTF8 if the bytes are not UTF-8. */
KC_MUST_CHECK int kc_text_json_string(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

/* A string, or ``{"base64":"..."}`` if the bytes are not UTF-8. */
KC_MUST_CHECK int kc_text_json_bytes(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

/* The text, with ``\x1b``, ``\n``, ``\u202e`` for what a terminal does not show, and ``\udcff`` for bytes that are not
 * UTF-8. */
KC_MUST_CHECK int kc_text_visible(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

/* A value: the text with ``\n``, ``\r``, ``\t`` and ``\\`` if it is printable except for line ends and tabs, else hex
 * after ``0x``. A text that is such hex, or ``null``, is between quotation marks. */
KC_MUST_CHECK int kc_text_value(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

#endif
