/* A typed, checked view of a binary or string column in an Arrow array, dictionary-encoded or not; the checks are
 * listed in kc_arrow_import.h. */
#ifndef KC_ARROW_BYTES_H
#define KC_ARROW_BYTES_H

#include "arrow/kc_arrow_check.h"
#include "arrow/kc_view.h"

/* Rows are loaded in blocks of at most this size, which stay in the first-level cache. */
enum { KC_BLOCK_ROWS = 256 };

/* A block of values: `size` is -1 for null. If `wide`, KC_COPY_SLACK bytes may be read after each. */
typedef struct kc_spans {
    bool wide;
    const uint8_t *data[KC_BLOCK_ROWS];
    int32_t size[KC_BLOCK_ROWS];
} kc_spans;

/* A binary or string column. `first` is the index of row 0 in the buffers; `end` the last offset. */
typedef struct kc_arrow_bytes {
    kc_layout layout;
    const uint8_t *validity;
    int64_t first, length, end;
    const void *index; /* offsets, views, or dictionary indexes */
    const uint8_t *data;
    int64_t width;
    const void *const *view_data;
    const int64_t *view_sizes;
    int64_t view_buffers;
    const struct ArrowSchema *words_type; /* of a dictionary, whose `number` is the format of the index */
    const struct ArrowArray *words;
    char number;
} kc_arrow_bytes;

/* A view of rows [offset, offset + length) of `array`, in addition to the offset of the array. */
KC_MUST_CHECK int kc_arrow_bytes_import(kc_arrow_bytes *c, const struct ArrowSchema *schema,
                                        const struct ArrowArray *array, int64_t offset, int64_t length,
                                        kc_error *error);

/* Rows [row, row + n), n at most KC_BLOCK_ROWS; the caller checks that they are within the column. */
KC_MUST_CHECK int kc_arrow_bytes_load(const kc_arrow_bytes *c, int64_t row, int64_t n, kc_spans *out, kc_error *error);

/* The bytes of a view (copied by the caller) in a data buffer, and the size of that buffer; NULL if they are outside.
 */
const uint8_t *kc_arrow_bytes_far(const kc_arrow_bytes *c, const kc_view *view, int64_t row, int64_t *buffer_size,
                                  kc_error *error);

/* Whether all values are contiguous in one buffer, and that buffer: binary and string with offsets, and fixed-size
 * binary. */
bool kc_arrow_bytes_together(const kc_arrow_bytes *c, const uint8_t **data, size_t *size);

/* The number of bytes of all rows, by the column's index, which is not yet checked. */
size_t kc_arrow_bytes_extent(const kc_arrow_bytes *c);

#endif
