#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "base/kc_alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

/* Makes MemorySanitizer treat a block of the pool as uninitialized, like one from the system. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define FORGET(block, size) __msan_allocated_memory((block), (size))
#endif
#endif
#ifndef FORGET
#define FORGET(block, size) ((void)0)
#endif

/* Blocks from SMALL bytes on are pooled by capacity; smaller ones go to malloc. Capacities are powers of two up to
 * LARGE, then four to an octave: a block that is one byte too large must not take twice the memory. */
enum { SMALL_SHIFT = 12, LARGE_SHIFT = 26, CLASSES = 4 * 64 };

/* A freed block returns to the shelf of the thread that filled it, which takes it again: the caches of that thread's
 * processor still have it, and fetching lines that another processor wrote takes longer than parsing. Threads beyond
 * this number share shelves. */
enum { SHELVES = 16 };

#define LARGE ((size_t)1 << LARGE_SHIFT)

/* Precedes every block; 64 bytes, so that blocks are aligned as Arrow recommends. */
typedef struct header {
    struct header *next;
    size_t capacity;
    void *raw;      /* NULL: part of another block */
    unsigned shelf; /* of the thread that has allocated the block last */
    char padding[64 - 4 * sizeof(void *)];
} header;

static struct {
    pthread_mutex_t lock;
    header *free[SHELVES][CLASSES];
    size_t kept;
    atomic_size_t live;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Neither fails on a mutex of the default kind that is used as it should be. */
static void lock_pool(void) { (void)pthread_mutex_lock(&pool.lock); }
static void unlock_pool(void) { (void)pthread_mutex_unlock(&pool.lock); }

/* The child has the lock in its state at the fork, but not the thread that may hold it: so the forking thread locks it
 * first. */
__attribute__((constructor)) static void guard_forks(void) {
    (void)pthread_atfork(lock_pool, unlock_pool, unlock_pool); /* fails only where there is no memory, at load */
}

static void count_live(size_t more, size_t less) {
    atomic_fetch_add_explicit(&pool.live, more - less, memory_order_relaxed);
}

/* The capacity of the smallest pooled block of `size` bytes. */
static size_t capacity_for(size_t size) {
    unsigned shift = SMALL_SHIFT;
    while (((size_t)1 << shift) < size) shift++;
    if (shift <= LARGE_SHIFT) return (size_t)1 << shift;
    const size_t step = (size_t)1 << (shift - 3);
    return (size + step - 1) & ~(step - 1);
}

/* The index of the list for blocks of that capacity: by its octave and the quarter of that. */
static unsigned class_of(size_t capacity) {
    unsigned shift = SMALL_SHIFT;
    while (capacity >> shift > 1) shift++;
    return 4 * shift + (unsigned)(capacity >> (shift - 2) & 3);
}

static unsigned own_shelf(void) {
    static atomic_uint threads;
    static _Thread_local unsigned number; /* from 1; 0: not yet known */
    if (!number) number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHELVES + 1;
    return number - 1;
}

/* From the shelf of this thread, or from another if it has none. */
static header *take_kept(unsigned class) {
    const unsigned own = own_shelf();
    header *h = NULL;
    lock_pool();
    for (unsigned i = 0; i < SHELVES && !h; i++) {
        header **first = &pool.free[(own + i) % SHELVES][class];
        h = *first;
        if (h) *first = h->next;
    }
    if (h) pool.kept -= h->capacity;
    unlock_pool();
    if (h) h->shelf = own;
    return h;
}

static bool keep(header *h) {
    bool kept = false;
    lock_pool();
    if (h->capacity <= KC_POOL_BYTES && pool.kept <= KC_POOL_BYTES - h->capacity) {
        unsigned class = class_of(h->capacity);
        h->next = pool.free[h->shelf][class];
        pool.free[h->shelf][class] = h;
        pool.kept += h->capacity;
        kept = true;
    }
    unlock_pool();
    return kept;
}

static header *header_in(char *raw) {
    return (header *)(((uintptr_t)raw + sizeof(header) - 1) & ~(uintptr_t)(sizeof(header) - 1));
}

/* realloc(), or malloc() for NULL; releases the pool and tries again if memory is exhausted. */
static void *from_system(void *raw, size_t size) {
    void *fresh = realloc(raw, size);
    if (fresh) return fresh;
    (void)kc_trim();
    return realloc(raw, size);
}

void *kc_alloc(size_t size) {
    if (size > PTRDIFF_MAX / 2) return NULL;
    bool pooled = size >= (size_t)1 << SMALL_SHIFT;
    size_t capacity = pooled ? capacity_for(size) : (size > KC_PART_CAPACITY ? size : KC_PART_CAPACITY);
    header *h = pooled ? take_kept(class_of(capacity)) : NULL;
    if (!h) {
        char *raw = from_system(NULL, capacity + 2 * sizeof(header));
        if (!raw) return NULL;
        h = header_in(raw);
        h->raw = raw;
        h->capacity = capacity;
        h->shelf = own_shelf();
    }
    count_live(capacity, 0);
    FORGET(h + 1, capacity);
    return h + 1;
}

void *kc_alloc_part(void *at) {
    header *h = at;
    h->raw = NULL;
    h->capacity = KC_PART_CAPACITY;
    return h + 1;
}

void kc_free(void *block) {
    if (!block) return;
    header *h = (header *)block - 1;
    if (!h->raw) return;
    count_live(0, h->capacity);
    if (h->capacity < (size_t)1 << SMALL_SHIFT || !keep(h)) free(h->raw);
}

void *kc_alloc_zeroed(size_t size) {
    void *block = kc_alloc(size);
    return block ? memset(block, 0, size) : NULL;
}

/* Through the system, which remaps pages instead of copying them. */
static void *grow_large(header *h, size_t used, size_t size) {
    const size_t before = (size_t)((char *)h - (char *)h->raw), capacity = capacity_for(size);
    char *raw = from_system(h->raw, capacity + 2 * sizeof(header));
    if (!raw) return NULL;
    header *moved = header_in(raw);
    if ((size_t)((char *)moved - raw) != before) memmove(moved, raw + before, sizeof(header) + used);
    count_live(capacity, moved->capacity);
    moved->raw = raw;
    moved->capacity = capacity;
    return moved + 1;
}

void *kc_realloc(void *block, size_t used, size_t size) {
    if (!block) return kc_alloc(size);
    if (size <= kc_capacity(block)) return block;
    if (size > PTRDIFF_MAX / 2) return NULL;
    header *h = (header *)block - 1;
    if (size > LARGE && h->raw) return grow_large(h, used, size);
    void *grown = kc_alloc(size);
    if (!grown) return NULL;
    if (used) memcpy(grown, block, used);
    kc_free(block);
    return grown;
}

size_t kc_capacity(const void *block) { return ((const header *)block - 1)->capacity; }

size_t kc_live_bytes(void) { return atomic_load(&pool.live); }

size_t kc_kept_bytes(void) {
    lock_pool();
    const size_t kept = pool.kept;
    unlock_pool();
    return kept;
}

size_t kc_trim(void) {
    size_t bytes = 0;
    for (unsigned class = 0; class < CLASSES; class++) {
        for (header *h = take_kept(class); h; h = take_kept(class)) {
            bytes += h->capacity;
            free(h->raw);
        }
    }
#if defined(__GLIBC__)
    if (bytes) (void)malloc_trim(0); /* free() alone may leave the pages with the process */
#endif
    return bytes;
}

void kc_advise_huge(void *data, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t start = ((uintptr_t)data + page - 1) & ~(page - 1), end = ((uintptr_t)data + size) & ~(page - 1);
    if (size >= 2 * page && end > start) (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)data;
    (void)size;
#endif
}

/* Doubles if the copy is cheap; grows by a quarter if pages are remapped. */
static size_t with_room(size_t old, size_t capacity) {
    const size_t roomy = old > PTRDIFF_MAX / 4 ? capacity : old + (old < LARGE ? old : old / 4);
    return roomy > capacity ? roomy : capacity;
}

int kc_buffer_grow(kc_buffer *b, size_t capacity, kc_error *error) {
    return kc_buffer_grow_within(b, capacity, NULL, error);
}

/* Spare room takes at most this share of the remaining budget, so that columns do not hold unused room that others
 * need. */
enum { ROOM_SHARE = 8 };

static bool take(kc_budget *budget, size_t old, size_t needed, size_t *capacity) {
    const size_t left = atomic_load_explicit(&budget->left, memory_order_relaxed) / ROOM_SHARE;
    if (*capacity - needed > left) *capacity = needed + left;
    if (kc_budget_take(budget, *capacity - old)) return true;
    *capacity = needed;
    return kc_budget_take(budget, needed - old);
}

/* Uses the rest of the block as capacity if that is a small part of the remaining budget. */
static size_t take_spare(kc_budget *budget, size_t capacity, size_t block) {
    const size_t spare = block - capacity, left = atomic_load_explicit(&budget->left, memory_order_relaxed);
    return spare <= left / ROOM_SHARE && kc_budget_take(budget, spare) ? block : capacity;
}

int kc_buffer_grow_within(kc_buffer *b, size_t capacity, kc_budget *budget, kc_error *error) {
    if (capacity < b->size) return kc_fail(error, KC_NO_MEMORY, "a buffer would exceed the address space", 0, 0, 0);
    const size_t old = b->capacity, needed = capacity > old ? capacity : old;
    const size_t block = b->data ? kc_capacity(b->data) : 0;
    capacity = needed <= block ? block : with_room(old, needed);
    if (budget && !take(budget, old, needed, &capacity)) return kc_budget_fail(budget, needed - old, error);
    uint8_t *data = kc_realloc(b->data, b->size, capacity);
    if (!data) {
        if (budget) kc_budget_give(budget, capacity - old);
        return kc_fail(error, KC_NO_MEMORY, "no memory for a buffer", 0, (int64_t)capacity, 0);
    }
    b->data = data;
    b->capacity = budget ? take_spare(budget, capacity, kc_capacity(data)) : kc_capacity(data);
    return KC_OK;
}

void kc_buffer_free(kc_buffer *b) {
    kc_free(b->data);
    b->data = NULL;
    b->size = b->capacity = 0;
}
