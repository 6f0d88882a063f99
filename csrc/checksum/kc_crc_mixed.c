/* CRC-32C on x86-64 by two units of the processor at once: while the crc32 instruction advances three streams, blocks
 * of 256 bits are folded by carry-less multiplication. Either alone processes eight bytes per cycle on AMD's Zen 3. */
#include "checksum/kc_crc_kernels.h"

#ifdef KC_CRC_X86

#include <immintrin.h>

#include "base/kc_error.h"
#include "checksum/kc_crc_constants.h"

#define TARGET __attribute__((target("avx2,sse4.2,pclmul,vpclmulqdq")))

/* What a step processes of each stream, and what it folds, in bytes. */
enum { STREAM_STEP = 32, FOLD_STEP = 128, STEP = 3 * STREAM_STEP + FOLD_STEP };

enum { LONG_BLOCK = KC_CRC_MIXED_STREAMS * KC_CRC_MIXED_LONG, SHORT_BLOCK = KC_CRC_MIXED_STREAMS * KC_CRC_MIXED_SHORT };

TARGET static inline __m256i load32(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }

TARGET static inline __m256i powers_of(const uint64_t powers[2]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)powers));
}

TARGET static inline __m256i fold2(__m256i blocks, __m256i k, __m256i next) {
    __m256i low = _mm256_clmulepi64_epi128(blocks, k, 0x00), high = _mm256_clmulepi64_epi128(blocks, k, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

/* The register after `blocks`, from zero. */
TARGET static inline uint32_t reduce2(__m256i blocks) {
    __m128i k = _mm_loadu_si128((const void *)kc_crc32c_constants.fold_128), first = _mm256_castsi256_si128(blocks);
    __m128i low = _mm_clmulepi64_si128(first, k, 0x00), high = _mm_clmulepi64_si128(first, k, 0x11);
    __m128i block = _mm_xor_si128(_mm_xor_si128(low, high), _mm256_extracti128_si256(blocks, 1));
    uint64_t state = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(block));
    return (uint32_t)_mm_crc32_u64(state, (uint64_t)_mm_extract_epi64(block, 1));
}

TARGET static inline __m128i moved(uint32_t state, uint32_t power) {
    return _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)state), _mm_cvtsi32_si128((int)power), 0);
}

/* The register after KC_CRC_MIXED_STREAMS * length bytes: the first part is folded, the others are streams. The parts
 * of two calls do not wait for each other, since the register before joins at the end. */
TARGET KC_INLINE uint32_t mix(uint32_t state, const uint8_t *data, size_t length, const uint32_t powers[4]) {
    const __m256i far = powers_of(kc_crc32c_mixed_constants.fold_1024),
                  near = powers_of(kc_crc32c_mixed_constants.fold_256);
    const uint8_t *p = data + FOLD_STEP / STREAM_STEP * length, *end = p + length;
    const uint8_t *next = data + KC_CRC_MIXED_STREAMS * length;
    __m256i a0 = load32(data), a1 = load32(data + 32), a2 = load32(data + 64), a3 = load32(data + 96);
    uint64_t first = 0, second = 0, third = 0;
    for (;; data += FOLD_STEP) {
        for (int i = 0; i < STREAM_STEP; i += 8) {
            first = _mm_crc32_u64(first, kc_crc_load8(p + i));
            second = _mm_crc32_u64(second, kc_crc_load8(p + length + i));
            third = _mm_crc32_u64(third, kc_crc_load8(p + 2 * length + i));
        }
        p += STREAM_STEP;
        if (p == end) break;
        /* The processor foresees single streams only: what follows is fetched here, and often is outside the data. */
        for (int i = 0; i < STEP; i += 64) _mm_prefetch((const void *)((uintptr_t)next + (unsigned)i), _MM_HINT_T0);
        next = (const uint8_t *)((uintptr_t)next + STEP);
        a0 = fold2(a0, far, load32(data + FOLD_STEP));
        a1 = fold2(a1, far, load32(data + FOLD_STEP + 32));
        a2 = fold2(a2, far, load32(data + FOLD_STEP + 64));
        a3 = fold2(a3, far, load32(data + FOLD_STEP + 96));
    }
    a3 = fold2(fold2(fold2(a0, near, a1), near, a2), near, a3);
    __m128i sum = _mm_xor_si128(moved(state, powers[0]), moved(reduce2(a3), powers[1]));
    sum = _mm_xor_si128(sum, _mm_xor_si128(moved((uint32_t)first, powers[2]), moved((uint32_t)second, powers[3])));
    return (uint32_t)third ^ (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum));
}

TARGET uint32_t kc_crc32c_mixed(uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= LONG_BLOCK; data += LONG_BLOCK, size -= LONG_BLOCK)
        state = mix(state, data, KC_CRC_MIXED_LONG, kc_crc32c_mixed_constants.long_stream);
    for (; size >= SHORT_BLOCK; data += SHORT_BLOCK, size -= SHORT_BLOCK)
        state = mix(state, data, KC_CRC_MIXED_SHORT, kc_crc32c_mixed_constants.short_stream);
    return kc_crc32c_sse42(state, data, size);
}

#endif
