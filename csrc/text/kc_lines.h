/* Text as records: what is between delimiters, with keys or without. */
#ifndef KC_LINES_H
#define KC_LINES_H

#include "arrow/kc_table.h"

enum { KC_LINE_KEY, KC_LINE_VALUE, KC_LINE_FIELDS };
extern const kc_field kc_line_fields[KC_LINE_FIELDS];

typedef struct kc_bytes_of {
    const uint8_t *data; /* NULL: none */
    size_t size;
} kc_bytes_of;

/* How text becomes records. */
typedef struct kc_lines {
    kc_bytes_of delimiter;     /* ends a record; at least a byte */
    kc_bytes_of key_delimiter; /* ends the key at the start of a record; none: records have no keys */
    kc_bytes_of key;           /* of all records then; none: null */
    bool empty_is_null;
} kc_lines;

/* Appends the records that end in the data to a table of kc_line_fields, at most so many; *used is where the next
 * begins. `last`: what is after the last delimiter is a record too, unless it is empty. */
KC_MUST_CHECK int kc_lines_split(const kc_lines *how, const uint8_t *data, size_t size, bool last, int64_t most,
                                 kc_table *t, size_t *used, kc_error *error);

#endif
