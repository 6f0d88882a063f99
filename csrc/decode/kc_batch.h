/* The header of a record batch v2 (KIP-98). A message of magic 0 or 1 (kc_msgset.h) is read into the same struct.
 *
 *     0  base offset             int64
 *     8  length                  int32
 *    12  partition leader epoch  int32
 *    16  magic                   int8    2
 *    17  CRC-32C                 uint32  from attributes to the end of the batch
 *    21  attributes              int16   bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control,
 *                                        6 base timestamp is the delete horizon
 *    23  last offset delta       int32
 *    27  base timestamp          int64
 *    35  max timestamp           int64
 *    43  producer id             int64
 *    51  producer epoch          int16
 *    53  base sequence           int32
 *    57  record count            int32
 *    61  records, compressed as a whole by the codec
 */
#ifndef KC_BATCH_H
#define KC_BATCH_H

#include "decode/kc_walk.h"

enum {
    KC_BATCH_LEADER_EPOCH_AT = 12,
    KC_BATCH_CRC_AT = 17,
    KC_BATCH_ATTRIBUTES_AT = 21,
    KC_BATCH_LAST_DELTA_AT = 23,
    KC_BATCH_BASE_TIMESTAMP_AT = 27,
    KC_BATCH_MAX_TIMESTAMP_AT = 35,
    KC_BATCH_PRODUCER_ID_AT = 43,
    KC_BATCH_PRODUCER_EPOCH_AT = 51,
    KC_BATCH_BASE_SEQUENCE_AT = 53,
    KC_BATCH_COUNT_AT = 57,
    KC_BATCH_HEADER_SIZE = 61,
};

/* The same for a message of magic 0 or 1, and the size of the smallest one. */
enum {
    KC_MESSAGE_CRC_AT = 12,
    KC_MESSAGE_ATTRIBUTES_AT = 17,
    KC_MESSAGE_TIMESTAMP_AT = 18,
    KC_MESSAGE_MIN_SIZE = KC_ENTRY_OVERHEAD + KC_MESSAGE_MIN_LENGTH,
    KC_MESSAGE_V1_MIN_SIZE = KC_MESSAGE_MIN_SIZE + 8,
};

enum {
    KC_CODEC_MASK = 0x07,
    KC_LOG_APPEND_TIME = 0x08,
    KC_TRANSACTIONAL = 0x10,
    KC_CONTROL = 0x20,
    KC_DELETE_HORIZON = 0x40,
};

enum { KC_CODEC_NONE = 0, KC_CODEC_GZIP, KC_CODEC_SNAPPY, KC_CODEC_LZ4, KC_CODEC_ZSTD, KC_NUM_CODECS };

/* "none", "gzip", …; "unknown" for other numbers. */
const char *kc_codec_name(int codec);

typedef struct kc_batch {
    uint64_t position, size;
    int64_t base_offset, last_offset;
    int64_t base_timestamp, max_timestamp;
    int64_t producer_id;
    int32_t partition_leader_epoch, last_offset_delta, base_sequence, count;
    uint32_t crc;
    int16_t attributes, producer_epoch;
    int8_t magic;
    const uint8_t *records;
    size_t records_size;
} kc_batch;

static inline int kc_batch_codec(const kc_batch *b) { return b->attributes & KC_CODEC_MASK; }

/* The position of the low byte of the attributes, which has the codec, from the start of the batch. */
static inline unsigned kc_batch_codec_at(const kc_batch *b) { return b->magic < 2 ? KC_ENTRY_MAGIC_AT + 1 : 22; }

/* A compressed message of magic 0 or 1, whose header has the last offset but not the number of records. */
static inline bool kc_batch_is_wrapper(const kc_batch *b) { return b->magic < 2 && kc_batch_codec(b) != 0; }

/* Reads the header of the complete batch that `span` found in `data`, of any magic. Fields that the format does not
 * have are -1, and so is the count of a wrapper. */
void kc_batch_read(const uint8_t *data, const kc_span *span, kc_batch *batch);

/* Whether the batch's magic has its codec. */
KC_MUST_CHECK int kc_batch_check_codec(const kc_batch *batch, kc_error *error);

/* The checksum of the batch's bytes, for comparison with batch->crc: CRC-32C in magic 2, CRC-32 before. */
uint32_t kc_batch_compute_crc(const uint8_t *data, const kc_batch *batch);

/* The sequence `delta` after another: it wraps to 0 after INT32_MAX; -1, which is none, stays -1. */
static inline int32_t kc_sequence_after(int32_t sequence, int64_t delta) {
    return sequence < 0 ? sequence : (int32_t)(((uint64_t)sequence + (uint64_t)delta) & INT32_MAX);
}

#endif
