/* Walks Zstandard frames (RFC 8878) by their block headers, to bound what they decompress to before any memory is
 * taken for it. Kafka's frames carry no content size, and a stranger's content size is not to be believed. */
#ifndef KC_ZSTD_FRAME_H
#define KC_ZSTD_FRAME_H

#include <stdbool.h>

#include "base/kc_bytes.h"

typedef struct kc_zstd_frame {
    const uint8_t *data;
    size_t size;
    uint64_t most_content; /* the frame cannot decompress to more bytes than this */
    bool says_size;        /* most_content is what the frame says of itself; libraries allocate that */
    bool skippable;        /* holds no content */
} kc_zstd_frame;

/* The frame at `position` of `data`; `position` moves past it. There is a frame wherever *position < size. */
KC_MUST_CHECK int kc_zstd_next(const uint8_t *data, size_t size, size_t *position, kc_zstd_frame *frame,
                               kc_error *error);

#endif
