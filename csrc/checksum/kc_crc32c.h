/* CRC-32C (Castagnoli), the checksum of record batches since magic 2. */
#ifndef KC_CRC32C_H
#define KC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum: start with crc = 0; the result of one piece is the `crc` of the next. `data` may be NULL
 * where size is 0. The kernel is chosen at the first call, for the processor at hand; thread-safe. */
uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t size);

/* The chosen kernel's name: "vpclmul", "sse42", "clmul", "arm" or "table". The environment variable
 * KAFKACODEC_FORCE_KERNEL names another one; where that name is unknown, or its instructions are not there,
 * it is ignored. Read once. */
const char *kc_crc32c_kernel(void);

#endif
