/* Copying many short values. */
#ifndef KC_COPY_H
#define KC_COPY_H

#include <stdbool.h>
#include <string.h>

#include "base/kc_error.h"

/* Spare bytes after the reserved ones, so that short values are copied with full vector loads and stores. */
enum { KC_COPY_SLACK = 32, KC_COPY_WIDE_MAX = 256, KC_FETCH_AHEAD = 24576, KC_WRITE_AHEAD = 1024 };

/* Copies `n` bytes; if `wide`, both sides may be accessed KC_COPY_SLACK bytes beyond their end. */
KC_INLINE void kc_copy(uint8_t *to, const uint8_t *from, size_t n, bool wide) {
    if (KC_UNLIKELY(!wide || n > KC_COPY_WIDE_MAX)) {
        if (n) memcpy(to, from, n);
        return;
    }
    memcpy(to, from, KC_COPY_SLACK);
    for (size_t done = KC_COPY_SLACK; done < n; done += KC_COPY_SLACK) memcpy(to + done, from + done, KC_COPY_SLACK);
}

/* While a value is copied, prefetches the bytes one batch ahead, for which a checksum or the next copy would otherwise
 * wait. An address, not a pointer: it may be outside the data. */
KC_INLINE void kc_fetch_ahead(const uint8_t *from, const uint8_t *to) {
    for (uintptr_t line = (uintptr_t)from; line < (uintptr_t)to; line += 64) {
        __builtin_prefetch((const void *)(line + KC_FETCH_AHEAD), 0, 2);
    }
}

/* Likewise for memory that is written to: what a copy will fill some values further on. */
KC_INLINE void kc_fetch_to_write(const uint8_t *to, size_t size) {
    const uintptr_t ahead = (uintptr_t)to + KC_WRITE_AHEAD;
    __builtin_prefetch((const void *)ahead, 1, 2);
    if (size > 64) __builtin_prefetch((const void *)(ahead + 64), 1, 2);
}

#endif
