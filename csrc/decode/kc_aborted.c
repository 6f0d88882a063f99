#include "decode/kc_aborted.h"

#include "base/kc_varint.h"

enum { KC_COMMIT_MARKER = 1 };

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

/* Whether a control batch is the marker of a commit, by the key of its record: its version and its type, 16 bits each.
 * Before the key are its length and the record's, two differences and the attributes. */
static bool is_commit(const kc_batch *batch) {
    if (!batch->records_size || kc_batch_codec(batch) != KC_CODEC_NONE) return false;
    const uint8_t *p = batch->records, *end = p + batch->records_size;
    int64_t ignored;
    for (int field = 0; field < 4; field++) {
        const int n = kc_varint64_decode(p, end, &ignored);
        if (n <= 0) return false;
        p += n;
        if (field == 0 && p < end) p++;
    }
    return end - p >= 4 && kc_load_u16(p + 2) == KC_COMMIT_MARKER;
}

bool kc_aborted_has(kc_aborted *transactions, size_t count, const kc_batch *batch) {
    if (count == 0 || batch->magic < 2 || !(batch->attributes & KC_TRANSACTIONAL)) return false;
    kc_aborted *t = latest(transactions, count, batch->producer_id, batch->last_offset);
    if (!t || batch->base_offset > t->last_offset) return false;
    if (!(batch->attributes & KC_CONTROL)) return true;
    if (!is_commit(batch)) t->last_offset = batch->base_offset;
    return false;
}
