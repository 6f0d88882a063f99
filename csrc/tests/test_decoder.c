#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

static const int64_t *ints(const kc_table *t, int column) {
    return (const int64_t *)(const void *)t->columns[column].values.data;
}

static bool is_null(const kc_column *c, int64_t row) {
    return c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1);
}

static bool cell_is(const kc_column *c, int64_t row, const char *text) {
    const int32_t *ends = (const int32_t *)(const void *)c->values.data;
    const size_t size = (size_t)(ends[row + 1] - ends[row]);
    return !is_null(c, row) && size == strlen(text) && memcmp(c->data.data + ends[row], text, size) == 0;
}

static kc_table *new_table(void) { return kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED); }

static void sample_records(bytes *records) {
    records->size = 0;
    add_record(records, 0, 0, "k", "value", NULL, NULL);
    add_record(records, 1, -5, NULL, "", "h", "x");
    add_record(records, 4, 7, "", NULL, "n", NULL);
}

enum { RECORD_BYTES = 13 + 11 + 10 };

static void sample_batch(bytes *data, int attributes) {
    bytes records;
    sample_records(&records);
    data->size = 0;
    add_batch(data, attributes, 3, &records);
}

TEST(decoder_reads_a_batch) {
    bytes data;
    sample_batch(&data, 0);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    CHECK(t != NULL);
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 3);
    CHECK_EQ(d.position, data.size);
    CHECK_EQ(ints(t, KC_COL_OFFSET)[0], 100);
    CHECK_EQ(ints(t, KC_COL_OFFSET)[2], 104);
    CHECK_EQ(ints(t, KC_COL_TIMESTAMP)[1], 995);
    CHECK(cell_is(&t->columns[KC_COL_KEY], 0, "k"));
    CHECK(is_null(&t->columns[KC_COL_KEY], 1));
    CHECK(cell_is(&t->columns[KC_COL_KEY], 2, ""));
    CHECK(cell_is(&t->columns[KC_COL_VALUE], 0, "value"));
    CHECK(cell_is(&t->columns[KC_COL_VALUE], 1, ""));
    CHECK(is_null(&t->columns[KC_COL_VALUE], 2));
    const kc_column *entries = t->columns[KC_COL_HEADERS].children;
    CHECK_EQ(entries->length, 2);
    CHECK(cell_is(&entries->children[0], 0, "h"));
    CHECK(cell_is(&entries->children[1], 0, "x"));
    CHECK(is_null(&entries->children[1], 1));
    CHECK_EQ(((const int32_t *)(const void *)t->columns[KC_COL_SEQUENCE].values.data)[2], 44);
    CHECK_EQ(ints(t, KC_COL_PRODUCER_ID)[0], 55);
    CHECK(cell_is(&t->columns[KC_COL_CODEC], 0, "none"));
    kc_table_release(t);
}

TEST(decoder_gives_append_time_for_every_record) {
    bytes data;
    sample_batch(&data, KC_LOG_APPEND_TIME);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    for (int row = 0; row < 3; row++) CHECK_EQ(ints(t, KC_COL_TIMESTAMP)[row], 2000);
    CHECK_EQ(t->columns[KC_COL_TIMESTAMP_TYPE].values.data[1], 1);
    kc_table_release(t);
}

TEST(decoder_stops_at_rows_and_bytes) {
    bytes data;
    sample_batch(&data, 0);
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        kc_decoder d;
        kc_error error = {0};
        kc_decoder_init(&d, data.data, data.size, &OPTIONS);
        int64_t rows = 0;
        kc_event event;
        do {
            kc_table *t = new_table();
            event = kc_decoder_run(&d, t, by_rows ? 1 : 100, by_rows ? 1000 : 1, &error);
            CHECK(t->length <= (by_rows ? 1 : 3));
            rows += t->length;
            kc_table_release(t);
        } while (event == KC_EVENT_FULL);
        CHECK_EQ(event, KC_EVENT_END);
        CHECK_EQ(rows, 3);
    }
}

