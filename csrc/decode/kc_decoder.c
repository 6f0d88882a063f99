#include "decode/kc_decoder.h"

#include "base/kc_cpu.h"
#include "decode/kc_partial.h"

/* Rows read between two checks of the chunk's size in bytes. */
enum { ROWS_PER_RUN = 1024 };

/* Bytes of batches and messages whose order is checked before they are read: several may have wrong offsets that only
 * what follows them shows. */
enum { ORDERED_BYTES = 1 << 16 };

void kc_decoder_init(kc_decoder *d, const uint8_t *data, uint64_t size, const kc_decoder_options *options) {
    memset(d, 0, sizeof *d);
    d->data = data;
    d->size = d->stop = size;
    d->options = *options;
    d->last_offset = INT64_MIN;
    d->damage = UINT64_MAX;
    d->resync = kc_resync_start();
    if (options->in_order) d->resync.most_offset = options->most_offset;
}

/* The chunk's bytes of keys, values and headers; if more of the source is copied for the views, as many as that. */
static uint64_t payload_bytes(const kc_table *t) {
    const kc_column *key = &t->columns[KC_COL_KEY], *value = &t->columns[KC_COL_VALUE];
    uint64_t bytes = key->data.size + key->viewed + value->data.size + value->viewed;
    const kc_column *entries = t->columns[KC_COL_HEADERS].children;
    if (entries) {
        bytes += (uint64_t)entries->length * 2 * sizeof(int32_t) + entries->children[0].data.size +
                 entries->children[1].data.size;
    }
    return bytes > t->views.copied ? bytes : t->views.copied;
}

static void close_batch(kc_decoder *d) {
    d->position = d->batch.position + d->batch.size;
    d->source = KC_SOURCE_NONE;
    d->announced = d->decompressed = d->located = false;
}

static bool outside(const kc_decoder *d) {
    const kc_batch *b = &d->batch;
    if (!kc_batch_is_wrapper(b)) {
        return b->last_offset < d->options.start_offset || !kc_before_end(b->base_offset, d->options.end_offset);
    }
    /* A wrapper does not have its first offset, nor its last one if a producer left 0; no offset is negative. */
    return b->last_offset < d->options.start_offset && b->last_offset > 0;
}

/* Positions inside records count from the start of the data; inside decompressed records, the batch's is used. */
static void locate(const kc_decoder *d, kc_error *error) {
    uint64_t inside = d->decompressed ? 0 : KC_BATCH_HEADER_SIZE + error->position;
    error->position = d->batch.position + inside;
}

static int open_records(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error) {
    int code =
        kc_records_open(&d->records, &d->batch, records, size, d->options.start_offset, d->options.end_offset, error);
    if (code) locate(d, error);
    d->source = code ? KC_SOURCE_NONE : KC_SOURCE_RECORDS;
    return code;
}

static int open_inner_messages(kc_decoder *d, const uint8_t *messages, size_t size, kc_error *error) {
    int code = kc_msgset_open_inner(&d->messages, &d->batch, messages, size, d->options.verify_crc,
                                    d->options.start_offset, d->options.end_offset, error);
    if (code) locate(d, error);
    d->source = code ? KC_SOURCE_NONE : KC_SOURCE_MESSAGES;
    return code;
}

static int check_crc(kc_decoder *d, kc_error *error) {
    if (!d->options.verify_crc) return KC_OK;
    uint32_t crc = kc_batch_compute_crc(d->data, &d->batch);
    d->verified = crc == d->batch.crc;
    if (KC_LIKELY(d->verified)) return KC_OK;
    const char *what = d->batch.magic < 2 ? "the CRC-32 of a message is wrong" : "the CRC-32C of a batch is wrong";
    return kc_fail(error, KC_CRC_MISMATCH, what, d->batch.position, crc, d->batch.crc);
}

/* Whether an offset is below that of the next intact batch after damage at a position; true if there is none. The
 * search is the one with which `kc_decoder_skip` continues there; one serves all messages before the damage. */
static bool before_damage(kc_decoder *d, int64_t last, uint64_t position) {
    if (position != d->damage) {
        kc_resync ahead = d->resync;
        d->after_damage = kc_resync_after(d->data, d->size, position, &ahead);
        d->damage = position;
    }
    return d->after_damage == d->size || (int64_t)kc_load_u64(d->data + d->after_damage) > last;
}

/* Whether offsets are within the bounds, above those before, and below those of the next batch from position `end` on,
 * if there is one. */
