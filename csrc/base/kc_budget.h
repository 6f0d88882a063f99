/* A memory limit of one result, shared by its tables and by the threads that fill them. */
#ifndef KC_BUDGET_H
#define KC_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/kc_error.h"

typedef struct kc_budget {
    atomic_int references;
    atomic_size_t left; /* bytes */
    size_t limit;
    const char *what; /* static text of the error */
} kc_budget;

/* A budget with one reference. NULL if memory is exhausted. */
kc_budget *kc_budget_new(size_t limit, const char *what);
void kc_budget_retain(kc_budget *b);
void kc_budget_release(kc_budget *b);

/* Takes `bytes` if the rest of the budget allows. */
bool kc_budget_take(kc_budget *b, size_t bytes);
void kc_budget_give(kc_budget *b, size_t bytes);

/* The error of a caller that needs `bytes` more. */
int kc_budget_fail(const kc_budget *b, size_t bytes, kc_error *error);

#endif