TEST(decoder_leaves_a_partial_batch_and_padding) {
    bytes data;
    sample_batch(&data, 0);
    const size_t whole = data.size;
    kc_error error = {0};
    for (size_t cut = 0; cut < whole; cut++) {
        kc_decoder d;
        kc_table *t = new_table();
        kc_decoder_init(&d, data.data, cut, &OPTIONS);
        CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
        CHECK_EQ(t->length, 0);
        CHECK_EQ(d.position, 0);
        kc_table_release(t);
    }
    memset(data.data + whole, 0, 100);
    kc_decoder d;
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, whole + 100, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(d.position, whole);
    kc_table_release(t);
}

/* Sets one byte of a fresh sample batch, corrects the checksum, and decodes it. */
static kc_error fault_of(size_t at, uint8_t byte, bool correct, kc_decoder *d) {
    bytes data;
    sample_batch(&data, 0);
    data.data[at] = byte;
    if (correct) kc_store_u32(data.data + 17, kc_crc32c(0, data.data + 21, data.size - 21));
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(d, data.data, data.size, &OPTIONS);
    kc_event event = kc_decoder_run(d, t, 100, 1000, &error);
    if (event == KC_EVENT_COMPRESSED) error.code = -1;
    if (event == KC_EVENT_END) error.code = KC_OK;
    kc_table_release(t);
    return error;
}

TEST(decoder_refuses_faults) {
    /* `located`: the fault is inside the batch; `verified`: the checksum is right, and so is the size. */
    static const struct {
        size_t at;
        uint8_t byte;
        bool corrected, located, verified;
        int code;
        uint64_t position;
        int64_t got, want;
    } CASES[] = {
        {16, 3, false, false, false, KC_BAD_MAGIC, 16, 3, 2},
        {16, 0xff, false, false, false, KC_BAD_MAGIC, 16, -1, 2},
        {8, 0xff, false, false, false, KC_CORRUPT, 8, (int32_t)(0xff000000 | (49 + RECORD_BYTES)), 14},
        {22, 5, true, true, true, KC_BAD_CODEC, 22, 5, 0},
        {22, 1, true, true, true, -1, 0, 0, 0},                      /* asks for decompression */
        {60, 2, true, true, true, KC_CORRUPT, 61 + 24, 10, 0},       /* fewer records than bytes */
        {60, 4, true, true, true, KC_CORRUPT, 61 + 34, 0, 0},        /* more: the fourth has no length */
        {60, 5, true, true, true, KC_CORRUPT, 61, RECORD_BYTES, 35}, /* more than fit */
        {57, 0xff, true, true, true, KC_CORRUPT, 61, -0xfffffd, 0},  /* a negative count */
        {57, 0x7f, true, true, true, KC_CORRUPT, 61, RECORD_BYTES, INT64_C(0x7f000003) * 7},
        {61, 0, true, true, true, KC_CORRUPT, 61, 0, RECORD_BYTES - 1},    /* record length 0 */
        {61, 25, true, true, true, KC_CORRUPT, 61, -13, RECORD_BYTES - 1}, /* the negative of the right one */
        {61, 1, true, true, true, KC_CORRUPT, 61, -1, RECORD_BYTES - 1},   /* -1 */
        {65, 0x7e, true, true, true, KC_CORRUPT, 61, 63, 8},               /* a key of 63 bytes */
        {12, 9, false, true, true, KC_OK, 0, 0, 0},                        /* the checksum excludes the leader epoch */
    };
    kc_decoder d;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const kc_error error = fault_of(CASES[i].at, CASES[i].byte, CASES[i].corrected, &d);
        CHECK_EQ(error.code, CASES[i].code);
        if (error.code <= KC_OK) continue;
        CHECK_ERROR(error, CASES[i].code, CASES[i].position, CASES[i].got, CASES[i].want);
        CHECK_EQ(d.located, CASES[i].located);
        CHECK_EQ(d.verified, CASES[i].verified);
    }
    const kc_error error = fault_of(17, 1, false, &d);
    bytes data;
    sample_batch(&data, 0);
    const uint32_t crc = kc_load_u32(data.data + 17);
    CHECK_ERROR(error, KC_CRC_MISMATCH, 0, crc, (crc & 0xffffff) | 1 << 24);
    CHECK(d.located && !d.verified);
}

