/* Cells and lines of tables: the end of the text, cut and padded to columns of a terminal. */
#ifndef KC_TEXT_CELL_H
#define KC_TEXT_CELL_H

#include "text/kc_text.h"

/* What a cell becomes. */
typedef struct kc_text_cell {
    size_t most;  /* columns; what is wider is cut, and ends with an ellipsis; 0: never */
    size_t width; /* columns that are filled with spaces */
    bool right;   /* the spaces stand before it */
} kc_text_cell;

/* Makes a cell of the text from `start` on. KC_TEXT_PAGE: nothing is done yet. */
KC_MUST_CHECK int kc_text_fit(kc_text *t, size_t start, const kc_text_cell *cell, kc_error *error);

/* Takes spaces away from the end of a line that begins at `start`, and cuts it to `most` columns; 0: not. */
KC_MUST_CHECK int kc_text_end_line(kc_text *t, size_t start, size_t most, kc_error *error);

#endif
