/* UTF-8 for columns of type string, which must hold nothing else. */
#ifndef KC_UTF8_H
#define KC_UTF8_H

#include <stdbool.h>

#include "base/kc_error.h"

bool kc_utf8_valid(const uint8_t *s, size_t size);

/* Copies `s` with U+FFFD in place of what is malformed, as Java's decoder does: one for a truncated sequence, one
 * for a surrogate's three bytes, one for any other stray byte. `out` has room for 3 * size. Returns the bytes written.
 */
size_t kc_utf8_repair(const uint8_t *s, size_t size, uint8_t *out);

#endif
