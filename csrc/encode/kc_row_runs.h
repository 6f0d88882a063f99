/* Divides records with a column `row` into runs with the same row: each run becomes a separate record set. */
#ifndef KC_ROW_RUNS_H
#define KC_ROW_RUNS_H

#include "encode/kc_input.h"

typedef struct kc_row_runs {
    kc_arrow_ints column;
    int64_t row;           /* of the last run; -1 before the first */
    int64_t loaded, block; /* records of the chunk up to the end of `numbers`, and in `numbers` only */
    int64_t next;          /* index of the next record of the block */
    int64_t numbers[KC_BLOCK_ROWS];
} kc_row_runs;

void kc_row_runs_begin(kc_row_runs *r);

/* Continues with the column `row` of another record batch; schema and array were imported by kc_input_chunk_import. */
KC_MUST_CHECK int kc_row_runs_open(kc_row_runs *r, const struct ArrowSchema *schema, const struct ArrowArray *array,
                                   kc_error *error);

/* The next run: `row` is its row, `end` the end of its records, which equals their start at the end of the chunk. Rows
 * must not decrease; a run may continue in the next chunk. */
KC_MUST_CHECK int kc_row_runs_next(kc_row_runs *r, int64_t *end, kc_error *error);

#endif
