/* CRC kernels for x86-64: the crc32 instruction for CRC-32C, and folding by carry-less multiplication for both. */
#include "checksum/kc_crc_kernels.h"

#ifdef KC_CRC_X86

#include <immintrin.h>

#include "base/kc_error.h"
#include "checksum/kc_crc_constants.h"

#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))
#define CLMUL_TARGET __attribute__((target("ssse3,sse4.1,pclmul")))
#define VPCLMUL_TARGET __attribute__((target("ssse3,sse4.1,pclmul,avx512f,avx512vl,vpclmulqdq")))

/* ---- the crc32 instruction ---- */

CRC_TARGET static inline uint64_t multiply32(uint32_t a, uint32_t b) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

#define KERNEL kc_crc32c_sse42
#define TARGET CRC_TARGET
#define STEP8(state, word) ((uint32_t)_mm_crc32_u64((state), (word)))
#define STEP1(state, byte) _mm_crc32_u8((state), (byte))
#define MULTIPLY(a, b) multiply32((a), (b))
#define CONSTANTS kc_crc32c_constants
#include "checksum/kc_crc_three_way.h"

/* ---- folding ---- */

/* The minimum sizes in bytes for one block of 128 bits, and for four of 512. */
enum { NARROW_MIN = 16, WIDE_MIN = 256 };

CLMUL_TARGET static inline __m128i load16(const void *p) { return _mm_loadu_si128(p); }

/* `block` moved ahead by the distance of `powers`, plus `next`. */
CLMUL_TARGET static inline __m128i fold(__m128i block, const uint64_t powers[2], __m128i next) {
    __m128i k = load16(powers);
    __m128i low = _mm_clmulepi64_si128(block, k, 0x00), high = _mm_clmulepi64_si128(block, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* The register after the 16 bytes of `block`: 128 bits times x^32, to 96, to 64, then Barrett's division. */
CLMUL_TARGET static inline uint32_t reduce(__m128i block, const kc_crc_constants *c) {
    __m128i k = _mm_set_epi64x((long long)c->fold_64, (long long)c->fold_96);
    __m128i divisor = _mm_set_epi64x((long long)c->polynomial, (long long)c->quotient);
    __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
    __m128i high_up = _mm_slli_si128(_mm_srli_si128(block, 8), 4);
    __m128i r96 = _mm_xor_si128(_mm_clmulepi64_si128(block, k, 0x00), high_up);
    __m128i r64 = _mm_srli_si128(_mm_xor_si128(_mm_clmulepi64_si128(r96, k, 0x10), r96), 8);
    __m128i q = _mm_clmulepi64_si128(_mm_and_si128(r64, low32), divisor, 0x00);
    __m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(q, low32), divisor, 0x10);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(r64, multiple), 1);
}

/* The 16 bytes at SHIFTS + n are a shuffle that moves a block's first n bytes to its end, and those at SHIFTS + 16 + n
 * one that moves the others to its start; negative numbers give zero. */
static const int8_t SHIFTS[48] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0,  1,  2,  3,  4,  5,  6,  7,
    8,  9,  10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};

/* `block` and the last 1 to 15 bytes, which end at `end` after at least 16 readable bytes: the first
 * `rest` bytes of the block are folded over the 16 bytes that follow them. */
CLMUL_TARGET static inline __m128i fold_rest(__m128i block, const uint8_t *end, size_t rest,
                                             const kc_crc_constants *c) {
    __m128i up = load16(SHIFTS + rest), down = load16(SHIFTS + 16 + rest);
    __m128i head = _mm_shuffle_epi8(block, up);
    __m128i last = _mm_blendv_epi8(_mm_shuffle_epi8(block, down), load16(end - 16), down);
    return fold(head, c->fold_128, last);
}

/* The register after `block` and the `size` bytes at `data`, which follow at least 16 readable ones. */
CLMUL_TARGET static inline uint32_t finish(__m128i block, const uint8_t *data, size_t size, const kc_crc_constants *c) {
    for (; size >= 16; data += 16, size -= 16) block = fold(block, c->fold_128, load16(data));
    if (size) block = fold_rest(block, data + size, size, c);
    return reduce(block, c);
}

