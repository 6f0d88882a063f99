/* Faults of messages of magic 0 and 1, of wrappers, and what the decoder leaves out on request. */
#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

static kc_table *new_table(uint32_t want) { return kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, want); }

static int64_t long_at(const kc_table *t, int column, int64_t row) {
    return ((const int64_t *)(const void *)t->columns[column].values.data)[row];
}

/* Corrects the checksum of the message at `at`. */
static void correct(bytes *b, size_t at) {
    kc_store_u32(b->data + at + 12, kc_crc32(0, b->data + at + 16, b->size - at - 16));
}

/* Bytes after a good message of 28 bytes; positions count from the start of the data. */
static kc_error fault_after_one(const bytes *second, kc_decoder *d, int64_t *rows) {
    static bytes data;
    data.size = 0;
    add_message(&data, 0, 0, 5, 0, "k", "v", 1);
    add(&data, second->data, second->size);
    kc_error error = {0};
    kc_table *t = new_table(KC_WANT_DECODED);
    kc_decoder_init(d, data.data, data.size, &OPTIONS);
    const kc_event event = kc_decoder_run(d, t, 100, 10000, &error);
    *rows = t->length;
    kc_table_release(t);
    if ((event == KC_EVENT_FAULT) != (error.code != KC_OK)) error.code = -1;
    return error;
}

TEST(messages_faults_tell_where_and_what) {
    static const struct {
        int magic;
        unsigned at;
        uint8_t byte;
        bool corrected;
        int code;
        uint64_t position;
        int64_t got, want;
    } CASES[] = {
        {0, 21, 2, true, KC_OK, 0, 0, 0}, /* nothing changed */
        {0, 21, 9, true, KC_CORRUPT, 28 + 22, 9, 5},
        {0, 21, 3, true, KC_CORRUPT, 28 + 29, 0, 2},
        {0, 27, 4, true, KC_CORRUPT, 28 + 28, 4, 3},
        {0, 27, 2, true, KC_CORRUPT, 28 + 28, 2, 3},
        {0, 24, 0x80, true, KC_CORRUPT, 28 + 28, INT32_MIN + 3, 3},
        {1, 29, 9, true, KC_CORRUPT, 28 + 30, 9, 5},
        {1, 35, 4, true, KC_CORRUPT, 28 + 36, 4, 3},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bytes b = {.size = 0};
        kc_decoder d;
        int64_t rows;
        add_message(&b, CASES[i].magic, 0, 6, 1234, "ab", "cde", 3);
        b.data[CASES[i].at] = CASES[i].byte;
        if (CASES[i].corrected) correct(&b, 0);
        const kc_error error = fault_after_one(&b, &d, &rows);
        CHECK_EQ(error.code, CASES[i].code);
        CHECK_EQ(rows, error.code ? 1 : 2);
        if (!error.code) continue;
        CHECK_EQ(d.position, 28);
        if (CASES[i].at == 21 && CASES[i].byte == 3) continue; /* sizes move into one another */
        CHECK_ERROR(error, KC_CORRUPT, CASES[i].position, CASES[i].got, CASES[i].want);
        CHECK(d.verified && d.located);
        CHECK_EQ(kc_decoder_record(&d), -1); /* the batch is the record */
        CHECK_EQ(kc_decoder_skip(&d), b.size);
    }
    bytes b = {.size = 0};
    kc_decoder d;
    int64_t rows;
    add_message(&b, 1, 0, 6, 1234, NULL, NULL, -1); /* magic 1, as long as one of magic 0 */
    kc_store_u32(b.data + 8, 21);
    b.size = 33;
    correct(&b, 0);
    kc_error error = fault_after_one(&b, &d, &rows);
    CHECK_ERROR(error, KC_CORRUPT, 28 + 8, 33, 34);
    b = (bytes){.size = 0};
    add_message(&b, 1, 0, 6, 1234, "ab", "cde", 3);
    const uint32_t stored = kc_load_u32(b.data + 12);
    kc_store_u32(b.data + 12, stored ^ 1);
    error = fault_after_one(&b, &d, &rows);
    CHECK_ERROR(error, KC_CRC_MISMATCH, 28, stored, stored ^ 1);
    CHECK(!d.verified);
}

