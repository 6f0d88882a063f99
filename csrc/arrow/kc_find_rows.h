/* The rows of a column of bytes that have given bytes. */
#ifndef KC_FIND_ROWS_H
#define KC_FIND_ROWS_H

#include "arrow/kc_table.h"
#include "base/kc_find.h"

typedef enum kc_match {
    KC_MATCH_INSIDE, /* the bytes are somewhere in the value */
    KC_MATCH_WHOLE,  /* they are the value */
} kc_match;

/* Sets hits[row] to 1 for each row of a KC_BINARY, KC_STRING or KC_BINARY_VIEW column that matches; never for null. */
void kc_find_rows(const kc_column *c, const kc_needle *n, kc_match match, uint8_t *hits);

#endif
