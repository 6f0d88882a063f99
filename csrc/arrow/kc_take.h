/* A table of chosen rows of another one. */
#ifndef KC_TAKE_H
#define KC_TAKE_H

#include "arrow/kc_table.h"

/* Appends rows of `from`, in the given order, to `t`, an empty table with the same fields and wanted columns. The
 * caller checks that the rows exist. Views share the buffers of `from`. */
KC_MUST_CHECK int kc_table_take(kc_table *t, const kc_table *from, const int64_t *rows, int64_t count, kc_error *error);

#endif
