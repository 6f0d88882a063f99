#include "base/kc_backing.h"

#include <string.h>

#include "base/kc_alloc.h"

/* Spare room takes at most this share of the remaining budget. */
enum { ROOM_SHARE = 8 };

static kc_backing *new_backing(kc_budget *budget, size_t taken, kc_error *error) {
    kc_backing *b = kc_alloc(sizeof *b);
    if (!b) {
        kc_fail(error, KC_NO_MEMORY, "no memory for the buffers of views", 0, 0, 0);
        return NULL;
    }
    memset(b, 0, sizeof *b);
    atomic_init(&b->references, 1);
    b->budget = budget;
    b->taken = taken;
    if (budget) kc_budget_retain(budget);
    return b;
}

/* Takes the larger size from the budget if that leaves most of it, else the smaller one; 0 if that is too much. */
static size_t take(kc_budget *budget, size_t least, size_t most) {
    const size_t left = atomic_load_explicit(&budget->left, memory_order_relaxed);
    if (most > least && most <= left / ROOM_SHARE && kc_budget_take(budget, most)) return most;
    return kc_budget_take(budget, least) ? least : 0;
}

kc_backing *kc_backing_new(size_t least, size_t most, kc_budget *budget, kc_error *error) {
    if (least < 1) least = 1;
    size_t capacity = most > least ? most : least;
    if (budget) capacity = take(budget, least, most);
    if (!capacity) {
        kc_budget_fail(budget, least, error);
        return NULL;
    }
    uint8_t *owned = kc_alloc(capacity);
    if (!owned) kc_fail(error, KC_NO_MEMORY, "no memory for decompressed records", 0, (int64_t)capacity, 0);
    kc_backing *b = owned ? new_backing(budget, budget ? capacity : 0, error) : NULL;
    if (!b) {
        kc_free(owned);
        if (budget) kc_budget_give(budget, capacity);
        return NULL;
    }
    b->data = b->owned = owned;
    b->capacity = capacity;
    return b;
}

kc_backing *kc_backing_of(const uint8_t *data, size_t size, kc_budget *budget, void (*let_go)(void *), void *holder,
                          kc_error *error) {
    if (budget && !kc_budget_take(budget, size)) {
        kc_budget_fail(budget, size, error);
        return NULL;
    }
    kc_backing *b = new_backing(budget, budget ? size : 0, error);
    if (!b) {
        if (budget) kc_budget_give(budget, size);
        return NULL;
    }
    b->data = data;
    b->size = size;
    b->let_go = let_go;
    b->holder = holder;
    return b;
}

void kc_backing_retain(kc_backing *b) { atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed); }

void kc_backing_release(kc_backing *b) {
    if (!b || atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1) return;
    if (b->let_go) b->let_go(b->holder);
    kc_free(b->owned);
    if (b->budget) {
        kc_budget_give(b->budget, b->taken);
        kc_budget_release(b->budget);
    }
    kc_free(b);
}
