/* Walks the xerial framing around Snappy blocks, which Kafka's Java clients write, and knows bare blocks too. */
#ifndef KC_SNAPPY_FRAME_H
#define KC_SNAPPY_FRAME_H

#include <stdbool.h>

#include "base/kc_bytes.h"

#define KC_XERIAL_HEADER_BYTES 16u

typedef struct kc_snappy_frame {
    kc_bytes bytes;
    const uint8_t *start;
    bool framed;
} kc_snappy_frame;

typedef struct kc_snappy_block {
    const uint8_t *data; /* as the library's raw decompressor takes it, preamble included */
    size_t size;
    size_t content_size; /* as the block claims; never more than its bytes could expand to */
} kc_snappy_block;

/* Data that does not start with xerial's header is one bare block. */
KC_MUST_CHECK int kc_snappy_open(kc_snappy_frame *frame, const uint8_t *data, size_t size, kc_error *error);

/* The next block; its `data` is NULL at the end of the data. */
KC_MUST_CHECK int kc_snappy_next(kc_snappy_frame *frame, kc_snappy_block *block, kc_error *error);

/* Writes xerial's header: 8 magic bytes, version 1, lowest compatible version 1. */
void kc_xerial_header(uint8_t *out);

#endif
