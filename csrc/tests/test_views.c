/* Keys and values as views: into the source, into what was decompressed, and what keeps either alive. */
#include <stdlib.h>

#include "arrow/kc_arrow_export.h"
#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

static const char LONG[] = "a value that is longer than a view";

static kc_table *new_table(void) { return kc_table_new(kc_record_view_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED); }

static void sample_records(bytes *records) {
    records->size = 0;
    add_record(records, 0, 0, "k", LONG, NULL, NULL);
    add_record(records, 1, -5, NULL, "", "h", "x");
    add_record(records, 2, 7, LONG, "twelve bytes", NULL, NULL);
    add_record(records, 3, 7, "thirteen byte", NULL, NULL, NULL);
}

static void sample_batch(bytes *data) {
    bytes records;
    sample_records(&records);
    add_batch(data, 0, 4, &records);
}

static bool cell_is(const kc_table *t, int id, int64_t row, const char *want) {
    int32_t size;
    const uint8_t *data = kc_column_bytes(&t->columns[id], row, &size);
    return want ? size == (int32_t)strlen(want) && memcmp(data, want, (size_t)size) == 0 : size == -1;
}

static bool has_sample(const kc_table *t, int64_t row) {
    return cell_is(t, KC_COL_KEY, row, "k") && cell_is(t, KC_COL_VALUE, row, LONG) &&
           cell_is(t, KC_COL_KEY, row + 1, NULL) && cell_is(t, KC_COL_VALUE, row + 1, "") &&
           cell_is(t, KC_COL_KEY, row + 2, LONG) && cell_is(t, KC_COL_VALUE, row + 2, "twelve bytes") &&
           cell_is(t, KC_COL_KEY, row + 3, "thirteen byte") && cell_is(t, KC_COL_VALUE, row + 3, NULL);
}

static int let_go_calls;
static void let_go(void *holder) {
    let_go_calls++;
    free(holder);
}

TEST(views_keep_their_source_alive) {
    const size_t before = kc_live_bytes();
    bytes data = {.size = 0};
    sample_batch(&data);
    uint8_t *copy = malloc(data.size);
    CHECK(copy != NULL);
    memcpy(copy, data.data, data.size);
    kc_error error = {0};
    kc_decoder d;
    kc_table *t = new_table();
    let_go_calls = 0;
    kc_decoder_init(&d, copy, data.size, &OPTIONS);
    d.held = kc_backing_of(copy, data.size, NULL, let_go, copy, &error);
    d.held->is_source = true;
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    kc_backing_release(d.held);
    CHECK_EQ(let_go_calls, 0);
    CHECK_EQ(t->length, 4);
    CHECK(has_sample(t, 0));
    CHECK_EQ(t->columns[KC_COL_KEY].viewed, 1 + strlen(LONG) + 13);
    CHECK_EQ(t->columns[KC_COL_VALUE].viewed, strlen(LONG) + 12);
    CHECK_EQ(t->columns[KC_COL_VALUE].data.capacity, 0);
    /* One buffer, from the first record to the end of the last value that is longer than a view. */
    CHECK_EQ(kc_views_count(&t->views), 1);
    const kc_view_buffer *b = kc_views_at(&t->views, 0);
    CHECK(b->data == copy + KC_BATCH_HEADER_SIZE);
    CHECK_EQ(b->size, data.size - KC_BATCH_HEADER_SIZE - 2); /* without a null value and no headers */
    CHECK_EQ(kc_views_bytes(&t->views), 0);
    kc_table_release(t);
    CHECK_EQ(let_go_calls, 1);
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(views_in_place_need_no_buffer) {
    bytes data = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "key", "value", NULL, NULL);
    add_batch(&data, 0, 1, &records);
    kc_error error = {0};
    kc_decoder d;
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    d.held = kc_backing_of(data.data, data.size, NULL, NULL, NULL, &error);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(kc_views_count(&t->views), 0);
    CHECK_EQ(d.held->references, 1);
    CHECK(cell_is(t, KC_COL_VALUE, 0, "value"));
    kc_table_release(t);
    kc_backing_release(d.held);
}

TEST(views_of_every_short_size_end_in_zeros) {
    static const char letters[] = "abcdefghijklmnop";
    uint8_t exact[KC_VIEW_INLINED];
    for (int32_t size = 0; size <= KC_VIEW_INLINED; size++) {
        for (int wide = 0; wide < 2; wide++) {
            kc_view v;
            memset(&v, 0xff, sizeof v);
            memcpy(exact + KC_VIEW_INLINED - size, letters, (size_t)size); /* ends at the end of readable memory */
            kc_view_inline(&v, wide ? (const uint8_t *)letters : exact + KC_VIEW_INLINED - size, size, wide);
            CHECK(memcmp(v.at.inlined, letters, (size_t)size) == 0);
            for (int32_t i = size; i < KC_VIEW_INLINED; i++) CHECK_EQ(v.at.inlined[i], 0);
        }
    }
}

