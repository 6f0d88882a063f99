/* Aborted transactions: which batches a reader of committed records passes over (KIP-98).
 *
 * A transaction is what a producer wrote from an offset on up to its marker, a control batch. Where that lies need not
 * be known before: it is noted when the marker comes by. */
#ifndef KC_ABORTED_H
#define KC_ABORTED_H

#include "decode/kc_batch.h"

typedef struct kc_aborted {
    int64_t producer_id, first_offset;
    int64_t last_offset; /* of the marker; INT64_MAX while that is unknown */
} kc_aborted;

/* Whether the batch holds records of one of `count` transactions, which are sorted by producer and first offset. For a
 * marker it is false, and the transaction ends there. */
bool kc_aborted_has(kc_aborted *transactions, size_t count, const kc_batch *batch);

#endif
