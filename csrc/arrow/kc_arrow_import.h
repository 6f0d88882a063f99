/* Typed, checked views of arrays exported by another library through the Arrow C data interface.
 *
 * Everything that the interface allows is checked: types, buffer counts, slices, that offsets do not decrease or exceed
 * the last one, that views stay within their buffers, that list items exist. The interface does not give the size of
 * the data buffer of a binary array, so its last offset is trusted.
 *
 * Views own nothing; the exporter's array must outlive them. Rows are loaded in blocks, so that the type is examined
 * once for many rows and the compiler can vectorize. The position of an error is the row, from the start of the array.
 */
#ifndef KC_ARROW_IMPORT_H
#define KC_ARROW_IMPORT_H

#include "arrow/kc_arrow_bytes.h"

/* Integers, or timestamps converted to milliseconds since 1970: raw * multiply, then / divide rounded down. */
typedef struct kc_arrow_ints {
    kc_layout layout;
    const uint8_t *validity;
    int64_t first, length;
    const void *values;
    int64_t multiply, divide;
    bool time; /* a timestamp or date, not a number */
} kc_arrow_ints;

/* A list of (key, value) pairs for each row. */
typedef struct kc_arrow_pairs {
    kc_layout layout;
    const uint8_t *validity;
    int64_t first, length;
    const void *index;
    const uint8_t *item_validity;
    int64_t item_first, items;
    kc_arrow_bytes key, value;
} kc_arrow_pairs;

/* A view of rows [offset, offset + length) of `array`, as for kc_arrow_bytes_import. */
KC_MUST_CHECK int kc_arrow_ints_import(kc_arrow_ints *c, const struct ArrowSchema *schema,
                                       const struct ArrowArray *array, int64_t offset, int64_t length, kc_error *error);
KC_MUST_CHECK int kc_arrow_pairs_import(kc_arrow_pairs *c, const struct ArrowSchema *schema,
                                        const struct ArrowArray *array, int64_t offset, int64_t length,
                                        kc_error *error);

/* Checks that an array is a valid record batch: consistent fields, and no null rows. */
KC_MUST_CHECK int kc_struct_check(const struct ArrowSchema *schema, const struct ArrowArray *array, kc_error *error);

/* Null rows are loaded as `null_value`; with `nulls` false they are an error. */
KC_MUST_CHECK int kc_arrow_ints_load(const kc_arrow_ints *c, int64_t row, int64_t n, bool nulls, int64_t null_value,
                                     int64_t *out, kc_error *error);

/* bounds[2 * i] and bounds[2 * i + 1] are start and end of the pairs of row i among the items. */
KC_MUST_CHECK int kc_arrow_pairs_load(const kc_arrow_pairs *c, int64_t row, int64_t n, int64_t *bounds,
                                      kc_error *error);

/* Items [item, item + n) of the pairs. A null pair or a null key is an error. */
KC_MUST_CHECK int kc_arrow_pairs_items(const kc_arrow_pairs *c, int64_t item, int64_t n, kc_spans *keys,
                                       kc_spans *values, kc_error *error);

#endif
