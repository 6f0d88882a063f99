/* A typed, checked view of a column of bytes or text in an Arrow array, dictionary-encoded or not; kc_arrow_import.h
 * says what is checked. */
#ifndef KC_ARROW_BYTES_H
#define KC_ARROW_BYTES_H

#include "arrow/kc_arrow_check.h"
#include "arrow/kc_view.h"

/* Rows are loaded in blocks of at most this many, which stay in the first-level cache. */
enum { KC_BLOCK_ROWS = 256 };

/* A block of values: `size` is -1 where one is null. `wide` says that KC_COPY_SLACK bytes may be read behind each. */
typedef struct kc_spans {
    bool wide;
    const uint8_t *data[KC_BLOCK_ROWS];
    int32_t size[KC_BLOCK_ROWS];
} kc_spans;

/* Bytes or text. `first` is the place of row 0 in the buffers; `end` the last offset. */
typedef struct kc_arrow_bytes {
    kc_layout layout;
    const uint8_t *validity;
    int64_t first, length, end;
    const void *index; /* offsets, views, or numbers of words */
    const uint8_t *data;
    int64_t width;
    const void *const *view_data;
    const int64_t *view_sizes;
    int64_t view_buffers;
    const struct ArrowSchema *words_type; /* of a dictionary, whose `number` is the format of the index */
    const struct ArrowArray *words;
    char number;
} kc_arrow_bytes;

/* Views over rows [offset, offset + length) of `array`, whose own offset comes on top. */
KC_MUST_CHECK int kc_arrow_bytes_import(kc_arrow_bytes *c, const struct ArrowSchema *schema,
                                        const struct ArrowArray *array, int64_t offset, int64_t length,
                                        kc_error *error);

/* Rows [row, row + n), which the caller keeps within the column, n at most KC_BLOCK_ROWS. */
KC_MUST_CHECK int kc_arrow_bytes_load(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error);

/* The bytes of a view, which its caller has copied, that lie in another buffer, whose size is told; NULL where they
 * do not. */
const uint8_t *kc_arrow_bytes_far(const kc_arrow_bytes *c, const kc_view *view, int64_t row, int64_t *buffer_size,
                                  kc_error *error);

/* Whether all values lie in one stretch of memory, and which that is: in binary and text with offsets, and where they
 * have a fixed size. */
bool kc_arrow_bytes_together(const kc_arrow_bytes *c, const uint8_t **data, size_t *size);

/* How many bytes all rows have together, as the column's index says before it has been checked. */
size_t kc_arrow_bytes_extent(const kc_arrow_bytes *c);

#endif
