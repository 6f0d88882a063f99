/* Every fault of a record of magic 2 with its position, what was got and what was wanted; and all widths of varints. */
#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

static kc_table *new_table(void) { return kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED); }

/* The error of a batch of `count` records made of these bytes, read into the columns `want` from offset `start` on;
 * `rows` that came out before, and the index of the damaged record. */
static kc_error fault_in(const bytes *records, int32_t count, uint64_t want, int64_t start, int64_t *rows,
                         int64_t *record) {
    bytes data = {.size = 0};
    kc_decoder d;
    kc_error error = {0};
    kc_decoder_options options = OPTIONS;
    options.start_offset = start;
    kc_table *t = kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, want);
    add_batch(&data, 0, count, records);
    kc_decoder_init(&d, data.data, data.size, &options);
    const kc_event event = kc_decoder_run(&d, t, 100, 10000, &error);
    *rows = t->length;
    *record = kc_decoder_record(&d);
    for (int id = 0; id < KC_NUM_RECORD_COLUMNS; id++) {
        if (t->columns[id].wanted && t->columns[id].length != *rows) *rows = -1;
    }
    const kc_column *headers = &t->columns[KC_COL_HEADERS];
    if (headers->wanted &&
        headers->children->length != ((const int32_t *)(const void *)headers->values.data)[t->length])
        *rows = -2;
    kc_table_release(t);
    if ((event == KC_EVENT_FAULT) != (error.code != KC_OK)) error.code = -1;
    return error;
}

static kc_error fault_of(const bytes *records, int32_t count, int64_t *rows) {
    int64_t record;
    return fault_in(records, count, KC_WANT_DECODED, INT64_MIN, rows, &record);
}

/* Record bodies after one good record of seven bytes; the second record's length is that of its bytes, plus `longer`.
 */
static const struct {
    const char *body;
    int size, longer;
    int64_t got, want;
    const char *what; /* part of the text */
} BODIES[] = {
    {"\0\0\0\1\1\0", 6, 0, 0, 0, ""},                                  /* good: null key, null value */
    {"\0\0\0\2k\2v\0", 8, 0, 0, 0, ""},                                /* good */
    {"\0\0\0\1\0", 5, 0, 5, 12, "record's length"},                    /* below the smallest */
    {"\0\0\0\1\1\0", 6, 1, 7, 6, "record's length"},                   /* beyond the batch */
    {"\0\xff\xff\xff\xff\xff", 6, 0, 0, 0, "timestamp delta"},         /* a timestamp delta that does not end */
    {"\0\0\xff\xff\xff\xff\x7f\1\1\0", 10, 0, 0, 0, "offset delta"},   /* an offset delta of 35 bits */
    {"\0\0\0\xff\xff\xff\xff\x7f\1\0", 10, 0, 0, 0, "key's length"},   /* a key's length that cannot be read */
    {"\0\0\0\6k\1\0", 7, 0, 0, 0, "value's length"},                   /* a key of three bytes that leaves no value */
    {"\0\0\0\10k\1\0", 7, 0, 4, 3, "key runs"},                        /* a key past the record */
    {"\0\0\0\1\xff\xff\xff\xff\x7f\0", 10, 0, 0, 0, "value's length"}, /* a value's length that cannot be read */
    {"\0\0\0\1\6v\0", 7, 0, 3, 2, "value runs"},                       /* a value past the record */
    {"\0\0\0\1\1\xff\xff\xff\xff\x7f", 10, 0, 0, 0, "header count is not"}, /* a header count that cannot be read */
    {"\0\0\0\1\1\1", 6, 0, -1, 0, "header count is negative"},              /* a negative one */
    {"\0\0\0\1\1\0x", 7, 0, 1, 0, "end of a record"},                       /* bytes left over */
    {"\0\0\0\1\1\4\2h\0", 9, 0, 2, 1, "header count needs"},                /* two headers in three bytes */
    {"\0\0\0\1\1\2\4h\1", 9, 0, 0, 0, "header value"},                      /* a header without a value */
    {"\0\0\0\1\1\2\6h\1", 9, 0, 3, 2, "header key runs"},                   /* a header's key past the record */
    {"\0\0\0\1\1\2\1\1", 8, 0, -1, 0, "header key is null"},                /* a null key */
    {"\0\0\0\1\1\2\2h\4x", 10, 0, 2, 1, "header value runs"},               /* a header's value past the record */
    {"\0\0\0\1\1\2\2h\1", 9, 0, 0, 0, ""},                                  /* good: a null value */
    {"\0\0\0\1\1\2\2h\2x", 10, 0, 0, 0, ""},                                /* good */
    {"\0\0\0\1\1\2\2h\1xy", 11, 0, 2, 0, "end of a record"},                /* bytes after the headers */
};
enum { GOOD = 1 << 0 | 1 << 1 | 1 << 19 | 1 << 20 };

