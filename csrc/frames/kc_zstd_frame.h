/* Walks the block headers of Zstandard frames (RFC 8878), to bound their decompressed size before memory is allocated.
 * Kafka's frames do not have a content size, and a content size cannot be trusted. */
#ifndef KC_ZSTD_FRAME_H
#define KC_ZSTD_FRAME_H

#include <stdbool.h>

#include "base/kc_bytes.h"

typedef struct kc_zstd_frame {
    const uint8_t *data;
    size_t size;
    uint64_t most_content; /* the frame cannot decompress to more bytes than this */
    bool says_size;        /* most_content is the frame's content size, which libraries allocate */
    bool skippable;        /* without content */
} kc_zstd_frame;

/* The frame at `position` of `data`; `position` moves past it. Requires *position < size. */
KC_MUST_CHECK int kc_zstd_next(const uint8_t *data, size_t size, size_t *position, kc_zstd_frame *frame,
                               kc_error *error);

#endif
