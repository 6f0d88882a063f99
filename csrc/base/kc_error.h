/* Errors: a code to branch on, and position and reason for the message. */
#ifndef KC_ERROR_H
#define KC_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* One code per exception class of the Python side; kafkacodec/_core/_errors.pxd holds the mapping. */
enum kc_code {
    KC_OK = 0,
    KC_TRUNCATED = 1,    /* the bytes end before the structure does */
    KC_CORRUPT = 2,      /* the bytes violate the format */
    KC_CRC_MISMATCH = 3, /* got: computed, want: stored */
    KC_BAD_MAGIC = 4,    /* got: the magic byte */
    KC_LIMIT = 5,        /* got: the requested size, want: the limit */
    KC_NO_MEMORY = 6,
    KC_BAD_CODEC = 7,     /* got: the codec's number */
    KC_CANNOT_ENCODE = 8, /* the caller's values do not fit the format */
    KC_TOTAL_LIMIT = 9,   /* the result exceeds its kc_budget, whatever the bytes; got and want as for KC_LIMIT */
};

/* Filled once, by the function that finds the fault. `what` is static text.
 * `position` counts bytes from the start of the caller's data. */
typedef struct kc_error {
    int code;
    const char *what;
    uint64_t position;
    int64_t got, want;
} kc_error;

#if defined(__GNUC__)
#define KC_MUST_CHECK __attribute__((warn_unused_result))
#define KC_LIKELY(x) __builtin_expect(!!(x), 1)
#define KC_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define KC_INLINE static inline __attribute__((always_inline))
#define KC_NOINLINE __attribute__((noinline, cold))
#else
#define KC_MUST_CHECK
#define KC_LIKELY(x) (x)
#define KC_UNLIKELY(x) (x)
#define KC_INLINE static inline
#define KC_NOINLINE
#endif

/* Fills the error and returns its code, for `return kc_fail(...)`. */
static inline int kc_fail(kc_error *error, int code, const char *what, uint64_t position, int64_t got, int64_t want) {
    error->code = code;
    error->what = what;
    error->position = position;
    error->got = got;
    error->want = want;
    return code;
}

#endif