TEST(decoder_takes_decompressed_records) {
    bytes records, data = {.size = 0}, stored = {.size = 0};
    sample_records(&records);
    add(&stored, "packed", 6);
    add_batch(&data, KC_CODEC_ZSTD, 3, &stored);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED); /* until it is given */
    CHECK_EQ(d.batch.records_size, 6);
    CHECK_EQ(kc_decoder_provide(&d, records.data, records.size, &error), KC_OK);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 3);
    kc_table_release(t);
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    t = new_table();
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED);
    CHECK_EQ(kc_decoder_provide(&d, records.data, 4, &error), KC_CORRUPT);
    CHECK_EQ(error.position, 0); /* of the batch: there are no positions inside */
    kc_table_release(t);
}

TEST(decoder_skips_a_faulty_batch) {
    bytes data, bad;
    sample_batch(&data, 0);
    sample_batch(&bad, 0);
    bad.data[30] ^= 1;
    const size_t one = data.size;
    add(&data, bad.data, bad.size);
    sample_batch(&bad, 0);
    add(&data, bad.data, bad.size);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_FAULT);
    CHECK_EQ(error.code, KC_CRC_MISMATCH);
    CHECK_EQ(error.position, one);
    CHECK_EQ(t->length, 3);
    CHECK_EQ(kc_decoder_skip(&d), one);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 6);
    kc_table_release(t);
}

TEST(decoder_reads_only_the_offsets_asked_for) {
    static const struct {
        int64_t start, end, rows, first;
    } CASES[] = {
        {INT64_MIN, INT64_MAX, 3, 100}, {101, 104, 1, 101},       {101, INT64_MAX, 2, 101}, {INT64_MIN, 104, 2, 100},
        {102, INT64_MAX, 1, 104},       {INT64_MIN, 101, 1, 100}, {102, 104, 0, 0},         {INT64_MIN, 100, 0, 0},
    };
    static const uint64_t COLUMNS[] = {KC_WANT_DECODED, KC_WANT_RECORD, KC_WANT_NO_HEADERS,
                                       KC_WANT_PAYLOAD | 1u << KC_COL_OFFSET, 1u << KC_COL_OFFSET};
    bytes data;
    sample_batch(&data, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        for (size_t k = 0; k < sizeof COLUMNS / sizeof *COLUMNS; k++) {
            kc_decoder_options some = OPTIONS;
            some.start_offset = CASES[i].start;
            some.end_offset = CASES[i].end;
            kc_decoder d;
            kc_error error = {0};
            kc_table *t = kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, COLUMNS[k]);
            kc_decoder_init(&d, data.data, data.size, &some);
            CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
            CHECK_EQ(t->length, CASES[i].rows);
            if (CASES[i].rows) CHECK_EQ(ints(t, KC_COL_OFFSET)[0], CASES[i].first);
            kc_table_release(t);
        }
    }
}

TEST(decoder_reads_messages_of_all_magics_in_one_run) {
    bytes data = {.size = 0}, batch;
    add_message(&data, 0, 0, 5, 0, "k", "a", 1);
    add_message(&data, 1, 0, 6, 777, NULL, NULL, -1);
    sample_batch(&batch, 0);
    add(&data, batch.data, batch.size);
    add_message(&data, 1, KC_LOG_APPEND_TIME, 200, 888, NULL, "z", 1);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 6);
    CHECK_EQ(ints(t, KC_COL_OFFSET)[1], 6);
    CHECK(is_null(&t->columns[KC_COL_TIMESTAMP], 0));
    CHECK_EQ(ints(t, KC_COL_TIMESTAMP)[1], 777);
    CHECK(is_null(&t->columns[KC_COL_VALUE], 1));
    CHECK(is_null(&t->columns[KC_COL_PRODUCER_ID], 5));
    const int8_t *types = (const int8_t *)t->columns[KC_COL_TIMESTAMP_TYPE].values.data;
    CHECK_EQ(types[0], -1);
    CHECK_EQ(types[1], 0);
    CHECK_EQ(types[5], 1);
    kc_table_release(t);
}

