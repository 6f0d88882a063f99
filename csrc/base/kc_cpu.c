#include "base/kc_cpu.h"

#include <stdlib.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__) && defined(__GNUC__)

unsigned kc_cpu_features(void) {
    unsigned features = 0;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("ssse3"))
        return 0;
    features |= KC_CPU_X86_CLMUL;
    if (!__builtin_cpu_supports("sse4.2")) return features;
    features |= KC_CPU_X86_CRC;
    if (!__builtin_cpu_supports("vpclmulqdq")) return features;
    if (__builtin_cpu_supports("avx2")) features |= KC_CPU_X86_MIXED;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) features |= KC_CPU_X86_VPCLMUL;
    return features;
}

#elif defined(__aarch64__) && defined(__linux__)

/* Bits of the auxiliary vector's AT_HWCAP, as Linux defines them for arm64. */
enum { PMULL_BIT = 1 << 4, CRC32_BIT = 1 << 7 };

unsigned kc_cpu_features(void) {
    unsigned long needed = PMULL_BIT | CRC32_BIT;
    return (getauxval(AT_HWCAP) & needed) == needed ? KC_CPU_ARM_CRC : 0;
}

#elif defined(__aarch64__) && defined(__APPLE__)

unsigned kc_cpu_features(void) { return KC_CPU_ARM_CRC; } /* every 64-bit Apple processor since the A10 */

#else

unsigned kc_cpu_features(void) { return 0; }

#endif

#if defined(__x86_64__) && defined(__GNUC__)

__attribute__((target("avx"))) static void clear_upper_halves(void) { __builtin_ia32_vzeroupper(); }

void kc_cpu_clear_upper_halves(void) {
    if (__builtin_cpu_supports("avx")) clear_upper_halves();
}

#else

void kc_cpu_clear_upper_halves(void) {}

#endif

const char *kc_forced_kernel(void) {
    const char *name = getenv("KAFKACODEC_FORCE_KERNEL");
    return name ? name : "";
}