TEST(messages_without_keys_and_values) {
    bytes data = {.size = 0};
    add_message(&data, 0, 0, 1, 0, NULL, NULL, -1);
    add_message(&data, 1, 0, 2, -1, "", "", 0); /* a timestamp of -1 is none */
    add_message(&data, 1, KC_LOG_APPEND_TIME, 3, 99, "k", NULL, -1);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table(KC_WANT_DECODED);
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), KC_EVENT_END);
    CHECK_EQ(t->columns[KC_COL_KEY].null_count, 1);
    CHECK_EQ(t->columns[KC_COL_VALUE].null_count, 2);
    CHECK_EQ(t->columns[KC_COL_VALUE].validity.data[0] & 7, 2);
    CHECK_EQ(t->columns[KC_COL_TIMESTAMP].null_count, 2);
    CHECK_EQ(long_at(t, KC_COL_TIMESTAMP, 1), KC_NOT_A_TIME);
    CHECK_EQ(long_at(t, KC_COL_TIMESTAMP, 2), 99);
    CHECK_EQ(long_at(t, KC_COL_BATCH_POSITION, 1), 26);
    CHECK_EQ(long_at(t, KC_COL_BATCH_OFFSET, 2), 3);
    CHECK_EQ(t->columns[KC_COL_MAGIC].values.data[1], 1);
    CHECK_EQ(t->columns[KC_COL_CODEC].data.size, 12);
    CHECK_EQ(t->columns[KC_COL_SEQUENCE].null_count, 3);
    CHECK_EQ(t->columns[KC_COL_IS_CONTROL].null_count, 0);
    kc_table_release(t);
}

/* ---- wrappers ---- */

static int64_t damaged; /* the index of the message at which wrapper_fault stopped; -1: none */

static kc_error wrapper_fault(const bytes *wrapper, const uint8_t *inner, size_t size) {
    kc_decoder d;
    kc_error error = {0};
    bytes data = {.size = 0};
    add_message(&data, 0, 0, 5, 0, "k", "v", 1);
    add(&data, wrapper->data, wrapper->size);
    kc_table *t = new_table(KC_WANT_RECORD);
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    if (kc_decoder_run(&d, t, 100, 10000, &error) == KC_EVENT_COMPRESSED &&
        !kc_decoder_provide(&d, inner, size, &error))
        (void)kc_decoder_run(&d, t, 100, 10000, &error);
    damaged = kc_decoder_record(&d);
    kc_table_release(t);
    return error;
}

TEST(messages_in_wrappers_are_whole_and_plain) {
    bytes wrapper = {.size = 0}, inner = {.size = 0};
    add_message(&wrapper, 1, KC_CODEC_GZIP, 20, 5, NULL, "packed", 6);
    add_message(&inner, 1, 0, 0, 5, NULL, "a", 1);
    const size_t one = inner.size;
    add_message(&inner, 1, 0, 1, 5, NULL, "bc", 2);
    kc_error error = wrapper_fault(&wrapper, inner.data, inner.size);
    CHECK_EQ(error.code, KC_OK);
    error = wrapper_fault(&wrapper, inner.data, 0);
    CHECK_ERROR(error, KC_CORRUPT, 28, 0, 0);
    error = wrapper_fault(&wrapper, inner.data, inner.size - 1);
    CHECK_ERROR(error, KC_CORRUPT, 28, (int64_t)(inner.size - one - 12), (int64_t)(inner.size - one - 13));
    error = wrapper_fault(&wrapper, inner.data, one + 11); /* not even a length */
    CHECK_ERROR(error, KC_CORRUPT, 28, 0, -1);
    inner.data[one + 16] = 2;
    error = wrapper_fault(&wrapper, inner.data, inner.size);
    CHECK_ERROR(error, KC_BAD_MAGIC, 28, 2, 0);
    inner.data[one + 16] = 1;
    inner.data[one + 17] = KC_CODEC_GZIP;
    error = wrapper_fault(&wrapper, inner.data, inner.size);
    CHECK_ERROR(error, KC_CORRUPT, 28, 0, 0);
    inner.data[one + 17] = 0;
    inner.data[one + 13] ^= 1; /* a checksum inside */
    const uint32_t stored = kc_load_u32(inner.data + one + 12);
    error = wrapper_fault(&wrapper, inner.data, inner.size);
    CHECK_ERROR(error, KC_CRC_MISMATCH, 28, stored ^ 1 << 16, stored);
    CHECK_EQ(damaged, 1);
    bytes smaller = {.size = 0}, nothing = {.size = 0};
    add_message(&smaller, 1, KC_CODEC_GZIP, 3, 5, NULL, "packed", 6);
    kc_store_u64(inner.data + one, 4);
    error = wrapper_fault(&smaller, inner.data, inner.size);
    CHECK_ERROR(error, KC_CORRUPT, 28, 3, 4);
    add_message(&nothing, 1, KC_CODEC_GZIP, 3, 5, NULL, NULL, -1);
    error = wrapper_fault(&nothing, inner.data, inner.size);
    CHECK_ERROR(error, KC_CORRUPT, 28, -1, 0);
    bytes empty = {.size = 0}, least = {.size = 0};
    add_message(&empty, 1, KC_CODEC_GZIP, 3, 5, NULL, "", 0);
    error = wrapper_fault(&empty, inner.data, inner.size);
    CHECK_ERROR(error, KC_CORRUPT, 28, 0, 0);
    add_message(&least, 1, KC_CODEC_GZIP, 0, 5, NULL, "x", 1);
    inner.data[one + 13] ^= 1;
    error = wrapper_fault(&least, inner.data, inner.size);
    CHECK_EQ(error.code, KC_OK);
    bytes zstd = {.size = 0};
    add_message(&zstd, 1, KC_CODEC_ZSTD, 3, 5, NULL, "packed", 6);
    error = wrapper_fault(&zstd, inner.data, inner.size);
    CHECK_ERROR(error, KC_BAD_CODEC, 28 + 17, KC_CODEC_ZSTD, 0);
}

