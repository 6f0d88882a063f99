/* A bounded cursor over big-endian bytes. Every read has an end.
 *
 * The cursor is sticky: a read past the end sets `failed`, yields zero and does not move, so several reads need only
 * one check at the end. Lengths are compared with the remaining bytes, never added to a pointer first. */
#ifndef KC_BYTES_H
#define KC_BYTES_H

#include <stdbool.h>
#include <string.h>

#include "base/kc_error.h"

/* Another thread or process may write to the input: a length is loaded once, checked, and used. KC_ONCE prevents the
 * compiler from loading it again after the check. KC_LOADED lets a test change the bytes that were loaded
 * (fuzz/changing.h). */
#if defined(__GNUC__)
#define KC_ONCE(v) __asm__("" : "+r"(v))
#define KC_COPIED(to) __asm__("" : : "r"(to) : "memory")
#else
#define KC_ONCE(v) ((void)0)
#define KC_COPIED(to) ((void)0)
#endif

#if defined(KC_CHANGING_INPUT)
void kc_input_loaded(const void *from, size_t size);
#define KC_LOADED(from, size) kc_input_loaded(from, size)
#else
#define KC_LOADED(from, size) ((void)0)
#endif

typedef struct kc_bytes {
    const uint8_t *at, *end;
    bool failed;
} kc_bytes;

static inline kc_bytes kc_bytes_over(const uint8_t *data, size_t size) {
    kc_bytes b = {data, data + size, false};
    return b;
}

static inline size_t kc_bytes_left(const kc_bytes *b) { return (size_t)(b->end - b->at); }

/* Unaligned big-endian loads and stores; the caller has checked the bounds. */
static inline uint8_t kc_load_u8(const uint8_t *p) {
    uint32_t v = *p;
    KC_ONCE(v);
    KC_LOADED(p, 1);
    return (uint8_t)v;
}

static inline uint16_t kc_load_u16(const uint8_t *p) {
    uint32_t v = (uint32_t)p[0] << 8 | p[1];
    KC_ONCE(v);
    KC_LOADED(p, 2);
    return (uint16_t)v;
}

static inline uint32_t kc_load_u32(const uint8_t *p) {
    uint32_t v = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
    KC_ONCE(v);
    KC_LOADED(p, 4);
    return v;
}

static inline uint64_t kc_load_u64(const uint8_t *p) {
#if UINTPTR_MAX > UINT32_MAX
    uint64_t v = (uint64_t)p[0] << 56 | (uint64_t)p[1] << 48 | (uint64_t)p[2] << 40 | (uint64_t)p[3] << 32 |
                 (uint64_t)p[4] << 24 | (uint64_t)p[5] << 16 | (uint64_t)p[6] << 8 | (uint64_t)p[7];
    KC_ONCE(v);
    KC_LOADED(p, 8);
    return v;
#else
    uint64_t high = kc_load_u32(p);
    return high << 32 | kc_load_u32(p + 4);
#endif
}

/* A number in native byte order, as in Arrow. */
static inline int32_t kc_load_i32(const int32_t *p) {
    int32_t v = *p;
    KC_ONCE(v);
    KC_LOADED(p, sizeof v);
    return v;
}

static inline int64_t kc_load_i64(const int64_t *p) {
#if UINTPTR_MAX > UINT32_MAX
    int64_t v = *p;
    KC_ONCE(v);
#else
    int64_t v;
    memcpy(&v, p, sizeof v);
    KC_COPIED(&v);
#endif
    KC_LOADED(p, sizeof v);
    return v;
}

/* Copies numbers that belong together from memory that may change. */
static inline void kc_load_copy(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
    KC_COPIED(to);
    KC_LOADED(from, size);
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

/* Little-endian loads, for compressed frames. */
static inline uint32_t kc_load_le32(const uint8_t *p) {
    uint32_t v = (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | (uint32_t)p[0];
    KC_ONCE(v);
    KC_LOADED(p, 4);
    return v;
}

static inline uint64_t kc_load_le64(const uint8_t *p) {
#if UINTPTR_MAX > UINT32_MAX
    uint64_t v = (uint64_t)p[7] << 56 | (uint64_t)p[6] << 48 | (uint64_t)p[5] << 40 | (uint64_t)p[4] << 32 |
                 (uint64_t)p[3] << 24 | (uint64_t)p[2] << 16 | (uint64_t)p[1] << 8 | (uint64_t)p[0];
    KC_ONCE(v);
    KC_LOADED(p, 8);
    return v;
#else
    uint64_t low = kc_load_le32(p);
    return (uint64_t)kc_load_le32(p + 4) << 32 | low;
#endif
}

/* The next `size` bytes, or NULL (and `failed`) if fewer are left. */
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
    return p ? kc_load_u8(p) : 0;
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
