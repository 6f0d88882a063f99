/* Writing what goes in front of the records of a batch: the layouts in kc_batch.h and kc_msgset.h. In magic 0 and 1 a
 * batch is a run of messages, or one wrapper. */
#ifndef KC_BATCH_WRITE_H
#define KC_BATCH_WRITE_H

#include "decode/kc_batch.h"

/* What all batches of one encoding share. */
typedef struct kc_batch_options {
    int8_t magic;
    bool drop_unsupported; /* leave out headers and timestamps where the magic has none; else they are faults */
    int64_t producer_id;
    int32_t base_sequence; /* of the first batch; -1: none */
    int32_t leader_epoch;
    int16_t producer_epoch;
    int16_t attributes;  /* as in the batch's header or in a message, codec included */
    int64_t base_offset; /* for records without an offset column */
    int64_t batch_bytes; /* a batch of several records is no larger, uncompressed and with its header */
} kc_batch_options;

/* A batch that rows are being added to. */
typedef struct kc_open_batch {
    int64_t base_offset, last_offset;
    int64_t base_timestamp, max_timestamp;
    int64_t size; /* uncompressed, with the header */
    int32_t count, base_sequence;
} kc_open_batch;

/* All of a message of magic 0 or 1 but key and value. */
static inline size_t kc_message_header_bytes(int magic) { return magic ? KC_MESSAGE_V1_MIN_SIZE : KC_MESSAGE_MIN_SIZE; }

/* What goes in front of all records of a batch: its header, the wrapper's, or nothing. */
static inline size_t kc_batch_header_bytes(const kc_batch_options *options) {
    if (options->magic == 2) return KC_BATCH_HEADER_SIZE;
    return options->attributes & KC_CODEC_MASK ? kc_message_header_bytes(options->magic) : 0;
}

/* A message up to its value, whose `size` bytes follow, but for what kc_put_message_frame writes; at `message`, for a
 * key of `key_size` bytes (-1: null). Returns the place behind it. */
uint8_t *kc_put_message_head(uint8_t *message, int magic, int attributes, int64_t timestamp, const uint8_t *key,
                             int32_t key_size, int32_t size);

/* Offset, length and CRC of a message of `size` bytes in all. */
void kc_put_message_frame(uint8_t *message, uint64_t offset, size_t size, uint32_t crc);

/* What goes in front of the records, compressed or not, that are the `size` bytes at `records`; at most 2^31-50. */
void kc_batch_write_header(const kc_open_batch *batch, const kc_batch_options *options, const uint8_t *records,
                           size_t size, uint8_t *out);

#endif
