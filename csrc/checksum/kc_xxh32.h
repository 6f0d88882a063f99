/* XXH32 with seed 0, the checksum of LZ4 frames. */
#ifndef KC_XXH32_H
#define KC_XXH32_H

#include <stddef.h>
#include <stdint.h>

uint32_t kc_xxh32(const uint8_t *data, size_t size);

#endif
