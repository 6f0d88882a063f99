/* The keys that a value has been seen with, as 64 bits of a hash each. Two keys may have the same ones, so what is not
 * in the set is new, and what is may be. */
#ifndef KC_KEY_SET_H
#define KC_KEY_SET_H

#include <stdbool.h>

#include "base/kc_error.h"

/* Limit on the keys of one value. */
#define KC_KEY_SET_MOST ((size_t)1 << 20)

typedef struct kc_key_slot {
    uint64_t print;
    uint64_t value; /* the number of the value that has it; 0 for none */
} kc_key_slot;

/* Zero-initialised is empty. */
typedef struct kc_key_set {
    kc_key_slot *slots;
    size_t capacity, count; /* a power of two or 0; the keys of the current value */
    uint64_t value;
} kc_key_set;

/* Hash of some bytes, different for each seed. */
uint64_t kc_key_print(uint64_t seed, const uint8_t *bytes, size_t size);

/* Forgets the keys of the last value. Takes no time. */
static inline void kc_key_set_next(kc_key_set *set) {
    set->value++;
    set->count = 0;
}

/* Whether the key is certainly new. It is not if it may be in the set, or if there is no room for it. To be called
 * after the first kc_key_set_next. */
bool kc_key_set_add(kc_key_set *set, uint64_t print);

void kc_key_set_free(kc_key_set *set);

#endif
