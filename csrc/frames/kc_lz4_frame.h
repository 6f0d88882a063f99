/* Walks the blocks of an LZ4 frame, as Kafka's reader accepts it: independent blocks, an end mark, no dictionary. The
 * checksums of header and blocks are verified; size and checksum of the content are skipped.
 *
 * The caller decompresses the blocks. */
#ifndef KC_LZ4_FRAME_H
#define KC_LZ4_FRAME_H

#include <stdbool.h>

#include "base/kc_bytes.h"

typedef struct kc_lz4_frame {
    kc_bytes bytes;
    const uint8_t *start;
    size_t block_max; /* maximum decompressed size of a block */
    bool block_checksums, has_content_checksum;
} kc_lz4_frame;

typedef struct kc_lz4_block {
    const uint8_t *data;
    size_t size;
    bool stored; /* `data` is not compressed */
} kc_lz4_block;

/* Reads the frame's header. Old clients wrote a wrong header checksum in magic 0: `any_checksum` accepts it. */
KC_MUST_CHECK int kc_lz4_open(kc_lz4_frame *frame, const uint8_t *data, size_t size, bool any_checksum,
                              kc_error *error);

/* The next block; its `data` is NULL at the end mark. What follows the end of the frame is ignored, as in Java. */
KC_MUST_CHECK int kc_lz4_next(kc_lz4_frame *frame, kc_lz4_block *block, kc_error *error);

/* The size of a frame's header after its four magic bytes, without the checksum byte. */
#define KC_LZ4_DESCRIPTOR_BYTES(has_content_size) ((has_content_size) ? 10u : 2u)

/* The checksum byte of old clients, which includes the magic bytes. */
uint8_t kc_lz4_old_checksum(const uint8_t *frame, bool has_content_size);

#endif
