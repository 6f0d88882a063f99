#include "decode/kc_partial.h"

#include "decode/kc_records.h"

enum {
    LEAST_OFFSET = -1,
    SIGN_BIT = 0x80,
    SIZES_OF_FIELDS = 8, /* of key and value */
};

static int check_batch(const uint8_t *data, const kc_span *span, kc_error *error) {
    kc_batch b;
    kc_batch_read(data, span, &b);
    if (kc_batch_check_codec(&b, error)) return error->code;
    if (kc_batch_codec(&b) != KC_CODEC_NONE || !kc_records_check_count(b.count, b.records_size, error)) return KC_OK;
    error->position = span->position + KC_BATCH_COUNT_AT;
    return error->code;
}

int kc_partial_check_few(const uint8_t *data, uint64_t position, uint64_t left, kc_error *error) {
    static const uint8_t FILLING[KC_ENTRY_LENGTH_AT] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const uint8_t *p = data + position;
    const size_t known = left < KC_ENTRY_LENGTH_AT ? (size_t)left : KC_ENTRY_LENGTH_AT;
    if (p[0] & SIGN_BIT && memcmp(p, FILLING, known) != 0) {
        return kc_fail(error, KC_CORRUPT, "a batch's offset is below the minimum", position, 0, 0);
    }
    if (position == 0 && p[0] && !(p[0] & SIGN_BIT)) {
        return kc_fail(error, KC_CORRUPT, "too few bytes for a batch, and no log reaches the offset they begin with", 0,
                       0, 0);
    }
    if (left > KC_ENTRY_LENGTH_AT && p[KC_ENTRY_LENGTH_AT] & SIGN_BIT) {
        return kc_fail(error, KC_CORRUPT, "a batch's length is below the minimum", position + KC_ENTRY_LENGTH_AT, 0, 0);
    }
    return KC_OK;
}

/* A value may end before its message does, as in the message that brokers fill up with. */
static int check_message(const uint8_t *data, const kc_span *span, uint64_t fixed, kc_error *error) {
    kc_batch b;
    kc_batch_read(data, span, &b);
    if (kc_batch_check_codec(&b, error)) return error->code;
    const uint64_t at = span->position + fixed - SIZES_OF_FIELDS, room = span->size - fixed;
    const int32_t key_size = (int32_t)kc_load_u32(data + at);
    if (key_size <= 0 || (uint64_t)key_size <= room) return KC_OK;
    return kc_fail(error, KC_CORRUPT, "a key runs past its message", at, key_size, (int64_t)room);
}

int kc_partial_check(const uint8_t *data, const kc_span *span, uint64_t left, kc_error *error) {
    if (span->base_offset < LEAST_OFFSET) {
        return kc_fail(error, KC_CORRUPT, "a batch's offset is below the minimum", span->position, span->base_offset,
                       LEAST_OFFSET);
    }
    if (span->magic == 2) return left < KC_BATCH_HEADER_SIZE ? KC_OK : check_batch(data, span, error);
    const uint64_t fixed = span->magic ? KC_MESSAGE_V1_MIN_SIZE : KC_MESSAGE_MIN_SIZE;
    if (span->size < fixed || left < fixed) return KC_OK;
    return check_message(data, span, fixed, error);
}
