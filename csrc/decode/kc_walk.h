/* Walks a byte range batch by batch, for any magic: the length and the magic byte have the same positions in
 * message sets v0 and v1 and in record batches v2.
 *
 *     0  base offset  int64        (v0, v1: the offset of the message)
 *     8  length       int32        bytes after this field
 *    12  v0, v1: CRC-32            v2: partition leader epoch
 *    16  magic        int8
 */
#ifndef KC_WALK_H
#define KC_WALK_H

#include "base/kc_bytes.h"

enum {
    KC_ENTRY_LENGTH_AT = 8,
    KC_ENTRY_OVERHEAD = 12, /* base offset and length */
    KC_ENTRY_MAGIC_AT = 16,
    KC_ENTRY_TO_MAGIC = 17,      /* bytes up to and including the magic */
    KC_MESSAGE_MIN_LENGTH = 14,  /* smallest length of v0: CRC, magic, attributes, two null sizes */
    KC_BATCH_V2_MIN_LENGTH = 49, /* smallest length of v2: a header without records */
};

typedef enum kc_walk {
    KC_WALK_BATCH,   /* a complete batch is at the position */
    KC_WALK_END,     /* nothing, or only the zeros of a preallocated file, follows */
    KC_WALK_PARTIAL, /* a partial batch follows: normal at the end of a buffer */
    KC_WALK_FAULT,   /* a batch cannot start with these bytes; the error is filled */
} kc_walk;

typedef struct kc_span {
    uint64_t position; /* from the start of the data */
    uint64_t size;     /* with the 12 bytes of overhead */
    int64_t base_offset;
    int8_t magic;
} kc_span;

/* Examines data[position, size). Reads the header only, and the rest if the header is all zeros. */
kc_walk kc_walk_next(const uint8_t *data, uint64_t size, uint64_t position, kc_span *span, kc_error *error);

/* Follows the lengths of batches from `position` on. Where the first batch at or after `target` begins; below `target`,
 * it is where no further batch follows. */
uint64_t kc_walk_reach(const uint8_t *data, uint64_t size, uint64_t position, uint64_t target);

#endif
