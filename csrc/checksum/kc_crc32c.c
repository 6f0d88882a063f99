#include "checksum/kc_crc32c.h"

#include "base/kc_cpu.h"
#include "checksum/kc_crc_kernels.h"

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected, without x^32 */

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

/* The product of two polynomials modulo that of the checksum; bit 31 is the coefficient of 1. */
static uint32_t product(uint32_t a, uint32_t b) {
    uint32_t sum = 0;
    for (; a; a <<= 1) {
        sum ^= b & (0 - (a >> 31));
        b = b >> 1 ^ (POLYNOMIAL & (0 - (b & 1)));
    }
    return sum;
}

/* Checksums of as many bytes differ by what is linear in the bytes: each byte after them multiplies it by x^8. */
uint32_t kc_crc32c_changed(uint32_t crc, uint32_t before, uint32_t after, size_t size) {
    uint32_t difference = before ^ after;
    for (uint32_t power = UINT32_C(1) << 23; size; size >>= 1, power = product(power, power))
        if (size & 1) difference = product(difference, power);
    return crc ^ difference;
}

const char *kc_crc32c_kernel(void) { return kernel()->name; }

bool kc_crc32c_streams(void) {
#ifdef KC_CRC_X86
    return kernel()->run == kc_crc32c_vpclmul;
#else
    return false;
#endif
}
