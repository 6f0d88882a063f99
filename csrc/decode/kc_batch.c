#include "decode/kc_batch.h"

#include "checksum/kc_crc32.h"
#include "checksum/kc_crc32c.h"

const char *kc_codec_name(int codec) {
    static const char *const names[KC_NUM_CODECS] = {"none", "gzip", "snappy", "lz4", "zstd"};
    return codec >= 0 && codec < KC_NUM_CODECS ? names[codec] : "unknown";
}

static void read_message_header(const uint8_t *data, const kc_span *span, kc_batch *b) {
    const uint8_t *at = data + span->position;
    const uint8_t attributes = kc_load_u8(at + KC_MESSAGE_ATTRIBUTES_AT);
    const bool compressed = attributes & KC_CODEC_MASK;
    *b = (kc_batch){
        .position = span->position,
        .size = span->size,
        .base_offset = span->base_offset,
        .last_offset = span->base_offset,
        .base_timestamp = -1,
        .max_timestamp = -1,
        .producer_id = -1,
        .partition_leader_epoch = -1,
        .base_sequence = -1,
        .count = compressed ? -1 : 1,
        .crc = kc_load_u32(at + KC_MESSAGE_CRC_AT),
        .attributes = (int16_t)(attributes & (span->magic ? KC_CODEC_MASK | KC_LOG_APPEND_TIME : KC_CODEC_MASK)),
        .producer_epoch = -1,
        .magic = span->magic,
    };
    const bool has_timestamp = span->magic && span->size >= KC_MESSAGE_V1_MIN_SIZE;
    if (has_timestamp) b->max_timestamp = (int64_t)kc_load_u64(at + KC_MESSAGE_TIMESTAMP_AT);
    if (!compressed) b->base_timestamp = b->max_timestamp;
}

void kc_batch_read(const uint8_t *data, const kc_span *span, kc_batch *b) {
    if (span->magic < 2) {
        read_message_header(data, span, b);
        return;
    }
    const uint8_t *p = data + span->position;
    b->position = span->position;
    b->size = span->size;
    b->base_offset = span->base_offset;
    b->partition_leader_epoch = (int32_t)kc_load_u32(p + KC_BATCH_LEADER_EPOCH_AT);
    b->magic = span->magic;
    b->crc = kc_load_u32(p + KC_BATCH_CRC_AT);
    b->attributes = (int16_t)kc_load_u16(p + KC_BATCH_ATTRIBUTES_AT);
    b->last_offset_delta = (int32_t)kc_load_u32(p + KC_BATCH_LAST_DELTA_AT);
    b->base_timestamp = (int64_t)kc_load_u64(p + KC_BATCH_BASE_TIMESTAMP_AT);
    b->max_timestamp = (int64_t)kc_load_u64(p + KC_BATCH_MAX_TIMESTAMP_AT);
    b->producer_id = (int64_t)kc_load_u64(p + KC_BATCH_PRODUCER_ID_AT);
    b->producer_epoch = (int16_t)kc_load_u16(p + KC_BATCH_PRODUCER_EPOCH_AT);
    b->base_sequence = (int32_t)kc_load_u32(p + KC_BATCH_BASE_SEQUENCE_AT);
    b->count = (int32_t)kc_load_u32(p + KC_BATCH_COUNT_AT);
    /* Offsets wrap instead of overflowing: the header is untrusted. */
    b->last_offset = (int64_t)((uint64_t)b->base_offset + (uint64_t)(int64_t)b->last_offset_delta);
    b->records = p + KC_BATCH_HEADER_SIZE;
    b->records_size = (size_t)span->size - KC_BATCH_HEADER_SIZE;
}

uint32_t kc_batch_compute_crc(const uint8_t *data, const kc_batch *b) {
    if (b->magic < 2) {
        return kc_crc32(0, data + b->position + KC_ENTRY_MAGIC_AT, (size_t)b->size - KC_ENTRY_MAGIC_AT);
    }
    return kc_crc32c(0, data + b->position + KC_BATCH_ATTRIBUTES_AT, (size_t)b->size - KC_BATCH_ATTRIBUTES_AT);
}

int kc_batch_check_codec(const kc_batch *b, kc_error *error) {
    int codec = kc_batch_codec(b), last = b->magic < 2 ? KC_CODEC_LZ4 : KC_CODEC_ZSTD;
    if (codec > last) {
        const char *what = codec > KC_CODEC_ZSTD ? "unknown compression codec"
                                                 : "messages of magic 0 and 1 do not support compression codec";
        return kc_fail(error, KC_BAD_CODEC, what, b->position + kc_batch_codec_at(b), codec, 0);
    }
    return KC_OK;
}
