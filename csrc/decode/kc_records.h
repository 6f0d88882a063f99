/* Parses the decompressed records of one batch v2 into columns.
 *
 *     length            varint   bytes of the record after this field
 *     attributes        int8     unused
 *     timestamp delta   varlong  from the batch's base timestamp
 *     offset delta      varint   from the batch's base offset
 *     key length, key   varint   negative is null
 *     value length, value
 *     header count      varint
 *     headers           key length, key (UTF-8), value length (negative is null), value
 */
#ifndef KC_RECORDS_H
#define KC_RECORDS_H

#include "decode/kc_batch.h"
#include "decode/kc_record_table.h"

/* The smallest record: seven varints and bytes, each of one byte. Bounds the record count of a header. */
enum { KC_RECORD_MIN_SIZE = 7 };

/* The records of a batch that are not yet read. */
typedef struct kc_records {
    const uint8_t *start, *at, *end;
    int32_t left;                     /* records */
    int32_t index;                    /* of the next record in its batch */
    int64_t first_offset, end_offset; /* rows outside [first, end) are dropped */
} kc_records;

/* Whether `size` bytes can contain `count` records. */
KC_MUST_CHECK int kc_records_check_count(int32_t count, uint64_t size, kc_error *error);

/* Checks that `size` bytes can contain `batch->count` records, and opens them. */
KC_MUST_CHECK int kc_records_open(kc_records *r, const kc_batch *batch, const uint8_t *records, size_t size,
                                  int64_t first_offset, int64_t end_offset, kc_error *error);

/* Reads up to `rows` records into the table, which grows as needed. On a fault the records before it are kept,
 * r->index is the damaged one and error->position counts from r->start. */
KC_MUST_CHECK int kc_records_read(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, kc_error *error);

#endif
