/* Bytes that the views of tables point into, kept for as long as one of them may be read.
 *
 * They are the library's own, such as decompressed records, or somebody else's, who is told when the last table is done
 * with them: in any thread, and whoever released it. */
#ifndef KC_BACKING_H
#define KC_BACKING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/kc_budget.h"

typedef struct kc_backing {
    atomic_int references;
    bool is_source; /* what tables were read from, which is no memory of theirs */
    const uint8_t *data;
    size_t size;     /* bytes that can be read; of its own bytes, those that are filled */
    uint8_t *owned;  /* the same as `data`, to be filled; NULL where a holder keeps them */
    size_t capacity; /* of `owned` */
    kc_budget *budget;
    size_t taken; /* bytes of the budget */
    void (*let_go)(void *holder);
    void *holder;
} kc_backing;

/* Room for `least` bytes, and for up to `most` where the budget has plenty; one reference, nothing filled. A budget of
 * NULL bounds nothing. NULL where memory or the budget ends, and tells which. */
kc_backing *kc_backing_new(size_t least, size_t most, kc_budget *budget, kc_error *error);

/* Bytes that `holder` keeps until `let_go` is called with it, which may be NULL. They come out of the budget, if any.
 * Where NULL is returned, `let_go` has not been called. */
kc_backing *kc_backing_of(const uint8_t *data, size_t size, kc_budget *budget, void (*let_go)(void *), void *holder,
                          kc_error *error);

void kc_backing_retain(kc_backing *b);
void kc_backing_release(kc_backing *b); /* NULL is none */

#endif
