/* Decodes message sets and log segments of Kafka 0.6 and 0.7 into columns.
 *
 *     length      int32    bytes after this field
 *     magic       int8     0 (0.6) or 1 (0.7)
 *     attributes  int8     magic 1 only; bits 0-1 codec: 0 none, 1 gzip, 2 snappy
 *     CRC-32      uint32   of the payload only
 *     payload              for a codec: a compressed message set
 *
 * Offsets are not stored: the offset of a message is its position in the log, the next offset is 4 plus the length
 * higher. A message inside a compressed one has the offset of the outermost message, which is also its next offset;
 * only the next offset of the last one is after the outermost. The decoder stops at compressed messages like
 * kc_decoder. */
#ifndef KC_MSGSET07_H
#define KC_MSGSET07_H

#include "decode/kc_decoder.h"

/* The columns. Up to the headers they are those of kc_record_table.h, with the same indexes. */
typedef enum kc_msgset07_column {
    KC_MSGSET07_NEXT_OFFSET = KC_COL_HEADERS + 1,
    KC_MSGSET07_MAGIC,
    KC_MSGSET07_CODEC, /* of the outermost message */
    KC_NUM_MSGSET07_COLUMNS,
} kc_msgset07_column;

extern const kc_field kc_msgset07_fields[KC_NUM_MSGSET07_COLUMNS];

enum { KC_MSGSET07_MAX_DEPTH = 8 };

typedef struct kc_msgset07_options {
    bool verify_crc;
    bool deep;              /* decompress messages; else compressed messages are rows */
    int64_t initial_offset; /* of the first byte of the data; the sum with its size must fit 63 bits */
} kc_msgset07_options;

/* A message set being read: the data, or the content of a compressed message. */
typedef struct kc_msgset07_level {
    const uint8_t *start, *at, *end;
} kc_msgset07_level;

typedef struct kc_msgset07_decoder {
    const uint8_t *data;
    uint64_t size, position; /* position: of the current outermost message or, between two, of the next */
    kc_msgset07_options options;
    bool announced; /* the caller is decompressing `payload` */
    bool located;   /* the fault is inside the outermost message: the next message can be read */
    int codec;      /* of `payload` */
    const uint8_t *payload;
    size_t payload_size;
    uint64_t outer_size; /* of the current outermost message */
    int outer_codec;
    int64_t inner_rows; /* number of its rows */
    int depth;
    kc_msgset07_level levels[KC_MSGSET07_MAX_DEPTH + 1];
} kc_msgset07_decoder;

void kc_msgset07_init(kc_msgset07_decoder *d, const uint8_t *data, uint64_t size, const kc_msgset07_options *options);

/* As kc_decoder_run, for a table of kc_msgset07_fields. A chunk ends only between outermost messages. */
kc_event kc_msgset07_run(kc_msgset07_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error);

/* Continues with the decompressed payload, which must stay in place until the outermost message is done. */
KC_MUST_CHECK int kc_msgset07_provide(kc_msgset07_decoder *d, const uint8_t *data, size_t size, kc_error *error);

/* As kc_decoder_skip. */
uint64_t kc_msgset07_skip(kc_msgset07_decoder *d);

/* The outermost messages of a set that a broker is to append. */
typedef struct kc_msgset07_outline {
    uint64_t size;       /* of the complete messages, in bytes */
    uint64_t messages;   /* their number */
    uint64_t compressed; /* how many of them are compressed */
    bool too_large;      /* the next one has a payload above the limit: what follows it was not looked at */
} kc_msgset07_outline;

/* Checks lengths, magic and CRC of the outermost messages, one after another. The set may end within a message that is
 * not the first, or within a length. */
KC_MUST_CHECK int kc_msgset07_outermost(const uint8_t *data, uint64_t size, uint64_t max_payload,
                                        kc_msgset07_outline *found, kc_error *error);

/* Writes the header of a message with this payload, KC_MSGSET07_HEADER(magic) bytes. */
#define KC_MSGSET07_HEADER(magic) ((size_t)9 + ((magic) != 0))
void kc_msgset07_write_header(uint8_t *out, int magic, int codec, const uint8_t *payload, uint32_t size);

#endif
