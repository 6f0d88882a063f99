/* Decodes a byte range into columns: walks the batches, verifies them, and reads their records chunk by chunk.
 *
 * The decoder does not decompress. It stops at a compressed batch; the caller decompresses the records and provides
 * them. They must stay in place until d->decompressed is false again. */
#ifndef KC_DECODER_H
#define KC_DECODER_H

#include "decode/kc_aborted.h"
#include "decode/kc_msgset.h"
#include "decode/kc_records.h"
#include "decode/kc_resync.h"

/* A code beside those of kc_error.h: a batch's offsets, which its checksum leaves out, contradict what surrounds it. */
enum { KC_OUT_OF_ORDER = 100 };

typedef struct kc_decoder_options {
    bool verify_crc;
    bool include_control;
    bool only_control;   /* other batches are skipped without being verified */
    bool search_partial; /* a partial batch followed by intact ones is a fault */
    bool in_order;       /* a batch whose offsets contradict those around it or [least, most] is a fault */
    bool sets_compared;  /* else, with in_order, a compressed set of magic 1 is one too: its header has its end only */
    int64_t least_offset, most_offset;
    int64_t start_offset, end_offset; /* records outside [start, end) are dropped */
    kc_aborted *aborted;              /* batches of these transactions are skipped; owned by the caller, written to */
    size_t num_aborted;
} kc_decoder_options;

typedef enum kc_event {
    KC_EVENT_NONE,       /* internal: continue */
    KC_EVENT_END,        /* at most a partial batch is left, or the next batch starts at or after `stop` */
    KC_EVENT_FULL,       /* the chunk has its rows or bytes */
    KC_EVENT_COMPRESSED, /* decoder->batch.records must be decompressed */
    KC_EVENT_FAULT,      /* the error is filled; the rows before the fault are in the table */
} kc_event;

/* The source of the current rows. */
typedef enum kc_source {
    KC_SOURCE_NONE,
    KC_SOURCE_RECORDS,  /* the records of `batch`, of magic 2 */
    KC_SOURCE_MESSAGES, /* messages of magic 0 and 1: of the data, or of the wrapper `batch` */
} kc_source;

typedef struct kc_decoder {
    const uint8_t *data;
    uint64_t size, position;   /* position: of the current batch or, between batches, of the next */
    uint64_t stop;             /* batches that start here or later are not read; the size at first */
    uint64_t stretch, ordered; /* with in_order, of the messages being read, those whose order is known */
    uint64_t ahead;            /* with in_order, the end of batches that are known to be in order among each other */
    int64_t ahead_offset;      /* the last offset before `ahead` */
    bool ahead_ends;           /* whether damage, the end or a batch out of order is at `ahead` */
    bool ahead_fails;          /* whether it is a batch out of order */
    int64_t last_offset;       /* with in_order, of the batches before, also of those before damage */
    uint64_t damage, after_damage; /* with in_order, where damage begins, and where the search from there ended */
    kc_decoder_options options;
    kc_source source;
    bool decompressed;           /* from memory that the caller provided */
    bool announced;              /* the caller is decompressing `batch` */
    bool located;                /* the fault is inside `batch` */
    bool verified;               /* the checksum of `batch` is correct, and so is its size */
    kc_backing *held, *provided; /* for views: the data, and the decompressed records; owned by the caller */
    const uint8_t *content;      /* the decompressed records of the last batch that had some */
    size_t content_size;
    kc_resync resync;
    kc_batch batch;
    kc_records records;
    kc_msgset messages;
} kc_decoder;

/* The index of the current record of `batch`; -1 if there is none, or if the batch is the record. */
static inline int64_t kc_decoder_record(const kc_decoder *d) {
    if (d->source == KC_SOURCE_RECORDS) return d->records.index;
    return d->source == KC_SOURCE_MESSAGES && d->messages.inner ? d->messages.index : -1;
}

void kc_decoder_init(kc_decoder *d, const uint8_t *data, uint64_t size, const kc_decoder_options *options);

/* Adds rows until the table has `max_rows` rows or about `max_bytes` bytes of keys, values and headers, or until
 * another event. Views count by the memory that they keep: a table also ends after the batch with which its
 * decompressed records have `max_bytes`, and when as many bytes of the source will be copied for it. */
kc_event kc_decoder_run(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error);

/* Continues with the decompressed records of the batch of KC_EVENT_COMPRESSED. */
KC_MUST_CHECK int kc_decoder_provide(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error);

/* Skips the current batch or, if its size is not reliable, everything before the next intact batch. Returns the number
 * of bytes skipped. */
uint64_t kc_decoder_skip(kc_decoder *d);

/* Rows and bytes of records in the uncompressed batches up to `stop`, by their headers. */
void kc_decoder_estimate(const kc_decoder *d, int64_t *rows, uint64_t *bytes);

#endif
