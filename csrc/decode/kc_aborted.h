/* Aborted transactions: the batches that a reader of committed records skips (KIP-98).
 *
 * A transaction consists of the batches of a producer from the one with an offset up to its marker, a control batch.
 * The offset of the marker need not be known before: it is recorded when the marker is read. As in Kafka's consumer,
 * the first offset may lie inside a batch, and a commit does not end what is listed as aborted. */
#ifndef KC_ABORTED_H
#define KC_ABORTED_H

#include "decode/kc_batch.h"

typedef struct kc_aborted {
    int64_t producer_id, first_offset;
    int64_t last_offset; /* of the marker; INT64_MAX if unknown */
} kc_aborted;

/* Whether the batch has records of one of `count` transactions, which are sorted by producer and first offset. False
 * for a marker, which ends the transaction. */
bool kc_aborted_has(kc_aborted *transactions, size_t count, const kc_batch *batch);

#endif