/* Whether a record is valid does not depend on the columns, nor on the offsets that are wanted. */
static const struct {
    uint64_t want;
    int64_t start, rows;
} READINGS[] = {
    {KC_WANT_DECODED, INT64_MIN, 1},    {KC_WANT_DECODED & ~(1u << KC_COL_HEADERS), INT64_MIN, 1},
    {KC_WANT_NO_HEADERS, INT64_MIN, 1}, {1u << KC_COL_HEADERS, INT64_MIN, 1},
    {KC_WANT_DECODED, 101, 0}, /* the batch extends to offset 101, its records only to 100 */
    {KC_WANT_RECORD, 101, 0},           {KC_WANT_NO_HEADERS, 101, 0},
};

/* One of BODIES after a good record and, if `followed`, before another: short records are read in another way if enough
 * bytes follow them. */
static bytes around_body(size_t i, bool followed, int32_t *count) {
    bytes records = {.size = 0};
    add_record(&records, 0, 0, NULL, NULL, NULL, NULL);
    add_varint(&records, BODIES[i].size + BODIES[i].longer);
    add(&records, BODIES[i].body, (size_t)BODIES[i].size);
    if (followed) add_record(&records, 0, 0, "a key of twenty bytes", NULL, NULL, NULL);
    if (i == 2 && !followed) add_record(&records, 0, 0, NULL, NULL, NULL, NULL); /* bytes enough for two */
    *count = followed ? 3 : 2;
    return records;
}

static void check_body(size_t i, bool followed, size_t reading) {
    int32_t count;
    const bytes records = around_body(i, followed, &count);
    int64_t rows, record, got = BODIES[i].got, want = BODIES[i].want;
    const kc_error error = fault_in(&records, count, READINGS[reading].want, READINGS[reading].start, &rows, &record);
    if (GOOD >> i & 1) {
        CHECK_EQ(error.code, KC_OK);
        CHECK_EQ(rows, count * READINGS[reading].rows);
        return;
    }
    if (followed && i == 2) want = 5 + 28;     /* there are more bytes, with which it is still too short */
    if (followed && i == 3) got = 1, want = 0; /* the next record's first byte is left over */
    CHECK(strstr(error.what, followed && i == 3 ? "end of a record" : BODIES[i].what) != NULL);
    CHECK_EQ(rows, READINGS[reading].rows);
    CHECK_EQ(record, 1);
    CHECK_ERROR(error, KC_CORRUPT, 61 + 7, got, want);
}

TEST(records_faults_tell_where_and_what) {
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        for (size_t reading = 0; reading < sizeof READINGS / sizeof *READINGS; reading++) {
            check_body(i, false, reading);
            check_body(i, true, reading);
        }
    }
}

