/* Varints: base 128, least significant group first. Signed ones are zigzag-coded (in Kafka's records), unsigned ones
 * are used by the compact types of the protocol.
 *
 * A 32-bit varint has at most five bytes and the fifth at most four bits; a 64-bit one has at most ten and the
 * tenth at most one bit. Longer ones and ones that overflow are rejected. Non-minimal ones are accepted. */
#ifndef KC_VARINT_H
#define KC_VARINT_H

#include "base/kc_bytes.h"

enum { KC_VARINT32_MAX_BYTES = 5, KC_VARINT64_MAX_BYTES = 10 };

static inline int32_t kc_unzigzag32(uint32_t v) { return (int32_t)((v >> 1) ^ (0u - (v & 1u))); }
static inline int64_t kc_unzigzag64(uint64_t v) { return (int64_t)((v >> 1) ^ (UINT64_C(0) - (v & 1u))); }
static inline uint32_t kc_zigzag32(int32_t v) { return ((uint32_t)v << 1) ^ (v < 0 ? UINT32_MAX : 0u); }
static inline uint64_t kc_zigzag64(int64_t v) { return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0u); }

/* Decode at [p, end). Return the number of bytes read; 0 if the bytes end first; -1 if the value overflows. */
static inline int kc_uvarint32_decode(const uint8_t *p, const uint8_t *end, uint32_t *value) {
    uint32_t v = 0;
    for (int i = 0; i < KC_VARINT32_MAX_BYTES; i++) {
        if (p + i >= end) return 0;
        uint32_t byte = kc_load_u8(p + i);
        if (i == KC_VARINT32_MAX_BYTES - 1 && byte > 0x0f) return -1;
        v |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            return i + 1;
        }
    }
    return -1;
}

static inline int kc_uvarint64_decode(const uint8_t *p, const uint8_t *end, uint64_t *value) {
    uint64_t v = 0;
    for (int i = 0; i < KC_VARINT64_MAX_BYTES; i++) {
        if (p + i >= end) return 0;
        uint64_t byte = kc_load_u8(p + i);
        if (i == KC_VARINT64_MAX_BYTES - 1 && byte > 0x01) return -1;
        v |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            return i + 1;
        }
    }
    return -1;
}

static inline int kc_varint32_decode(const uint8_t *p, const uint8_t *end, int32_t *value) {
    uint32_t raw;
    int n = kc_uvarint32_decode(p, end, &raw);
    if (n > 0) *value = kc_unzigzag32(raw);
    return n;
}

static inline int kc_varint64_decode(const uint8_t *p, const uint8_t *end, int64_t *value) {
    uint64_t raw;
    int n = kc_uvarint64_decode(p, end, &raw);
    if (n > 0) *value = kc_unzigzag64(raw);
    return n;
}

static inline size_t kc_uvarint64_size(uint64_t v) {
    size_t bits = 64u - (size_t)__builtin_clzll(v | 1);
    return (9 * bits + 64) / 64; /* bits / 7, rounded up */
}

static inline size_t kc_varint64_size(int64_t v) { return kc_uvarint64_size(kc_zigzag64(v)); }
static inline size_t kc_uvarint32_size(uint32_t v) { return kc_uvarint64_size(v); }
static inline size_t kc_varint32_size(int32_t v) { return kc_uvarint64_size(kc_zigzag32(v)); }

/* Encode at p, which must have room for the maximum; returns the number of bytes written. */
static inline size_t kc_uvarint64_encode(uint8_t *p, uint64_t v) {
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

static inline size_t kc_varint64_encode(uint8_t *p, int64_t v) { return kc_uvarint64_encode(p, kc_zigzag64(v)); }
static inline size_t kc_uvarint32_encode(uint8_t *p, uint32_t v) { return kc_uvarint64_encode(p, v); }
static inline size_t kc_varint32_encode(uint8_t *p, int32_t v) { return kc_uvarint64_encode(p, kc_zigzag32(v)); }

#endif
