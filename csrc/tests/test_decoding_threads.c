/* Threads that decode the same bytes with one source, one budget and one pool, and exchange their tables: each table is
 * read and freed by whichever thread gets it. `make tsan` finds races. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

enum { THREADS = 4, BATCHES = 12, ROWS = 4, ROUNDS = 200, CHUNK = 7, EXCHANGED = 3, LIMIT = 1 << 20 };

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

typedef struct shared {
    bytes data;
    uint64_t starts[BATCHES + 1]; /* of the batches, and the end */
    kc_backing *source;
    kc_budget *budget;
    kc_table *_Atomic exchanged[EXCHANGED];
    atomic_int rows, failures, let_go;
} shared;

typedef struct worker {
    shared *all;
    int number;
    pthread_t thread;
} worker;

static void text_of(char *text, size_t size, int batch, int row) {
    snprintf(text, size, "value %02d of batch %02d", row, batch);
}

/* Every second batch is marked as compressed; `provide` takes its records as they are. */
static void build(shared *all) {
    for (int batch = 0; batch < BATCHES; batch++) {
        bytes records = {.size = 0};
        for (int row = 0; row < ROWS; row++) {
            char text[64];
            text_of(text, sizeof text, batch, row);
            add_record(&records, row, 0, "key", text, "header", text);
        }
        all->starts[batch] = all->data.size;
        add_batch(&all->data, batch % 2, ROWS, &records);
    }
    all->starts[BATCHES] = all->data.size;
}

static void let_go(void *holder) { atomic_fetch_add(&((shared *)holder)->let_go, 1); }

static int batch_at(const shared *all, uint64_t position) {
    int batch = 0;
    while (batch < BATCHES && all->starts[batch] != position) batch++;
    return batch;
}

static bool row_is_right(const shared *all, const kc_table *t, int64_t at) {
    const int64_t offset = ((const int64_t *)(const void *)t->columns[KC_COL_OFFSET].values.data)[at];
    const int64_t position = ((const int64_t *)(const void *)t->columns[KC_COL_BATCH_POSITION].values.data)[at];
    char text[64];
    text_of(text, sizeof text, batch_at(all, (uint64_t)position), (int)(offset - 100));
    int32_t size;
    const uint8_t *value = kc_column_bytes(&t->columns[KC_COL_VALUE], at, &size);
    return size == (int32_t)strlen(text) && memcmp(value, text, (size_t)size) == 0;
}

/* Takes a table of any thread. */
static void consume(shared *all, kc_table *t) {
    if (!t) return;
    for (int64_t at = 0; at < t->length; at++)
        if (!row_is_right(all, t, at)) atomic_fetch_add(&all->failures, 1);
    atomic_fetch_add(&all->rows, (int)t->length);
    kc_table_release(t);
}

static bool provide(kc_decoder *d, kc_budget *budget, kc_error *error) {
    kc_backing_release(d->provided);
    d->provided = kc_backing_new(d->batch.records_size, 0, budget, error);
    if (!d->provided) return false;
    memcpy(d->provided->owned, d->batch.records, d->batch.records_size);
    d->provided->size = d->batch.records_size;
    return kc_decoder_provide(d, d->provided->data, d->provided->size, error) == KC_OK;
}

/* One run of batches into tables of a few rows, as views or copies. False after a failure. */
static bool read_run(shared *all, int number, int round) {
    const kc_field *fields = (number + round) % 3 ? kc_record_view_fields : kc_record_fields;
    const int first = round % BATCHES, last = first + 1 + number % (BATCHES - first);
    kc_error error = {0};
    kc_decoder d;
    kc_decoder_init(&d, all->data.data, all->data.size, &OPTIONS);
    d.position = all->starts[first];
    d.stop = all->starts[last];
    d.held = all->source;
    kc_event event = KC_EVENT_FULL;
    int64_t rows = 0;
    while (event == KC_EVENT_FULL) {
        kc_table *t = kc_table_new_within(fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED, all->budget, &error);
        if (!t) break;
        do {
            event = kc_decoder_run(&d, t, CHUNK, UINT64_MAX, &error);
        } while (event == KC_EVENT_COMPRESSED && provide(&d, all->budget, &error));
        rows += t->length;
        consume(all, atomic_exchange(&all->exchanged[round % EXCHANGED], t));
    }
    kc_backing_release(d.provided);
    return event == KC_EVENT_END && rows == (last - first) * ROWS;
}

static void *work(void *argument) {
    const worker *w = argument;
    for (int round = 0; round < ROUNDS; round++)
        if (!read_run(w->all, w->number, round)) atomic_fetch_add(&w->all->failures, 1);
    return NULL;
}

TEST(threads_decode_the_same_bytes_and_exchange_their_tables) {
    const size_t before = kc_live_bytes();
    static shared all;
    kc_error error = {0};
    memset(&all, 0, sizeof all);
    build(&all);
    all.budget = kc_budget_new(LIMIT, "too much");
    all.source = kc_backing_of(all.data.data, all.data.size, NULL, let_go, &all, &error);
    CHECK(all.budget != NULL && all.source != NULL);
    all.source->is_source = true;
    worker workers[THREADS];
    int64_t expected = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.all = &all, .number = i};
        for (int round = 0; round < ROUNDS; round++) expected += (1 + i % (BATCHES - round % BATCHES)) * ROWS;
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    kc_backing_release(all.source);
    for (int i = 0; i < EXCHANGED; i++) consume(&all, atomic_load(&all.exchanged[i]));
    CHECK_EQ(all.failures, 0);
    CHECK_EQ(all.rows, expected);
    CHECK_EQ(all.let_go, 1);
    CHECK_EQ(all.budget->left, LIMIT);
    kc_budget_release(all.budget);
    CHECK_EQ(kc_live_bytes(), before);
    (void)kc_trim();
}
