/* UTF-8 for columns of type string, which must be valid. */
#ifndef KC_UTF8_H
#define KC_UTF8_H

#include <stdbool.h>

#include "base/kc_error.h"

/* Whether no byte has its highest bit set. */
bool kc_utf8_is_ascii(const uint8_t *s, size_t size);

/* The size of the well-formed sequence at s (1 to 4), which is before `end`, or minus the number of bytes that
 * kc_utf8_repair replaces together. */
int kc_utf8_sequence(const uint8_t *s, const uint8_t *end);

bool kc_utf8_valid(const uint8_t *s, size_t size);

/* Copies `s` with U+FFFD for malformed sequences, like Java's decoder: one for a truncated sequence, one for the three
 * bytes of a surrogate, one for any other stray byte. `out` has room for 3 * size. Returns the number of bytes written.
 */
size_t kc_utf8_repair(const uint8_t *s, size_t size, uint8_t *out);

#endif