TEST(views_share_buffers_within_reach) {
    const size_t before = kc_live_bytes();
    bytes data = {.size = 0};
    for (int i = 0; i < 3; i++) sample_batch(&data);
    kc_error error = {0};
    for (size_t reach = 1; reach < data.size + 10; reach += 7) {
        kc_decoder d;
        kc_table *t = new_table();
        t->views.reach = reach;
        kc_decoder_init(&d, data.data, data.size, &OPTIONS);
        d.held = kc_backing_of(data.data, data.size, NULL, NULL, NULL, &error);
        CHECK_EQ(kc_decoder_run(&d, t, 100, 100000, &error), KC_EVENT_END);
        CHECK_EQ(t->length, 12);
        CHECK(has_sample(t, 0) && has_sample(t, 4) && has_sample(t, 8));
        const kc_view *views = (const kc_view *)(const void *)t->columns[KC_COL_KEY].values.data;
        for (int row = 2; row < 12; row += 4) {
            CHECK(views[row].at.far.position < (int32_t)(reach > 8 ? reach : 8));
        }
        if (reach >= data.size) CHECK_EQ(kc_views_count(&t->views), 1);
        if (reach < data.size / 3) CHECK(kc_views_count(&t->views) >= 3);
        kc_table_release(t);
        kc_backing_release(d.held);
    }
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(views_share_a_buffer_up_to_its_reach) {
    bytes data = {.size = 0};
    for (int i = 0; i < 2; i++) sample_batch(&data);
    kc_error error = {0};
    const size_t span = data.size - KC_BATCH_HEADER_SIZE; /* of the records of both */
    for (size_t less = 0; less < 2; less++) {
        kc_decoder d;
        kc_table *t = new_table();
        t->views.reach = span - less;
        kc_decoder_init(&d, data.data, data.size, &OPTIONS);
        d.held = kc_backing_of(data.data, data.size, NULL, NULL, NULL, &error);
        CHECK_EQ(kc_decoder_run(&d, t, 100, 100000, &error), KC_EVENT_END);
        CHECK_EQ(kc_views_count(&t->views), 1 + less);
        CHECK(has_sample(t, 0) && has_sample(t, 4));
        kc_table_release(t);
        kc_backing_release(d.held);
    }
}

/* The two newest buffers may be extended, each from its own backing. */
TEST(views_extend_the_newest_buffers) {
    static const uint8_t bytes_of[3][100];
    kc_error error = {0};
    kc_backing *b[3];
    kc_views v = {.reach = 100};
    for (int i = 0; i < 3; i++) b[i] = kc_backing_of(bytes_of[i], 100, NULL, NULL, NULL, &error);
    static const struct {
        int backing;
        size_t from, to; /* of the values; the last one ends at `to` */
        int32_t current, count;
        size_t size; /* of the buffer */
    } STEPS[] = {
        {0, 10, 20, 0, 1, 10}, {0, 20, 30, 0, 1, 20},  {0, 15, 25, 0, 1, 20}, {1, 0, 10, 1, 2, 10},
        {0, 30, 40, 0, 2, 30}, {0, 5, 9, 2, 3, 4},     {1, 10, 20, 1, 3, 20}, {2, 50, 60, 3, 4, 10},
        {1, 20, 30, 4, 5, 10}, {2, 60, 100, 3, 5, 50}, {2, 49, 60, 5, 6, 11},
    };
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        const uint8_t *data = bytes_of[STEPS[i].backing];
        v.backing = b[STEPS[i].backing];
        CHECK_EQ(kc_views_open(&v, data + STEPS[i].from, data + STEPS[i].to, NULL, &error), KC_OK);
        kc_views_close(&v, data + STEPS[i].to);
        CHECK_EQ(v.current, STEPS[i].current);
        CHECK_EQ(kc_views_count(&v), STEPS[i].count);
        CHECK_EQ(kc_views_at(&v, v.current)->size, STEPS[i].size);
        CHECK(v.origin == kc_views_at(&v, v.current)->data);
    }
    CHECK_EQ(kc_views_bytes(&v), 30 + 20 + 4 + 50 + 10 + 11);
    b[1]->is_source = true;
    CHECK_EQ(kc_views_bytes(&v), 30 + 4 + 50 + 11);
    /* A new buffer to which no view points is dropped, one with values stays. */
    v.backing = b[0];
    CHECK_EQ(kc_views_open(&v, bytes_of[0], bytes_of[0] + 5, NULL, &error), KC_OK);
    CHECK_EQ(kc_views_count(&v), 7);
    kc_views_close(&v, NULL);
    CHECK_EQ(kc_views_count(&v), 6);
    CHECK_EQ(b[0]->references, 3);
    v.backing = b[2];
    CHECK_EQ(kc_views_open(&v, bytes_of[2] + 60, bytes_of[2] + 70, NULL, &error), KC_OK);
    kc_views_close(&v, NULL);
    CHECK_EQ(kc_views_count(&v), 6);
    kc_views_free(&v, NULL);
    for (int i = 0; i < 3; i++) CHECK_EQ(b[i]->references, 1);
    for (int i = 0; i < 3; i++) kc_backing_release(b[i]);
}

