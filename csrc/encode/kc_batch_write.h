/* Writes the headers of batches and messages: the layouts in kc_batch.h and kc_msgset.h. In magic 0 and 1 a
 * batch is a sequence of messages, or one wrapper. */
#ifndef KC_BATCH_WRITE_H
#define KC_BATCH_WRITE_H

#include "decode/kc_batch.h"

/* The options of all batches of one encoder. */
typedef struct kc_batch_options {
    int8_t magic;
    bool drop_unsupported; /* drop headers and timestamps if the magic has none; else they are faults */
    int64_t producer_id;
    int32_t base_sequence; /* of the first batch; -1: none */
    int32_t leader_epoch;
    int16_t producer_epoch;
    int16_t attributes;  /* as in the header of a batch or message, including the codec */
    int64_t base_offset; /* for records without an offset column */
    int64_t batch_bytes; /* maximum size of a batch of several records, uncompressed and with its header */
    bool has_time;       /* records without a timestamp get this one: */
    int64_t time;        /* in ms */
    bool has_range;      /* the offsets that the batches cover are given, as compaction keeps them: */
    int64_t first_offset, last_offset;
} kc_batch_options;

/* The batch to which rows are added. */
typedef struct kc_open_batch {
    int64_t base_offset, last_offset;
    int64_t base_timestamp, max_timestamp;
    int64_t size; /* uncompressed, with the header */
    int32_t count, base_sequence;
} kc_open_batch;

/* The size of a message of magic 0 or 1 without key and value. */
static inline size_t kc_message_header_bytes(int magic) { return magic ? KC_MESSAGE_V1_MIN_SIZE : KC_MESSAGE_MIN_SIZE; }

/* The size of the part before all records of a batch: its header, that of the wrapper, or 0. */
static inline size_t kc_batch_header_bytes(const kc_batch_options *options) {
    if (options->magic == 2) return KC_BATCH_HEADER_SIZE;
    return options->attributes & KC_CODEC_MASK ? kc_message_header_bytes(options->magic) : 0;
}

/* Writes a message at `message` up to its value of `size` bytes, except for the part that kc_put_message_frame writes;
 * for a key of `key_size` bytes (-1: null). Returns the position of the value. */
uint8_t *kc_put_message_head(uint8_t *message, int magic, int attributes, int64_t timestamp, const uint8_t *key,
                             int32_t key_size, int32_t size);

/* Writes offset, length and CRC of a message with a total of `size` bytes. */
void kc_put_message_frame(uint8_t *message, uint64_t offset, size_t size, uint32_t crc);

/* Writes the header of a batch with the `size` bytes of (compressed) records at `records`; at most 2^31-50. */
void kc_batch_write_header(const kc_open_batch *batch, const kc_batch_options *options, const uint8_t *records,
                           size_t size, uint8_t *out);

/* Writes a batch of magic 2 without records: the KC_BATCH_HEADER_SIZE bytes of DefaultRecordBatch.writeEmptyHeader, for
 * the options' range, at most 2^31 offsets. */
void kc_batch_write_empty(const kc_batch_options *options, int64_t max_timestamp, uint8_t *out);

#endif
