/* Walks the xerial framing around Snappy blocks, as written by Kafka's Java clients, or a bare block. */
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
    const uint8_t *data; /* for the library's raw decompressor, including the preamble */
    size_t size;
    size_t content_size; /* as stated in the block; at most the size to which its bytes could expand */
} kc_snappy_block;

/* Data that does not start with xerial's header is one bare block. */
KC_MUST_CHECK int kc_snappy_open(kc_snappy_frame *frame, const uint8_t *data, size_t size, kc_error *error);

/* The next block; its `data` is NULL at the end of the data. */
KC_MUST_CHECK int kc_snappy_next(kc_snappy_frame *frame, kc_snappy_block *block, kc_error *error);

/* Writes xerial's header: 8 magic bytes, version 1, lowest compatible version 1. */
void kc_xerial_header(uint8_t *out);

#endif
