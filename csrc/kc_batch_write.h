/* Batches from rows to bytes. Magic 2: KIP-98 and the comments in Kafka's DefaultRecordBatch and DefaultRecord.
 * Magic 0 and 1: the layout in kc_msgset.h, KIP-31 and KIP-32; a batch is a run of messages there, or one wrapper. */
#ifndef KC_BATCH_WRITE_H
#define KC_BATCH_WRITE_H

#include "kc_encode.h"
#include "kc_varint.h"

enum { KC_BATCH_HEADER_BYTES = 61, KC_MESSAGE_V0_HEADER_BYTES = 26, KC_MESSAGE_V1_HEADER_BYTES = 34 };

/* All of a message of magic 0 or 1 but key and value. */
static inline size_t kc_message_header_bytes(int magic) {
    return magic ? KC_MESSAGE_V1_HEADER_BYTES : KC_MESSAGE_V0_HEADER_BYTES;
}

/* What goes in front of all records of a batch: its header, the wrapper's, or nothing. */
static inline size_t kc_batch_header_bytes(const kc_batch_options *options) {
    if (options->magic == 2) return KC_BATCH_HEADER_BYTES;
    return options->attributes & 7 ? kc_message_header_bytes(options->magic) : 0;
}

/* The size of row i of the block as a message of its own. */
KC_INLINE int64_t kc_message_bytes(int magic, const kc_record_block *block, int64_t i) {
    const int64_t key = block->key.size[i], value = block->value.size[i];
    return (int64_t)kc_message_header_bytes(magic) + (key > 0 ? key : 0) + (value > 0 ? value : 0);
}

KC_INLINE int64_t kc_timestamp_delta(const kc_batch_plan *batch, const kc_record_block *block, int64_t i) {
    return (int64_t)((uint64_t)block->timestamp[i] - (uint64_t)batch->base_timestamp);
}

/* Zigzag-coded, as it is never negative. */
KC_INLINE uint64_t kc_offset_delta(const kc_batch_plan *batch, const kc_record_block *block, int64_t i) {
    return 2 * ((uint64_t)block->offset[i] - (uint64_t)batch->base_offset);
}

/* The size of row i of the block as a record of `batch`, without the length in front of it. */
KC_INLINE int64_t kc_body_bytes(const kc_batch_plan *batch, const kc_record_block *block, int64_t i) {
    size_t deltas =
        kc_varint64_size(kc_timestamp_delta(batch, block, i)) + kc_uvarint64_size(kc_offset_delta(batch, block, i));
    return block->fixed_bytes[i] + (int64_t)deltas;
}

/* The same with the length. */
KC_INLINE int64_t kc_record_bytes(int64_t body) { return body + (int64_t)kc_uvarint64_size(2 * (uint64_t)body); }

/* The records of a batch, without its header, into [out, out + capacity). `chunks` has the chunks from
 * batch->chunk on, `chunk_count` of them. `size` tells how many bytes were written. */
KC_MUST_CHECK int kc_batch_write_records(const kc_batch_plan *batch, const kc_batch_options *options,
                                         const kc_record_chunk *const *chunks, int64_t chunk_count, uint8_t *out,
                                         size_t capacity, size_t *size, kc_error *error);

/* What goes in front of the records, compressed or not, that are the `size` bytes at `records`; at most 2^31-50. */
void kc_batch_write_header(const kc_batch_plan *batch, const kc_batch_options *options, const uint8_t *records,
                           size_t size, uint8_t *out);

#endif
