/* Message sets and log segments of Kafka 0.6 and 0.7 to columns.
 *
 *     length      int32    bytes after this field
 *     magic       int8     0 (0.6) or 1 (0.7)
 *     attributes  int8     magic 1 only; bits 0-1 codec: 0 none, 1 gzip, 2 snappy
 *     CRC-32      uint32   over the payload alone
 *     payload              for a codec: a compressed message set
 *
 * No offset is stored: a message's offset is its position in the log, the next one's is that plus 4 plus the length.
 * A message inside a compressed one has the offset of the outermost; its next offset is that too, but for the last
 * one, whose next offset lies behind the outermost. The decoder stops at compressed messages as kc_decoder does. */
#ifndef KC_MSGSET07_H
#define KC_MSGSET07_H

#include "decode/kc_decoder.h"

/* The columns. Up to the headers they are those of kc_record_table.h, in the same places. */
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
    bool deep;              /* open compressed messages; else they are rows like the others */
    int64_t initial_offset; /* of the first byte of the data; plus its size it must fit 63 bits */
} kc_msgset07_options;

/* A message set in work: the data itself, or what a compressed message holds. */
typedef struct kc_msgset07_level {
    const uint8_t *start, *at, *end;
} kc_msgset07_level;

typedef struct kc_msgset07_decoder {
    const uint8_t *data;
    uint64_t size, position; /* position: of the outermost message in work or, between two, of the next */
    kc_msgset07_options options;
    bool announced; /* `payload` was given to the caller for decompression */
    bool located;   /* the fault lies inside the outermost message: what follows it can be read */
    int codec;      /* of `payload`, and so are the bytes: what the caller decompresses */
    const uint8_t *payload;
    size_t payload_size;
    uint64_t outer_size; /* of the outermost message in work */
    int outer_codec;
    int64_t inner_rows; /* rows that it gave */
    int depth;
    kc_msgset07_level levels[KC_MSGSET07_MAX_DEPTH + 1];
} kc_msgset07_decoder;

void kc_msgset07_init(kc_msgset07_decoder *d, const uint8_t *data, uint64_t size, const kc_msgset07_options *options);

/* As kc_decoder_run, for a table of kc_msgset07_fields. A chunk ends between outermost messages only. */
kc_event kc_msgset07_run(kc_msgset07_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error);

/* Goes on with the decompressed payload; it must stay in place until the outermost message is done. */
KC_MUST_CHECK int kc_msgset07_provide(kc_msgset07_decoder *d, const uint8_t *data, size_t size, kc_error *error);

/* As kc_decoder_skip. */
uint64_t kc_msgset07_skip(kc_msgset07_decoder *d);

/* Writes the header of a message with this payload, KC_MSGSET07_HEADER(magic) bytes. */
#define KC_MSGSET07_HEADER(magic) ((size_t)9 + ((magic) != 0))
void kc_msgset07_write_header(uint8_t *out, int magic, int codec, const uint8_t *payload, uint32_t size);

#endif
