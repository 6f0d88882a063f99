/* Search for bytes in bytes, in linear time.
 *
 * memchr looks for the byte of the needle that is rarest in the data, by a sample; the rest is compared there. Where
 * the data makes that slow, the rest of the search takes the algorithm of Knuth, Morris and Pratt. */
#ifndef KC_FIND_H
#define KC_FIND_H

#include <stdbool.h>

#include "base/kc_error.h"

/* The bytes to find. Not changed by searches, so threads can share it. */
typedef struct kc_needle {
    const uint8_t *bytes;
    size_t size;
    const uint32_t
        *borders; /* by length of a prefix: the length of its longest proper prefix that is also its suffix */
    void *memory;
} kc_needle;

/* Copies the bytes, at most INT32_MAX. */
KC_MUST_CHECK int kc_needle_init(kc_needle *n, const void *bytes, size_t size, kc_error *error);
void kc_needle_free(kc_needle *n);

/* One search through data, which may come in pieces. */
typedef struct kc_finder {
    const kc_needle *needle;
    size_t rare, second;     /* positions in the needle of the two bytes that are rarest in the data */
    bool common;             /* even the rarest is not rare */
    uint64_t read, compared; /* bytes */
} kc_finder;

/* A search whose data resembles data[0, size). */
kc_finder kc_finder_start(const kc_needle *n, const uint8_t *data, size_t size);

/* The first occurrence in data[0, size); NULL if there is none. */
const uint8_t *kc_find(kc_finder *f, const uint8_t *data, size_t size);

/* Whether so much was compared that the algorithm has changed. Searching one byte after a hit is then not linear if
 * there are many hits. */
bool kc_finder_is_slow(const kc_finder *f);

#endif
