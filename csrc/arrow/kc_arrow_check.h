/* Checks of arrays exported by another library through the Arrow C data interface. */
#ifndef KC_ARROW_CHECK_H
#define KC_ARROW_CHECK_H

#include <stdbool.h>

#include "arrow/kc_arrow_abi.h"
#include "base/kc_bytes.h"

typedef enum kc_layout {
    KC_LAYOUT_ABSENT = 0, /* missing column: every row is null */
    KC_LAYOUT_OFFSETS32,  /* binary, string, list, map */
    KC_LAYOUT_OFFSETS64,  /* large_binary, large_string, large_list */
    KC_LAYOUT_VIEWS,      /* binary_view, string_view */
    KC_LAYOUT_FIXED,      /* fixed_size_binary */
    KC_LAYOUT_DICTIONARY, /* indexes into a dictionary */
    KC_LAYOUT_INT32,
    KC_LAYOUT_INT64,
} kc_layout;

static inline bool kc_bit_at(const uint8_t *bits, int64_t i) { return kc_load_u8(bits + (i >> 3)) >> (i & 7) & 1; }

static inline int kc_cannot_encode(kc_error *error, const char *what, int64_t row, int64_t got, int64_t want) {
    return kc_fail(error, KC_CANNOT_ENCODE, what, (uint64_t)row, got, want);
}

/* The index of the first row in the buffers of an array, after checks of the fields of the struct. */
static inline int kc_array_check(const struct ArrowArray *array, int64_t offset, int64_t length, int64_t buffers,
                                 int64_t *first, kc_error *error) {
    if (array->length < 0 || array->offset < 0 || array->offset > INT64_MAX / 32 || array->length > INT64_MAX / 32)
        return kc_cannot_encode(error, "invalid array length or offset", 0, array->length, array->offset);
    if (offset < 0 || length < 0 || offset > array->length || length > array->length - offset)
        return kc_cannot_encode(error, "the column is shorter than its table", 0, array->length, offset + length);
    if (array->n_buffers < buffers || !array->buffers)
        return kc_cannot_encode(error, "the array has too few buffers", 0, array->n_buffers, buffers);
    *first = array->offset + offset;
    return KC_OK;
}

static inline const uint8_t *kc_array_validity(const struct ArrowArray *array) {
    return array->null_count == 0 ? NULL : (const uint8_t *)array->buffers[0];
}

/* The value at `i` of an offsets buffer. */
static inline int64_t kc_offset_at(kc_layout layout, const void *index, int64_t i) {
    return layout == KC_LAYOUT_OFFSETS32 ? kc_load_i32((const int32_t *)index + i)
                                         : kc_load_i64((const int64_t *)index + i);
}

#endif
