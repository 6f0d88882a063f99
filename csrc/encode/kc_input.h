/* Columns of records to encode: a chunk is one imported record batch, which is read in blocks of rows that stay in the
 * first-level cache. */
#ifndef KC_INPUT_H
#define KC_INPUT_H

#include "arrow/kc_arrow_import.h"

/* One record batch of columns. Missing columns: null keys or values, no headers, timestamp -1, consecutive offsets. */
typedef struct kc_input_chunk {
    int64_t rows;
    kc_arrow_bytes key, value;
    kc_arrow_ints offset, timestamp;
    kc_arrow_pairs headers;
} kc_input_chunk;

/* Whether readers of records write a column of this name: those that are not encoded are left out. Any other column is
 * refused, since it may be a misspelt one. */
bool kc_is_record_column(const char *name);

/* Finds the columns by name. On an error, `name` is the name of the invalid column, if it concerns one, else NULL. */
KC_MUST_CHECK int kc_input_chunk_import(kc_input_chunk *chunk, const struct ArrowSchema *schema,
                                        const struct ArrowArray *array, const char **name, kc_error *error);

/* Whether keys and values, each binary or text, are all that a producer sends of the rows; then they are imported. */
bool kc_key_values_import(kc_arrow_bytes *key, kc_arrow_bytes *value, const struct ArrowSchema *schema,
                          const struct ArrowArray *array);

/* The approximate uncompressed size of the chunk's rows, from the extent of its columns: only an estimate, since the
 * offsets of the columns are not yet checked. */
size_t kc_input_chunk_bytes(const kc_input_chunk *chunk);

/* kc_arrow_ints_import for int32 and int64 only: a timestamp is neither an offset nor a row. */
KC_MUST_CHECK int kc_plain_int_import(kc_arrow_ints *c, const struct ArrowSchema *schema,
                                      const struct ArrowArray *array, int64_t offset, int64_t rows, kc_error *error);

typedef struct kc_input_block {
    int64_t rows;
    bool has_headers;
    int64_t offset[KC_BLOCK_ROWS], timestamp[KC_BLOCK_ROWS];
    kc_spans key, value;
    int64_t header_bounds[2 * KC_BLOCK_ROWS]; /* start and end among the header items */
    int64_t fixed_bytes[KC_BLOCK_ROWS];       /* size of a record's body without its two deltas */
} kc_input_block;

/* The size of a key or value of `size` bytes (-1: null) with its length, computed without branches, so that the
 * compiler can vectorize it. */
KC_INLINE int64_t kc_span_bytes(int32_t size) {
    uint32_t prefix = 1u + (size > 0x3f) + (size > 0x1fff) + (size > 0xfffff) + (size > 0x7ffffff);
    return prefix + (uint32_t)(size > 0 ? size : 0);
}

/* Rows [row, row + n), n at most KC_BLOCK_ROWS. If the chunk has no offsets, they continue from `next_offset`. */
KC_MUST_CHECK int kc_input_block_load(kc_input_block *block, const kc_input_chunk *chunk, int64_t row, int64_t n,
                                      int64_t next_offset, kc_error *error);

#endif
