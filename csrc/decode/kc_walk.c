#include "decode/kc_walk.h"

#include "decode/kc_partial.h"

static bool all_zero(const uint8_t *p, uint64_t size) {
    return size == 0 || (p[0] == 0 && memcmp(p, p + 1, (size_t)size - 1) == 0);
}

kc_walk kc_walk_next(const uint8_t *data, uint64_t size, uint64_t position, kc_span *span, kc_error *error) {
    if (position >= size) return KC_WALK_END;
    const uint8_t *p = data + position;
    uint64_t left = size - position;
    if (left < KC_ENTRY_OVERHEAD) return all_zero(p, left) ? KC_WALK_END : KC_WALK_PARTIAL;
    int32_t length = (int32_t)kc_load_u32(p + 8);
    if (length == 0 && kc_load_u64(p) == 0 && all_zero(p, left)) return KC_WALK_END;
    if (length < KC_MESSAGE_MIN_LENGTH) {
        kc_fail(error, KC_CORRUPT, "a batch's length is below the minimum", position + 8, length,
                KC_MESSAGE_MIN_LENGTH);
        return KC_WALK_FAULT;
    }
    if (left < KC_ENTRY_TO_MAGIC) return KC_WALK_PARTIAL;
    int8_t magic = (int8_t)kc_load_u8(p + 16);
    if (magic < 0 || magic > 2) {
        kc_fail(error, KC_BAD_MAGIC, "unknown magic", position + 16, magic, 2);
        return KC_WALK_FAULT;
    }
    if (magic == 2 && length < KC_BATCH_V2_MIN_LENGTH) {
        kc_fail(error, KC_CORRUPT, "a batch's length is smaller than its header", position + 8, length,
                KC_BATCH_V2_MIN_LENGTH);
        return KC_WALK_FAULT;
    }
    span->position = position;
    span->size = (uint64_t)length + KC_ENTRY_OVERHEAD;
    span->base_offset = (int64_t)kc_load_u64(p);
    span->magic = magic;
    if (KC_LIKELY(span->size <= left)) return KC_WALK_BATCH;
    return kc_partial_check(data, span, left, error) ? KC_WALK_FAULT : KC_WALK_PARTIAL;
}

uint64_t kc_walk_reach(const uint8_t *data, uint64_t size, uint64_t position, uint64_t target) {
    kc_error ignored = {0};
    kc_span span;
    while (position < target && kc_walk_next(data, size, position, &span, &ignored) == KC_WALK_BATCH) {
        position += span.size;
    }
    return position;
}
