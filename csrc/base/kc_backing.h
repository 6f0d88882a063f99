/* Reference-counted bytes that the views of tables point into.
 *
 * They are owned by the library, such as decompressed records, or by a holder, which is notified when the last table
 * releases them, in whichever thread that happens. */
#ifndef KC_BACKING_H
#define KC_BACKING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/kc_budget.h"

typedef struct kc_backing {
    atomic_int references;
    bool is_source; /* the source of the tables, which does not count as their memory */
    bool is_copied; /* and of which each table will copy what its views point into (kc_views_own) */
    const uint8_t *data;
    size_t size;     /* bytes that can be read; of owned bytes, those that are filled */
    uint8_t *owned;  /* the same as `data`, to be filled; NULL if a holder keeps them */
    size_t capacity; /* of `owned` */
    kc_budget *budget;
    size_t taken; /* bytes taken from the budget */
    void (*let_go)(void *holder);
    void *holder;
} kc_backing;

/* Room for `least` bytes, and for up to `most` if the budget allows; one reference, nothing filled. A budget of NULL is
 * unlimited. NULL, with an error, if memory or the budget is exhausted. */
kc_backing *kc_backing_new(size_t least, size_t most, kc_budget *budget, kc_error *error);

/* Bytes that `holder` keeps until `let_go` (may be NULL) is called with it. They are taken from the budget, if any. If
 * NULL is returned, `let_go` has not been called. */
kc_backing *kc_backing_of(const uint8_t *data, size_t size, kc_budget *budget, void (*let_go)(void *), void *holder,
                          kc_error *error);

void kc_backing_retain(kc_backing *b);
void kc_backing_release(kc_backing *b); /* NULL is none */

#endif
