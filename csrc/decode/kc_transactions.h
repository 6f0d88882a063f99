/* Follows transactions through the batches of a log: which have ended, where and how, and which are open (KIP-98).
 *
 * A transaction is everything that a producer wrote up to a marker, a control batch. */
#ifndef KC_TRANSACTIONS_H
#define KC_TRANSACTIONS_H

#include "base/kc_alloc.h"
#include "decode/kc_batch.h"

/* A transaction that has ended. */
typedef struct kc_ended {
    int64_t producer_id, first_offset;
    int64_t last_offset; /* of the marker */
    int64_t kind;        /* as kc_marker_kind; KC_MARKER_UNREADABLE if the checksum is wrong, too */
    int64_t position;    /* of the marker's batch */
    int64_t size;        /* of that batch, in bytes */
} kc_ended;

/* The first offset of a producer's open transaction. */
typedef struct kc_open {
    int64_t producer_id, first_offset;
    uint64_t taken; /* 0: a free slot */
} kc_open;

/* Zero-initialised, no transaction is open. */
typedef struct kc_transactions {
    kc_open *slots;
    size_t capacity, count; /* a power of two or 0; the open transactions */
    kc_buffer ended;        /* of kc_ended, by their ends; the caller empties it */
    bool without_commits;   /* committed transactions are not in it */
} kc_transactions;

/* Opens a transaction, unless the producer has an open one. */
KC_MUST_CHECK int kc_transactions_open(kc_transactions *t, int64_t producer_id, int64_t first_offset, kc_error *error);

/* Takes the batches at some positions of the data. Positions without a complete batch, batches before magic 2, and
 * those of no transaction are passed over. */
KC_MUST_CHECK int kc_transactions_follow(kc_transactions *t, const uint8_t *data, uint64_t size,
                                         const int64_t *positions, size_t count, kc_error *error);

void kc_transactions_free(kc_transactions *t);

#endif
