/* From a byte range to columns: walks the batches, verifies, and reads their records chunk by chunk.
 *
 * The decoder does not decompress. It stops at a compressed batch, the caller decompresses its records and hands
 * them back; they must stay in place until d->decompressed is false again. */
#ifndef KC_DECODER_H
#define KC_DECODER_H

#include "decode/kc_aborted.h"
#include "decode/kc_msgset.h"
#include "decode/kc_records.h"
#include "decode/kc_resync.h"

typedef struct kc_decoder_options {
    bool verify_crc;
    bool include_control;
    bool search_partial;              /* a partial batch that intact ones follow is a fault */
    int64_t start_offset, end_offset; /* records outside [start, end) are dropped */
    kc_aborted *aborted;              /* batches of these transactions are passed over; the caller's, written to */
    size_t num_aborted;
} kc_decoder_options;

typedef enum kc_event {
    KC_EVENT_NONE, /* not given out: go on */
    KC_EVENT_END,  /* nothing is left but, maybe, a partial batch; or the next one begins at `stop` or behind it */
    KC_EVENT_FULL, /* the chunk has its rows or bytes */
    KC_EVENT_COMPRESSED, /* decoder->batch.records wants decompressing */
    KC_EVENT_FAULT,      /* the error is filled; the rows before the fault are in the table */
} kc_event;

/* What rows are being read from. */
typedef enum kc_source {
    KC_SOURCE_NONE,
    KC_SOURCE_RECORDS,  /* the records of `batch`, of magic 2 */
    KC_SOURCE_MESSAGES, /* messages of magic 0 and 1: a run of the data, or those of the wrapper `batch` */
} kc_source;

typedef struct kc_decoder {
    const uint8_t *data;
    uint64_t size, position; /* position: of the batch in work or, between batches, of the next */
    uint64_t stop;           /* batches that begin here or further on are left alone; the size at first */
    kc_decoder_options options;
    kc_source source;
    bool decompressed;           /* from memory that the caller provided */
    bool announced;              /* `batch` was given to the caller for decompression */
    bool located;                /* the fault lies inside `batch` */
    bool verified;               /* the checksum of `batch` is right: so is its size */
    kc_backing *held, *provided; /* for views: what keeps the data, and what was decompressed; the caller's */
    kc_resync resync;
    kc_batch batch;
    kc_records records;
    kc_msgset messages;
} kc_decoder;

/* Which record of `batch` is in work; -1 where none is, or where the batch is that record. */
static inline int64_t kc_decoder_record(const kc_decoder *d) {
    if (d->source == KC_SOURCE_RECORDS) return d->records.index;
    return d->source == KC_SOURCE_MESSAGES && d->messages.inner ? d->messages.index : -1;
}

void kc_decoder_init(kc_decoder *d, const uint8_t *data, uint64_t size, const kc_decoder_options *options);

/* Adds rows until the table has `max_rows` rows or about `max_bytes` bytes of keys, values and headers, or something
 * stops it. */
kc_event kc_decoder_run(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error);

/* Goes on with the decompressed records of the batch that was announced. */
KC_MUST_CHECK int kc_decoder_provide(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error);

/* Gives up the batch in work, and with it what lies before the next intact batch where its size cannot be believed.
 * Returns how many bytes are passed over. */
uint64_t kc_decoder_skip(kc_decoder *d);

/* What the uncompressed batches up to `stop` will take, by their headers: rows and bytes of records. */
void kc_decoder_estimate(const kc_decoder *d, int64_t *rows, uint64_t *bytes);

#endif
