#include "check.h"
#include "kc_msgset07.h"

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
    CHECK_EQ(error.code, KC_LIMIT);
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
