/* The kernels of kc_crc32c and kc_crc32, for these functions and their tests.
 *
 * A kernel works on the bare CRC register: the caller inverts it before and after. */
#ifndef KC_CRC_KERNELS_H
#define KC_CRC_KERNELS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The kernels for these processors need extensions of GCC and Clang, and little-endian loads. */
#if defined(__x86_64__) && defined(__GNUC__)
#define KC_CRC_X86 1
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)
#define KC_CRC_ARM 1
#endif

typedef uint32_t kc_crc_function(uint32_t state, const uint8_t *data, size_t size);

typedef struct kc_crc_kernel {
    const char *name;
    unsigned needs; /* a set of kc_cpu_feature */
    kc_crc_function *run;
} kc_crc_kernel;

/* Fastest first; the last has no requirements. */
extern const kc_crc_kernel kc_crc32c_kernels[], kc_crc32_kernels[];

/* The forced kernel if this processor supports it, else the first one that it supports. */
const kc_crc_kernel *kc_crc_choose(const kc_crc_kernel *kernels);

/* `*chosen`, which the first call chooses. Concurrent calls choose the same kernel. */
static inline const kc_crc_kernel *kc_crc_chosen(const kc_crc_kernel *_Atomic *chosen, const kc_crc_kernel *kernels) {
    const kc_crc_kernel *k = atomic_load_explicit(chosen, memory_order_relaxed);
    if (!k) {
        k = kc_crc_choose(kernels);
        atomic_store_explicit(chosen, k, memory_order_relaxed);
    }
    return k;
}

/* T[k][b] is the register after byte b and k zero bytes, starting from zero. */
extern const uint32_t kc_crc32c_slices[8][256], kc_crc32_slices[8][256];

kc_crc_function kc_crc32c_table, kc_crc32_table;

#ifdef KC_CRC_X86
kc_crc_function kc_crc32c_sse42, kc_crc32c_clmul, kc_crc32c_mixed, kc_crc32c_vpclmul;
kc_crc_function kc_crc32_clmul, kc_crc32_vpclmul;
#elif defined(KC_CRC_ARM)
kc_crc_function kc_crc32c_arm, kc_crc32_arm;
#endif

/* Eight bytes as a native word; the kernels that use it are little-endian. */
static inline uint64_t kc_crc_load8(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

#endif
