#include "decode/kc_aborted.h"

#include "decode/kc_marker.h"

/* The last transaction of the producer that starts at or before the offset, or NULL. */
static kc_aborted *latest(kc_aborted *transactions, size_t count, int64_t producer_id, int64_t offset) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const kc_aborted *t = &transactions[middle];
        if (t->producer_id < producer_id || (t->producer_id == producer_id && t->first_offset <= offset)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low && transactions[low - 1].producer_id == producer_id ? &transactions[low - 1] : NULL;
}

bool kc_aborted_has(kc_aborted *transactions, size_t count, const kc_batch *batch) {
    if (count == 0 || batch->magic < 2 || !(batch->attributes & KC_TRANSACTIONAL)) return false;
    kc_aborted *t = latest(transactions, count, batch->producer_id, batch->last_offset);
    if (!t || batch->base_offset > t->last_offset) return false;
    if (!(batch->attributes & KC_CONTROL)) return true;
    if (kc_marker_kind(batch) != KC_MARKER_COMMIT) t->last_offset = batch->base_offset;
    return false;
}