CLMUL_TARGET KC_INLINE uint32_t fold_narrow(uint32_t state, const uint8_t *data, size_t size,
                                            const kc_crc_constants *c) {
    __m128i a0 = _mm_xor_si128(load16(data), _mm_cvtsi32_si128((int)state));
    if (size < 128) return finish(a0, data + 16, size - 16, c);
    __m128i a1 = load16(data + 16), a2 = load16(data + 32), a3 = load16(data + 48);
    for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
        a0 = fold(a0, c->fold_512, load16(data));
        a1 = fold(a1, c->fold_512, load16(data + 16));
        a2 = fold(a2, c->fold_512, load16(data + 32));
        a3 = fold(a3, c->fold_512, load16(data + 48));
    }
    a1 = fold(a0, c->fold_128, a1);
    a2 = fold(a1, c->fold_128, a2);
    a3 = fold(a2, c->fold_128, a3);
    return finish(a3, data, size, c);
}

VPCLMUL_TARGET static inline __m512i fold4(__m512i blocks, __m512i k, __m512i next) {
    __m512i low = _mm512_clmulepi64_epi128(blocks, k, 0x00), high = _mm512_clmulepi64_epi128(blocks, k, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* the sum of all three */
}

VPCLMUL_TARGET KC_INLINE uint32_t fold_wide(uint32_t state, const uint8_t *data, size_t size,
                                            const kc_crc_constants *c) {
    __m512i far = _mm512_broadcast_i32x4(load16(c->fold_2048)), near = _mm512_broadcast_i32x4(load16(c->fold_512));
    __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state));
    __m512i a0 = _mm512_xor_si512(_mm512_loadu_si512(data), start), a1 = _mm512_loadu_si512(data + 64);
    __m512i a2 = _mm512_loadu_si512(data + 128), a3 = _mm512_loadu_si512(data + 192);
    for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
        a0 = fold4(a0, far, _mm512_loadu_si512(data));
        a1 = fold4(a1, far, _mm512_loadu_si512(data + 64));
        a2 = fold4(a2, far, _mm512_loadu_si512(data + 128));
        a3 = fold4(a3, far, _mm512_loadu_si512(data + 192));
    }
    a3 = fold4(fold4(fold4(a0, near, a1), near, a2), near, a3);
    for (; size >= 64; data += 64, size -= 64) a3 = fold4(a3, near, _mm512_loadu_si512(data));
    __m128i block = _mm512_castsi512_si128(a3);
    block = fold(block, c->fold_128, _mm512_extracti32x4_epi32(a3, 1));
    block = fold(block, c->fold_128, _mm512_extracti32x4_epi32(a3, 2));
    block = fold(block, c->fold_128, _mm512_extracti32x4_epi32(a3, 3));
    return finish(block, data, size, c);
}

/* ---- kernels ---- */

CLMUL_TARGET uint32_t kc_crc32c_clmul(uint32_t state, const uint8_t *data, size_t size) {
    if (size < NARROW_MIN) return kc_crc32c_table(state, data, size);
    return fold_narrow(state, data, size, &kc_crc32c_constants);
}

CLMUL_TARGET uint32_t kc_crc32_clmul(uint32_t state, const uint8_t *data, size_t size) {
    if (size < NARROW_MIN) return kc_crc32_table(state, data, size);
    return fold_narrow(state, data, size, &kc_crc32_constants);
}

VPCLMUL_TARGET uint32_t kc_crc32c_vpclmul(uint32_t state, const uint8_t *data, size_t size) {
    if (size < NARROW_MIN) return kc_crc32c_sse42(state, data, size);
    if (size < WIDE_MIN) return fold_narrow(state, data, size, &kc_crc32c_constants);
    return fold_wide(state, data, size, &kc_crc32c_constants);
}

VPCLMUL_TARGET uint32_t kc_crc32_vpclmul(uint32_t state, const uint8_t *data, size_t size) {
    if (size < NARROW_MIN) return kc_crc32_table(state, data, size);
    if (size < WIDE_MIN) return fold_narrow(state, data, size, &kc_crc32_constants);
    return fold_wide(state, data, size, &kc_crc32_constants);
}

#endif
