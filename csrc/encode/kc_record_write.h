/* Writes a row of a block as a record of magic 2 (as in Kafka's DefaultRecord) or as a message of magic 0 or 1. */
#ifndef KC_RECORD_WRITE_H
#define KC_RECORD_WRITE_H

#include "base/kc_copy.h"
#include "base/kc_varint.h"
#include "checksum/kc_crc32.h"
#include "encode/kc_batch_write.h"
#include "encode/kc_input.h"

/* The size of a row in a batch, with intermediate values that are written later. */
typedef struct kc_record_size {
    int64_t total, body, timestamp_delta;
    uint64_t offset_delta; /* zigzag-coded, as it is never negative */
} kc_record_size;

/* The size of a varint, which most often has one or two bytes. Comparing takes less time than counting leading zeros,
 * for which x86-64 without extensions has only an instruction that is slow on AMD's processors. */
KC_INLINE int64_t kc_frequent_size(uint64_t v) {
    return KC_LIKELY(v < 0x4000) ? 1 + (v >= 0x80) : (int64_t)kc_uvarint64_size(v);
}

/* `fixed` is the size of the body without its two deltas. */
KC_INLINE kc_record_size kc_record_measure_at(const kc_open_batch *batch, int64_t offset, int64_t timestamp,
                                              int64_t fixed) {
    kc_record_size s;
    s.timestamp_delta = (int64_t)((uint64_t)timestamp - (uint64_t)batch->base_timestamp);
    s.offset_delta = 2 * ((uint64_t)offset - (uint64_t)batch->base_offset);
    s.body = fixed + kc_frequent_size(kc_zigzag64(s.timestamp_delta)) + kc_frequent_size(s.offset_delta);
    s.total = s.body + kc_frequent_size(2 * (uint64_t)s.body);
    return s;
}

KC_INLINE kc_record_size kc_record_measure(const kc_open_batch *batch, const kc_input_block *block, int64_t i) {
    return kc_record_measure_at(batch, block->offset[i], block->timestamp[i], block->fixed_bytes[i]);
}

KC_INLINE kc_record_size kc_message_measure(int magic, const kc_input_block *block, int64_t i) {
    const int64_t key = block->key.size[i], value = block->value.size[i];
    kc_record_size s = {0};
    s.total = (int64_t)kc_message_header_bytes(magic) + (key > 0 ? key : 0) + (value > 0 ? value : 0);
    return s;
}

KC_INLINE uint8_t *kc_put_uvarint(uint8_t *p, uint64_t v) {
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

/* Writes a key or value with its length (-1: null); if `wide`, there must be KC_COPY_SLACK of room after it. */
KC_INLINE uint8_t *kc_put_bytes(uint8_t *p, const uint8_t *data, int32_t size, bool wide) {
    if (size < 0) {
        *p = 1; /* -1 */
        return p + 1;
    }
    p = kc_put_uvarint(p, 2 * (uint64_t)(uint32_t)size);
    kc_copy(p, data, (size_t)size, wide);
    return p + size;
}

KC_INLINE uint8_t *kc_put_span(uint8_t *p, const kc_spans *spans, int64_t i) {
    return kc_put_bytes(p, spans->data[i], spans->size[i], spans->wide);
}

/* Writes the part of a record of size `s` that is before its key. */
KC_INLINE uint8_t *kc_put_record_head(uint8_t *p, const kc_record_size *s) {
    p = kc_put_uvarint(p, 2 * (uint64_t)s->body);
    *p++ = 0;
    p = kc_put_uvarint(p, kc_zigzag64(s->timestamp_delta));
    return kc_put_uvarint(p, s->offset_delta);
}

/* Writes the headers of row i, which must end at `end`. NULL if they changed after they were counted, or for an error.
 */
uint8_t *kc_put_headers(uint8_t *p, const uint8_t *end, const kc_arrow_pairs *c, const int64_t bounds[2],
                        kc_error *error);

/* Writes row i of size `s` at p, where its size and KC_COPY_SLACK are free. NULL as in kc_put_headers. */
KC_INLINE uint8_t *kc_put_record(uint8_t *p, const kc_input_chunk *chunk, const kc_input_block *block, int64_t i,
                                 const kc_record_size *s, kc_error *error) {
    const uint8_t *end = p + s->total;
    p = kc_put_record_head(p, s);
    p = kc_put_span(p, &block->key, i);
    p = kc_put_span(p, &block->value, i);
    if (KC_UNLIKELY(block->has_headers))
        return kc_put_headers(p, end, &chunk->headers, &block->header_bounds[2 * i], error);
    *p++ = 0;
    return p;
}

/* The same as a message. Inside a wrapper it has no codec, and in magic 1 its offset is relative. */
KC_INLINE uint8_t *kc_put_message(uint8_t *p, const kc_open_batch *batch, const kc_batch_options *options,
                                  const kc_input_block *block, int64_t i, const kc_record_size *s) {
    const bool relative = options->magic && options->attributes & KC_CODEC_MASK;
    const int32_t value_size = block->value.size[i];
    const size_t size = (size_t)s->total;
    uint8_t *value = kc_put_message_head(p, options->magic, options->attributes & ~KC_CODEC_MASK, block->timestamp[i],
                                         block->key.data[i], block->key.size[i], value_size);
    if (value_size > 0) kc_copy(value, block->value.data[i], (size_t)value_size, block->value.wide);
    kc_put_message_frame(p, (uint64_t)block->offset[i] - (relative ? (uint64_t)batch->base_offset : 0), size,
                         kc_crc32(0, p + KC_ENTRY_MAGIC_AT, size - KC_ENTRY_MAGIC_AT));
    return p + size;
}

#endif
