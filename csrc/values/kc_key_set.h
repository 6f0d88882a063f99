/* The keys of the maps of one value, as 64 bits of a hash each. Two keys may have the same ones, so what is not in the
 * set is new, and what is may be. */
#ifndef KC_KEY_SET_H
#define KC_KEY_SET_H

#include <stdbool.h>

#include "base/kc_error.h"

/* Limit on the keys, which take up to 32 bytes each. */
#define KC_KEY_SET_MOST ((size_t)1 << 23)

/* Zero-initialised is empty. */
typedef struct kc_key_set {
    uint64_t *slots;        /* 0 is free */
    size_t capacity, count; /* a power of two or 0; the keys */
} kc_key_set;

/* Hash of some bytes, different for each seed; not 0. */
uint64_t kc_key_print(uint64_t seed, const uint8_t *bytes, size_t size);

/* Forgets all keys, in time of their number at most. */
void kc_key_set_clear(kc_key_set *set);

/* Whether the key is certainly new. It is not if it may be in the set, or if there is no room for it. */
bool kc_key_set_add(kc_key_set *set, uint64_t print);

void kc_key_set_free(kc_key_set *set);

#endif
