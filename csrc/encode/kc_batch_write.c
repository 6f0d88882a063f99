#include "encode/kc_batch_write.h"

#include <string.h>

#include "base/kc_bytes.h"
#include "checksum/kc_crc32.h"
#include "checksum/kc_crc32c.h"

uint8_t *kc_put_message_head(uint8_t *message, int magic, int attributes, int64_t timestamp, const uint8_t *key,
                             int32_t key_size, int32_t size) {
    uint8_t *p = message + KC_ENTRY_MAGIC_AT;
    *p++ = (uint8_t)magic;
    *p++ = (uint8_t)attributes;
    if (magic) {
        kc_store_u64(p, (uint64_t)timestamp);
        p += 8;
    }
    kc_store_u32(p, (uint32_t)key_size);
    p += 4;
    if (key_size > 0) {
        memcpy(p, key, (size_t)key_size);
        p += key_size;
    }
    kc_store_u32(p, (uint32_t)size);
    return p + 4;
}

void kc_put_message_frame(uint8_t *message, uint64_t offset, size_t size, uint32_t crc) {
    kc_store_u64(message, offset);
    kc_store_u32(message + KC_ENTRY_LENGTH_AT, (uint32_t)(size - KC_ENTRY_OVERHEAD));
    kc_store_u32(message + KC_MESSAGE_CRC_AT, crc);
}

/* The wrapper has the offset of its last message and the latest timestamp. */
static void write_wrapper(const kc_open_batch *batch, const kc_batch_options *options, const uint8_t *records,
                          size_t size, uint8_t *out) {
    const size_t header = kc_message_header_bytes(options->magic);
    kc_put_message_head(out, options->magic, options->attributes, batch->max_timestamp, NULL, -1, (int32_t)size);
    const uint32_t crc = kc_crc32(kc_crc32(0, out + KC_ENTRY_MAGIC_AT, header - KC_ENTRY_MAGIC_AT), records, size);
    kc_put_message_frame(out, (uint64_t)batch->last_offset, header + size, crc);
}

void kc_batch_write_header(const kc_open_batch *batch, const kc_batch_options *options, const uint8_t *records,
                           size_t size, uint8_t *out) {
    if (options->magic < 2) {
        if (options->attributes & KC_CODEC_MASK) write_wrapper(batch, options, records, size, out);
        return;
    }
    kc_store_u64(out, (uint64_t)batch->base_offset);
    kc_store_u32(out + KC_ENTRY_LENGTH_AT, (uint32_t)(KC_BATCH_HEADER_SIZE - KC_ENTRY_OVERHEAD + size));
    kc_store_u32(out + KC_BATCH_LEADER_EPOCH_AT, (uint32_t)options->leader_epoch);
    out[KC_ENTRY_MAGIC_AT] = 2;
    kc_store_u16(out + KC_BATCH_ATTRIBUTES_AT, (uint16_t)options->attributes);
    kc_store_u32(out + KC_BATCH_LAST_DELTA_AT, (uint32_t)(batch->last_offset - batch->base_offset));
    kc_store_u64(out + KC_BATCH_BASE_TIMESTAMP_AT, (uint64_t)batch->base_timestamp);
    kc_store_u64(out + KC_BATCH_MAX_TIMESTAMP_AT, (uint64_t)batch->max_timestamp);
    kc_store_u64(out + KC_BATCH_PRODUCER_ID_AT, (uint64_t)options->producer_id);
    kc_store_u16(out + KC_BATCH_PRODUCER_EPOCH_AT, (uint16_t)options->producer_epoch);
    kc_store_u32(out + KC_BATCH_BASE_SEQUENCE_AT, (uint32_t)batch->base_sequence);
    kc_store_u32(out + KC_BATCH_COUNT_AT, (uint32_t)batch->count);
    uint32_t crc = kc_crc32c(0, out + KC_BATCH_ATTRIBUTES_AT, KC_BATCH_HEADER_SIZE - KC_BATCH_ATTRIBUTES_AT);
    kc_store_u32(out + KC_BATCH_CRC_AT, kc_crc32c(crc, records, size));
}

void kc_batch_write_empty(const kc_batch_options *options, int64_t max_timestamp, uint8_t *out) {
    const kc_open_batch batch = {.base_offset = options->first_offset,
                                 .last_offset = options->last_offset,
                                 .base_timestamp = -1,
                                 .max_timestamp = max_timestamp,
                                 .base_sequence = options->base_sequence};
    kc_batch_options uncompressed = *options;
    uncompressed.attributes &= ~KC_CODEC_MASK;
    kc_batch_write_header(&batch, &uncompressed, out, 0, out);
}
