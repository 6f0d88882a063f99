/* A batch of magic 2 to which records are appended one at a time, as a producer gets them: each is written at once,
 * after room for the header. Also the fields of a finished batch that are known only when it is sent. */
#ifndef KC_APPEND_H
#define KC_APPEND_H

#include "base/kc_alloc.h"
#include "encode/kc_batch_write.h"

/* Bytes of a key, a value or a part of a header; `size` is -1 for null. */
typedef struct kc_cell {
    const uint8_t *data;
    int64_t size;
} kc_cell;

/* A record. `headers` are pairs of a name, which is not null, and a value. */
typedef struct kc_new_record {
    kc_cell key, value;
    int64_t timestamp;
    const kc_cell *headers;
    int64_t num_headers;
} kc_new_record;

/* Zero-initialised is empty. Offsets count from 0. */
typedef struct kc_appender {
    kc_open_batch open;
    kc_buffer batch; /* the header's room, then the records */
} kc_appender;

/* Appends a record, unless the batch has some and would exceed `limit` bytes: then *added is 0, else the size of the
 * record. A record of more than `most` bytes is refused. */
KC_MUST_CHECK int kc_appender_add(kc_appender *a, const kc_new_record *record, int64_t limit, int64_t most,
                                  int64_t *added, kc_error *error);

/* Writes the batch's header to `out`, for the `size` bytes (at most 2^31-50) of (compressed) records at `records`.
 * There must be a record. The batch has no producer. */
void kc_appender_close(const kc_appender *a, int codec, const uint8_t *records, size_t size, uint8_t *out);

void kc_appender_free(kc_appender *a);

/* Who produces a batch, by the fields of its header. */
typedef struct kc_producer {
    int64_t id;
    int32_t base_sequence;
    int16_t epoch;
    bool transactional;
} kc_producer;

/* Writes them, the offset 0 and the checksum to a batch of magic 2 of `size` bytes, whose other fields are unchanged.
 * The checksum of the batch must be right before. */
KC_MUST_CHECK int kc_batch_set_producer(uint8_t *batch, size_t size, const kc_producer *producer, kc_error *error);

#endif
