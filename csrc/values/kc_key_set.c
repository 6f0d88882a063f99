#include "values/kc_key_set.h"

#include <string.h>

#include "base/kc_alloc.h"
#include "base/kc_bytes.h"
#include "base/kc_mix.h"

enum { LEAST_SLOTS = 64, MOST_STEPS = 64 };

uint64_t kc_key_print(uint64_t seed, const uint8_t *bytes, size_t size) {
    uint64_t print = kc_mix64(seed + size);
    for (; size >= 8; bytes += 8, size -= 8) print = kc_mix64(print ^ kc_load_le64(bytes));
    uint64_t last = 0;
    for (size_t i = 0; i < size; i++) last = last << 8 | kc_load_u8(bytes + i);
    print = kc_mix64(print ^ last);
    return print ? print : 1;
}

void kc_key_set_clear(kc_key_set *set) {
    if (set->capacity > LEAST_SLOTS) {
        kc_key_set_free(set);
    } else if (set->count) {
        memset(set->slots, 0, set->capacity * sizeof *set->slots);
        set->count = 0;
    }
}

/* A slot for the key: its own, or a free one; NULL after too many steps, which only chosen keys need. */
static uint64_t *slot_of(const kc_key_set *set, uint64_t print) {
    for (size_t step = 0; step < MOST_STEPS; step++) {
        uint64_t *slot = set->slots + ((print + step) & (set->capacity - 1));
        if (*slot == 0 || *slot == print) return slot;
    }
    return NULL;
}

static bool grow(kc_key_set *set) {
    const size_t capacity = set->capacity ? 2 * set->capacity : LEAST_SLOTS;
    if (capacity > 2 * KC_KEY_SET_MOST) return false;
    kc_key_set larger = {kc_alloc_zeroed(capacity * sizeof *set->slots), capacity, set->count};
    if (!larger.slots) return false;
    for (size_t i = 0; i < set->capacity; i++) {
        uint64_t *slot = set->slots[i] ? slot_of(&larger, set->slots[i]) : NULL;
        if (slot) *slot = set->slots[i];
        if (!slot && set->slots[i]) {
            kc_free(larger.slots);
            return false;
        }
    }
    kc_free(set->slots);
    *set = larger;
    return true;
}

bool kc_key_set_add(kc_key_set *set, uint64_t print) {
    if (2 * set->count >= set->capacity && !grow(set)) return false;
    uint64_t *slot = slot_of(set, print);
    if (!slot || *slot == print) return false;
    *slot = print;
    set->count++;
    return true;
}

void kc_key_set_free(kc_key_set *set) {
    kc_free(set->slots);
    *set = (kc_key_set){NULL, 0, 0};
}
