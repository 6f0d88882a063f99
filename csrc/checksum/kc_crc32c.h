/* CRC-32C (Castagnoli), the checksum of record batches since magic 2. */
#ifndef KC_CRC32C_H
#define KC_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues a checksum: start with crc = 0; the result of one piece is the `crc` of the next. `data` may be NULL
 * if size is 0. The kernel is chosen for the processor at the first call; thread-safe. */
uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t size);

/* The checksum of some bytes and `size` more, of which `crc` is known, where the first ones become others: `before` and
 * `after` are the checksums of these first ones alone, which must be as many. Takes 100 steps for each bit of `size`.
 */
uint32_t kc_crc32c_changed(uint32_t crc, uint32_t before, uint32_t after, size_t size);

/* The name of the chosen kernel: "vpclmul", "mixed", "sse42", "clmul", "arm" or "table". The environment variable
 * KAFKACODEC_FORCE_KERNEL, read once, selects another one; a name that is unknown or not supported by the processor is
 * ignored. */
const char *kc_crc32c_kernel(void);

/* Whether the chosen kernel is as fast as memory: then it needs nothing fetched ahead, which only delays others. */
bool kc_crc32c_streams(void);

#endif