/* ---- what is left out ---- */

static kc_table *decode(const bytes *data, const kc_decoder_options *options) {
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table(KC_WANT_DECODED);
    kc_decoder_init(&d, data->data, data->size, options);
    if (kc_decoder_run(&d, t, 100, 10000, &error) == KC_EVENT_END) return t;
    kc_table_release(t);
    return NULL;
}

TEST(decoder_leaves_out_control_and_aborted_batches) {
    bytes records = {.size = 0}, data = {.size = 0};
    add_record(&records, 0, 0, "k", "v", NULL, NULL);
    add_batch(&data, KC_TRANSACTIONAL, 1, &records); /* producer 55, offset 100 */
    add_batch(&data, KC_TRANSACTIONAL | KC_CONTROL, 1, &records);
    add_batch(&data, 0, 1, &records);
    kc_decoder_options options = OPTIONS;
    kc_table *t = decode(&data, &options);
    CHECK_EQ(t->length, 3);
    CHECK_EQ(t->columns[KC_COL_IS_CONTROL].values.data[0], 2);
    CHECK_EQ(t->columns[KC_COL_IS_TRANSACTIONAL].values.data[0], 3);
    kc_table_release(t);
    options.include_control = false;
    t = decode(&data, &options);
    CHECK_EQ(t->length, 2);
    kc_table_release(t);
    kc_aborted aborted = {55, 100, INT64_MAX};
    options.aborted = &aborted;
    options.num_aborted = 1;
    t = decode(&data, &options);
    CHECK_EQ(t->length, 1);
    CHECK_EQ(aborted.last_offset, 100);
    kc_table_release(t);
}

TEST(decoder_leaves_out_offsets_of_messages) {
    bytes data = {.size = 0};
    for (int i = 0; i < 6; i++) add_message(&data, i & 1, 0, 10 + i, 1, "k", "v", 1);
    for (int64_t start = 9; start < 17; start++) {
        for (int64_t end = start; end < 18; end++) {
            kc_decoder_options options = OPTIONS;
            options.start_offset = start;
            options.end_offset = end;
            const int64_t from = start < 10 ? 10 : start, to = end > 16 ? 16 : end;
            kc_table *t = decode(&data, &options);
            CHECK(t != NULL);
            CHECK_EQ(t->length, to > from ? to - from : 0);
            if (t->length) CHECK_EQ(long_at(t, KC_COL_OFFSET, 0), from);
            kc_table_release(t);
        }
    }
}