/* A wrapper of `magic` and `offset` around two messages with offsets `first` and `last`; the code and first offset. */
static int wrapped(int magic, int64_t offset, int64_t first, int64_t last, int inner_attributes, int64_t *got) {
    bytes inner = {.size = 0}, data = {.size = 0};
    add_message(&inner, magic, inner_attributes, first, 10, NULL, "a", 1);
    add_message(&inner, magic, 0, last, 11, NULL, "b", 1);
    add_message(&data, magic, KC_CODEC_GZIP | KC_LOG_APPEND_TIME, offset, 99, NULL, "packed", 6);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    kc_event event = kc_decoder_run(&d, t, 100, 1000, &error);
    if (event == KC_EVENT_COMPRESSED && !kc_decoder_provide(&d, inner.data, inner.size, &error)) {
        event = kc_decoder_run(&d, t, 100, 1000, &error);
        if (event == KC_EVENT_END && t->length == 2) {
            *got = ints(t, KC_COL_OFFSET)[0];
            if (magic && ints(t, KC_COL_TIMESTAMP)[0] != 99) error.code = -1;
        }
    }
    kc_table_release(t);
    return error.code;
}

TEST(decoder_resolves_inner_offsets) {
    int64_t got = -1;
    CHECK_EQ(wrapped(0, 50, 48, 50, 0, &got), KC_OK);
    CHECK_EQ(got, 48);
    CHECK_EQ(wrapped(1, 50, 0, 7, 0, &got), KC_OK);
    CHECK_EQ(got, 43);
    CHECK_EQ(wrapped(1, 0, 0, 7, 0, &got), KC_OK);
    CHECK_EQ(got, 0);
    CHECK_EQ(wrapped(1, 5, 0, 7, 0, &got), KC_CORRUPT);
    CHECK_EQ(wrapped(1, INT64_MAX, INT64_MIN, -1, 0, &got), KC_OK); /* wraps around, as any sum of a stranger's */
    CHECK_EQ(wrapped(1, 50, 0, 7, KC_CODEC_LZ4, &got), KC_CORRUPT); /* a second level */
}

TEST(decoder_gives_back_all_memory) {
    const size_t before = kc_live_bytes();
    bytes data;
    sample_batch(&data, 0);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table(), *u = new_table();
    for (int i = 0; i < 2; i++) {
        kc_decoder_init(&d, data.data, data.size, &OPTIONS);
        CHECK_EQ(kc_decoder_run(&d, i ? t : u, 100, 1000, &error), KC_EVENT_END);
    }
    CHECK_EQ(kc_table_move(u, t, &error), KC_OK);
    CHECK_EQ(t->length, 0);
    CHECK_EQ(t->columns[KC_COL_VALUE].data.capacity, 0);
    CHECK_EQ(u->length, 6);
    CHECK(cell_is(&u->columns[KC_COL_VALUE], 3, "value"));
    CHECK(is_null(&u->columns[KC_COL_VALUE], 5));
    CHECK_EQ(u->columns[KC_COL_HEADERS].children->length, 4);
    kc_table_release(t);
    kc_table_release(u);
    CHECK_EQ(kc_live_bytes(), before);
}

/* One run into a table of that budget; what is left of it when the table is gone goes to *left. */
static int run_within(const bytes *data, size_t limit, size_t *used, size_t *left) {
    kc_error error = {0};
    kc_budget *budget = kc_budget_new(limit, "the table passes the limit");
    kc_table *t = kc_table_new_within(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED, budget, &error);
    if (t) {
        kc_decoder d;
        kc_decoder_init(&d, data->data, data->size, &OPTIONS);
        kc_decoder_run(&d, t, 100, 1000, &error);
        *used = limit - budget->left;
        kc_table_release(t);
    }
    *left = budget->left;
    kc_budget_release(budget);
    return error.code;
}

TEST(decoder_keeps_within_a_budget) {
    const size_t before = kc_live_bytes();
    bytes data;
    sample_batch(&data, 0);
    size_t enough = 0, left = 0, used = 0;
    CHECK_EQ(run_within(&data, 1 << 20, &enough, &left), KC_OK);
    CHECK_EQ(left, 1 << 20);
    for (size_t limit = 0; limit < enough; limit++) {
        const int code = run_within(&data, limit, &used, &left);
        CHECK(code == KC_OK || code == KC_TOTAL_LIMIT); /* close to the limit less is taken in advance */
        CHECK(used <= limit);
        CHECK_EQ(left, limit);
    }
    CHECK_EQ(run_within(&data, enough, &used, &left), KC_OK);
    CHECK_EQ(run_within(&data, 8, &used, &left), KC_TOTAL_LIMIT);
    CHECK_EQ(kc_live_bytes(), before);
}

