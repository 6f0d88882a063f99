#include "encode/kc_renumber.h"

#include <string.h>

/* The batch at the position, which must be complete. */
static int whole_batch(const uint8_t *data, uint64_t size, uint64_t position, kc_span *span, kc_error *error) {
    switch (kc_walk_next(data, size, position, span, error)) {
        case KC_WALK_BATCH:
            break;
        case KC_WALK_FAULT:
            return error->code;
        default:
            return kc_fail(error, KC_TRUNCATED, "partial batch", position, 0, 0);
    }
    if (span->magic < 2) return kc_fail(error, KC_BAD_MAGIC, "unknown magic", position + 16, span->magic, 2);
    return KC_OK;
}

int kc_renumber(const uint8_t *data, uint64_t size, uint64_t *position, const kc_renumbering *how, kc_renumbered *out,
                size_t max, size_t *count, int64_t *next_offset, kc_error *error) {
    kc_span span;
    for (*count = 0; *count < max && *position < size; *position += span.size) {
        if (whole_batch(data, size, *position, &span, error)) return error->code;
        const int32_t last_delta = (int32_t)kc_load_u32(data + *position + KC_BATCH_LAST_DELTA_AT);
        int64_t base, last;
        if (__builtin_add_overflow(span.base_offset, how->by, &base) || base < 0 || last_delta < 0 ||
            __builtin_add_overflow(base, (int64_t)last_delta, &last) || last == INT64_MAX)
            return kc_fail(error, KC_CANNOT_ENCODE, "an offset is outside the format's range", *position,
                           span.base_offset, how->by);
        kc_renumbered *r = &out[*count];
        r->position = *position;
        kc_store_u64(r->head, (uint64_t)base);
        kc_store_u32(r->head + KC_ENTRY_LENGTH_AT, (uint32_t)(span.size - KC_ENTRY_OVERHEAD));
        kc_store_u32(r->head + KC_BATCH_LEADER_EPOCH_AT, (uint32_t)how->leader_epoch);
        if (memcmp(r->head, data + *position, KC_RENUMBERED_BYTES) != 0) (*count)++;
        *next_offset = last + 1;
    }
    return KC_OK;
}