TEST(records_counts_are_held_against_the_bytes) {
    static const struct {
        int32_t count;
        uint64_t position;
        int64_t got, want, rows;
        int code;
    } CASES[] = {
        {3, 0, 0, 0, 3, KC_OK},
        {4, 61, 21, 28, 0, KC_CORRUPT},
        {-1, 61, -1, 0, 0, KC_CORRUPT},
        {INT32_MIN, 61, INT32_MIN, 0, 0, KC_CORRUPT},
        {INT32_MAX, 61, 21, (int64_t)INT32_MAX * 7, 0, KC_CORRUPT},
        {0, 61, 21, 0, 0, KC_CORRUPT},
        {2, 61 + 14, 7, 0, 2, KC_CORRUPT},
    };
    bytes records = {.size = 0}, none = {.size = 0};
    int64_t rows;
    for (int i = 0; i < 3; i++) add_record(&records, i, 0, NULL, NULL, NULL, NULL);
    CHECK_EQ(records.size, 21);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const kc_error error = fault_of(&records, CASES[i].count, &rows);
        CHECK_EQ(rows, CASES[i].rows);
        CHECK_EQ(error.code, CASES[i].code);
        if (error.code) CHECK_ERROR(error, KC_CORRUPT, CASES[i].position, CASES[i].got, CASES[i].want);
    }
    const kc_error error = fault_of(&none, 0, &rows);
    CHECK_EQ(error.code, KC_OK);
}

static int64_t long_at(const kc_table *t, int column, int64_t row) {
    return ((const int64_t *)(const void *)t->columns[column].values.data)[row];
}

/* Deltas and lengths on both sides of every length of a varint, with and without bytes after the record. */
TEST(records_varints_of_every_length) {
    static const int64_t DELTAS[] = {0,
                                     -1,
                                     63,
                                     -64,
                                     64,
                                     8191,
                                     -8192,
                                     8192,
                                     1048575,
                                     1048576,
                                     -1048577,
                                     134217728,
                                     INT32_MAX,
                                     INT32_MIN,
                                     INT64_C(1) << 40,
                                     -(INT64_C(1) << 62)};
    static const int SIZES[] = {0, 1, 12, 13, 63, 64, 100, 300};
    char text[301];
    for (size_t i = 0; i < sizeof DELTAS / sizeof *DELTAS; i++) {
        for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
            for (int followed = 0; followed < 2; followed++) {
                bytes records = {.size = 0}, data = {.size = 0};
                memset(text, 'x', sizeof text);
                text[SIZES[k]] = 0;
                const int64_t offset_delta = DELTAS[i] >= 0 && DELTAS[i] <= INT32_MAX ? DELTAS[i] : 1;
                add_record(&records, offset_delta, DELTAS[i], text, "value", NULL, NULL);
                if (followed) add_record(&records, 5, 0, text, text, NULL, NULL);
                add_batch(&data, 0, 1 + followed, &records);
                kc_decoder d;
                kc_error error = {0};
                kc_table *t = new_table();
                kc_decoder_init(&d, data.data, data.size, &OPTIONS);
                CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), KC_EVENT_END);
                CHECK_EQ(t->length, 1 + followed);
                CHECK_EQ(long_at(t, KC_COL_OFFSET, 0), 100 + offset_delta);
                CHECK_EQ(long_at(t, KC_COL_TIMESTAMP, 0), 1000 + DELTAS[i]);
                const int32_t *ends = (const int32_t *)(const void *)t->columns[KC_COL_KEY].values.data;
                CHECK_EQ(ends[1], SIZES[k]);
                CHECK(memcmp(t->columns[KC_COL_KEY].data.data, text, (size_t)SIZES[k]) == 0);
                CHECK(memcmp(t->columns[KC_COL_VALUE].data.data, "value", 5) == 0);
                kc_table_release(t);
            }
        }
    }
}

