#include "seal.h"

#include "decode/kc_msgset.h"
#include "decode/kc_resync.h"

static void mend_length(uint8_t *data, size_t size, size_t at) {
    const uint64_t end = (uint64_t)at + KC_ENTRY_OVERHEAD + kc_load_u32(data + at + KC_ENTRY_LENGTH_AT);
    uint64_t next;
    if (end == size || (end < size && kc_resync_plausible(data, size, end, &next))) return;
    kc_store_u32(data + at + KC_ENTRY_LENGTH_AT, (uint32_t)(size - at - KC_ENTRY_OVERHEAD));
}

static void seal_batch(uint8_t *data, const kc_span *span, int depth);

static void seal_all(uint8_t *data, size_t size, bool lengths, int depth) {
    for (size_t at = 0; at < size && size - at >= KC_ENTRY_TO_MAGIC;) {
        kc_span span;
        kc_error error = {0};
        if (lengths) mend_length(data, size, at);
        const kc_walk found = kc_walk_next(data, size, at, &span, &error);
        if (found == KC_WALK_END) return;
        if (found != KC_WALK_BATCH) {
            lengths = false; /* entries found from here on may not be batches */
            at++;
            continue;
        }
        seal_batch(data, &span, depth);
        at += (size_t)span.size;
    }
}

static void seal_batch(uint8_t *data, const kc_span *span, int depth) {
    kc_batch batch;
    kc_error error = {0};
    kc_batch_read(data, span, &batch);
    if (depth == 0 && kc_batch_is_wrapper(&batch) && kc_msgset_find_value(data, &batch, &error) == KC_OK)
        seal_all(data + (batch.records - data), batch.records_size, false, depth + 1);
    kc_store_u32(data + batch.position + (batch.magic == 2 ? KC_BATCH_CRC_AT : KC_MESSAGE_CRC_AT),
                 kc_batch_compute_crc(data, &batch));
}

void fuzz_seal(uint8_t *data, size_t size, bool lengths) { seal_all(data, size, lengths, 0); }
