/* Copying many short values from one place in memory to another. */
#ifndef KC_COPY_H
#define KC_COPY_H

#include <stdbool.h>
#include <string.h>

#include "base/kc_error.h"

/* Spare bytes behind what is reserved, so that short values are copied with whole-vector loads and stores. */
enum { KC_COPY_SLACK = 32, KC_COPY_WIDE_MAX = 256, KC_FETCH_AHEAD = 24576 };

/* Copies `n` bytes; both sides may be touched KC_COPY_SLACK bytes beyond their end where `wide` says so. */
KC_INLINE void kc_copy(uint8_t *to, const uint8_t *from, size_t n, bool wide) {
    if (KC_UNLIKELY(!wide || n > KC_COPY_WIDE_MAX)) {
        if (n) memcpy(to, from, n);
        return;
    }
    memcpy(to, from, KC_COPY_SLACK);
    for (size_t done = KC_COPY_SLACK; done < n; done += KC_COPY_SLACK) memcpy(to + done, from + done, KC_COPY_SLACK);
}

/* While a value is copied, asks for the bytes a batch further on, for which a checksum or the next copy would otherwise
 * wait. An address, never a pointer: it may lie outside the data. */
KC_INLINE void kc_fetch_ahead(const uint8_t *from, const uint8_t *to) {
    for (uintptr_t line = (uintptr_t)from; line < (uintptr_t)to; line += 64) {
        __builtin_prefetch((const void *)(line + KC_FETCH_AHEAD), 0, 2);
    }
}

#endif
