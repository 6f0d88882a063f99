#include "checksum/kc_crc32c.h"

#include "base/kc_cpu.h"
#include "checksum/kc_crc_kernels.h"

const kc_crc_kernel kc_crc32c_kernels[] = {
#ifdef KC_CRC_X86
    {"vpclmul", KC_CPU_X86_VPCLMUL, kc_crc32c_vpclmul},
    {"mixed", KC_CPU_X86_MIXED, kc_crc32c_mixed},
    {"sse42", KC_CPU_X86_CRC, kc_crc32c_sse42},
    {"clmul", KC_CPU_X86_CLMUL, kc_crc32c_clmul},
#elif defined(KC_CRC_ARM)
    {"arm", KC_CPU_ARM_CRC, kc_crc32c_arm},
#endif
    {"table", 0, kc_crc32c_table},
};

static const kc_crc_kernel *_Atomic chosen;

static const kc_crc_kernel *kernel(void) { return kc_crc_chosen(&chosen, kc_crc32c_kernels); }

uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t size) { return ~kernel()->run(~crc, data, size); }

const char *kc_crc32c_kernel(void) { return kernel()->name; }

bool kc_crc32c_streams(void) {
#ifdef KC_CRC_X86
    return kernel()->run == kc_crc32c_vpclmul;
#else
    return false;
#endif
}
