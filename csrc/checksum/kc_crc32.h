/* CRC-32 as zlib computes it (IEEE 802.3), the checksum of message sets of magic 0 and 1. */
#ifndef KC_CRC32_H
#define KC_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* As kc_crc32c, for the other polynomial. */
uint32_t kc_crc32(uint32_t crc, const uint8_t *data, size_t size);

/* As kc_crc32c_kernel: "vpclmul", "clmul", "arm" or "table". */
const char *kc_crc32_kernel(void);

#endif