static bool in_order(kc_decoder *d, int64_t first, int64_t last, uint64_t end) {
    if (first < d->options.least_offset || first <= d->last_offset || last > d->options.most_offset) return false;
    if (d->size - end < KC_ENTRY_TO_MAGIC) return true;
    const uint8_t *next = d->data + end;
    const int32_t length = (int32_t)kc_load_u32(next + KC_ENTRY_LENGTH_AT);
    if (length < KC_MESSAGE_MIN_LENGTH || kc_load_u8(next + KC_ENTRY_MAGIC_AT) > 2 ||
        (uint64_t)length > d->size - end - KC_ENTRY_OVERHEAD) {
        return before_damage(d, last, end);
    }
    return (int64_t)kc_load_u64(next) > last;
}

static int refuse_order(uint64_t position, kc_error *error) {
    return kc_fail(error, KC_OUT_OF_ORDER, "a batch's offsets are out of order", position, 0, 0);
}

/* Moves d->ahead over batches and messages in order, to `stop` at least, or up to damage or one out of order. */
static void look_ahead(kc_decoder *d, uint64_t stop) {
    kc_error ignored = {0};
    kc_span span;
    while (d->ahead < stop) {
        d->ahead_ends = kc_walk_next(d->data, d->size, d->ahead, &span, &ignored) != KC_WALK_BATCH;
        if (d->ahead_ends) return;
        const uint8_t *batch = d->data + d->ahead;
        const int64_t first = span.base_offset;
        const int64_t more = span.magic < 2 ? 0 : (int32_t)kc_load_u32(batch + KC_BATCH_LAST_DELTA_AT);
        d->ahead_fails = more < 0 || first < d->options.least_offset || first <= d->ahead_offset ||
                         first > d->options.most_offset - more;
        d->ahead_ends = d->ahead_fails;
        if (d->ahead_fails) return;
        d->ahead_offset = first + more;
        d->ahead += span.size;
    }
}

/* Whether the batches and messages from a position on are in order, ORDERED_BYTES of them or up to damage, wherever
 * reading has begun or ends. */
static bool ordered_ahead(kc_decoder *d, uint64_t position) {
    if (position >= d->ahead) {
        d->ahead = position;
        d->ahead_offset = d->last_offset;
        d->ahead_ends = d->ahead_fails = false;
    }
    if (d->ahead - position >= ORDERED_BYTES) return true;
    if (!d->ahead_ends) look_ahead(d, position + 2 * (uint64_t)ORDERED_BYTES);
    return !d->ahead_fails || d->ahead - position >= ORDERED_BYTES;
}

static bool batch_in_order(kc_decoder *d, const kc_batch *b) {
    const uint64_t end = b->position + b->size;
    if (!ordered_ahead(d, b->position)) return false;
    return end < d->ahead || in_order(d, b->base_offset, b->last_offset, end);
}

/* The size of the messages from a position on that are in order with what follows them, at most about `most`. */
static uint64_t ordered_messages(kc_decoder *d, uint64_t position, uint64_t most) {
    kc_error ignored = {0};
    kc_span span;
    uint64_t at = position;
    while (at - position < most && kc_walk_next(d->data, d->size, at, &span, &ignored) == KC_WALK_BATCH &&
           kc_msgset_is_plain(d->data, &span)) {
        if (!ordered_ahead(d, at) || !in_order(d, span.base_offset, span.base_offset, at + span.size)) {
            return at - position;
        }
        at += span.size;
    }
    return most;
}

/* A partial batch is the end of the data, unless it cannot be one, or intact batches after it show that its length is
 * wrong. */
static kc_event end_partial(kc_decoder *d, kc_error *error) {
    const uint64_t left = d->size - d->position;
    if (left < KC_ENTRY_TO_MAGIC && kc_partial_check_few(d->data, d->position, left, error)) return KC_EVENT_FAULT;
    if (!d->options.search_partial) return KC_EVENT_END;
    if (kc_resync_after(d->data, d->size, d->position, &d->resync) == d->size) return KC_EVENT_END;
    kc_fail(error, KC_CORRUPT, "a batch's length exceeds the data, yet valid batches follow", d->position, 0, 0);
    return KC_EVENT_FAULT;
}

