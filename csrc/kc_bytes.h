/* A bounded cursor over big-endian bytes. Every read has an end.
 *
 * The cursor is sticky: a read past the end sets `failed`, yields zero and moves nothing, so a run of reads
 * needs one check at its end. Lengths are compared with what is left, never added to a pointer first. */
#ifndef KC_BYTES_H
#define KC_BYTES_H

#include <stdbool.h>
#include <string.h>

#include "kc_error.h"

typedef struct kc_bytes {
    const uint8_t *at, *end;
    bool failed;
} kc_bytes;

static inline kc_bytes kc_bytes_over(const uint8_t *data, size_t size) {
    kc_bytes b = {data, data + size, false};
    return b;
}

static inline size_t kc_bytes_left(const kc_bytes *b) { return (size_t)(b->end - b->at); }

/* Unaligned big-endian loads and stores for callers that have checked the bounds. */
static inline uint16_t kc_load_u16(const uint8_t *p) { return (uint16_t)((unsigned)p[0] << 8 | p[1]); }

static inline uint32_t kc_load_u32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint64_t kc_load_u64(const uint8_t *p) {
    return (uint64_t)kc_load_u32(p) << 32 | (uint64_t)kc_load_u32(p + 4);
}

static inline void kc_store_u16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void kc_store_u32(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void kc_store_u64(uint8_t *p, uint64_t v) {
    kc_store_u32(p, (uint32_t)(v >> 32));
    kc_store_u32(p + 4, (uint32_t)v);
}

/* Little-endian loads, which only compressed frames use. */
static inline uint32_t kc_load_le32(const uint8_t *p) {
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | (uint32_t)p[0];
}

static inline uint64_t kc_load_le64(const uint8_t *p) {
    return (uint64_t)kc_load_le32(p + 4) << 32 | (uint64_t)kc_load_le32(p);
}

/* The next `size` bytes, or NULL (and `failed`) where fewer are left. */
static inline const uint8_t *kc_take(kc_bytes *b, size_t size) {
    if (KC_UNLIKELY(b->failed || size > kc_bytes_left(b))) {
        b->failed = true;
        return NULL;
    }
    const uint8_t *p = b->at;
    b->at += size;
    return p;
}

static inline uint8_t kc_take_u8(kc_bytes *b) {
    const uint8_t *p = kc_take(b, 1);
    return p ? *p : 0;
}

static inline uint16_t kc_take_u16(kc_bytes *b) {
    const uint8_t *p = kc_take(b, 2);
    return p ? kc_load_u16(p) : 0;
}

static inline uint32_t kc_take_u32(kc_bytes *b) {
    const uint8_t *p = kc_take(b, 4);
    return p ? kc_load_u32(p) : 0;
}

static inline uint64_t kc_take_u64(kc_bytes *b) {
    const uint8_t *p = kc_take(b, 8);
    return p ? kc_load_u64(p) : 0;
}

static inline int8_t kc_take_i8(kc_bytes *b) { return (int8_t)kc_take_u8(b); }
static inline int16_t kc_take_i16(kc_bytes *b) { return (int16_t)kc_take_u16(b); }
static inline int32_t kc_take_i32(kc_bytes *b) { return (int32_t)kc_take_u32(b); }
static inline int64_t kc_take_i64(kc_bytes *b) { return (int64_t)kc_take_u64(b); }

#endif
