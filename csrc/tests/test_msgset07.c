#include "check.h"
#include "checksum/kc_crc32.h"
#include "kafka07/kc_msgset07.h"

/* Appends a message to a buffer and returns the new size. */
static size_t put(uint8_t *out, size_t at, int magic, int codec, const char *payload, size_t size) {
    kc_msgset07_write_header(out + at, magic, codec, (const uint8_t *)payload, (uint32_t)size);
    memcpy(out + at + KC_MSGSET07_HEADER(magic), payload, size);
    return at + KC_MSGSET07_HEADER(magic) + size;
}

static kc_msgset07_decoder open_set(const uint8_t *data, size_t size, bool deep) {
    const kc_msgset07_options options = {true, deep, 100};
    kc_msgset07_decoder d;
    kc_msgset07_init(&d, data, size, &options);
    return d;
}

static kc_table *new_table(void) {
    return kc_table_new(kc_msgset07_fields, KC_NUM_MSGSET07_COLUMNS, ~(uint64_t)KC_WANT_PLACE);
}

static int64_t int_at(const kc_table *t, int column, int64_t row) {
    return ((const int64_t *)(const void *)t->columns[column].values.data)[row];
}

TEST(msgset07_reads_both_magics) {
    uint8_t data[64];
    size_t size = put(data, 0, 0, 0, "abc", 3);
    size = put(data, size, 1, 0, "", 0);
    CHECK_EQ(size, 22);
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    CHECK_EQ(kc_msgset07_run(&d, t, 10, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 2);
    CHECK_EQ(d.position, 22);
    CHECK_EQ(int_at(t, KC_COL_OFFSET, 1), 112);
    CHECK_EQ(int_at(t, KC_MSGSET07_NEXT_OFFSET, 0), 112);
    CHECK_EQ(int_at(t, KC_MSGSET07_NEXT_OFFSET, 1), 122);
    CHECK_EQ(t->columns[KC_COL_VALUE].data.size, 3);
    CHECK_EQ(t->columns[KC_COL_TIMESTAMP].null_count, 2);
    CHECK_EQ(t->columns[KC_COL_KEY].null_count, 2);
    CHECK_EQ(t->columns[KC_COL_HEADERS].length, 2);
    kc_table_release(t);
}

TEST(msgset07_opens_compressed_messages) {
    uint8_t data[64], inner[64];
    size_t inner_size = put(inner, 0, 1, 0, "a", 1);
    inner_size = put(inner, inner_size, 1, 0, "b", 1);
    size_t size = put(data, 0, 1, KC_CODEC_GZIP, "packed", 6);
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    CHECK_EQ(kc_msgset07_run(&d, t, 10, 1000, &error), KC_EVENT_COMPRESSED);
    CHECK_EQ(d.codec, KC_CODEC_GZIP);
    CHECK_EQ(d.payload_size, 6);
    CHECK_EQ(kc_msgset07_provide(&d, inner, inner_size, &error), KC_OK);
    CHECK_EQ(kc_msgset07_run(&d, t, 10, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 2);
    CHECK_EQ(int_at(t, KC_COL_OFFSET, 1), 100);
    CHECK_EQ(int_at(t, KC_MSGSET07_NEXT_OFFSET, 0), 100);
    CHECK_EQ(int_at(t, KC_MSGSET07_NEXT_OFFSET, 1), 100 + (int64_t)size);
    kc_table_release(t);
}

TEST(msgset07_bounds_the_depth) {
    uint8_t data[64];
    size_t size = put(data, 0, 1, KC_CODEC_GZIP, "x", 1);
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    kc_event event;
    int depth = 0;
    while ((event = kc_msgset07_run(&d, t, 10, 1000, &error)) == KC_EVENT_COMPRESSED) {
        CHECK_EQ(kc_msgset07_provide(&d, data, size, &error), KC_OK);
        CHECK(++depth <= KC_MSGSET07_MAX_DEPTH);
    }
    CHECK_EQ(event, KC_EVENT_FAULT);
    CHECK_EQ(depth, KC_MSGSET07_MAX_DEPTH);
    CHECK_ERROR(error, KC_LIMIT, 0, KC_MSGSET07_MAX_DEPTH + 1, KC_MSGSET07_MAX_DEPTH);
    d.position = 3;
    CHECK_EQ(kc_msgset07_provide(&d, data, size, &error), KC_LIMIT);
    CHECK_ERROR(error, KC_LIMIT, 3, KC_MSGSET07_MAX_DEPTH + 1, KC_MSGSET07_MAX_DEPTH);
    d.position = 0;
    CHECK_EQ(kc_msgset07_skip(&d), size);
    CHECK_EQ(kc_msgset07_run(&d, t, 10, 1000, &error), KC_EVENT_END);
    kc_table_release(t);
}

static int fault_of(const uint8_t *data, size_t size, uint64_t *position) {
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    kc_event event = kc_msgset07_run(&d, t, 10, 1000, &error);
    kc_table_release(t);
    *position = error.position;
    return event == KC_EVENT_FAULT ? error.code : KC_OK;
}

TEST(msgset07_refuses_what_cannot_be) {
    uint8_t data[64];
    uint64_t position = 0;
    size_t size = put(data, 0, 1, 0, "abc", 3);
    CHECK_EQ(fault_of(data, size - 1, &position), KC_TRUNCATED);
    CHECK_EQ(fault_of(data, 3, &position), KC_OK);
    put(data, size, 1, 0, "defg", 4);
    CHECK_EQ(fault_of(data, size + 13, &position), KC_OK);
    data[size + 10] ^= 1;
    CHECK_EQ(fault_of(data, size + 14, &position), KC_CRC_MISMATCH);
    CHECK_EQ(position, size);
    data[size + 4] = 2;
    CHECK_EQ(fault_of(data, size + 14, &position), KC_BAD_MAGIC);
    data[size] = 0x80;
    CHECK_EQ(fault_of(data, size + 14, &position), KC_CORRUPT);
    memset(data + size, 0, 14);
    CHECK_EQ(fault_of(data, size + 14, &position), KC_OK);
    data[size + 13] = 1;
    CHECK_EQ(fault_of(data, size + 14, &position), KC_CORRUPT);
    put(data, 0, 1, 3, "abc", 3);
    CHECK_EQ(fault_of(data, size, &position), KC_BAD_CODEC);
}

/* ---- faults, with their numbers ---------------------------------------------------------------------------------- */

static kc_error error_of(const uint8_t *data, size_t size, kc_msgset07_decoder *d) {
    *d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    const kc_event event = kc_msgset07_run(d, t, 10, 1000, &error);
    if ((event == KC_EVENT_FAULT) != (error.code != KC_OK)) error.code = -1;
    kc_table_release(t);
    return error;
}

TEST(msgset07_faults_tell_where_and_what) {
    static const struct {
        int32_t length;
        uint8_t magic;
        int code;
        uint64_t position;
        int64_t got, want;
        bool located;
    } CASES[] = {
        {13, 1, KC_OK, 0, 0, 0, false},        /* good */
        {-1, 1, KC_CORRUPT, 13, -1, 0, false}, /* negative */
        {0, 1, KC_CORRUPT, 13, 0, 5, true},    /* no room for a magic byte */
        {0, 9, KC_CORRUPT, 13, 0, 5, true},    /* the next byte is not one */
        {5, 1, KC_CORRUPT, 13, 5, 5, true},    /* nor for a header of magic 1 */
        {4, 0, KC_CORRUPT, 13, 4, 5, true},    /* of magic 0 */
        {13, 2, KC_BAD_MAGIC, 17, 2, 1, true}, {13, 255, KC_BAD_MAGIC, 17, -1, 1, true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t data[64];
        size_t size = put(data, 0, 1, 0, "abc", 3);
        CHECK_EQ(size, 13);
        size = put(data, size, 1, 0, "defghij", 7);
        kc_store_u32(data + 13, (uint32_t)CASES[i].length);
        data[17] = CASES[i].magic;
        kc_msgset07_decoder d;
        const kc_error error = error_of(data, size, &d);
        CHECK_EQ(error.code, CASES[i].code);
        if (!error.code) continue;
        CHECK_ERROR(error, CASES[i].code, CASES[i].position, CASES[i].got, CASES[i].want);
        CHECK_EQ(d.position, 13);
        /* A reliable length determines where to continue. */
        CHECK_EQ(kc_msgset07_skip(&d), CASES[i].located ? (uint64_t)CASES[i].length + 4 : size - 13);
    }
    uint8_t data[64];
    kc_msgset07_decoder d;
    const size_t size = put(data, 0, 1, 0, "abc", 3);
    kc_error error = error_of(data, size - 1, &d);
    CHECK_ERROR(error, KC_TRUNCATED, 0, 8, 9);
    error = error_of(data, 4, &d);
    CHECK_ERROR(error, KC_TRUNCATED, 0, 0, 9);
    data[9] ^= 1;
    error = error_of(data, size, &d);
    CHECK_EQ(error.code, KC_CRC_MISMATCH);
    CHECK_EQ(error.got, kc_crc32(0, (const uint8_t *)"abc", 3));
    CHECK_EQ(error.want, kc_crc32(0, (const uint8_t *)"abc", 3) ^ 1);
    put(data, 0, 1, 3, "abc", 3);
    error = error_of(data, size, &d);
    CHECK_ERROR(error, KC_BAD_CODEC, 0, 3, 0);
    CHECK_EQ(kc_msgset07_skip(&d), size);
}

/* The bytes that the format's description gives, written and read. */
TEST(msgset07_writes_headers) {
    static const uint8_t CHECK_VALUE[] = {0xcb, 0xf4, 0x39, 0x26}; /* CRC-32 of "123456789" */
    uint8_t out[10];
    kc_msgset07_write_header(out, 0, 0, (const uint8_t *)"123456789", 9);
    CHECK(memcmp(out, "\0\0\0\x0e\0", 5) == 0 && memcmp(out + 5, CHECK_VALUE, 4) == 0);
    kc_msgset07_write_header(out, 1, 2, (const uint8_t *)"123456789", 9);
    CHECK(memcmp(out, "\0\0\0\x0f\1\2", 6) == 0 && memcmp(out + 6, CHECK_VALUE, 4) == 0);
}

TEST(msgset07_stops_at_rows_and_bytes) {
    static uint8_t data[3000 * 11];
    size_t size = 0;
    for (int i = 0; i < 3000; i++) size = put(data, size, 1, 0, i & 1 ? "x" : "y", 1);
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_error error = {0};
    int64_t rows = 0;
    kc_event event;
    do {
        kc_table *t = new_table();
        event = kc_msgset07_run(&d, t, 1500, 1 << 20, &error);
        for (int64_t row = 0; row < t->length; row++) {
            CHECK_EQ(int_at(t, KC_COL_OFFSET, row), 100 + 11 * (rows + row));
            CHECK_EQ(int_at(t, KC_MSGSET07_NEXT_OFFSET, row), 111 + 11 * (rows + row));
            CHECK_EQ(t->columns[KC_COL_VALUE].data.data[row], (rows + row) & 1 ? 'x' : 'y');
            CHECK_EQ(t->columns[KC_MSGSET07_MAGIC].values.data[row], 1);
            CHECK_EQ((int8_t)t->columns[KC_COL_TIMESTAMP_TYPE].values.data[row], -1);
        }
        CHECK(t->length <= 1500);
        CHECK_EQ(t->columns[KC_MSGSET07_CODEC].data.size, 4 * t->length); /* none */
        CHECK_EQ(t->columns[KC_COL_HEADERS].children->length, 0);
        rows += t->length;
        CHECK_EQ(d.position, 11 * rows);
        kc_table_release(t);
    } while (event == KC_EVENT_FULL);
    CHECK_EQ(event, KC_EVENT_END);
    CHECK_EQ(rows, 3000);
    d = open_set(data, size, true);
    kc_table *t = new_table();
    CHECK_EQ(kc_msgset07_run(&d, t, 3000, 10, &error), KC_EVENT_FULL);
    CHECK(t->length >= 10 && t->length <= 1024);
    kc_table_release(t);
    d = open_set(data, size, true);
    t = new_table();
    CHECK_EQ(kc_msgset07_run(&d, t, 3000, 1024, &error), KC_EVENT_FULL); /* no byte is missing after 1,024 rows */
    CHECK_EQ(t->length, 1024);
    kc_table_release(t);
}

/* Compressed messages in compressed ones, with messages around them. */
TEST(msgset07_gives_inner_messages_the_offsets_of_the_outermost) {
    uint8_t data[128], middle[64], inner[64];
    size_t inner_size = put(inner, 0, 1, 0, "a", 1);
    inner_size = put(inner, inner_size, 0, 0, "b", 1);
    size_t middle_size = put(middle, 0, 1, KC_CODEC_GZIP, "packed", 6);
    middle_size = put(middle, middle_size, 1, 0, "c", 1);
    size_t size = put(data, 0, 1, 0, "first", 5);
    const size_t from = size;
    size = put(data, size, 1, KC_CODEC_SNAPPY, "packed", 6);
    const size_t to = size;
    size = put(data, size, 1, 0, "last", 4);
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED);
    CHECK_EQ(d.position, from);
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED); /* until it is given */
    CHECK_EQ(kc_msgset07_provide(&d, middle, middle_size, &error), KC_OK);
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED);
    CHECK_EQ(d.codec, KC_CODEC_GZIP);
    CHECK_EQ(kc_msgset07_provide(&d, inner, inner_size, &error), KC_OK);
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 5);
    const int64_t offsets[] = {0, (int64_t)from, (int64_t)from, (int64_t)from, (int64_t)to},
                  next[] = {(int64_t)from, (int64_t)from, (int64_t)from, (int64_t)to, (int64_t)size};
    for (int row = 0; row < 5; row++) {
        CHECK_EQ(int_at(t, KC_COL_OFFSET, row), 100 + offsets[row]);
        CHECK_EQ(int_at(t, KC_MSGSET07_NEXT_OFFSET, row), 100 + next[row]);
    }
    CHECK(memcmp(t->columns[KC_COL_VALUE].data.data, "firstabclast", 12) == 0);
    CHECK(memcmp(t->columns[KC_MSGSET07_CODEC].data.data, "nonesnappysnappysnappynone", 26) == 0);
    kc_table_release(t);
    /* Not opened, they are rows like others. */
    d = open_set(data, size, false);
    t = new_table();
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 3);
    CHECK(memcmp(t->columns[KC_COL_VALUE].data.data, "firstpackedlast", 15) == 0);
    kc_table_release(t);
    /* The content of a compressed message must be complete. */
    d = open_set(data, size, true);
    t = new_table();
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_COMPRESSED);
    CHECK_EQ(kc_msgset07_provide(&d, inner, 10, &error), KC_OK);
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_FAULT);
    CHECK_ERROR(error, KC_CORRUPT, from, 6, 7);
    CHECK_EQ(kc_msgset07_skip(&d), to - from);
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1000, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 2);
    kc_table_release(t);
}

