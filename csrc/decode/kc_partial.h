/* The bytes of a batch or message whose end is missing: whether a valid one can begin with them.
 *
 * What is refused here would also be refused in the complete batch, or has an offset that none has, so the cut part of
 * a batch that is valid is never refused. Brokers fill the end of answers that they convert with a message of offset
 * -1. */
#ifndef KC_PARTIAL_H
#define KC_PARTIAL_H

#include "decode/kc_batch.h"

/* Checks the first `left` bytes of the batch at `span`, of which there are at least KC_ENTRY_TO_MAGIC. */
KC_MUST_CHECK int kc_partial_check(const uint8_t *data, const kc_span *span, uint64_t left, kc_error *error);

/* The same for the fewer bytes that end at data + position + left, and after which nothing follows. At the start of the
 * data, an offset of 2^56 or more is refused too, although a batch could have it: every text begins so, but a log of a
 * million records a second reaches it after 2,000 years. */
KC_MUST_CHECK int kc_partial_check_few(const uint8_t *data, uint64_t position, uint64_t left, kc_error *error);

#endif
