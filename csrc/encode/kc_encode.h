/* Encodes rows of columns as batches, in one pass: a record is written to the open batch as soon as its size is known.
 * A batch may contain rows of several chunks; a chunk is not needed after its rows are written. */
#ifndef KC_ENCODE_H
#define KC_ENCODE_H

#include "encode/kc_batch_write.h"
#include "encode/kc_input.h"

/* The memory for batches: [at, end). Its owner updates `at` and `end` when it grows. */
typedef struct kc_room {
    uint8_t *at;
    const uint8_t *end;
} kc_room;

typedef enum kc_encode_event {
    KC_ENCODE_FAULT,    /* see the error; its position is the row in the chunk */
    KC_ENCODE_ROWS_END, /* all rows of the chunk are written; the next chunk may follow */
    KC_ENCODE_BATCH,    /* no more rows fit the open batch: close it, then continue */
    KC_ENCODE_NO_ROOM,  /* continue with at least `wanted` bytes of room */
} kc_encode_event;

/* The open batch is before the room: `open.size` bytes, whose header is not yet written. */
typedef struct kc_encoder {
    kc_batch_options options;
    kc_open_batch open;  /* count 0: none */
    int64_t next_offset; /* the minimum for the next record */
    int32_t next_sequence;
    bool started; /* after the first record was loaded */
    bool ranged;  /* the next batch is the first, and begins at options.first_offset */
    size_t wanted;
    int64_t loaded; /* rows of the chunk that were loaded into blocks */
    int64_t next;   /* index of the next row of the block */
    kc_input_block block;
} kc_encoder;

void kc_encoder_begin(kc_encoder *e, const kc_batch_options *options);

/* Starts another record set with the same options, at a row of the chunk. */
void kc_encoder_restart(kc_encoder *e, int64_t row);

/* Writes rows of the chunk until an event. */
KC_MUST_CHECK kc_encode_event kc_encoder_fill(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room,
                                              kc_error *error);

/* Closes the open batch: writes its header to `out`, for the `size` bytes (at most 2^31-50) of (compressed) records at
 * `records`. */
void kc_encoder_close(kc_encoder *e, const uint8_t *records, size_t size, uint8_t *out);

/* As kc_encoder_fill, but closes batches in place, so KC_ENCODE_BATCH does not occur. */
KC_MUST_CHECK kc_encode_event kc_encoder_run(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room,
                                             kc_error *error);

/* After the last row: extends the open batch to the end of the range, if there is one. Without any row, only checks
 * that kc_batch_write_empty can write the range. */
KC_MUST_CHECK int kc_encoder_end(kc_encoder *e, kc_error *error);

/* kc_encoder_close for a batch whose records stay in place, uncompressed. */
void kc_encoder_close_in_place(kc_encoder *e, const kc_room *room);

#endif