TEST(records_without_a_time_have_none) {
    bytes records = {.size = 0}, data = {.size = 0};
    add_record(&records, 0, -1001, NULL, NULL, NULL, NULL); /* base time 1000: -1 */
    add_record(&records, 1, -1002, NULL, NULL, NULL, NULL);
    add_batch(&data, 0, 2, &records);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), KC_EVENT_END);
    CHECK_EQ(t->columns[KC_COL_TIMESTAMP].null_count, 1);
    CHECK_EQ(t->columns[KC_COL_TIMESTAMP].validity.data[0] & 3, 2);
    CHECK_EQ(long_at(t, KC_COL_TIMESTAMP, 0), KC_NOT_A_TIME);
    CHECK_EQ(long_at(t, KC_COL_TIMESTAMP, 1), -2);
    kc_table_release(t);
}

/* Header keys that are not UTF-8 are repaired: each bad sequence becomes U+FFFD. */
TEST(records_header_keys_are_text) {
    bytes records = {.size = 0}, data = {.size = 0};
    add_record(&records, 0, 0, NULL, NULL,
               "a\xff\xfe"
               "b",
               "v");
    add_record(&records, 1, 0, NULL, NULL, "good", NULL);
    add_batch(&data, 0, 2, &records);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), KC_EVENT_END);
    const kc_column *keys = &t->columns[KC_COL_HEADERS].children->children[0];
    const int32_t *ends = (const int32_t *)(const void *)keys->values.data;
    CHECK_EQ(keys->length, 2);
    CHECK_EQ(ends[1], 8);
    CHECK_EQ(ends[2], 12);
    CHECK_EQ(keys->data.size, 12);
    CHECK(memcmp(keys->data.data,
                 "a\xef\xbf\xbd\xef\xbf\xbd"
                 "bgood",
                 12) == 0);
    kc_table_release(t);
}

/* A record whose third header is damaged leaves no headers and no nulls. */
TEST(records_headers_of_a_faulty_record_are_taken_back) {
    static const char body[] = "\0\0\0\1\1\6\2a\1\2b\2x\2c\6y"; /* a: null, b: x, c: past the record */
    bytes records = {.size = 0}, data = {.size = 0};
    add_record(&records, 0, 0, NULL, NULL, "h", NULL);
    add_varint(&records, (int64_t)sizeof body - 1);
    add(&records, body, sizeof body - 1);
    add_batch(&data, 0, 2, &records);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = new_table();
    kc_decoder_init(&d, data.data, data.size, &OPTIONS);
    CHECK_EQ(kc_decoder_run(&d, t, 100, 10000, &error), KC_EVENT_FAULT);
    CHECK_EQ(t->length, 1);
    const kc_column *entries = t->columns[KC_COL_HEADERS].children;
    CHECK_EQ(entries->length, 1);
    CHECK_EQ(entries->children[0].length, 1);
    CHECK_EQ(entries->children[0].data.size, 1);
    CHECK_EQ(entries->children[0].values.size, 8);
    CHECK_EQ(entries->children[1].length, 1);
    CHECK_EQ(entries->children[1].data.size, 0);
    CHECK_EQ(entries->children[1].null_count, 1);
    CHECK_EQ(entries->children[1].validity.data[0], 0xfe);
    kc_table_release(t);
}

/* What header `i` of the test below is made of. */
static void name_header(int i, char *key, char *value) {
    static const char *const keys[] = {"", "k", "key", "\xc3\xa9", "a key of more bytes than one vector has", "x\xff"};
    const int size = i % 70;
    strcpy(key, keys[i % 6]);
    memset(value, 'a' + i % 26, (size_t)size);
    value[size] = 0;
}