/* Decodes one batch whose records the caller provides, as if they had been compressed. */
static bool provide_sample(kc_decoder *d, kc_table *t, kc_budget *budget, bytes *data) {
    bytes records;
    kc_error error = {0};
    data->size = 0;
    sample_records(&records);
    add_batch(data, KC_CODEC_LZ4, 4, &records);
    kc_decoder_init(d, data->data, data->size, &OPTIONS);
    if (kc_decoder_run(d, t, 100, 1000, &error) != KC_EVENT_COMPRESSED) return false;
    d->provided = kc_backing_new(records.size, 0, budget, &error);
    if (!d->provided) return false;
    memcpy(d->provided->owned, records.data, records.size);
    d->provided->size = records.size;
    if (kc_decoder_provide(d, d->provided->data, records.size, &error)) return false;
    return kc_decoder_run(d, t, 100, 1000, &error) == KC_EVENT_END;
}

TEST(views_into_decompressed_records_belong_to_the_table) {
    const size_t before = kc_live_bytes();
    bytes data;
    kc_decoder d;
    kc_budget *budget = kc_budget_new(1 << 20, "too much");
    kc_table *t = new_table();
    CHECK(provide_sample(&d, t, budget, &data));
    CHECK_EQ(budget->left, (1 << 20) - d.provided->capacity);
    kc_backing_release(d.provided);
    CHECK(has_sample(t, 0));
    CHECK(kc_views_bytes(&t->views) > 2 * strlen(LONG));
    CHECK_EQ(kc_table_bytes(t) > kc_views_bytes(&t->views), 1);
    kc_table_release(t);
    CHECK_EQ(budget->left, 1 << 20);
    kc_budget_release(budget);
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(views_can_be_given_copies_of_their_own) {
    const size_t before = kc_live_bytes();
    bytes data = {.size = 0};
    sample_batch(&data);
    kc_error error = {0};
    kc_decoder d;
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    d.held = kc_backing_of(data.data, data.size, NULL, NULL, NULL, &error);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(d.held->references, 2);
    CHECK_EQ(kc_views_own(&t->views, d.held, NULL, &error), KC_OK);
    CHECK_EQ(d.held->references, 1);
    memset(data.data, 0, data.size);
    CHECK(has_sample(t, 0));
    kc_table_release(t);
    kc_backing_release(d.held);
    CHECK_EQ(kc_live_bytes(), before);
}

/* Decompressed records are kept as a whole while a view points into them, and count once. */
TEST(views_count_the_records_that_they_keep) {
    static const uint8_t content[100];
    kc_error error = {0};
    kc_views v = {.reach = 100};
    v.backing = kc_backing_of(content, 100, NULL, NULL, NULL, &error);
    CHECK_EQ(kc_views_open(&v, content + 10, content + 20, NULL, &error), KC_OK);
    kc_views_close(&v, content + 20);
    CHECK_EQ(kc_views_bytes(&v), 10);
    kc_views_keep(&v, content, 40);
    CHECK_EQ(kc_views_bytes(&v), 40);
    kc_views_keep(&v, content, 40);
    CHECK_EQ(kc_views_bytes(&v), 40);
    kc_views_keep(&v, content + 20, 30); /* no view points there */
    CHECK_EQ(kc_views_bytes(&v), 40);
    CHECK_EQ(kc_views_open(&v, content + 20, content + 30, NULL, &error), KC_OK);
    kc_views_close(&v, content + 21);
    kc_views_keep(&v, content + 20, 30);
    CHECK_EQ(kc_views_bytes(&v), 70);
    kc_backing *const backing = v.backing;
    kc_views_free(&v, NULL);
    kc_backing_release(backing);
}

TEST(tables_of_views_join) {
    const size_t before = kc_live_bytes();
    bytes data = {.size = 0}, other, records;
    sample_batch(&data);
    sample_records(&records);
    kc_error error = {0};
    kc_decoder d, e;
    kc_table *t = new_table(), *u = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    d.held = kc_backing_of(data.data, data.size, NULL, NULL, NULL, &error);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK(provide_sample(&e, u, NULL, &other));
    d.held->is_source = true;
    CHECK_EQ(kc_views_bytes(&t->views), 0);
    CHECK_EQ(kc_views_bytes(&u->views), records.size);
    kc_backing_release(d.held);
    kc_backing_release(e.provided);
    CHECK(kc_table_fits(t, u, 0));
    CHECK_EQ(kc_table_move(t, u, &error), KC_OK);
    CHECK_EQ(u->length, 0);
    CHECK_EQ(u->columns[KC_COL_VALUE].viewed, 0);
    CHECK_EQ(kc_views_count(&u->views), 0);
    CHECK_EQ(kc_views_bytes(&u->views), 0);
    CHECK_EQ(kc_views_count(&t->views), 2);
    CHECK_EQ(kc_views_bytes(&t->views), records.size);
    kc_table_release(u);
    CHECK(has_sample(t, 0) && has_sample(t, 4));
    CHECK_EQ(t->columns[KC_COL_VALUE].viewed, 2 * (strlen(LONG) + 12));
    kc_table_release(t);
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(nulls_of_views_are_zeros) {
    kc_error error = {0};
    kc_table *t = new_table();
    kc_column *c = &t->columns[KC_COL_VALUE];
    CHECK_EQ(kc_column_reserve(c, 5, 0, &error), KC_OK);
    memset(c->values.data, 0xff, 5 * sizeof(kc_view));
    CHECK_EQ(kc_column_append_nulls(c, 3, &error), KC_OK);
    CHECK_EQ(kc_column_append_nulls(c, 2, &error), KC_OK);
    CHECK_EQ(c->null_count, 5);
    CHECK_EQ(c->values.size, 5 * sizeof(kc_view));
    for (size_t i = 0; i < c->values.size; i++) CHECK_EQ(c->values.data[i], 0);
    kc_table_release(t);
}

TEST(arrow_takes_views_with_their_buffers) {
    const size_t before = kc_live_bytes();
    bytes data = {.size = 0};
    sample_batch(&data);
    sample_batch(&data);
    kc_error error = {0};
    kc_decoder d;
    kc_table *t = new_table();
    t->views.reach = data.size / 2;
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    d.held = kc_backing_of(data.data, data.size, NULL, NULL, NULL, &error);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    kc_backing_release(d.held);
    struct ArrowSchema schema;
    struct ArrowArray array;
    CHECK_EQ(kc_arrow_export_schema(t, &schema, &error), KC_OK);
    CHECK_EQ(kc_arrow_export_array(t, &array, &error), KC_OK);
    kc_table_release(t);
    CHECK(strcmp(schema.children[3]->format, "vz") == 0 && strcmp(schema.children[4]->format, "vz") == 0);
    const struct ArrowArray *value = array.children[4];
    CHECK_EQ(value->length, 8);
    CHECK_EQ(value->null_count, 2);
    CHECK_EQ(value->n_buffers, 5);
    const int64_t *sizes = value->buffers[4];
    const kc_view *views = value->buffers[1];
    CHECK(value->buffers[2] == data.data + KC_BATCH_HEADER_SIZE);
    CHECK(value->buffers[3] == data.data + data.size / 2 + KC_BATCH_HEADER_SIZE);
    CHECK_EQ(sizes[0], sizes[1]);
    CHECK_EQ(views[4].size, strlen(LONG));
    CHECK_EQ(views[4].at.far.buffer, 1);
    CHECK(memcmp((const uint8_t *)value->buffers[3] + views[4].at.far.position, LONG, strlen(LONG)) == 0);
    CHECK(memcmp(views[4].at.far.prefix, LONG, 4) == 0);
    array.release(&array);
    schema.release(&schema);
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(backings_keep_within_a_budget) {
    kc_error error = {0};
    kc_budget *budget = kc_budget_new(1000, "too much");
    kc_backing *b = kc_backing_new(100, 4000, budget, &error); /* more is not to be had */
    CHECK(b != NULL);
    CHECK_EQ(b->capacity, 100);
    CHECK(kc_backing_new(901, 0, budget, &error) == NULL);
    CHECK_EQ(error.code, KC_TOTAL_LIMIT);
    CHECK(kc_backing_of((const uint8_t *)LONG, 901, budget, NULL, NULL, &error) == NULL);
    kc_backing *other = kc_backing_of((const uint8_t *)LONG, 900, budget, NULL, NULL, &error);
    CHECK(other != NULL);
    CHECK_EQ(budget->left, 0);
    kc_backing_release(b);
    kc_backing_release(other);
    CHECK_EQ(budget->left, 1000);
    b = kc_backing_new(10, 120, budget, &error);
    CHECK_EQ(b->capacity, 120);
    kc_backing_release(b);
    kc_backing_release(NULL);
    kc_budget_release(budget);
}
