/* Changes offsets and leader epoch of record batches v2. Both are before the CRC-32C, which does not cover them; all
 * other offsets in a batch are relative to its base offset. */
#ifndef KC_RENUMBER_H
#define KC_RENUMBER_H

#include "decode/kc_batch.h"

enum { KC_RENUMBERED_BYTES = 16 }; /* base offset, length, leader epoch */

typedef struct kc_renumbering {
    int64_t by; /* added to all offsets */
    int32_t leader_epoch;
} kc_renumbering;

/* The first bytes of a changed batch. */
typedef struct kc_renumbered {
    uint64_t position;
    uint8_t head[KC_RENUMBERED_BYTES];
} kc_renumbered;

/* Writes the first bytes of the batches of data[*position, size) that change to `out`; `*count`, at most `max`, is
 * their number. `*position` becomes the position for the next call, `*next_offset` the offset after the last batch
 * before it. Partial batches, other magics, and offsets below 0 or above 2^63 - 2 are faults. */
KC_MUST_CHECK int kc_renumber(const uint8_t *data, uint64_t size, uint64_t *position, const kc_renumbering *how,
                              kc_renumbered *out, size_t max, size_t *count, int64_t *next_offset, kc_error *error);

/* Gives the batches of data[*position, size), in place, consecutive offsets from `*next_offset` on and a leader epoch.
 * Their headers are read to `out`; `*count`, at most `max`, is their number. `*position` and `*next_offset` become
 * those for the next call. Faults are as in kc_renumber; the batches before one are changed. */
KC_MUST_CHECK int kc_assign(uint8_t *data, uint64_t size, uint64_t *position, int64_t *next_offset,
                            int32_t leader_epoch, kc_batch *out, size_t max, size_t *count, kc_error *error);

#endif
