#include "check.h"
#include "decode/kc_aborted.h"

static kc_batch batch(int64_t producer_id, int64_t offset, int16_t attributes) {
    return (kc_batch){
        .magic = 2, .producer_id = producer_id, .base_offset = offset, .last_offset = offset, .attributes = attributes};
}

static bool has(kc_aborted *transactions, size_t count, int64_t producer_id, int64_t offset, int16_t attributes) {
    const kc_batch b = batch(producer_id, offset, attributes);
    return kc_aborted_has(transactions, count, &b);
}

TEST(aborted_batches_end_with_the_marker) {
    kc_aborted t[] = {{5, 10, INT64_MAX}, {5, 30, INT64_MAX}, {9, 12, INT64_MAX}};
    CHECK(!has(t, 3, 5, 9, KC_TRANSACTIONAL));
    CHECK(has(t, 3, 5, 10, KC_TRANSACTIONAL));
    CHECK(!has(t, 3, 5, 11, 0));
    CHECK(!has(t, 3, 6, 11, KC_TRANSACTIONAL));
    CHECK(has(t, 3, 9, 13, KC_TRANSACTIONAL));
    CHECK(!has(t, 3, 5, 14, KC_TRANSACTIONAL | KC_CONTROL));
    CHECK(!has(t, 3, 5, 15, KC_TRANSACTIONAL));
    CHECK(has(t, 3, 9, 16, KC_TRANSACTIONAL));
    CHECK(has(t, 3, 5, 31, KC_TRANSACTIONAL));
    CHECK(has(t, 3, 9, INT64_MAX, KC_TRANSACTIONAL));
}

TEST(aborted_transactions_with_a_known_end) {
    kc_aborted t[] = {{INT64_MIN, 0, 5}, {INT64_MAX, 0, 5}};
    CHECK(has(t, 2, INT64_MAX, 5, KC_TRANSACTIONAL));
    CHECK(!has(t, 2, INT64_MAX, 6, KC_TRANSACTIONAL));
    CHECK(has(t, 2, INT64_MIN, 0, KC_TRANSACTIONAL));
    CHECK(!has(t, 2, -1, 0, KC_TRANSACTIONAL));
    CHECK(!has(NULL, 0, -1, 0, KC_TRANSACTIONAL));
}

TEST(aborted_ends_are_for_batches_alone) {
    kc_aborted t[] = {{0, 0, INT64_MAX}};
    kc_batch b = batch(0, 1, KC_TRANSACTIONAL);
    b.magic = 1;
    CHECK(!kc_aborted_has(t, 1, &b));
}

TEST(aborted_transactions_may_begin_inside_a_batch) {
    kc_aborted t[] = {{5, 10, INT64_MAX}, {5, 20, INT64_MAX}};
    kc_batch b = batch(5, 8, KC_TRANSACTIONAL);
    b.last_offset = 9;
    CHECK(!kc_aborted_has(t, 2, &b));
    b.last_offset = 10;
    CHECK(kc_aborted_has(t, 2, &b));
    CHECK(!has(t, 2, 5, 11, KC_TRANSACTIONAL | KC_CONTROL));
    CHECK(!has(t, 2, 5, 12, KC_TRANSACTIONAL));
    b.base_offset = 18;
    b.last_offset = 25;
    CHECK(kc_aborted_has(t, 2, &b));
}

TEST(aborted_transactions_do_not_end_with_a_commit) {
    kc_aborted t[] = {{5, 10, INT64_MAX}};
    /* A record of 10 bytes: attributes, differences of time and offset, a key of 4 bytes, null, no headers. */
    uint8_t marker[] = {20, 0, 0, 0, 8, 0, 0, 0, 1, 1, 0};
    kc_batch b = batch(5, 12, KC_TRANSACTIONAL | KC_CONTROL);
    b.records = marker;
    b.records_size = sizeof(marker);
    CHECK(!kc_aborted_has(t, 1, &b));
    CHECK(has(t, 1, 5, 13, KC_TRANSACTIONAL));
    for (b.records_size = 0; b.records_size < sizeof(marker) - 2; b.records_size++) {
        CHECK(!kc_aborted_has(t, 1, &b)); /* one that cannot be read ends it */
        CHECK(!has(t, 1, 5, 13, KC_TRANSACTIONAL));
        t[0].last_offset = INT64_MAX;
    }
    b.records_size = sizeof(marker);
    marker[8] = 0;
    CHECK(!kc_aborted_has(t, 1, &b));
    CHECK(!has(t, 1, 5, 13, KC_TRANSACTIONAL));
}
