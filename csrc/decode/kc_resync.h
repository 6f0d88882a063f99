/* Finding the next batch behind damaged bytes.
 *
 * A batch is taken for one when its header agrees with itself and with the space that is left, and its checksum is
 * right. Checksums are paid from a credit, so that bytes made to look like many overlapping batches cannot make the
 * work grow faster than the data: every byte passed earns KC_RESYNC_CREDIT_PER_BYTE bytes of checksum. */
#ifndef KC_RESYNC_H
#define KC_RESYNC_H

#include <stdbool.h>

#include "base/kc_bytes.h"

enum { KC_RESYNC_CREDIT_PER_BYTE = 16 };

/* What the first search may spend before it has passed anything: a batch of this size is always found. */
#define KC_RESYNC_FIRST_CREDIT (UINT64_C(256) << 20)

typedef struct kc_resync {
    uint64_t credit;   /* bytes of checksum that may still be computed */
    uint64_t examined; /* bytes looked at, and bytes of checksum computed: the work done so far */
} kc_resync;

static inline kc_resync kc_resync_start(void) { return (kc_resync){KC_RESYNC_FIRST_CREDIT, 0}; }

/* Whether a search may have changed what later ones find. */
static inline bool kc_resync_used(const kc_resync *r) { return r->examined || r->credit != KC_RESYNC_FIRST_CREDIT; }

/* Whether a whole batch of any magic seems to lie at data[position, size); its size goes to *batch_size. */
bool kc_resync_plausible(const uint8_t *data, uint64_t size, uint64_t position, uint64_t *batch_size);

/* Where to go on behind the faulty batch at `position`: its own end, where an intact batch, the end of the data or (if
 * no intact batch comes first) the start of a partial one is found there; else the next intact batch; else `size`.
 * Behind a partial batch, intact ones count only if their offsets follow its own: what is cut off may hold batches as
 * values. */
uint64_t kc_resync_behind(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state);

/* The position of the first batch at or after `from`, or `size` where there is none. `state` is kept from one search
 * in the same data to the next. A candidate that the credit does not cover is passed over. */
uint64_t kc_resync_next(const uint8_t *data, uint64_t size, uint64_t from, kc_resync *state);

#endif
