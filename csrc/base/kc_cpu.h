/* Processor features, detected at run time, and the kernel that a test requests. */
#ifndef KC_CPU_H
#define KC_CPU_H

/* Instruction sets used by kernels; a kernel needs one or more of them. */
enum kc_cpu_feature {
    KC_CPU_X86_CRC = 1,     /* SSE4.2 crc32 and PCLMULQDQ */
    KC_CPU_X86_CLMUL = 2,   /* PCLMULQDQ, SSSE3 and SSE4.1 */
    KC_CPU_X86_VPCLMUL = 4, /* VPCLMULQDQ on 512-bit registers, and all of the above */
    KC_CPU_ARM_CRC = 8,     /* CRC-32 instructions and PMULL */
    KC_CPU_X86_MIXED = 16,  /* VPCLMULQDQ on 256-bit registers with AVX2, and the first two */
};

/* The features of this processor that the operating system supports, as a set of bits. */
unsigned kc_cpu_features(void);

/* Call it before longer work. Libraries (zstd, isal) may leave the upper halves of the vector registers in use; on some
 * x86-64 processors every later SSE instruction then waits for them, which was measured to cost a factor of six. */
void kc_cpu_clear_upper_halves(void);

/* The value of KAFKACODEC_FORCE_KERNEL, or "" if it is not set. */
const char *kc_forced_kernel(void);

#endif