/* Decodes all: how it ends, and the number of rows. */
static void decode_all(const bytes *data, const kc_decoder_options *options, kc_event *event, int64_t *rows,
                       kc_error *error) {
    kc_decoder d;
    kc_table *t = new_table();
    CHECK(t != NULL);
    kc_decoder_init(&d, data->data, data->size, options);
    *event = kc_decoder_run(&d, t, 100, 1000, error);
    *rows = t->length;
    kc_table_release(t);
}

/* Two batches, of which the second begins at `second`: the position of the fault, or -1 for none, and the rows. */
static void check_order(int64_t second, int64_t least, int64_t most, int64_t fault, int64_t rows) {
    bytes data, records;
    sample_batch(&data, 0);
    sample_records(&records);
    const size_t first_size = data.size;
    add_batch(&data, 0, 3, &records);
    kc_store_u64(data.data + first_size, (uint64_t)second);
    kc_decoder_options options = OPTIONS;
    options.in_order = true;
    options.least_offset = least;
    options.most_offset = most;
    kc_error error = {0};
    kc_event event = KC_EVENT_END;
    int64_t found = -1;
    decode_all(&data, &options, &event, &found, &error);
    CHECK_EQ(found, rows);
    CHECK_EQ(event, fault < 0 ? KC_EVENT_END : KC_EVENT_FAULT);
    if (fault >= 0) {
        CHECK_EQ(error.code, KC_OUT_OF_ORDER);
        CHECK_EQ(error.position, fault);
    }
}

TEST(decoder_refuses_batches_out_of_order) {
    check_order(103, 100, 105, -1, 6);
    check_order(102, 100, 105, 0, 0); /* before the first of the two, since either may be wrong */
    check_order(103, 101, 105, 0, 0);
    check_order(103, 100, 104, 0, 0); /* batches before it may be wrong as well */
    check_order(INT64_MIN, 100, 105, 0, 0);
    check_order(INT64_MAX - 2, 100, 105, 0, 0);
}

TEST(decoder_leaves_compressed_sets_to_be_compared) {
    for (int magic = 0; magic < 2; magic++) {
        for (int compared = 0; compared < 2; compared++) {
            bytes data = {.size = 0};
            add_message(&data, (int8_t)magic, KC_CODEC_GZIP, 20, 5, NULL, "packed", 6);
            kc_decoder_options options = OPTIONS;
            options.in_order = true;
            options.sets_compared = compared;
            options.most_offset = 50;
            kc_error error = {0};
            kc_event event = KC_EVENT_END;
            int64_t rows = -1;
            decode_all(&data, &options, &event, &rows, &error);
            const bool refused = magic && !compared; /* the contents of magic 0 have their offsets */
            CHECK_EQ(event, refused ? KC_EVENT_FAULT : KC_EVENT_COMPRESSED);
            CHECK_EQ(error.code, refused ? KC_OUT_OF_ORDER : KC_OK);
        }
    }
}

TEST(decoder_refuses_messages_out_of_order) {
    kc_decoder_options options = OPTIONS;
    options.in_order = true;
    options.most_offset = 50;
    for (int64_t third = 5; third < 60; third += 9) {
        bytes data;
        data.size = 0;
        add_message(&data, 0, 0, 5, 0, "k", "a", 1);
        add_message(&data, 1, 0, 6, 777, NULL, NULL, -1);
        add_message(&data, 1, 0, third, 888, NULL, "z", 1);
        kc_error error = {0};
        kc_event event = KC_EVENT_END;
        int64_t rows = -1;
        decode_all(&data, &options, &event, &rows, &error);
        CHECK_EQ(event, third > 6 && third <= 50 ? KC_EVENT_END : KC_EVENT_FAULT);
        CHECK_EQ(rows, third > 6 && third <= 50 ? 3 : 0);
        if (event == KC_EVENT_FAULT) CHECK_EQ(error.position, 0);
    }
}
