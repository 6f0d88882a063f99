/* What the processor can do, found at run time, and which kernel a test asked for. */
#ifndef KC_CPU_H
#define KC_CPU_H

/* Sets of instructions that kernels are written for; a kernel needs one or more of them. */
enum kc_cpu_feature {
    KC_CPU_X86_CRC = 1,     /* SSE4.2 crc32 and PCLMULQDQ */
    KC_CPU_X86_CLMUL = 2,   /* PCLMULQDQ, SSSE3 and SSE4.1 */
    KC_CPU_X86_VPCLMUL = 4, /* VPCLMULQDQ on 512-bit registers, and all of the above */
    KC_CPU_ARM_CRC = 8,     /* CRC-32 instructions and PMULL */
};

/* The features of this processor that the operating system supports, as a set of bits. */
unsigned kc_cpu_features(void);

/* Call it before work that is not over in a moment. Libraries (zstd, isal) may leave the upper halves of the vector
 * registers in use; on x86-64 every SSE instruction after that waits for them, which was seen to cost a factor of six.
 */
void kc_cpu_settle(void);

/* The value of KAFKACODEC_FORCE_KERNEL, or "" where it is not set. */
const char *kc_forced_kernel(void);

#endif
