#include "kc_batch_write.h"

#include <string.h>

#include "kc_cpu.h"
#include "kc_crc32.h"
#include "kc_crc32c.h"
#include "kc_varint.h"

/* Places in a batch's header; of the first four, the CRC alone is elsewhere in a message. */
enum {
    BASE_OFFSET = 0,
    LENGTH = 8,
    LEADER_EPOCH = 12,
    MESSAGE_CRC = 12,
    MAGIC = 16,
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

KC_INLINE uint8_t *put_uvarint(uint8_t *p, uint64_t v) {
    if (KC_LIKELY(v < 0x80)) {
        *p = (uint8_t)v;
        return p + 1;
    }
    if (KC_LIKELY(v < 0x4000)) {
        p[0] = (uint8_t)(v | 0x80);
        p[1] = (uint8_t)(v >> 7);
        return p + 2;
    }
    return p + kc_uvarint64_encode(p, v);
}

KC_INLINE uint8_t *put_varint(uint8_t *p, int64_t v) { return put_uvarint(p, kc_zigzag64(v)); }

/* Exactly n bytes; short ones without a call, as two copies that may overlap. */
KC_INLINE void copy_ends(uint8_t *to, const uint8_t *from, size_t n, size_t half) {
    memcpy(to, from, half);
    memcpy(to + n - half, from + n - half, half);
}

KC_INLINE void copy_bytes(uint8_t *to, const uint8_t *from, size_t n) {
    if (n > 256)
        memcpy(to, from, n);
    else if (n > 128)
        copy_ends(to, from, n, 128);
    else if (n > 64)
        copy_ends(to, from, n, 64);
    else if (n > 32)
        copy_ends(to, from, n, 32);
    else if (n >= 16)
        copy_ends(to, from, n, 16);
    else if (n >= 8)
        copy_ends(to, from, n, 8);
    else if (n >= 4)
        copy_ends(to, from, n, 4);
    else
        for (size_t i = 0; i < n; i++) to[i] = from[i];
}

KC_INLINE uint8_t *put_span(uint8_t *p, const kc_spans *spans, int64_t i) {
    int32_t size = spans->size[i];
    if (size < 0) {
        *p = 1; /* -1 */
        return p + 1;
    }
    p = put_uvarint(p, 2 * (uint64_t)(uint32_t)size);
    copy_bytes(p, spans->data[i], (size_t)size);
    return p + size;
}

static int64_t span_bytes(const kc_spans *spans, int64_t i) {
    int32_t size = spans->size[i];
    return (int64_t)kc_varint32_size(size) + (size > 0 ? size : 0);
}

/* The headers of one row, within the room that the record's size promised. */
static uint8_t *put_headers(uint8_t *p, const uint8_t *end, const kc_pairs_column *c, const int64_t bounds[2],
                            kc_error *error) {
    kc_spans keys, values;
    p = put_varint(p, bounds[1] - bounds[0]);
    for (int64_t item = bounds[0]; item < bounds[1];) {
        int64_t n = bounds[1] - item < KC_BLOCK_ROWS ? bounds[1] - item : KC_BLOCK_ROWS;
        if (kc_pairs_column_items(c, item, n, &keys, &values, error)) return NULL;
        for (int64_t i = 0; i < n; i++) {
            if (end - p < span_bytes(&keys, i) + span_bytes(&values, i)) return NULL;
            p = put_span(put_span(p, &keys, i), &values, i);
        }
        item += n;
    }
    return p;
}

static int changed(kc_error *error, int64_t row) {
    if (error->code) return error->code;
    return kc_fail(error, KC_CANNOT_ENCODE, "the columns changed while they were encoded", (uint64_t)row, 0, 0);
}

/* Row i of the block at p, or NULL where it does not fit, since its bytes changed after they were counted. */
KC_INLINE uint8_t *put_record(uint8_t *p, const uint8_t *end, const kc_batch_plan *batch, const kc_record_chunk *chunk,
                              const kc_record_block *block, int64_t i, kc_error *error) {
    int64_t body = kc_body_bytes(batch, block, i), size = kc_record_bytes(body);
    if (KC_UNLIKELY(end - p < size)) return NULL;
    const uint8_t *record_end = p + size;
    p = put_uvarint(p, 2 * (uint64_t)body);
    *p++ = 0;
    p = put_varint(p, kc_timestamp_delta(batch, block, i));
    p = put_uvarint(p, kc_offset_delta(batch, block, i));
    p = put_span(p, &block->key, i);
    p = put_span(p, &block->value, i);
    if (!block->has_headers) {
        *p++ = 0;
        return p;
    }
    p = put_headers(p, record_end, &chunk->headers, &block->header_bounds[2 * i], error);
    return p == record_end ? p : NULL;
}

/* A message of magic 0 or 1 up to its value, whose `size` bytes follow; without offset, length and CRC. */
static uint8_t *put_message_head(uint8_t *p, int magic, int attributes, int64_t timestamp, const uint8_t *key,
                                 int32_t key_size, int32_t size) {
    *p++ = (uint8_t)magic;
    *p++ = (uint8_t)attributes;
    if (magic) {
        kc_store_u64(p, (uint64_t)timestamp);
        p += 8;
    }
    kc_store_u32(p, (uint32_t)key_size);
    p += 4;
    if (key_size > 0) {
        copy_bytes(p, key, (size_t)key_size);
        p += key_size;
    }
    kc_store_u32(p, (uint32_t)size);
    return p + 4;
}

static void put_message_frame(uint8_t *message, uint64_t offset, size_t size, uint32_t crc) {
    kc_store_u64(message, offset);
    kc_store_u32(message + LENGTH, (uint32_t)(size - LEADER_EPOCH));
    kc_store_u32(message + MESSAGE_CRC, crc);
}

/* Row i of the block as a message at p. Inside a wrapper it has no codec, and in magic 1 an offset of its own set. */
KC_INLINE uint8_t *put_message(uint8_t *p, const uint8_t *end, const kc_batch_plan *batch,
                               const kc_batch_options *options, const kc_record_block *block, int64_t i) {
    const int64_t size = kc_message_bytes(options->magic, block, i);
    if (KC_UNLIKELY(end - p < size)) return NULL;
    const bool relative = options->magic && options->attributes & 7;
    const int32_t value_size = block->value.size[i];
    uint8_t *value = put_message_head(p + MAGIC, options->magic, options->attributes & ~7, block->timestamp[i],
                                      block->key.data[i], block->key.size[i], value_size);
    if (value_size > 0) copy_bytes(value, block->value.data[i], (size_t)value_size);
    put_message_frame(p, (uint64_t)block->offset[i] - (relative ? (uint64_t)batch->base_offset : 0), (size_t)size,
                      kc_crc32(0, p + MAGIC, (size_t)size - MAGIC));
    return p + size;
}

/* Walks the batch's rows; `messages` is a constant in both of its instances. */
KC_INLINE int write_records(const kc_batch_plan *batch, const kc_batch_options *options,
                            const kc_record_chunk *const *chunks, int64_t chunk_count, uint8_t *out, size_t capacity,
                            size_t *size, const bool messages, kc_error *error) {
    kc_record_block block;
    uint8_t *p = out;
    const uint8_t *end = out + capacity;
    int64_t row = batch->row, done = 0;
    for (int64_t c = 0; c < chunk_count && done < batch->count; c++, row = 0) {
        const kc_record_chunk *chunk = chunks[c];
        while (row < chunk->rows && done < batch->count) {
            int64_t n = chunk->rows - row < batch->count - done ? chunk->rows - row : batch->count - done;
            if (n > KC_BLOCK_ROWS) n = KC_BLOCK_ROWS;
            if (kc_record_block_load(&block, chunk, row, n, batch->base_offset + done, error)) return error->code;
            for (int64_t i = 0; i < n; i++) {
                p = messages ? put_message(p, end, batch, options, &block, i)
                             : put_record(p, end, batch, chunk, &block, i, error);
                if (KC_UNLIKELY(!p)) return changed(error, row + i);
            }
            row += n;
            done += n;
        }
    }
    *size = (size_t)(p - out);
    return done == batch->count ? KC_OK : changed(error, row);
}

int kc_batch_write_records(const kc_batch_plan *batch, const kc_batch_options *options,
                           const kc_record_chunk *const *chunks, int64_t chunk_count, uint8_t *out, size_t capacity,
                           size_t *size, kc_error *error) {
    kc_cpu_settle();
    if (options->magic == 2) {
        return write_records(batch, options, chunks, chunk_count, out, capacity, size, false, error);
    }
    return write_records(batch, options, chunks, chunk_count, out, capacity, size, true, error);
}

/* The wrapper's offset is that of its last message, and its time the latest one. */
static void write_wrapper(const kc_batch_plan *batch, const kc_batch_options *options, const uint8_t *records,
                          size_t size, uint8_t *out) {
    const size_t header = kc_message_header_bytes(options->magic);
    put_message_head(out + MAGIC, options->magic, options->attributes, batch->max_timestamp, NULL, -1, (int32_t)size);
    const uint32_t crc = kc_crc32(kc_crc32(0, out + MAGIC, header - MAGIC), records, size);
    put_message_frame(out, (uint64_t)batch->last_offset, header + size, crc);
}

void kc_batch_write_header(const kc_batch_plan *batch, const kc_batch_options *options, const uint8_t *records,
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
