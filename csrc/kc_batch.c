#include "kc_batch.h"

#include "kc_crc32.h"
#include "kc_crc32c.h"
#include "kc_msgset.h"

const char *kc_codec_name(int codec) {
    static const char *const names[KC_NUM_CODECS] = {"none", "gzip", "snappy", "lz4", "zstd"};
    return codec >= 0 && codec < KC_NUM_CODECS ? names[codec] : "unknown";
}

void kc_batch_read(const uint8_t *data, const kc_span *span, kc_batch *b) {
    if (span->magic < 2) {
        kc_msgset_header(data, span, b);
        return;
    }
    const uint8_t *p = data + span->position;
    b->position = span->position;
    b->size = span->size;
    b->base_offset = span->base_offset;
    b->partition_leader_epoch = (int32_t)kc_load_u32(p + 12);
    b->magic = span->magic;
    b->crc = kc_load_u32(p + KC_BATCH_CRC_AT);
    b->attributes = (int16_t)kc_load_u16(p + KC_BATCH_ATTRIBUTES_AT);
    b->last_offset_delta = (int32_t)kc_load_u32(p + 23);
    b->base_timestamp = (int64_t)kc_load_u64(p + 27);
    b->max_timestamp = (int64_t)kc_load_u64(p + 35);
    b->producer_id = (int64_t)kc_load_u64(p + 43);
    b->producer_epoch = (int16_t)kc_load_u16(p + 51);
    b->base_sequence = (int32_t)kc_load_u32(p + 53);
    b->count = (int32_t)kc_load_u32(p + 57);
    /* Offsets wrap rather than overflow: the header is a stranger's. */
    b->last_offset = (int64_t)((uint64_t)b->base_offset + (uint64_t)(int64_t)b->last_offset_delta);
    b->records = p + KC_BATCH_HEADER_SIZE;
    b->records_size = (size_t)span->size - KC_BATCH_HEADER_SIZE;
}

uint32_t kc_batch_compute_crc(const uint8_t *data, const kc_batch *b) {
    if (b->magic < 2) {
        return kc_crc32(0, data + b->position + KC_LOG_MAGIC_AT, (size_t)b->size - KC_LOG_MAGIC_AT);
    }
    return kc_crc32c(0, data + b->position + KC_BATCH_ATTRIBUTES_AT, (size_t)b->size - KC_BATCH_ATTRIBUTES_AT);
}
