/* Rows of columns into batches, in one pass: a record is written as soon as its size is known, behind the others of
 * the batch that is open. The rows of several chunks may go into one batch; no chunk is needed after its rows. */
#ifndef KC_ENCODE_H
#define KC_ENCODE_H

#include "encode/kc_batch_write.h"
#include "encode/kc_input.h"

/* The memory that batches are written to: [at, end). Whoever owns it moves `at` and `end` along when it grows. */
typedef struct kc_room {
    uint8_t *at;
    const uint8_t *end;
} kc_room;

typedef enum kc_encode_event {
    KC_ENCODE_FAULT,    /* see the error; its position is the row in the chunk */
    KC_ENCODE_ROWS_END, /* all rows of the chunk are written; the next chunk may follow */
    KC_ENCODE_BATCH,    /* no more rows fit the open batch: close it, then go on */
    KC_ENCODE_NO_ROOM,  /* go on with `wanted` bytes of room at least */
} kc_encode_event;

/* The open batch lies in front of the room: `open.size` bytes, of which its header is not yet written. */
typedef struct kc_encoder {
    kc_batch_options options;
    kc_open_batch open;  /* count 0: none */
    int64_t next_offset; /* no record may have a smaller one */
    int32_t next_sequence;
    bool started; /* a record has been seen */
    size_t wanted;
    int64_t loaded; /* rows of the chunk that the block holds or held */
    int64_t next;   /* of the block's rows */
    kc_input_block block;
} kc_encoder;

void kc_encoder_begin(kc_encoder *e, const kc_batch_options *options);

/* Begins another record set under the same options, at a row of the chunk. */
void kc_encoder_restart(kc_encoder *e, int64_t row);

/* Writes rows of the chunk until one of the events. */
KC_MUST_CHECK kc_encode_event kc_encoder_fill(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room,
                                              kc_error *error);

/* Writes the open batch's header to `out`, for the `size` bytes of its records, compressed or not, at `records`; at
 * most 2^31-50 of them. Then no batch is open. */
void kc_encoder_close(kc_encoder *e, const uint8_t *records, size_t size, uint8_t *out);

/* As kc_encoder_fill, and closes batches where they lie: KC_ENCODE_BATCH is not among the events. */
KC_MUST_CHECK kc_encode_event kc_encoder_run(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room,
                                             kc_error *error);

/* kc_encoder_close for a batch whose records stay uncompressed where they lie. */
void kc_encoder_close_in_place(kc_encoder *e, const kc_room *room);

#endif
