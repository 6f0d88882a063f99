#include "encode/kc_compact.h"

#include <string.h>

#include "base/kc_varint.h"
#include "checksum/kc_crc32c.h"

static int torn(kc_error *error) { return kc_fail(error, KC_CORRUPT, "a record is cut or has a wrong size", 0, 0, 0); }

/* Reads a size that is at most what is left; -1 is null. */
static bool take_size(const uint8_t **at, const uint8_t *end, int32_t *size) {
    const int read = kc_varint32_decode(*at, end, size);
    if (read <= 0) return false;
    *at += read;
    if (*size < 0) *size = -1;
    return *size <= end - *at;
}

int kc_stored_record_next(const uint8_t **at, const uint8_t *end, kc_stored_record *r, kc_error *error) {
    int32_t size;
    int64_t delta;
    if (!take_size(at, end, &size) || size < 1) return torn(error);
    const uint8_t *p = *at;
    r->end = p + size;
    r->attributes = kc_load_u8(p++);
    int read = kc_varint64_decode(p, r->end, &delta);
    if (read <= 0) return torn(error);
    r->timestamp_delta = delta;
    p += read;
    read = kc_varint32_decode(p, r->end, &r->offset_delta);
    if (read <= 0) return torn(error);
    r->rest = p += read;
    if (!take_size(&p, r->end, &r->key_size)) return torn(error);
    r->key = p;
    if (r->key_size > 0) p += r->key_size;
    if (!take_size(&p, r->end, &r->value_size)) return torn(error);
    *at = r->end;
    return KC_OK;
}

uint8_t *kc_stored_record_write(const kc_stored_record *r, int64_t timestamp_delta, uint8_t *out) {
    const size_t rest = (size_t)(r->end - r->rest);
    const size_t size = 1 + kc_varint64_size(timestamp_delta) + kc_varint32_size(r->offset_delta) + rest;
    out += kc_varint32_encode(out, (int32_t)size);
    *out++ = r->attributes;
    out += kc_varint64_encode(out, timestamp_delta);
    out += kc_varint32_encode(out, r->offset_delta);
    kc_load_copy(out, r->rest, rest);
    return out + rest;
}

void kc_compacted_header(const uint8_t *batch, const kc_compacted *change, size_t size, uint8_t *out) {
    kc_load_copy(out, batch, KC_BATCH_HEADER_SIZE);
    const unsigned attributes = kc_load_u16(batch + KC_BATCH_ATTRIBUTES_AT) & ~(unsigned)KC_DELETE_HORIZON;
    kc_store_u32(out + KC_ENTRY_LENGTH_AT, (uint32_t)(KC_BATCH_HEADER_SIZE - KC_ENTRY_OVERHEAD + size));
    kc_store_u16(out + KC_BATCH_ATTRIBUTES_AT,
                 (uint16_t)(attributes | (change->has_horizon ? (unsigned)KC_DELETE_HORIZON : 0)));
    kc_store_u64(out + KC_BATCH_BASE_TIMESTAMP_AT, (uint64_t)change->base_timestamp);
    kc_store_u64(out + KC_BATCH_MAX_TIMESTAMP_AT, (uint64_t)change->max_timestamp);
    kc_store_u32(out + KC_BATCH_COUNT_AT, (uint32_t)change->count);
    const size_t covered = KC_BATCH_HEADER_SIZE - KC_BATCH_ATTRIBUTES_AT + size;
    kc_store_u32(out + KC_BATCH_CRC_AT, kc_crc32c(0, out + KC_BATCH_ATTRIBUTES_AT, covered));
}
