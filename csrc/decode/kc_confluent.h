/* Confluent's framing of values: a zero byte and the schema id as a big-endian int32 before the payload. */
#ifndef KC_CONFLUENT_H
#define KC_CONFLUENT_H

#include "arrow/kc_arrow_bytes.h"

/* The output columns, for the same number of rows; the bitmaps are zeroed. */
typedef struct kc_confluent_parts {
    int32_t *ids;
    uint8_t *id_validity, *payload_validity;
    kc_view *payloads;
} kc_confluent_parts;

/* Positions in a view have 31 bits, so the single data buffer of other layouts is described as overlapping pieces. */
enum { KC_PIECE_SHIFT = 30 };

/* The data buffers of the views of the column's payloads, in order. */
int64_t kc_confluent_buffers(const kc_arrow_bytes *c);
const void *kc_confluent_buffer(const kc_arrow_bytes *c, int64_t i, int64_t *size);

/* Splits all rows of the column into rows [at, at + c->length) of `parts`, whose views number the buffers from
 * `first_buffer`. A value without the framing has a null id and is the payload; null gives two nulls. */
KC_MUST_CHECK int kc_confluent_split(const kc_arrow_bytes *c, const kc_confluent_parts *parts, int64_t at,
                                     int32_t first_buffer, kc_error *error);

#endif