/* Opens the batch at d->position, or skips it. */
static kc_event open_batch(kc_decoder *d, kc_error *error) {
    kc_span span;
    kc_batch *b = &d->batch;
    d->located = d->verified = false;
    d->stretch = d->ordered = d->position;
    if (d->position >= d->stop) return KC_EVENT_END;
    switch (kc_walk_next(d->data, d->size, d->position, &span, error)) {
        case KC_WALK_BATCH:
            break;
        case KC_WALK_FAULT:
            return KC_EVENT_FAULT;
        case KC_WALK_PARTIAL:
            return end_partial(d, error);
        case KC_WALK_END:
            return KC_EVENT_END;
    }
    if (kc_msgset_is_plain(d->data, &span)) {
        kc_msgset_open(&d->messages, d->data, d->size, d->position, d->options.verify_crc, d->options.start_offset,
                       d->options.end_offset);
        d->source = KC_SOURCE_MESSAGES;
        return KC_EVENT_NONE;
    }
    d->located = true;
    kc_batch_read(d->data, &span, b);
    if (KC_UNLIKELY(b->magic < 2 && !kc_batch_is_wrapper(b))) { /* the bytes have changed */
        (void)kc_fail(error, KC_CORRUPT, "a message changed while it was read", b->position, 0, 0);
        return KC_EVENT_FAULT;
    }
    if (d->options.in_order && !batch_in_order(d, b) && !check_crc(d, error)) {
        (void)refuse_order(b->position, error);
        return KC_EVENT_FAULT;
    }
    d->last_offset = b->last_offset;
    if (d->options.in_order && !d->options.sets_compared && b->magic == 1 && !check_crc(d, error)) {
        (void)kc_fail(error, KC_OUT_OF_ORDER, "a compressed set's first offset is not compared", b->position, 0, 0);
        return KC_EVENT_FAULT;
    }
    const bool unwanted = outside(d) || (d->options.only_control && !(b->attributes & KC_CONTROL));
    if (!unwanted && check_crc(d, error)) return KC_EVENT_FAULT;
    /* A marker ends its transaction, even outside the range. */
    const bool aborted = kc_aborted_has(d->options.aborted, d->options.num_aborted, b);
    if (unwanted || aborted || ((b->attributes & KC_CONTROL) && !d->options.include_control)) {
        close_batch(d);
        return KC_EVENT_NONE;
    }
    if (kc_batch_check_codec(b, error)) return KC_EVENT_FAULT;
    if (kc_batch_is_wrapper(b) && kc_msgset_find_value(d->data, b, error)) return KC_EVENT_FAULT;
    if (kc_batch_codec(b) != KC_CODEC_NONE) {
        d->announced = true;
        return KC_EVENT_COMPRESSED;
    }
    return open_records(d, b->records, b->records_size, error) ? KC_EVENT_FAULT : KC_EVENT_NONE;
}

/* The number of rows to read before the chunk's size in bytes is checked again. */
static int32_t rows_now(const kc_decoder *d, const kc_table *t, int64_t max_rows, uint64_t max_bytes) {
    int64_t rows = max_rows - t->length;
    uint64_t used = payload_bytes(t), left = (uint64_t)(d->records.end - d->records.at);
    if (used + left > max_bytes) {
        uint64_t average = left / (uint64_t)d->records.left + 1;
        uint64_t fits = (max_bytes - used) / average; /* the chunk is not full yet */
        if (fits < 1) fits = 1;
        if (fits > ROWS_PER_RUN) fits = ROWS_PER_RUN;
        if (rows > (int64_t)fits) rows = (int64_t)fits;
    }
    return rows > d->records.left ? d->records.left : (int32_t)rows;
}

static kc_event read_records(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error) {
    if (!kc_records_read(&d->records, &d->batch, t, rows_now(d, t, max_rows, max_bytes), error)) return KC_EVENT_NONE;
    locate(d, error);
    return KC_EVENT_FAULT;
}

