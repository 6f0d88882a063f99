#include "kc_batch_header.h"

#include <string.h>

#include "kc_bytes.h"
#include "kc_crc32.h"
#include "kc_crc32c.h"

/* Places in a batch's header; of the first four, the CRC alone is elsewhere in a message. */
enum {
    BASE_OFFSET = 0,
    LENGTH = 8,
    LEADER_EPOCH = 12,
    MESSAGE_CRC = 12,
    MAGIC = KC_MESSAGE_CRC_START,
    CRC = 17,
    ATTRIBUTES = 21,
    LAST_OFFSET_DELTA = 23,
    BASE_TIMESTAMP = 27,
    MAX_TIMESTAMP = 35,
    PRODUCER_ID = 43,
    PRODUCER_EPOCH = 51,
    BASE_SEQUENCE = 53,
    COUNT = 57,
};

uint8_t *kc_put_message_head(uint8_t *message, int magic, int attributes, int64_t timestamp, const uint8_t *key,
                             int32_t key_size, int32_t size) {
    uint8_t *p = message + MAGIC;
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
    kc_store_u32(message + LENGTH, (uint32_t)(size - LEADER_EPOCH));
    kc_store_u32(message + MESSAGE_CRC, crc);
}

/* The wrapper's offset is that of its last message, and its time the latest one. */
static void write_wrapper(const kc_open_batch *batch, const kc_batch_options *options, const uint8_t *records,
                          size_t size, uint8_t *out) {
    const size_t header = kc_message_header_bytes(options->magic);
    kc_put_message_head(out, options->magic, options->attributes, batch->max_timestamp, NULL, -1, (int32_t)size);
    const uint32_t crc = kc_crc32(kc_crc32(0, out + MAGIC, header - MAGIC), records, size);
    kc_put_message_frame(out, (uint64_t)batch->last_offset, header + size, crc);
}

void kc_batch_write_header(const kc_open_batch *batch, const kc_batch_options *options, const uint8_t *records,
                           size_t size, uint8_t *out) {
    if (options->magic < 2) {
        if (options->attributes & 7) write_wrapper(batch, options, records, size, out);
        return;
    }
    kc_store_u64(out + BASE_OFFSET, (uint64_t)batch->base_offset);
    kc_store_u32(out + LENGTH, (uint32_t)(KC_BATCH_HEADER_BYTES - LEADER_EPOCH + size));
    kc_store_u32(out + LEADER_EPOCH, (uint32_t)options->leader_epoch);
    out[MAGIC] = 2;
    kc_store_u16(out + ATTRIBUTES, (uint16_t)options->attributes);
    kc_store_u32(out + LAST_OFFSET_DELTA, (uint32_t)(batch->last_offset - batch->base_offset));
    kc_store_u64(out + BASE_TIMESTAMP, (uint64_t)batch->base_timestamp);
    kc_store_u64(out + MAX_TIMESTAMP, (uint64_t)batch->max_timestamp);
    kc_store_u64(out + PRODUCER_ID, (uint64_t)options->producer_id);
    kc_store_u16(out + PRODUCER_EPOCH, (uint16_t)options->producer_epoch);
    kc_store_u32(out + BASE_SEQUENCE, (uint32_t)batch->base_sequence);
    kc_store_u32(out + COUNT, (uint32_t)batch->count);
    uint32_t crc = kc_crc32c(0, out + ATTRIBUTES, KC_BATCH_HEADER_BYTES - ATTRIBUTES);
    kc_store_u32(out + CRC, kc_crc32c(crc, records, size));
}