/* Short headers are read in one pass where columns have room, others one by one: both give the same. */
TEST(records_with_headers_of_every_size) {
    enum { ROUNDS = 3, HEADERS = 210 };
    char key[64], value[128];
    kc_error error = {0};
    kc_table *t = new_table();
    int64_t null_values = 0;
    for (int i = 0; i < ROUNDS * HEADERS; i++) {
        bytes records = {.size = 0};
        kc_records r;
        name_header(i % HEADERS, key, value);
        const bool is_null = i % 11 == 10;
        null_values += is_null;
        add_record(&records, i, 0, "k", "v", key, is_null ? NULL : value);
        const kc_batch batch = {.base_offset = 0, .count = 1, .magic = 2};
        CHECK_EQ(kc_records_open(&r, &batch, records.data, records.size, INT64_MIN, INT64_MAX, &error), KC_OK);
        CHECK_EQ(kc_records_read(&r, &batch, t, 9, &error), KC_OK); /* there is one */
        for (int k = 0; k < 2; k++) {
            const kc_column *c = &t->columns[KC_COL_HEADERS].children->children[k];
            CHECK(c->values.size <= c->values.capacity && c->data.size <= c->data.capacity);
        }
    }
    const kc_column *entries = t->columns[KC_COL_HEADERS].children;
    CHECK_EQ(entries->length, ROUNDS * HEADERS);
    CHECK_EQ(entries->children[1].null_count, null_values);
    for (int i = 0; i < ROUNDS * HEADERS; i++) {
        int32_t size;
        name_header(i % HEADERS, key, value);
        const char *const want = strcmp(key, "x\xff") == 0 ? "x\xef\xbf\xbd" : key;
        const uint8_t *got = kc_column_bytes(&entries->children[0], i, &size);
        CHECK(size == (int32_t)strlen(want) && memcmp(got, want, (size_t)size) == 0);
        got = kc_column_bytes(&entries->children[1], i, &size);
        CHECK_EQ(size, i % 11 == 10 ? -1 : (int32_t)strlen(value));
        CHECK(size < 0 || memcmp(got, value, (size_t)size) == 0);
    }
    kc_table_release(t);
}

/* A list has at most 2^31 - 1 entries; a table that seems to have them already. */
TEST(records_headers_beyond_what_a_list_holds) {
    for (int32_t spare = 0; spare < 3; spare++) {
        bytes records = {.size = 0};
        kc_records r;
        kc_error error = {0};
        kc_table *t = new_table();
        const kc_batch batch = {.count = 2, .magic = 2};
        add_record(&records, 0, 0, NULL, NULL, NULL, NULL);
        const size_t second = records.size;
        add_record(&records, 1, 0, NULL, NULL, "h", "v");
        t->columns[KC_COL_HEADERS].children->length = INT32_MAX - spare;
        CHECK_EQ(kc_records_open(&r, &batch, records.data, records.size, INT64_MIN, INT64_MAX, &error), KC_OK);
        CHECK_EQ(kc_records_read(&r, &batch, t, 2, &error), spare ? KC_OK : KC_LIMIT);
        CHECK_EQ(t->length, spare ? 2 : 1);
        if (error.code) CHECK_ERROR(error, KC_LIMIT, second, INT32_MAX, INT32_MAX);
        kc_table_release(t);
    }
}

/* Lengths of records that are no varints of 32 bits, and one that is but is not a length. */
TEST(records_lengths_that_cannot_be_read) {
    static const struct {
        const char *length;
        int64_t got, want;
    } CASES[] = {
        {"\xff\xff\xff\xff\x7f", 0, 0}, {"\x80\x80\x80\x80\x80\x01", 0, 0}, {"\xfe\xff\xff\xff\x0f", INT32_MAX, 15}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bytes records = {.size = 0};
        int64_t rows;
        add_record(&records, 0, 0, NULL, NULL, NULL, NULL);
        add(&records, CASES[i].length, strlen(CASES[i].length));
        add(&records, "fifteen or more", 15);
        const kc_error error = fault_of(&records, 2, &rows);
        CHECK_EQ(rows, 1);
        CHECK_ERROR(error, KC_CORRUPT, 61 + 7, CASES[i].got, CASES[i].want);
    }
}
