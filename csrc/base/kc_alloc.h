/* The one allocator of the library.
 *
 * Large blocks are kept when freed and handed out again, because the page faults of fresh memory cost more than
 * parsing does. What is kept is bounded (KC_POOL_BYTES). Safe with threads, and in the child of a fork. */
#ifndef KC_ALLOC_H
#define KC_ALLOC_H

#include "base/kc_budget.h"
#include "base/kc_error.h"

/* The most that the pool keeps of freed blocks, in bytes of capacity. */
#define KC_POOL_BYTES ((size_t)256 << 20)

/* NULL where the system has no memory or `size` is beyond PTRDIFF_MAX. Contents are undefined. */
void *kc_alloc(size_t size);

/* The same, all bytes 0. */
void *kc_alloc_zeroed(size_t size);

/* A block of at least `size` bytes with the first `used` bytes of `block`, which is gone unless NULL is returned. Large
 * blocks grow where they are, or by moving their pages, so that old and new do not stand side by side. */
void *kc_realloc(void *block, size_t used, size_t size);

void kc_free(void *block);

/* How many bytes `block` may hold; at least what was asked for. */
size_t kc_capacity(const void *block);

/* The capacity of all blocks that are handed out and not yet freed, and of those that are kept for later; in bytes. */
size_t kc_live_bytes(void);
size_t kc_kept_bytes(void);

/* Gives the kept blocks back to the system; returns how many bytes they had. */
size_t kc_trim(void);

/* Asks the system for huge pages behind fresh memory that is about to be written; a hint, without effect on small
 * areas and where the system has none. */
void kc_advise_huge(void *data, size_t size);

/* A growing array of bytes. Zero-initialised is empty. */
typedef struct kc_buffer {
    uint8_t *data;
    size_t size, capacity;
} kc_buffer;

/* A capacity of at least `capacity` bytes; more where growing again soon would cost time. */
KC_MUST_CHECK int kc_buffer_grow(kc_buffer *b, size_t capacity, kc_error *error);

/* The same for a buffer whose capacity is part of a budget; NULL is none. */
KC_MUST_CHECK int kc_buffer_grow_within(kc_buffer *b, size_t capacity, kc_budget *budget, kc_error *error);
void kc_buffer_free(kc_buffer *b);

/* Room for `extra` more bytes behind b->size; grows geometrically. */
static inline int kc_buffer_reserve(kc_buffer *b, size_t extra, kc_error *error) {
    if (KC_LIKELY(extra <= b->capacity - b->size)) return KC_OK;
    return kc_buffer_grow(b, b->size + extra, error);
}

#endif