/* Values larger than what a run reserves. */
TEST(msgset07_reads_large_values) {
    static uint8_t data[400000];
    static char payload[150000];
    memset(payload, 'p', sizeof payload);
    size_t size = put(data, 0, 1, 0, payload, sizeof payload);
    size = put(data, size, 1, 0, payload, 130000);
    size = put(data, size, 1, 0, "end", 3);
    kc_msgset07_decoder d = open_set(data, size, true);
    kc_table *t = new_table();
    kc_error error = {0};
    CHECK_EQ(kc_msgset07_run(&d, t, 100, 1 << 20, &error), KC_EVENT_END);
    CHECK_EQ(t->length, 3);
    const int32_t *ends = (const int32_t *)(const void *)t->columns[KC_COL_VALUE].values.data;
    CHECK_EQ(ends[1], 150000);
    CHECK_EQ(ends[2], 280000);
    CHECK(t->columns[KC_COL_VALUE].data.size <= t->columns[KC_COL_VALUE].data.capacity);
    CHECK_EQ(ends[3], 280003);
    CHECK(memcmp(t->columns[KC_COL_VALUE].data.data + 150000, payload, 130000) == 0);
    kc_table_release(t);
}

/* What a broker appends: the complete outermost messages, if all of them are right. */
TEST(msgset07_outermost_messages) {
    uint8_t data[64];
    size_t size = put(data, 0, 0, 0, "abc", 3);
    size = put(data, size, 1, KC_CODEC_GZIP, "packed", 6);
    const size_t whole = size;
    size = put(data, size, 1, 0, "x", 1);
    kc_msgset07_outline found;
    kc_error error = {0};
    for (size_t cut = whole; cut < size; cut++) {
        CHECK_EQ(kc_msgset07_outermost(data, cut, 6, &found, &error), KC_OK);
        CHECK_EQ(found.size, whole);
        CHECK_EQ(found.messages, 2);
        CHECK_EQ(found.compressed, 1);
        CHECK(!found.too_large);
    }
    CHECK_EQ(kc_msgset07_outermost(data, size, 5, &found, &error), KC_OK);
    CHECK(found.too_large);
    CHECK_EQ(found.messages, 1);
    data[size - 1] ^= 1; /* behind the message that is too large */
    CHECK_EQ(kc_msgset07_outermost(data, size, 5, &found, &error), KC_OK);
    CHECK_EQ(kc_msgset07_outermost(data, size, 6, &found, &error), KC_CRC_MISMATCH);
    CHECK_EQ(error.position, whole);
    for (size_t cut = 0; cut < 12; cut++) {
        CHECK_EQ(kc_msgset07_outermost(data, cut, 6, &found, &error), cut < 4 ? KC_OK : KC_TRUNCATED);
        CHECK_EQ(found.size, 0);
    }
    data[4] = 2;
    CHECK_EQ(kc_msgset07_outermost(data, size, 6, &found, &error), KC_BAD_MAGIC);
    memset(data, 0, 8);
    CHECK_EQ(kc_msgset07_outermost(data, size, 6, &found, &error), KC_CORRUPT);
    memset(data, 0xff, 4);
    CHECK_EQ(kc_msgset07_outermost(data, size, 6, &found, &error), KC_CORRUPT);
}