static kc_event read_messages(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error) {
    kc_msgset *m = &d->messages;
    uint64_t used = payload_bytes(t), bytes = used < max_bytes ? max_bytes - used : 0;
    if (!m->inner && bytes > d->stop - d->position) bytes = d->stop - d->position;
    if (d->options.in_order && !m->inner) {
        if (d->position >= d->ordered) {
            const uint64_t most = d->stop - d->position < ORDERED_BYTES ? d->stop - d->position : ORDERED_BYTES;
            d->stretch = d->position;
            d->ordered = d->position + ordered_messages(d, d->position, most);
        }
        if (d->position >= d->ordered) {
            (void)refuse_order(d->position, error);
            return KC_EVENT_FAULT;
        }
        if (bytes > d->ordered - d->position) bytes = d->ordered - d->position;
    }
    kc_msgset_end end = kc_msgset_read(m, &d->batch, t, max_rows - t->length, bytes, error);
    if (!m->inner) d->position = (uint64_t)(m->at - m->start);
    if (end == KC_MSGSET_FAULT) {
        d->located = true;
        if (m->inner) {
            locate(d, error);
        } else {
            d->verified = d->options.verify_crc && kc_batch_compute_crc(d->data, &d->batch) == d->batch.crc;
        }
        return KC_EVENT_FAULT;
    }
    if (end != KC_MSGSET_MORE || (!m->inner && d->position >= d->stop)) {
        if (m->inner) close_batch(d);
        d->source = KC_SOURCE_NONE;
    }
    return KC_EVENT_NONE;
}

/* Decompressed records stay in memory as a whole, so their other rows may follow, but not another batch. */
static bool is_full(const kc_decoder *d, const kc_table *t, int64_t max_rows, uint64_t max_bytes) {
    if (t->length >= max_rows) return true;
    if (!t->length) return false;
    return payload_bytes(t) >= max_bytes || (d->source == KC_SOURCE_NONE && t->views.kept >= max_bytes);
}

kc_event kc_decoder_run(kc_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error) {
    kc_cpu_clear_upper_halves();
    kc_event event = KC_EVENT_NONE;
    while (event == KC_EVENT_NONE) {
        /* A batch is closed before the chunk is reported as full, and the next one is not read. */
        if (d->source == KC_SOURCE_RECORDS && d->records.left == 0) close_batch(d);
        if (d->announced) return KC_EVENT_COMPRESSED;
        if (is_full(d, t, max_rows, max_bytes)) return KC_EVENT_FULL;
        t->views.backing = d->decompressed ? d->provided : d->held;
        if (d->source == KC_SOURCE_RECORDS) {
            event = read_records(d, t, max_rows, max_bytes, error);
        } else if (d->source == KC_SOURCE_MESSAGES) {
            event = read_messages(d, t, max_rows, max_bytes, error);
        } else {
            event = open_batch(d, error);
            continue;
        }
        if (d->provided && t->views.backing == d->provided) kc_views_keep(&t->views, d->content, d->content_size);
    }
    return event;
}

int kc_decoder_provide(kc_decoder *d, const uint8_t *records, size_t size, kc_error *error) {
    d->announced = false;
    d->decompressed = true;
    d->content = records;
    d->content_size = size;
    return d->batch.magic < 2 ? open_inner_messages(d, records, size, error) : open_records(d, records, size, error);
}

/* Keeps the last offset of the messages that were read before d->position. */
static void follow_messages(kc_decoder *d) {
    kc_error ignored = {0};
    kc_span span;
    for (uint64_t at = d->stretch; at < d->position; at += span.size) {
        if (kc_walk_next(d->data, d->size, at, &span, &ignored) != KC_WALK_BATCH) return;
        d->last_offset = span.base_offset;
    }
}

uint64_t kc_decoder_skip(kc_decoder *d) {
    uint64_t from = d->position;
    if (d->options.in_order) follow_messages(d);
    if (d->verified) {
        close_batch(d);
    } else {
        d->position = kc_resync_after(d->data, d->size, from, &d->resync);
        d->source = KC_SOURCE_NONE;
        d->announced = d->decompressed = d->located = false;
    }
    return d->position - from;
}

void kc_decoder_estimate(const kc_decoder *d, int64_t *rows, uint64_t *bytes) {
    kc_error ignored = {0};
    kc_span span;
    *rows = 0;
    *bytes = 0;
    for (uint64_t at = d->position;
         at < d->stop && kc_walk_next(d->data, d->size, at, &span, &ignored) == KC_WALK_BATCH; at += span.size) {
        if (kc_msgset_is_plain(d->data, &span)) {
            *rows += 1;
            *bytes += span.size - KC_MESSAGE_MIN_SIZE;
            continue;
        }
        kc_batch batch;
        kc_batch_read(d->data, &span, &batch);
        if (kc_batch_codec(&batch) != KC_CODEC_NONE) continue;
        if (batch.count < 0 || (uint64_t)batch.count > batch.records_size / KC_RECORD_MIN_SIZE) continue;
        *rows += batch.count;
        *bytes += batch.records_size;
    }
}
