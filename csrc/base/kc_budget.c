#include "base/kc_budget.h"

#include "base/kc_alloc.h"

kc_budget *kc_budget_new(size_t limit, const char *what) {
    kc_budget *b = kc_alloc(sizeof *b);
    if (!b) return NULL;
    atomic_init(&b->references, 1);
    atomic_init(&b->left, limit);
    b->limit = limit;
    b->what = what;
    return b;
}

void kc_budget_retain(kc_budget *b) { atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed); }

void kc_budget_release(kc_budget *b) {
    if (atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) == 1) kc_free(b);
}

bool kc_budget_take(kc_budget *b, size_t bytes) {
    size_t left = atomic_load_explicit(&b->left, memory_order_relaxed);
    while (bytes <= left) {
        if (atomic_compare_exchange_weak_explicit(&b->left, &left, left - bytes, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

void kc_budget_give(kc_budget *b, size_t bytes) { atomic_fetch_add_explicit(&b->left, bytes, memory_order_relaxed); }

int kc_budget_fail(const kc_budget *b, size_t bytes, kc_error *error) {
    const size_t used = b->limit - atomic_load_explicit(&b->left, memory_order_relaxed);
    const size_t needed = bytes > (size_t)INT64_MAX - used ? (size_t)INT64_MAX : used + bytes;
    return kc_fail(error, KC_TOTAL_LIMIT, b->what, 0, (int64_t)needed, (int64_t)b->limit);
}
