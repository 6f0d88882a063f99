/* Values of columns, read from the memory that goes out to Arrow and numpy: in the processor's own byte order. */
#ifndef CELLS_H
#define CELLS_H

#include <string.h>

#include "arrow/kc_table.h"
#include "cases.h"

static inline bool cell_is_null(const kc_column *c, int64_t row) {
    return c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1);
}

static inline int64_t cell_int(const kc_column *c, int64_t row) {
    const void *values = c->values.data;
    switch (c->field->type) {
        case KC_BOOL:
            return ((const uint8_t *)values)[row / 8] >> (row % 8) & 1;
        case KC_INT8:
            return ((const int8_t *)values)[row];
        case KC_INT16:
            return ((const int16_t *)values)[row];
        case KC_INT32:
            return ((const int32_t *)values)[row];
        case KC_UINT32:
            return ((const uint32_t *)values)[row];
        default:
            return ((const int64_t *)values)[row];
    }
}

/* Start and end of a row of a list among its items. */
static inline const int32_t *cell_bounds(const kc_column *c, int64_t row) {
    return (const int32_t *)(const void *)c->values.data + row;
}

/* Whether the row has the number; NONE is null. */
static inline bool cell_has(const kc_column *c, int64_t row, int64_t want) {
    return want == NONE ? cell_is_null(c, row) : !cell_is_null(c, row) && cell_int(c, row) == want;
}

static inline bool cell_is(const kc_column *c, int64_t row, text want) {
    if (want.size < 0) return cell_is_null(c, row);
    int32_t size;
    const uint8_t *data = kc_column_bytes(c, row, &size);
    return size == want.size && (size == 0 || memcmp(data, want.data, (size_t)size) == 0);
}

#endif
