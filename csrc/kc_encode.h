/* Columns of records on their way into batches: a chunk is one imported record batch, a plan says which rows go
 * into which batch. The plan is made in one pass over lengths; kc_batch_write.h then writes the bytes. */
#ifndef KC_ENCODE_H
#define KC_ENCODE_H

#include "kc_alloc.h"
#include "kc_arrow_import.h"

/* One record batch of columns. Absent columns: every key or value null, no headers, timestamp -1, offsets that
 * follow one another. */
typedef struct kc_record_chunk {
    int64_t rows;
    kc_bytes_column key, value;
    kc_int_column offset, timestamp;
    kc_pairs_column headers;
} kc_record_chunk;

/* Finds the columns by name. On an error `column` (may stay NULL) names the one at fault. */
KC_MUST_CHECK int kc_record_chunk_import(kc_record_chunk *chunk, const struct ArrowSchema *schema,
                                         const struct ArrowArray *array, const char **column, kc_error *error);

typedef struct kc_record_block {
    int64_t rows;
    bool has_headers;
    int64_t offset[KC_BLOCK_ROWS], timestamp[KC_BLOCK_ROWS];
    kc_spans key, value;
    int64_t header_bounds[2 * KC_BLOCK_ROWS]; /* start and end among the header items */
    int64_t fixed_bytes[KC_BLOCK_ROWS];       /* of a record's body: all but its two deltas */
} kc_record_block;

/* Rows [row, row + n), n at most KC_BLOCK_ROWS. Where the chunk has no offsets they run on from `next_offset`. */
KC_MUST_CHECK int kc_record_block_load(kc_record_block *block, const kc_record_chunk *chunk, int64_t row, int64_t n,
                                       int64_t next_offset, kc_error *error);

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

/* A batch: `count` rows from `row` of `chunk` on, over as many chunks as that takes. */
typedef struct kc_batch_plan {
    int64_t chunk, row;
    int64_t base_offset, last_offset;
    int64_t base_timestamp, max_timestamp;
    int64_t size; /* uncompressed, with the header that goes in front of all records */
    int32_t count, base_sequence;
} kc_batch_plan;

typedef struct kc_plan {
    kc_batch_options options;
    int64_t next_offset; /* no record may have a smaller one */
    int32_t next_sequence;
    bool started;       /* a record has been seen */
    kc_batch_plan open; /* count 0: none */
    kc_buffer closed;   /* of kc_batch_plan */
    int64_t closed_bytes;
} kc_plan;

void kc_plan_begin(kc_plan *plan, const kc_batch_options *options);
/* Spreads the rows of the chunk with this number over batches; the last stays open for the next chunk. */
KC_MUST_CHECK int kc_plan_add(kc_plan *plan, const kc_record_chunk *chunk, int64_t number, kc_error *error);
KC_MUST_CHECK int kc_plan_finish(kc_plan *plan, kc_error *error);
/* Forgets the closed batches, once they have been written. */
void kc_plan_clear(kc_plan *plan);
void kc_plan_free(kc_plan *plan);

static inline size_t kc_plan_batches(const kc_plan *plan) { return plan->closed.size / sizeof(kc_batch_plan); }
static inline const kc_batch_plan *kc_plan_batch(const kc_plan *plan, size_t i) {
    return (const kc_batch_plan *)(const void *)plan->closed.data + i;
}

#endif
