/* Moving whole record batches v2 to other offsets and another leader epoch: what stands before the CRC-32C, which does
 * not cover it. All other offsets in a batch are relative to its base offset. */
#ifndef KC_RENUMBER_H
#define KC_RENUMBER_H

#include "decode/kc_batch.h"

enum { KC_RENUMBERED_BYTES = 16 }; /* base offset, length, leader epoch */

typedef struct kc_renumbering {
    int64_t by; /* is added to all offsets */
    int32_t leader_epoch;
} kc_renumbering;

/* What a batch begins with after the change. */
typedef struct kc_renumbered {
    uint64_t position;
    uint8_t head[KC_RENUMBERED_BYTES];
} kc_renumbered;

/* The batches of data[*position, size) that change, at most `max`, into `out`; `*count` is how many. `*position` goes
 * to where the next call goes on, and `*next_offset` becomes the offset after the last one there. Bytes that are no
 * whole batch v2, and offsets below 0 or above 2^63 - 2, are faults. */
KC_MUST_CHECK int kc_renumber(const uint8_t *data, uint64_t size, uint64_t *position, const kc_renumbering *how,
                              kc_renumbered *out, size_t max, size_t *count, int64_t *next_offset, kc_error *error);

#endif
