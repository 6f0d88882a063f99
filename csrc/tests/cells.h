/* Cells of a table, read as Arrow's layouts say. */
#ifndef CELLS_H
#define CELLS_H

#include "arrow/kc_table.h"

static inline int64_t number_at(const kc_column *c, int64_t row) {
    const void *p = c->values.data;
    switch (c->field->type) {
        case KC_BOOL:
            return ((const uint8_t *)p)[row / 8] >> (row % 8) & 1;
        case KC_INT8:
            return ((const int8_t *)p)[row];
        case KC_INT16:
            return ((const int16_t *)p)[row];
        case KC_INT32:
            return ((const int32_t *)p)[row];
        case KC_UINT32:
            return ((const uint32_t *)p)[row];
        default:
            return ((const int64_t *)p)[row];
    }
}

static inline bool null_at(const kc_column *c, int64_t row) {
    return c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1);
}

#endif