/* A batch outside the range is not verified; one that overlaps it is. */
TEST(decoder_passes_over_batches_outside_a_range) {
    bytes records = {.size = 0};
    static const struct {
        int64_t start, end;
        bool looked_at;
    } CASES[] = {{103, INT64_MAX, false}, {102, INT64_MAX, true}, {0, 100, false}, {0, 101, true}, {0, 50, false}};
    for (int i = 0; i < 3; i++) add_record(&records, i, 0, "k", "v", NULL, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bytes data = {.size = 0};
        add_batch(&data, 0, 3, &records);
        data.data[data.size - 1] ^= 1;
        kc_decoder_options options = OPTIONS;
        options.start_offset = CASES[i].start;
        options.end_offset = CASES[i].end;
        kc_table *t = decode(&data, &options);
        CHECK_EQ(t == NULL, CASES[i].looked_at);
        if (t) kc_table_release(t);
    }
    /* A wrapper has only its last offset; 0 may mean that it was not set. */
    static const struct {
        int64_t offset, start, end;
        kc_event event;
    } WRAPPERS[] = {{50, 51, INT64_MAX, KC_EVENT_END},
                    {50, 50, INT64_MAX, KC_EVENT_COMPRESSED},
                    {0, 51, INT64_MAX, KC_EVENT_COMPRESSED},
                    {50, 0, 10, KC_EVENT_COMPRESSED}};
    for (size_t i = 0; i < sizeof WRAPPERS / sizeof *WRAPPERS; i++) {
        bytes data = {.size = 0};
        kc_decoder d;
        kc_error error = {0};
        kc_decoder_options options = OPTIONS;
        options.start_offset = WRAPPERS[i].start;
        options.end_offset = WRAPPERS[i].end;
        add_message(&data, 1, KC_CODEC_GZIP, WRAPPERS[i].offset, 5, NULL, "packed", 6);
        kc_table *t = new_table(KC_WANT_RECORD);
        kc_decoder_init(&d, data.data, data.size, &options);
        CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), WRAPPERS[i].event);
        kc_table_release(t);
    }
}

TEST(decoder_searches_after_a_partial_batch_if_asked) {
    bytes data = {.size = 0};
    add_message(&data, 0, 0, 1, 0, "k", "v", 1);
    const size_t first = data.size;
    add_message(&data, 0, 0, 2, 0, "k", "v", 1);
    kc_store_u32(data.data + first + 8, 1000);
    const size_t second = data.size;
    add_message(&data, 0, 0, 3, 0, "k", "v", 1);
    for (int asked = 0; asked < 2; asked++) {
        kc_decoder d;
        kc_error error = {0};
        kc_decoder_options options = OPTIONS;
        options.search_partial = asked;
        kc_table *t = new_table(KC_WANT_RECORD);
        kc_decoder_init(&d, data.data, data.size, &options);
        CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), asked ? KC_EVENT_FAULT : KC_EVENT_END);
        CHECK_EQ(t->length, 1);
        if (asked) {
            CHECK_ERROR(error, KC_CORRUPT, first, 0, 0);
            CHECK_EQ(kc_decoder_skip(&d), second - first);
            CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), KC_EVENT_END);
            CHECK_EQ(t->length, 2);
        }
        kc_table_release(t);
    }
}

/* Rows and bytes of uncompressed batches by their headers; a count that the bytes cannot contain is ignored. */
TEST(decoder_estimates_from_headers) {
    bytes data = {.size = 0}, records = {.size = 0}, packed = {.size = 0};
    for (int i = 0; i < 3; i++) add_record(&records, i, 0, NULL, NULL, NULL, NULL); /* 21 bytes */
    add(&packed, "packed", 6);
    add_message(&data, 0, 0, 1, 0, "k", "v", 1);
    add_message(&data, 1, 0, 2, 0, "k", "v", 1);
    add_message(&data, 1, KC_CODEC_GZIP, 3, 0, NULL, "packed", 6);
    add_batch(&data, 0, 3, &records);
    const size_t end = data.size;
    add_batch(&data, 0, 4, &records);
    add_batch(&data, 0, -1, &records);
    add_batch(&data, KC_CODEC_GZIP, 3, &packed);
    kc_decoder d;
    int64_t rows;
    uint64_t size;
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    kc_decoder_estimate(&d, &rows, &size);
    CHECK_EQ(rows, 5);
    CHECK_EQ(size, 2 + 10 + 21);
    d.stop = end;
    kc_decoder_estimate(&d, &rows, &size);
    CHECK_EQ(rows, 5);
    d.stop = end - 1;
    kc_decoder_estimate(&d, &rows, &size);
    CHECK_EQ(rows, 5);
    d.stop = 62;
    kc_decoder_estimate(&d, &rows, &size);
    CHECK_EQ(rows, 2);
    d.position = 28;
    kc_decoder_estimate(&d, &rows, &size);
    CHECK_EQ(rows, 1);
    CHECK_EQ(size, 10);
}
