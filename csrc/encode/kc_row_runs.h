/* Records that name the row they go to, as runs of the same row: each run becomes a record set of its own. */
#ifndef KC_ROW_RUNS_H
#define KC_ROW_RUNS_H

#include "encode/kc_input.h"

typedef struct kc_row_runs {
    kc_arrow_ints column;
    int64_t row;           /* of the last run; -1 before the first */
    int64_t loaded, block; /* records of the chunk in `numbers` and before, and in `numbers` alone */
    int64_t next;          /* of the block's records */
    int64_t numbers[KC_BLOCK_ROWS];
} kc_row_runs;

void kc_row_runs_begin(kc_row_runs *r);

/* Goes on with another record batch, by its column `row`; schema and array are what kc_input_chunk_import has taken.
 */
KC_MUST_CHECK int kc_row_runs_open(kc_row_runs *r, const struct ArrowSchema *schema, const struct ArrowArray *array,
                                   kc_error *error);

/* The next run: its row in `row`, and in `end` the record after its last, which is where it began when the chunk has no
 * more. Rows must not decrease; one run may end a chunk and begin the next. */
KC_MUST_CHECK int kc_row_runs_next(kc_row_runs *r, int64_t *end, kc_error *error);

#endif
