/* Any bytes as a record set: every table is well formed, decoding ends, chunks have the same rows as one table, and the
 * readable records do not depend on the columns.
 *
 * Records that do not decompress are parsed as they are, so that mutations also reach the parsers after the codecs. */
#include "codecs.h"
#include "decode/kc_decoder.h"
#include "fuzz.h"
#include "table_check.h"

enum { CONTENT_LIMIT = 1 << 20 }; /* of all records that one input decompresses to */

/* Columns of keys and values: copied, as views, or as views into copies of the source, which limit positions. */
typedef enum layout { COPY, VIEW, OWNED } layout;

/* The records that the decoder reads, and the number of bytes that may still be decompressed. */
typedef struct content {
    kc_backing *source, *records;
    size_t left;
} content;

typedef struct outcome {
    uint64_t rows, hash, problems, consumed;
} outcome;

static void add_rows(outcome *o, const kc_table *t) {
    check_table(t);
    for (int64_t row = 0; row < t->length; row++) {
        for (int id = 0; id < KC_NUM_RECORD_COLUMNS; id++) {
            if (t->columns[id].wanted) o->hash = mix_rows(o->hash, &t->columns[id], row);
        }
    }
    o->rows += (uint64_t)t->length;
}

static kc_table *new_table(uint32_t want, layout how) {
    kc_table *t = kc_table_new(how == COPY ? kc_record_fields : kc_record_view_fields, KC_NUM_RECORD_COLUMNS, want);
    MUST(t != NULL);
    if (how == OWNED) t->views.reach = 40;
    return t;
}

static int provide(kc_decoder *d, content *c, kc_error *error) {
    const kc_batch *b = &d->batch;
    size_t size = 0;
    uint8_t *records = fuzz_decompress(kc_batch_codec(b), b->magic, b->records, b->records_size, c->left, &size);
    c->left -= size;
    kc_backing_release(c->records);
    c->records = records ? kc_backing_of(records, size, NULL, free, records, error)
                         : kc_backing_of(b->records, b->records_size, NULL, NULL, NULL, error);
    MUST(c->records != NULL);
    d->provided = c->records;
    return kc_decoder_provide(d, c->records->data, c->records->size, error);
}

/* Adds to a table; returns the event that ended it. */
static kc_event fill(kc_decoder *d, kc_table *t, content *c, int64_t max_rows, uint64_t max_bytes) {
    kc_error error = {0};
    kc_event event;
    do {
        event = kc_decoder_run(d, t, max_rows, max_bytes, &error);
        if (event == KC_EVENT_COMPRESSED && provide(d, c, &error)) event = KC_EVENT_FAULT;
    } while (event == KC_EVENT_COMPRESSED);
    MUST(t->length <= max_rows);
    MUST(event != KC_EVENT_FAULT || (error.code != KC_OK && error.what && error.position <= d->size));
    return event;
}

static outcome decode(const uint8_t *data, size_t size, bool verify, bool filter, layout how, uint32_t want,
                      int64_t max_rows, uint64_t max_bytes) {
    kc_aborted aborted[] = {{0, 0, INT64_MAX}, {55, 0, INT64_MAX}, {55, 1000, INT64_MAX}};
    const kc_decoder_options options = {
        .verify_crc = verify,
        .include_control = !filter,
        .search_partial = verify == filter,
        .start_offset = filter ? 3 : INT64_MIN,
        .end_offset = filter ? INT64_C(1) << 40 : INT64_MAX,
        .aborted = aborted,
        .num_aborted = filter ? 3 : 0,
    };
    outcome o = {0, UINT64_C(0xcbf29ce484222325), 0, 0};
    kc_decoder d;
    kc_decoder_init(&d, data, size, &options);
    int64_t rows;
    uint64_t bytes;
    kc_decoder_estimate(&d, &rows, &bytes);
    MUST(rows >= 0 && (uint64_t)rows <= size && bytes <= size);
    kc_error error = {0};
    content records = {kc_backing_of(data, size, NULL, NULL, NULL, &error), NULL, CONTENT_LIMIT};
    MUST(records.source != NULL);
    records.source->is_copied = how == OWNED;
    d.held = records.source;
    kc_table *t = new_table(want, how);
    kc_event event;
    do { /* a table continues after a fault */
        const uint64_t before = d.position;
        event = fill(&d, t, &records, max_rows, max_bytes);
        MUST(d.position >= before && d.position <= size);
        if (how == OWNED) MUST(kc_views_own(&t->views, records.source, NULL, &error) == KC_OK);
        if (event == KC_EVENT_FAULT) {
            o.problems++;
            MUST(kc_decoder_skip(&d) > 0 && d.position <= size);
            continue;
        }
        add_rows(&o, t);
        kc_table_release(t);
        t = event == KC_EVENT_END ? NULL : new_table(want, how);
    } while (event != KC_EVENT_END);
    kc_backing_release(records.records);
    kc_backing_release(records.source);
    o.consumed = d.position;
    return o;
}

static bool same(const outcome *a, const outcome *b) {
    return a->rows == b->rows && a->problems == b->problems && a->consumed == b->consumed;
}

static void try_variant(const uint8_t *data, size_t size, bool verify, bool filter, uint32_t choice) {
    const outcome whole = decode(data, size, verify, filter, COPY, KC_WANT_RECORD, INT32_MAX, UINT64_MAX);
    const outcome parts = decode(data, size, verify, filter, OWNED, KC_WANT_RECORD, 3, 100);
    const outcome chosen = decode(data, size, verify, filter, COPY, choice, 1000, 4096);
    const outcome viewed = decode(data, size, verify, filter, VIEW, choice, 1000, 4096);
    MUST(same(&whole, &parts) && whole.hash == parts.hash);
    MUST(same(&whole, &chosen) && same(&chosen, &viewed) && chosen.hash == viewed.hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint32_t choices[] = {KC_WANT_DECODED,
                                       KC_WANT_NO_HEADERS,
                                       KC_WANT_PAYLOAD,
                                       1u << KC_COL_VALUE,
                                       0,
                                       1u << KC_COL_OFFSET | 1u << KC_COL_TIMESTAMP,
                                       1u << KC_COL_HEADERS};
    const size_t variants = 4 * sizeof choices / sizeof *choices;
    const size_t chosen = fuzz_choose(data, size, variants);
    for (size_t variant = 0; variant < variants; variant++) {
        if (fuzz_is_replaying() || variant == chosen)
            try_variant(data, size, variant & 1, variant & 2, choices[variant / 4]);
    }
    return 0;
}
