/* Message sets: sequences of messages of magic 0 (0.8) and 1 (0.10, KIP-32).
 *
 *     0  offset      int64
 *     8  length      int32   bytes after this field
 *    12  CRC-32      uint32  from magic to the end
 *    16  magic       int8    0 or 1
 *    17  attributes  int8    bits 0-2 codec, 3 timestamp type (magic 1)
 *    18  timestamp   int64   only in magic 1
 *        key length, key      int32; negative is null
 *        value length, value
 *
 * A message with a codec is a wrapper: its value is a compressed message set, and its offset that of the last
 * message inside. Offsets inside are absolute in magic 0. In magic 1 they count from the start of the set, which
 * follows from the last one; a wrapper with offset 0, as sent by producers, leaves them as they are. */
#ifndef KC_MSGSET_H
#define KC_MSGSET_H

#include "decode/kc_batch.h"
#include "decode/kc_record_table.h"

/* Whether the message or batch that `span` found is a message without a codec. */
static inline bool kc_msgset_is_plain(const uint8_t *data, const kc_span *span) {
    return span->magic < 2 && !(kc_load_u8(data + span->position + KC_MESSAGE_ATTRIBUTES_AT) & KC_CODEC_MASK);
}

/* Makes the value of a wrapper the batch's `records`. */
KC_MUST_CHECK int kc_msgset_find_value(const uint8_t *data, kc_batch *wrapper, kc_error *error);

/* The messages that are being read: those of a file up to the first entry that is not a message without a codec, or
 * those of a wrapper. */
typedef struct kc_msgset {
    const uint8_t *start, *at, *end;
    bool verify_crc, inner;
    int64_t first_offset, end_offset; /* rows outside [first, end) are dropped */
    int64_t index;                    /* of the next message in its wrapper */
    int8_t timestamp_type;            /* of inner messages: the wrapper's */
    int64_t append_timestamp;         /* of inner messages if that type is log append time */
    uint64_t offset_shift;            /* added to the offsets of inner messages */
    uint64_t faulty_size;             /* of the message at `at`, as read when the fault was found */
} kc_msgset;

/* Opens the messages of a file that start at position `from`. */
void kc_msgset_open(kc_msgset *m, const uint8_t *data, uint64_t size, uint64_t from, bool verify_crc,
                    int64_t first_offset, int64_t end_offset);

/* Opens the decompressed messages of a wrapper, whose base offset becomes that of the first. All must be complete and
 * uncompressed. */
KC_MUST_CHECK int kc_msgset_open_inner(kc_msgset *m, kc_batch *wrapper, const uint8_t *messages, size_t size,
                                       bool verify_crc, int64_t first_offset, int64_t end_offset, kc_error *error);

typedef enum kc_msgset_end {
    KC_MSGSET_MORE,  /* some were read; there may be more */
    KC_MSGSET_OTHER, /* no complete message without a codec follows */
    KC_MSGSET_DONE,  /* no bytes are left */
    KC_MSGSET_FAULT, /* the message at m->at is damaged, or out of memory; the error's position counts from m->start */
} kc_msgset_end;

/* Adds up to `rows` messages, of about `bytes` bytes at most, to the table. `batch` is the wrapper of inner messages;
 * for others it is set to the message with the fault. */
kc_msgset_end kc_msgset_read(kc_msgset *m, kc_batch *batch, kc_table *t, int64_t rows, uint64_t bytes, kc_error *error);

#endif
