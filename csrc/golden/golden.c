/* Decodes golden files and holds rows and headers against what Kafka's own reader made of them, then encodes batches of
 * Kafka's own to the same bytes. For where there is no Python: other processors, sanitizers, mutants of the library.
 *
 *   golden CASES      a file that tests/golden_cases.py wrote
 */
#include "../fuzz/table_check.h"
#include "arrow/kc_arrow_export.h"
#include "base/kc_cpu.h"
#include "cells.h"
#include "checksum/kc_crc32.h"
#include "checksum/kc_crc32c.h"
#include "decode/kc_decoder.h"
#include "decode/kc_scan.h"
#include "encode/kc_encode.h"

static const char *const CODECS[] = {"none", "gzip", "snappy", "lz4", "zstd"};

static text name_of_codec(int codec) { return (text){(const uint8_t *)CODECS[codec], (int32_t)strlen(CODECS[codec])}; }

static struct {
    int64_t cases, rows, headers, encoded, failures;
} counts;

static bool fail(const golden_case *c, const char *what, int64_t row, int column) {
    fprintf(stderr, "%.*s: %s (row %lld, column %d)\n", c->name.size, (const char *)c->name.data, what, (long long)row,
            column);
    counts.failures++;
    return false;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

/* How a case is decoded: columns, the size of chunks, whether some offsets only, whether chunks go into one table, and
 * whether keys and values are views. */
typedef struct variant {
    uint32_t want;
    int64_t max_rows;
    uint64_t max_bytes;
    bool range, together, views;
} variant;

enum {
    VALUE = 1u << KC_COL_VALUE,
    POSITION = 1u << KC_COL_OFFSET | 1u << KC_COL_TIMESTAMP,
};

static const variant VARIANTS[] = {
    {KC_WANT_DECODED, INT32_MAX, UINT64_MAX, false, false, false},
    {KC_WANT_DECODED, 7, 1 << 20, false, true, false},
    {KC_WANT_DECODED, 1000, 300, false, false, false},
    {KC_WANT_DECODED, 100, 8192, true, false, false},
    {KC_WANT_RECORD, 8192, 1 << 19, false, true, false},
    {KC_WANT_RECORD, 100, 8192, true, false, false},
    {KC_WANT_NO_HEADERS, 8192, 1 << 19, false, false, false},
    {KC_WANT_NO_HEADERS, 100, 8192, true, false, false},
    {KC_WANT_PAYLOAD, 50, 1 << 19, false, false, false},
    {VALUE, 8192, 1 << 19, false, false, false},
    {POSITION, 8192, 1 << 19, false, false, false},
    {POSITION, 8192, 1 << 19, true, false, false},
    {KC_WANT_DECODED & ~KC_WANT_RECORD, 50, 1 << 19, false, true, false},
    {KC_WANT_DECODED, 7, 1 << 20, false, true, true},
    {KC_WANT_RECORD, 8192, 1 << 19, false, false, true},
    {KC_WANT_RECORD, 100, 8192, true, false, true},
    {VALUE, 1000, 300, false, false, true},
};

/* The number that the row has in the column. */
static int64_t expected_int(const row_said *r, const batch_said *b, int id) {
    const bool old = b->magic < 2;
    const uint64_t delta = (uint64_t)r->offset - (uint64_t)b->base_offset;
    switch (id) {
        case KC_COL_OFFSET:
            return r->offset;
        case KC_COL_TIMESTAMP:
            return r->timestamp;
        case KC_COL_TIMESTAMP_TYPE:
            return r->timestamp_type;
        case KC_COL_PARTITION_LEADER_EPOCH:
            return old ? NONE : b->leader_epoch;
        case KC_COL_PRODUCER_ID:
            return old ? NONE : b->producer_id;
        case KC_COL_PRODUCER_EPOCH:
            return old ? NONE : b->producer_epoch;
        case KC_COL_SEQUENCE: /* it continues at 0 after the largest int32 */
            return old ? NONE : b->base_sequence < 0 ? -1 : (int64_t)((uint64_t)b->base_sequence + delta) & INT32_MAX;
        case KC_COL_IS_TRANSACTIONAL:
            return b->is_transactional;
        case KC_COL_IS_CONTROL:
            return b->is_control;
        case KC_COL_MAGIC:
            return b->magic;
        case KC_COL_BATCH_OFFSET:
            return b->base_offset;
        default:
            return b->position;
    }
}

static bool headers_match(const kc_column *c, int64_t at, const row_said *r) {
    const int32_t *bounds = cell_bounds(c, at);
    const kc_column *entries = c->children->children;
    const uint8_t *text_at = r->headers;
    if (bounds[1] - bounds[0] != r->num_headers) return false;
    for (int32_t i = bounds[0]; i < bounds[1]; i++) {
        const text key = take_text(&text_at), value = take_text(&text_at);
        if (key.size != UNKNOWN_SIZE && !cell_is(&entries[0], i, key)) return false;
        if (!cell_is(&entries[1], i, value)) return false;
    }
    return true;
}

static bool row_matches(const golden_case *c, const kc_table *t, int64_t at, const row_said *r) {
    const batch_said *b = &c->batches[r->batch];
    for (int id = KC_COL_OFFSET; id <= KC_COL_BATCH_POSITION; id++) {
        const kc_column *column = &t->columns[id];
        if (!column->wanted) continue;
        const bool same = id == KC_COL_KEY       ? cell_is(column, at, r->key)
                          : id == KC_COL_VALUE   ? cell_is(column, at, r->value)
                          : id == KC_COL_CODEC   ? cell_is(column, at, name_of_codec(b->codec))
                          : id == KC_COL_HEADERS ? headers_match(column, at, r)
                                                 : cell_has(column, at, expected_int(r, b, id));
        if (!same) return fail(c, "differs from Kafka's reader", r - c->rows, id);
        /* What numpy shows of a null point in time is "not a time". */
        if (id == KC_COL_TIMESTAMP && cell_is_null(column, at) && cell_int(column, at) != INT64_MIN)
            return fail(c, "a null timestamp is a time", at, id);
    }
    return true;
}

/* Expected rows that a run has not met yet, of those with offsets in [start, end). */
typedef struct progress {
    int32_t next;
    int64_t start, end;
} progress;

static void pass_over(const golden_case *c, progress *p) {
    while (p->next < c->num_rows && (c->rows[p->next].offset < p->start || c->rows[p->next].offset >= p->end))
        p->next++;
}

static bool table_matches(const golden_case *c, const kc_table *t, progress *p) {
    check_table(t);
    for (int64_t at = 0; at < t->length; at++, p->next++) {
        pass_over(c, p);
        if (p->next == c->num_rows) return c->ending == ENDS ? fail(c, "a row too many", at, -1) : true;
        if (!row_matches(c, t, at, &c->rows[p->next])) return false;
    }
    counts.rows += t->length;
    return true;
}

/* The decompressed records of the current batch, in a separate block; false if there are none. */
static bool provide(kc_decoder *d, const golden_case *c, kc_error *error) {
    for (int32_t i = 0; i < c->num_parts; i++) {
        const text records = c->parts[i].records;
        if (c->parts[i].position != d->batch.position) continue;
        kc_backing_release(d->provided);
        d->provided = kc_backing_new((size_t)records.size, 0, NULL, error);
        MUST(d->provided != NULL);
        memcpy(d->provided->owned, records.data, (size_t)records.size);
        d->provided->size = (size_t)records.size;
        return kc_decoder_provide(d, d->provided->data, (size_t)records.size, error) == KC_OK;
    }
    return false;
}

static kc_event fill(kc_decoder *d, const golden_case *c, const variant *v, kc_table *t) {
    kc_error error = {0};
    kc_event event;
    while ((event = kc_decoder_run(d, t, v->max_rows, v->max_bytes, &error)) == KC_EVENT_COMPRESSED) {
        if (!provide(d, c, &error)) return KC_EVENT_FAULT;
    }
    MUST(t->length <= v->max_rows);
    MUST(event != KC_EVENT_FAULT || (error.code != KC_OK && error.what && error.position <= d->size));
    return event;
}

static kc_table *new_table(uint32_t want, bool views) {
    kc_table *t = kc_table_new(views ? kc_record_view_fields : kc_record_fields, KC_NUM_RECORD_COLUMNS, want);
    MUST(t != NULL);
    return t;
}

static kc_decoder_options options_of(const golden_case *c, const progress *p) {
    return (kc_decoder_options){
        .verify_crc = c->verify_crc, .include_control = true, .start_offset = p->start, .end_offset = p->end};
}

/* Decodes chunk by chunk; false at the first difference. */
static bool run(kc_decoder *d, const golden_case *c, const variant *v, progress *p, kc_event *event) {
    kc_error error = {0};
    kc_table *whole = new_table(v->want, v->views);
    bool same = true;
    do {
        kc_table *chunk = new_table(v->want, v->views);
        *event = fill(d, c, v, chunk);
        if (v->together)
            MUST(kc_table_move(whole, chunk, &error) == KC_OK);
        else
            same = table_matches(c, chunk, p);
        kc_table_release(chunk);
    } while (same && *event == KC_EVENT_FULL);
    kc_backing_release(d->held); /* tables keep what they need */
    kc_backing_release(d->provided);
    if (same) same = table_matches(c, whole, p);
    kc_table_release(whole);
    return same;
}

static void check_rows(const golden_case *c, const variant *v) {
    progress p = {0, INT64_MIN, INT64_MAX};
    if (v->range) {
        if (c->num_rows < 3 || !c->undamaged) return; /* the offsets of a damaged header may be wrong */
        p.start = c->rows[c->num_rows / 3].offset;
        p.end = c->rows[2 * c->num_rows / 3].offset;
    }
    /* In damaged data more columns show more of the damage. */
    if (c->ending != ENDS && (v->want != KC_WANT_DECODED || v->range)) return;
    const kc_decoder_options options = options_of(c, &p);
    kc_decoder d;
    kc_event event;
    kc_error error = {0};
    kc_decoder_init(&d, c->data.data, (uint64_t)c->data.size, &options);
    d.held = kc_backing_of(c->data.data, (size_t)c->data.size, NULL, NULL, NULL, &error);
    MUST(d.held != NULL);
    if (!run(&d, c, v, &p, &event)) return;
    pass_over(c, &p);
    if (c->ending != ENDS_OR_FAULTS && p.next < c->num_rows) fail(c, "rows are missing", p.next, -1);
    if (c->ending == ENDS && event != KC_EVENT_END) fail(c, "a fault in what Kafka reads", p.next, -1);
    if (c->ending == FAULTS && event != KC_EVENT_FAULT) fail(c, "no fault in what Kafka refuses", p.next, -1);
    if (c->ending == ENDS && d.position != c->valid_bytes) fail(c, "the end is elsewhere", (int64_t)d.position, -1);
}

static void check_estimate(const golden_case *c) {
    const progress all = {0, INT64_MIN, INT64_MAX};
    const kc_decoder_options options = options_of(c, &all);
    int64_t rows = 0, got_rows;
    uint64_t bytes = 0, got_bytes;
    for (const batch_said *b = c->batches; b < c->batches + c->num_batches; b++) {
        if (b->codec) continue;
        rows += b->magic < 2 ? 1 : b->count;
        bytes += (uint64_t)b->size - (b->magic < 2 ? 26 : 61);
    }
    kc_decoder d;
    kc_decoder_init(&d, c->data.data, (uint64_t)c->data.size, &options);
    kc_decoder_estimate(&d, &got_rows, &got_bytes);
    if (got_rows != rows || got_bytes != bytes) fail(c, "another estimate", got_rows, -1);
}

/* ---- headers -------------------------------------------------------------------------------------------------- */

static int64_t unless(bool null, int64_t value) { return null ? NONE : value; }

static bool header_matches(const kc_table *t, int64_t at, const batch_said *b, int id) {
    const bool old = b->magic < 2, wrapper = old && b->codec;
    const kc_column *c = &t->columns[id];
    const int64_t base_timestamp = !old ? b->base_timestamp : wrapper ? -1 : b->max_timestamp;
    const int64_t numbers[KC_NUM_HEADER_COLUMNS] = {
        [KC_HEADER_POSITION] = b->position,
        [KC_HEADER_SIZE_IN_BYTES] = b->size,
        [KC_HEADER_BASE_OFFSET] = unless(wrapper, b->base_offset),
        [KC_HEADER_LAST_OFFSET] = b->last_offset,
        [KC_HEADER_MAGIC] = b->magic,
        [KC_HEADER_TIMESTAMP_TYPE] = b->timestamp_type,
        [KC_HEADER_BASE_TIMESTAMP] = unless(base_timestamp == -1, base_timestamp),
        [KC_HEADER_MAX_TIMESTAMP] = unless(b->max_timestamp == -1, b->max_timestamp),
        [KC_HEADER_COUNT] = unless(wrapper, old ? 1 : b->count),
        [KC_HEADER_PRODUCER_ID] = unless(old, b->producer_id),
        [KC_HEADER_PRODUCER_EPOCH] = unless(old, b->producer_epoch),
        [KC_HEADER_BASE_SEQUENCE] = unless(old, b->base_sequence),
        [KC_HEADER_PARTITION_LEADER_EPOCH] = unless(old, b->leader_epoch),
        [KC_HEADER_IS_TRANSACTIONAL] = b->is_transactional,
        [KC_HEADER_IS_CONTROL] = b->is_control,
        [KC_HEADER_DELETE_HORIZON_MS] = b->delete_horizon,
        [KC_HEADER_CRC] = b->crc,
        [KC_HEADER_CRC_OK] = 1,
    };
    if (id == KC_HEADER_CODEC) return cell_is(c, at, name_of_codec(b->codec));
    /* Producers left the offset of a wrapper 0; Kafka's reader returns the last one inside. */
    if (id == KC_HEADER_LAST_OFFSET && wrapper && cell_has(c, at, 0)) return true;
    return cell_has(c, at, numbers[id]);
}

static void check_headers(const golden_case *c, int64_t max_batches) {
    uint64_t position = 0;
    kc_error error = {0};
    kc_walk end;
    int32_t next = 0;
    do {
        kc_table *t = kc_table_new(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX);
        MUST(t != NULL);
        end = kc_scan(c->data.data, (uint64_t)c->data.size, &position, true, max_batches, t, &error);
        check_table(t);
        for (int64_t at = 0; at < t->length && next < c->num_batches; at++, next++) {
            for (int id = 0; id < KC_NUM_HEADER_COLUMNS; id++) {
                if (!header_matches(t, at, &c->batches[next], id)) fail(c, "a header differs", next, id);
            }
        }
        counts.headers += t->length;
        kc_table_release(t);
    } while (end == KC_WALK_BATCH);
    if (next != c->num_batches || position != c->valid_bytes) fail(c, "another number of batches", next, -1);
}

/* ---- encoding ------------------------------------------------------------------------------------------------- */

/* Exports the table and encodes what was exported into one batch at `out`. */
static size_t encode(kc_table *t, const batch_said *b, uint8_t *out, size_t size) {
    static kc_encoder e;
    struct ArrowSchema schema;
    struct ArrowArray array;
    kc_input_chunk chunk;
    const char *name;
    kc_error error = {0};
    const kc_batch_options options = {.magic = 2,
                                      .producer_id = b->producer_id,
                                      .base_sequence = b->base_sequence,
                                      .leader_epoch = b->leader_epoch,
                                      .producer_epoch = b->producer_epoch,
                                      .attributes = b->is_transactional ? KC_TRANSACTIONAL : 0,
                                      .batch_bytes = INT32_MAX};
    kc_room room = {out, out + size + KC_COPY_SLACK};
    MUST(kc_arrow_export_schema(t, &schema, &error) == KC_OK && kc_arrow_export_array(t, &array, &error) == KC_OK);
    MUST(kc_input_chunk_import(&chunk, &schema, &array, &name, &error) == KC_OK);
    kc_encoder_begin(&e, &options);
    const kc_encode_event event = kc_encoder_fill(&e, &chunk, &room, &error);
    if (event == KC_ENCODE_ROWS_END && e.open.count) kc_encoder_close_in_place(&e, &room);
    schema.release(&schema);
    array.release(&array);
    return event == KC_ENCODE_ROWS_END ? (size_t)(room.at - out) : 0;
}

static void check_encoding(const golden_case *c, const batch_said *b, bool views) {
    const uint8_t *data = c->data.data + b->position;
    const size_t size = (size_t)b->size;
    const progress all = {0, INT64_MIN, INT64_MAX};
    const kc_decoder_options options = options_of(c, &all);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table(KC_WANT_RECORD, views);
    kc_decoder_init(&d, data, size, &options);
    MUST(kc_decoder_run(&d, t, INT32_MAX, UINT64_MAX, &error) == KC_EVENT_END);
    uint8_t *out = malloc(size + 2 * KC_COPY_SLACK);
    MUST(out != NULL);
    if (encode(t, b, out, size + KC_COPY_SLACK) != size || memcmp(out, data, size) != 0)
        fail(c, "a batch is encoded to other bytes", b - c->batches, -1);
    counts.encoded++;
    free(out);
    kc_table_release(t);
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static void check_case(const golden_case *c) {
    for (size_t i = 0; i < sizeof VARIANTS / sizeof *VARIANTS; i++) check_rows(c, &VARIANTS[i]);
    counts.cases++;
    if (c->ending != ENDS || !c->verify_crc) return;
    check_estimate(c);
    check_headers(c, INT64_MAX);
    check_headers(c, 3);
    for (int32_t i = 0; i < c->num_batches; i++) {
        if (c->undamaged && c->batches[i].can_be_encoded) check_encoding(c, &c->batches[i], i % 2 == 1);
    }
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    MUST(file != NULL && fseek(file, 0, SEEK_END) == 0);
    const long end = ftell(file);
    MUST(end > 0 && fseek(file, 0, SEEK_SET) == 0);
    uint8_t *data = malloc((size_t)end);
    MUST(data != NULL && fread(data, 1, (size_t)end, file) == (size_t)end);
    fclose(file);
    *size = (size_t)end;
    return data;
}

/* A requested kernel must have run for at least one checksum: an unsupported one is ignored silently. */
static void check_kernels(void) {
    const char *forced = kc_forced_kernel();
    MUST(!*forced || strcmp(forced, kc_crc32_kernel()) == 0 || strcmp(forced, kc_crc32c_kernel()) == 0);
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    size_t size;
    uint8_t *file = read_file(argv[1], &size);
    const uint8_t *at = file;
    golden_case c;
    while (take_case(&at, file + size, &c)) {
        check_case(&c);
        free_case(&c);
    }
    free(file);
    MUST(kc_live_bytes() == 0);
    check_kernels();
    printf("%lld golden files: %lld rows, %lld headers, %lld batches encoded, %lld differences (kernels %s, %s)\n",
           (long long)counts.cases, (long long)counts.rows, (long long)counts.headers, (long long)counts.encoded,
           (long long)counts.failures, kc_crc32_kernel(), kc_crc32c_kernel());
    return counts.failures || !counts.cases;
}
