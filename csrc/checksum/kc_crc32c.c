#include "checksum/kc_crc32c.h"

#include <stdatomic.h>

#include "base/kc_cpu.h"
#include "checksum/kc_crc_kernels.h"

const kc_crc_kernel kc_crc32c_kernels[] = {
#ifdef KC_CRC_X86
    {"vpclmul", KC_CPU_X86_VPCLMUL, kc_crc32c_vpclmul},
    {"sse42", KC_CPU_X86_CRC, kc_crc32c_sse42},
    {"clmul", KC_CPU_X86_CLMUL, kc_crc32c_clmul},
#elif defined(KC_CRC_ARM)
    {"arm", KC_CPU_ARM_CRC, kc_crc32c_arm},
#endif
    {"table", 0, kc_crc32c_table},
};

static const kc_crc_kernel *_Atomic chosen;

/* Concurrent calls choose the same kernel. */
static const kc_crc_kernel *kernel(void) {
    const kc_crc_kernel *k = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!k) {
        k = kc_crc_choose(kc_crc32c_kernels);
        atomic_store_explicit(&chosen, k, memory_order_relaxed);
    }
    return k;
}

uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t size) { return ~kernel()->run(~crc, data, size); }

const char *kc_crc32c_kernel(void) { return kernel()->name; }
