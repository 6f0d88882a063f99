#include "base/kc_find.h"

#include <string.h>

#include "base/kc_alloc.h"

/* Bytes of the data and of the needle that are examined to choose the bytes to look for. */
enum { SAMPLE = 1024, CHOICES = 256 };

/* One in so many bytes is common: memchr then stops too often. */
enum { COMMON = 128 };

/* Bytes that may be compared for each byte read, and in addition for a start. */
enum { COMPARED_FOR_EACH = 4, COMPARED_AT_FIRST = 4096 };

static void fill_borders(uint32_t *borders, const uint8_t *bytes, size_t size) {
    uint32_t k = 0;
    borders[0] = 0;
    if (size) borders[1] = 0;
    for (size_t i = 1; i < size; i++) {
        while (k && bytes[i] != bytes[k]) k = borders[k];
        if (bytes[i] == bytes[k]) k++;
        borders[i + 1] = k;
    }
}

int kc_needle_init(kc_needle *n, const void *bytes, size_t size, kc_error *error) {
    *n = (kc_needle){0};
    if (size > INT32_MAX)
        return kc_fail(error, KC_LIMIT, "the bytes to find are too long", 0, (int64_t)size, INT32_MAX);
    const size_t table = (size + 1) * sizeof(uint32_t);
    uint32_t *borders = size <= (SIZE_MAX - table) ? kc_alloc(table + size) : NULL;
    if (!borders) return kc_fail(error, KC_NO_MEMORY, "no memory for the bytes to find", 0, 0, 0);
    uint8_t *copy = (uint8_t *)borders + table;
    if (size) memcpy(copy, bytes, size);
    fill_borders(borders, copy, size);
    *n = (kc_needle){copy, size, borders, borders};
    return KC_OK;
}

void kc_needle_free(kc_needle *n) {
    kc_free(n->memory);
    *n = (kc_needle){0};
}

kc_finder kc_finder_start(const kc_needle *n, const uint8_t *data, size_t size) {
    kc_finder f = {.needle = n};
    uint16_t count[256] = {0};
    const size_t step = size / SAMPLE + 1, choices = n->size < CHOICES ? n->size : CHOICES;
    for (size_t i = 0; i < size; i += step) count[data[i]]++;
    for (size_t i = 1; i < choices; i++) {
        if (count[n->bytes[i]] < count[n->bytes[f.rare]]) f.rare = i;
    }
    f.second = f.rare || n->size < 2 ? 0 : 1;
    for (size_t i = 0; i < choices; i++) {
        if (i != f.rare && count[n->bytes[i]] < count[n->bytes[f.second]]) f.second = i;
    }
    f.common = n->size > 1 && count[n->bytes[f.rare]] > size / step / COMMON;
    return f;
}

bool kc_finder_is_slow(const kc_finder *f) { return f->compared > COMPARED_AT_FIRST + COMPARED_FOR_EACH * f->read; }

/* Knuth, Morris and Pratt. */
static const uint8_t *find_by_borders(const kc_needle *n, const uint8_t *data, size_t size) {
    size_t matched = 0;
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = data[i];
        while (matched && byte != n->bytes[matched]) matched = n->borders[matched];
        if (byte == n->bytes[matched]) matched++;
        if (matched == n->size) return data + i + 1 - n->size;
    }
    return NULL;
}

/* The first place in [at, end) that has both bytes; `end` if there is none. */
static const uint8_t *next_pair(const kc_finder *f, const uint8_t *at, const uint8_t *end) {
    const uint8_t rare = f->needle->bytes[f->rare], second = f->needle->bytes[f->second];
#if defined(__GNUC__)
    typedef uint8_t block __attribute__((vector_size(16)));
    for (; end - at >= (ptrdiff_t)sizeof(block); at += sizeof(block)) {
        block a, b;
        uint64_t halves[2];
        memcpy(&a, at + f->rare, sizeof a);
        memcpy(&b, at + f->second, sizeof b);
        const block both = (block)(a == rare) & (block)(b == second);
        memcpy(halves, &both, sizeof halves);
        if (KC_UNLIKELY(halves[0] | halves[1])) break;
    }
#endif
    while (at < end && (at[f->rare] != rare || at[f->second] != second)) at++;
    return at;
}

static const uint8_t *next_place(const kc_finder *f, const uint8_t *at, const uint8_t *end) {
    if (f->common) return next_pair(f, at, end);
    const uint8_t *hit = memchr(at + f->rare, f->needle->bytes[f->rare], (size_t)(end - at));
    return hit ? hit - f->rare : end;
}

const uint8_t *kc_find(kc_finder *f, const uint8_t *data, size_t size) {
    const kc_needle *n = f->needle;
    if (!n->size) return data;
    if (size < n->size) return NULL;
    const uint8_t *const end = data + (size - n->size) + 1; /* of the places where it can start */
    for (const uint8_t *at = data; at < end; at++) {
        if (kc_finder_is_slow(f)) return find_by_borders(n, at, size - (size_t)(at - data));
        const uint8_t *place = next_place(f, at, end);
        f->read += (size_t)(place - at) + 1;
        if (place == end) return NULL;
        at = place;
        if (at[f->second] != n->bytes[f->second]) continue;
        f->compared += n->size;
        if (memcmp(at, n->bytes, n->size) == 0) return at;
    }
    return NULL;
}
