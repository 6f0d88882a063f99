/* Export of tables through the Arrow C data interface. Exported arrays share the table's memory and keep it alive. */
#ifndef KC_ARROW_EXPORT_H
#define KC_ARROW_EXPORT_H

#include "arrow/kc_arrow_abi.h"
#include "arrow/kc_table.h"

/* A struct schema with a child for each wanted column, released by the caller. */
KC_MUST_CHECK int kc_arrow_export_schema(const kc_table *t, struct ArrowSchema *out, kc_error *error);

/* A struct array with a child for each wanted column, without a copy, released by the caller. */
KC_MUST_CHECK int kc_arrow_export_array(kc_table *t, struct ArrowArray *out, kc_error *error);

/* A stream of that array, released by the caller. */
KC_MUST_CHECK int kc_arrow_export_stream(kc_table *t, struct ArrowArrayStream *out, kc_error *error);

#endif
