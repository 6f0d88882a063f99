/* CRC kernels for AArch64, whose instructions support both polynomials. */
#include "checksum/kc_crc_kernels.h"

#ifdef KC_CRC_ARM

#include "checksum/kc_crc_constants.h"

/* Inline assembly, because compilers differ in how they enable the instructions for a single function. */
#define INSTRUCTION(name, width)                                                                      \
    static inline uint32_t name(uint32_t state, uint64_t word) {                                      \
        __asm__(".arch_extension crc\n\t" #name " %w0, %w0, %" #width "1" : "+r"(state) : "r"(word)); \
        return state;                                                                                 \
    }

INSTRUCTION(crc32cx, x)
INSTRUCTION(crc32cb, w)
INSTRUCTION(crc32x, x)
INSTRUCTION(crc32b, w)

static inline uint64_t multiply32(uint32_t a, uint32_t b) {
    uint64_t product;
    __asm__(
        ".arch_extension aes\n\t"
        "fmov d0, %1\n\t"
        "fmov d1, %2\n\t"
        "pmull v0.1q, v0.1d, v1.1d\n\t"
        "fmov %0, d0"
        : "=r"(product)
        : "r"((uint64_t)a), "r"((uint64_t)b)
        : "v0", "v1");
    return product;
}

#define KERNEL kc_crc32c_arm
#define TARGET
#define STEP8(state, word) crc32cx((state), (word))
#define STEP1(state, byte) crc32cb((state), (byte))
#define MULTIPLY(a, b) multiply32((a), (b))
#define CONSTANTS kc_crc32c_constants
#include "checksum/kc_crc_three_way.h"

#define KERNEL kc_crc32_arm
#define TARGET
#define STEP8(state, word) crc32x((state), (word))
#define STEP1(state, byte) crc32b((state), (byte))
#define MULTIPLY(a, b) multiply32((a), (b))
#define CONSTANTS kc_crc32_constants
#include "checksum/kc_crc_three_way.h"

#endif
