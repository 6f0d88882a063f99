/* What one result may take of memory: shared by the tables that make it up and by the threads that fill them. */
#ifndef KC_BUDGET_H
#define KC_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/kc_error.h"

typedef struct kc_budget {
    atomic_int references;
    atomic_size_t left; /* bytes */
    size_t limit;
    const char *what; /* static text: what to say where it does not suffice */
} kc_budget;

/* A budget with one reference. NULL where memory ends. */
kc_budget *kc_budget_new(size_t limit, const char *what);
void kc_budget_retain(kc_budget *b);
void kc_budget_release(kc_budget *b);

/* Takes bytes if so many are left. */
bool kc_budget_take(kc_budget *b, size_t bytes);
void kc_budget_give(kc_budget *b, size_t bytes);

/* The error of a caller who needs `bytes` more than there are left. */
int kc_budget_fail(const kc_budget *b, size_t bytes, kc_error *error);

#endif
