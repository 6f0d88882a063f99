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

/* The last offset of a batch that is moved to `base`. */
static int last_of(const uint8_t *batch, int64_t base, int64_t *last) {
    const int32_t delta = (int32_t)kc_load_u32(batch + KC_BATCH_LAST_DELTA_AT);
    return base < 0 || delta < 0 || __builtin_add_overflow(base, (int64_t)delta, last) || *last == INT64_MAX;
}

static int out_of_range(uint64_t position, int64_t from, int64_t by, kc_error *error) {
    return kc_fail(error, KC_CANNOT_ENCODE, "an offset is outside the format's range", position, from, by);
}

int kc_renumber(const uint8_t *data, uint64_t size, uint64_t *position, const kc_renumbering *how, kc_renumbered *out,
                size_t max, size_t *count, int64_t *next_offset, kc_error *error) {
    kc_span span;
    for (*count = 0; *count < max && *position < size; *position += span.size) {
        if (whole_batch(data, size, *position, &span, error)) return error->code;
        int64_t base, last;
        if (__builtin_add_overflow(span.base_offset, how->by, &base) || last_of(data + *position, base, &last))
            return out_of_range(*position, span.base_offset, how->by, error);
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

int kc_assign(uint8_t *data, uint64_t size, uint64_t *position, int64_t *next_offset, int32_t leader_epoch,
              kc_batch *out, size_t max, size_t *count, kc_error *error) {
    kc_span span;
    for (*count = 0; *count < max && *position < size; *position += span.size, (*count)++) {
        if (whole_batch(data, size, *position, &span, error)) return error->code;
        uint8_t *batch = data + *position;
        int64_t last;
        if (last_of(batch, *next_offset, &last)) return out_of_range(*position, *next_offset, 0, error);
        kc_store_u64(batch, (uint64_t)*next_offset);
        kc_store_u32(batch + KC_BATCH_LEADER_EPOCH_AT, (uint32_t)leader_epoch);
        span.base_offset = *next_offset;
        kc_batch_read(data, &span, &out[*count]);
        *next_offset = last + 1;
    }
    return KC_OK;
}
