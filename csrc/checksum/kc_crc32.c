#include "checksum/kc_crc32.h"

#include "base/kc_cpu.h"
#include "checksum/kc_crc_kernels.h"

const kc_crc_kernel kc_crc32_kernels[] = {
#ifdef KC_CRC_X86
    {"vpclmul", KC_CPU_X86_VPCLMUL, kc_crc32_vpclmul},
    {"clmul", KC_CPU_X86_CLMUL, kc_crc32_clmul},
#elif defined(KC_CRC_ARM)
    {"arm", KC_CPU_ARM_CRC, kc_crc32_arm},
#endif
    {"table", 0, kc_crc32_table},
};

static const kc_crc_kernel *_Atomic chosen;

static const kc_crc_kernel *kernel(void) { return kc_crc_chosen(&chosen, kc_crc32_kernels); }

uint32_t kc_crc32(uint32_t crc, const uint8_t *data, size_t size) { return ~kernel()->run(~crc, data, size); }

const char *kc_crc32_kernel(void) { return kernel()->name; }
