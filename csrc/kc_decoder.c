#include "kc_decoder.h"

/* Rows read between two looks at how many bytes the chunk holds. */
enum { ROWS_PER_RUN = 1024 };

void kc_decoder_init(kc_decoder *d, const uint8_t *data, uint64_t size, const kc_decoder_options *options) {
    memset(d, 0, sizeof *d);
    d->data = data;
    d->size = size;
    d->options = *options;
    d->resync = kc_resync_start();
}

static uint64_t payload_bytes(const kc_table *t) {
    return t->columns[KC_COL_KEY].data.size + t->columns[KC_COL_VALUE].data.size;
}

static void close_batch(kc_decoder *d) {
    d->position = d->batch.position + d->batch.size;
    d->open = d->announced = d->decompressed = d->located = false;
}

static bool outside(const kc_decoder *d) {
    return d->batch.last_offset < d->options.start_offset || d->batch.base_offset >= d->options.end_offset;
}

/* Positions inside records count from the start of the data; inside decompressed ones there is only the batch's. */
static void locate(const kc_decoder *d, kc_error *error) {
    uint64_t inside = d->decompressed ? 0 : KC_BATCH_HEADER_SIZE + error->position;
    error->position = d->batch.position + inside;
}

static int open_records(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error) {
    int code =
        kc_records_open(&d->records, &d->batch, records, size, d->options.start_offset, d->options.end_offset, error);
    if (code) locate(d, error);
    d->open = !code;
    return code;
}

static int check_crc(kc_decoder *d, kc_error *error) {
    if (!d->options.verify_crc) return KC_OK;
    uint32_t crc = kc_batch_compute_crc(d->data, &d->batch);
    d->verified = crc == d->batch.crc;
    if (KC_LIKELY(d->verified)) return KC_OK;
    return kc_fail(error, KC_CRC_MISMATCH, "the CRC-32C of a batch is wrong", d->batch.position, crc, d->batch.crc);
}

/* What became of the batch at d->position. */
typedef enum opening { OPENED, PASSED, WANTS_DECOMPRESSION, NO_MORE, FAULTY } opening;

static opening open_batch(kc_decoder *d, kc_error *error) {
    kc_span span;
    d->located = d->verified = false;
    switch (kc_log_next(d->data, d->size, d->position, &span, error)) {
        case KC_WALK_BATCH:
            break;
        case KC_WALK_FAULT:
            return FAULTY;
        default:
            return NO_MORE;
    }
    d->located = true;
    d->batch.position = span.position;
    d->batch.size = span.size;
    d->batch.base_offset = d->batch.last_offset = span.base_offset;
    if (span.magic != 2) {
        kc_fail(error, KC_BAD_MAGIC, "cannot read records of magic", span.position + 16, span.magic, 2);
        return FAULTY;
    }
    kc_batch_read(d->data, &span, &d->batch);
    if (outside(d)) {
        close_batch(d);
        return PASSED;
    }
    if (check_crc(d, error)) return FAULTY;
    if ((d->batch.attributes & KC_CONTROL) && !d->options.include_control) {
        close_batch(d);
        return PASSED;
    }
    int codec = kc_batch_codec(&d->batch);
    if (codec >= KC_NUM_CODECS) {
        kc_fail(error, KC_BAD_CODEC, "no compression codec has the number", span.position + KC_BATCH_ATTRIBUTES_AT,
                codec, 0);
        return FAULTY;
    }
    if (codec != KC_CODEC_NONE) {
        d->announced = true;
        return WANTS_DECOMPRESSION;
    }
    return open_records(d, d->batch.records, d->batch.records_size, error) ? FAULTY : OPENED;
}

/* How many rows to read before the chunk's bytes are looked at again. */
static int32_t rows_now(const kc_decoder *d, const kc_table *t, int64_t max_rows, uint64_t max_bytes) {
    int64_t rows = max_rows - t->length;
    uint64_t used = payload_bytes(t), left = (uint64_t)(d->records.end - d->records.at);
    if (used + left > max_bytes) {
        uint64_t average = left / (uint64_t)d->records.left + 1;
        uint64_t fits = used < max_bytes ? (max_bytes - used) / average : 0;
        if (fits < 1) fits = 1;
        if (fits > ROWS_PER_RUN) fits = ROWS_PER_RUN;
        if (rows > (int64_t)fits) rows = (int64_t)fits;
    }
    return rows > d->records.left ? d->records.left : (int32_t)rows;
}

kc_event kc_decoder_run(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error) {
    for (;;) {
        while (d->open && d->records.left > 0) {
            if (t->length >= max_rows || (t->length > 0 && payload_bytes(t) >= max_bytes)) return KC_EVENT_FULL;
            if (kc_records_read(&d->records, &d->batch, t, rows_now(d, t, max_rows, max_bytes), error)) {
                locate(d, error);
                return KC_EVENT_FAULT;
            }
        }
        if (d->open) close_batch(d);
        if (d->announced) return KC_EVENT_COMPRESSED;
        /* Between batches a full chunk ends before the next batch is touched. */
        if (t->length >= max_rows || (t->length > 0 && payload_bytes(t) >= max_bytes)) return KC_EVENT_FULL;
        switch (open_batch(d, error)) {
            case OPENED:
            case PASSED:
                break;
            case WANTS_DECOMPRESSION:
                return KC_EVENT_COMPRESSED;
            case NO_MORE:
                return KC_EVENT_END;
            case FAULTY:
                return KC_EVENT_FAULT;
        }
    }
}

int kc_decoder_provide(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error) {
    d->announced = false;
    d->decompressed = true;
    return open_records(d, records, size, error);
}

uint64_t kc_decoder_skip(kc_decoder *d) {
    uint64_t from = d->position;
    if (d->verified) {
        close_batch(d);
    } else {
        d->position = kc_resync_behind(d->data, d->size, from, &d->resync);
        d->open = d->announced = d->decompressed = d->located = false;
    }
    return d->position - from;
}

void kc_decoder_estimate(const kc_decoder *d, int64_t *rows, uint64_t *bytes) {
    kc_error ignored = {0};
    kc_span span;
    *rows = 0;
    *bytes = 0;
    for (uint64_t at = d->position; kc_log_next(d->data, d->size, at, &span, &ignored) == KC_WALK_BATCH;
         at += span.size) {
        if (span.magic != 2) continue;
        kc_batch batch;
        kc_batch_read(d->data, &span, &batch);
        if (kc_batch_codec(&batch) != KC_CODEC_NONE) continue;
        if (batch.count < 0 || (uint64_t)batch.count > batch.records_size / KC_RECORD_MIN_SIZE) continue;
        *rows += batch.count;
        *bytes += batch.records_size;
    }
}
