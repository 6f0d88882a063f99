#include <stdlib.h>

#include "build.h"
#include "check.h"
#include "encode/kc_append.h"

static kc_cell cell(const char *text) { return (kc_cell){(const uint8_t *)text, text ? (int64_t)strlen(text) : -1}; }

static const kc_producer PRODUCER = {.id = 55, .base_sequence = 40, .epoch = 3};

static kc_new_record record(const char *key, const char *value, int64_t timestamp) {
    return (kc_new_record){.key = cell(key), .value = cell(value), .timestamp = timestamp};
}

/* Three records, the last with a header and a longer value, as a batch of the specification: base offset 0, no leader
 * epoch, timestamps 1000 to 2000, and the producer that add_batch writes. */
static bytes expected_batch(const char *value, bool transactional) {
    bytes expected = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "a", "v", NULL, NULL);
    add_record(&records, 1, 1000, NULL, NULL, NULL, NULL);
    add_record(&records, 2, -100, "", value, "h", NULL);
    add_batch(&expected, transactional ? 0x10 : 0, 3, &records);
    kc_store_u64(expected.data, 0);
    kc_store_u32(expected.data + 12, UINT32_MAX);
    return expected;
}

TEST(appended_records_make_the_batch_of_the_specification) {
    char value[300];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = 0;
    const kc_cell header[] = {cell("h"), cell(NULL)};
    kc_new_record rows[] = {record("a", "v", 1000), record(NULL, NULL, 2000), record("", value, 900)};
    rows[2].headers = header;
    rows[2].num_headers = 1;
    for (int transactional = 0; transactional < 2; transactional++) {
        kc_appender a = {0};
        kc_error error = {0};
        kc_producer producer = PRODUCER;
        producer.transactional = transactional;
        for (int i = 0; i < 3; i++) {
            int64_t added = 0;
            CHECK_EQ(kc_appender_add(&a, &rows[i], 10000, INT64_MAX, &added, &error), KC_OK);
            CHECK(added > 0);
            CHECK_EQ(a.open.size, (int64_t)a.batch.size);
        }
        const bytes expected = expected_batch(value, transactional);
        CHECK_EQ(a.batch.size, expected.size);
        const size_t header_size = KC_BATCH_HEADER_SIZE;
        kc_appender_close(&a, 0, a.batch.data + header_size, a.batch.size - header_size, a.batch.data);
        /* Without a producer: three fields of -1, and the checksum is right all the same. */
        CHECK_EQ((int64_t)kc_load_u64(a.batch.data + 43), -1);
        CHECK_EQ(kc_load_u32(a.batch.data + 17), kc_crc32c(0, a.batch.data + 21, a.batch.size - 21));
        CHECK_EQ(kc_batch_set_producer(a.batch.data, a.batch.size, &producer, &error), KC_OK);
        CHECK(memcmp(a.batch.data, expected.data, expected.size) == 0);
        kc_appender_free(&a);
        CHECK(a.batch.data == NULL);
    }
}

TEST(a_batch_takes_records_up_to_its_limit_but_always_one) {
    kc_appender a = {0};
    kc_error error = {0};
    int64_t added = 0;
    const kc_new_record row = record("key", "value", 0);
    const int64_t size = 1 + 1 + 1 + 1 + 4 + 6 + 1; /* length, attributes, deltas, key, value, headers */
    CHECK_EQ(kc_appender_add(&a, &row, 1, INT64_MAX, &added, &error), KC_OK);
    CHECK(added > 0);
    CHECK_EQ(a.open.size, KC_BATCH_HEADER_SIZE + size);
    CHECK_EQ(kc_appender_add(&a, &row, KC_BATCH_HEADER_SIZE + 2 * size - 1, INT64_MAX, &added, &error), KC_OK);
    CHECK_EQ(added, 0);
    CHECK_EQ(a.open.count, 1);
    CHECK_EQ(kc_appender_add(&a, &row, KC_BATCH_HEADER_SIZE + 2 * size, INT64_MAX, &added, &error), KC_OK);
    CHECK(added > 0);
    CHECK_EQ(a.open.count, 2);
    CHECK_EQ(a.open.last_offset, 1);
    kc_appender_free(&a);
}

TEST(a_record_has_a_maximum_size_of_its_own) {
    kc_appender a = {0};
    kc_error error = {0};
    int64_t added = 0;
    const kc_new_record row = record("key", "value", 0);
    CHECK_EQ(kc_appender_add(&a, &row, 1000, 15, &added, &error), KC_OK);
    CHECK_EQ(added, 15);
    CHECK_EQ(kc_appender_add(&a, &row, 1000, 14, &added, &error), KC_CANNOT_ENCODE);
    CHECK_EQ(error.got, 15);
    CHECK_EQ(error.want, 14);
    CHECK_EQ(a.open.count, 1);
    kc_appender_free(&a);
}

TEST(a_record_that_no_batch_can_hold_is_refused_before_it_is_copied) {
    static const uint8_t byte = 'x';
    const kc_cell huge = {&byte, (int64_t)INT32_MAX}, larger = {&byte, (int64_t)1 << 40};
    const kc_cell headers[] = {huge, huge, huge, huge};
    kc_new_record rows[4] = {
        {.key = huge}, {.key = {NULL, -1}, .value = larger}, {.headers = headers, .num_headers = 2}};
    rows[3].num_headers = (int64_t)1 << 40;
    for (int i = 0; i < 4; i++) {
        kc_appender a = {0};
        kc_error error = {0};
        int64_t added = 0;
        CHECK_EQ(kc_appender_add(&a, &rows[i], INT64_MAX, INT64_MAX, &added, &error), KC_CANNOT_ENCODE);
        CHECK_EQ(error.want, INT32_MAX - KC_BATCH_HEADER_SIZE);
        CHECK(error.got > error.want);
        CHECK_EQ(a.open.count, 0);
        kc_appender_free(&a);
    }
}

TEST(only_a_whole_batch_of_magic_2_gets_a_producer) {
    uint8_t batch[KC_BATCH_HEADER_SIZE] = {0};
    kc_error error = {0};
    CHECK_EQ(kc_batch_set_producer(batch, sizeof batch - 1, &PRODUCER, &error), KC_TRUNCATED);
    CHECK_EQ(kc_batch_set_producer(batch, sizeof batch, &PRODUCER, &error), KC_BAD_MAGIC);
    batch[16] = 2;
    CHECK_EQ(kc_batch_set_producer(batch, sizeof batch, &PRODUCER, &error), KC_OK);
}

TEST(batches_of_any_size_get_a_producer_and_their_checksum) {
    static uint8_t batch[KC_BATCH_HEADER_SIZE + (1 << 16) + 1];
    for (size_t i = 0; i < sizeof batch; i++) batch[i] = (uint8_t)(i * 131 >> 2);
    batch[16] = 2;
    for (size_t size = sizeof batch - 2; size <= sizeof batch; size++) {
        kc_error error = {0};
        kc_producer producer = PRODUCER;
        kc_store_u32(batch + 17, kc_crc32c(0, batch + 21, size - 21));
        for (int i = 0; i < 3; i++) { /* and again, as for a retry */
            producer.base_sequence += i;
            producer.transactional = i != 1;
            CHECK_EQ(kc_batch_set_producer(batch, size, &producer, &error), KC_OK);
            CHECK_EQ(kc_load_u32(batch + 17), kc_crc32c(0, batch + 21, size - 21));
            CHECK_EQ(kc_load_u32(batch + 53), (uint32_t)producer.base_sequence);
        }
    }
}
