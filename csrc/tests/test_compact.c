#include "build.h"
#include "check.h"
#include "encode/kc_compact.h"

static kc_error error;

TEST(compact_reads_and_writes_records) {
    bytes records = {.size = 0};
    add_record(&records, 3, 1000, "a", "v", NULL, NULL);
    add_record(&records, 4, -5, NULL, NULL, NULL, NULL);
    const uint8_t *at = records.data, *end = records.data + records.size;
    kc_stored_record r;
    CHECK_EQ(kc_stored_record_next(&at, end, &r, &error), KC_OK);
    CHECK_EQ(r.timestamp_delta, 1000);
    CHECK_EQ(r.offset_delta, 3);
    CHECK_EQ(r.key_size, 1);
    CHECK_EQ(r.value_size, 1);
    CHECK_EQ(*r.key, 'a');
    /* The same delta gives the same bytes; a long one a longer length and delta. */
    uint8_t out[64];
    CHECK_EQ(kc_stored_record_write(&r, 1000, out) - out, at - records.data);
    CHECK(memcmp(out, records.data, (size_t)(at - records.data)) == 0);
    const uint8_t *stop = kc_stored_record_write(&r, INT64_MIN, out), *again = out;
    CHECK(stop - out <= at - records.data + KC_RECORD_MAY_GROW);
    kc_stored_record other;
    CHECK_EQ(kc_stored_record_next(&again, stop, &other, &error), KC_OK);
    CHECK(again == stop);
    CHECK_EQ(other.timestamp_delta, INT64_MIN);
    CHECK_EQ(other.offset_delta, 3);
    CHECK_EQ(other.end - other.rest, r.end - r.rest);
    CHECK_EQ(kc_stored_record_next(&at, end, &r, &error), KC_OK);
    CHECK_EQ(r.timestamp_delta, -5);
    CHECK_EQ(r.key_size, -1);
    CHECK_EQ(r.value_size, -1);
    CHECK(at == end);
}

TEST(compact_refuses_cut_records) {
    bytes records = {.size = 0};
    add_record(&records, 3, 1000, "key", "value", NULL, NULL);
    for (size_t size = 0; size < records.size; size++) {
        bytes cut = {.size = size};
        memcpy(cut.data, records.data, size);
        const uint8_t *at = cut.data;
        kc_stored_record r;
        CHECK_EQ(kc_stored_record_next(&at, cut.data + size, &r, &error), KC_CORRUPT);
    }
    /* A key that reaches beyond its record, though not beyond the bytes. */
    bytes both = records;
    add_record(&both, 4, 0, "x", "y", NULL, NULL);
    const uint8_t *at = both.data;
    kc_stored_record r;
    both.data[5] = 40; /* the size of the key, doubled */
    CHECK_EQ(kc_stored_record_next(&at, both.data + both.size, &r, &error), KC_CORRUPT);
}

TEST(compact_writes_a_header_with_its_checksum) {
    bytes data = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "a", "v", NULL, NULL);
    add_batch(&data, 0, 1, &records);
    uint8_t out[256];
    memcpy(out, data.data, data.size);
    const kc_compacted change = {.base_timestamp = 77, .max_timestamp = 99, .count = 1, .has_horizon = true};
    kc_compacted_header(data.data, &change, data.size - KC_BATCH_HEADER_SIZE, out);
    kc_span span;
    kc_batch batch;
    CHECK_EQ(kc_walk_next(out, data.size, 0, &span, &error), KC_WALK_BATCH);
    CHECK_EQ(span.size, data.size);
    kc_batch_read(out, &span, &batch);
    CHECK_EQ(kc_batch_compute_crc(out, &batch), batch.crc);
    CHECK_EQ(batch.base_timestamp, 77);
    CHECK_EQ(batch.max_timestamp, 99);
    CHECK_EQ(batch.count, 1);
    CHECK(batch.attributes & KC_DELETE_HORIZON);
    CHECK_EQ(kc_load_u64(out), kc_load_u64(data.data));
}
