/* The allocator of the library.
 *
 * Large blocks are kept in a pool when freed and reused, because the page faults of new memory cost more than parsing.
 * The pool is bounded (KC_POOL_BYTES). Safe with threads, and in the child of a fork. */
#ifndef KC_ALLOC_H
#define KC_ALLOC_H

#include "base/kc_budget.h"
#include "base/kc_error.h"

/* Limit on the freed blocks in the pool, in bytes of capacity. */
#define KC_POOL_BYTES ((size_t)256 << 20)

/* NULL if memory is exhausted or `size` exceeds PTRDIFF_MAX. Contents are undefined. */
void *kc_alloc(size_t size);

/* The same, all bytes 0. */
void *kc_alloc_zeroed(size_t size);

/* A block of at least `size` bytes with the first `used` bytes of `block`, which is freed unless NULL is returned.
 * Large blocks grow in place or by remapping their pages, so that old and new memory are not needed at the same time.
 */
void *kc_realloc(void *block, size_t used, size_t size);

void kc_free(void *block);

/* A small block in KC_PART_BYTES of another one, at an address that 64 divides: freeing it does nothing, and it lasts
 * as long as the other. Memory that many small blocks need is so got and freed at once. */
enum { KC_PART_CAPACITY = 64, KC_PART_BYTES = 2 * KC_PART_CAPACITY };
void *kc_alloc_part(void *at);

/* The capacity of `block` in bytes, at least the requested size. */
size_t kc_capacity(const void *block);

/* The capacity of all blocks in use, and of those in the pool; in bytes. */
size_t kc_live_bytes(void);
size_t kc_kept_bytes(void);

/* Returns the blocks of the pool to the system; returns their size in bytes. */
size_t kc_trim(void);

/* Asks the system for huge pages for new memory that is about to be written. A hint, ignored for small areas and if the
 * system does not support it. */
void kc_advise_huge(void *data, size_t size);

/* A growing array of bytes. Zero-initialised is empty. */
typedef struct kc_buffer {
    uint8_t *data;
    size_t size, capacity;
} kc_buffer;

/* A capacity of at least `capacity` bytes; more if that avoids growing again soon. */
KC_MUST_CHECK int kc_buffer_grow(kc_buffer *b, size_t capacity, kc_error *error);

/* The same for a buffer whose capacity is taken from a budget; NULL is none. */
KC_MUST_CHECK int kc_buffer_grow_within(kc_buffer *b, size_t capacity, kc_budget *budget, kc_error *error);
void kc_buffer_free(kc_buffer *b);

/* Room for `extra` more bytes after b->size; grows geometrically. */
static inline int kc_buffer_reserve(kc_buffer *b, size_t extra, kc_error *error) {
    if (KC_LIKELY(extra <= b->capacity - b->size)) return KC_OK;
    return kc_buffer_grow(b, b->size + extra, error);
}

#endif
