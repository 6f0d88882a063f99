/* The search for the next batch after damaged bytes.
 *
 * A candidate is a batch if its header is consistent, it fits the remaining bytes, and its checksum is correct.
 * Checksums are paid from a credit, so that bytes crafted to look like many overlapping batches cannot make the work
 * grow faster than the data: every byte searched earns KC_RESYNC_CREDIT_PER_BYTE bytes of checksum. */
#ifndef KC_RESYNC_H
#define KC_RESYNC_H

#include <stdbool.h>

#include "base/kc_bytes.h"

enum { KC_RESYNC_CREDIT_PER_BYTE = 16 };

/* The initial credit: a batch of up to this size is always found. */
#define KC_RESYNC_FIRST_CREDIT (UINT64_C(256) << 20)

typedef struct kc_resync {
    uint64_t credit;     /* bytes of checksum that may still be computed */
    uint64_t examined;   /* bytes searched, and bytes of checksum computed: the work done so far */
    int64_t most_offset; /* larger offsets are no batch's */
} kc_resync;

static inline kc_resync kc_resync_start(void) { return (kc_resync){KC_RESYNC_FIRST_CREDIT, 0, (INT64_C(1) << 48) - 1}; }

/* Whether there was a search, which may affect the results of later ones. */
static inline bool kc_resync_used(const kc_resync *r) { return r->examined || r->credit != KC_RESYNC_FIRST_CREDIT; }

/* Whether a complete batch of any magic seems to start at `position`; *batch_size is its size. */
bool kc_resync_plausible(const uint8_t *data, uint64_t size, uint64_t position, uint64_t *batch_size);

/* The position at which to continue after the damaged batch at `position`: its end, if there is an intact batch, the
 * end of the data or (if no intact batch comes first) the start of a partial batch or the zeros of a preallocated file,
 * where a wrong length may end; else the next intact batch; else `size`. After a partial batch, and before such zeros,
 * intact ones count only if their offsets follow its offset: the values in it may contain batches. If its offset is
 * none that a batch has, no batch begins there, and any intact one counts. */
uint64_t kc_resync_after(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state);

/* The position of the first batch at or after `from`, or `size` if there is none. All searches in the same data share
 * `state`. A candidate that the credit does not cover is skipped. */
uint64_t kc_resync_next(const uint8_t *data, uint64_t size, uint64_t from, kc_resync *state);

#endif
