#include "base/kc_alloc.h"
#include "check.h"
#include "values/kc_key_set.h"

enum { KEYS = 10000 };

TEST(key_set_knows_the_keys_of_a_value) {
    kc_key_set set = {0};
    for (int value = 0; value < 3; value++) {
        kc_key_set_clear(&set);
        for (uint64_t key = 0; key < KEYS; key++) {
            const uint64_t print = kc_key_print(7, (const uint8_t *)&key, sizeof key);
            CHECK(kc_key_set_add(&set, print));
            CHECK(!kc_key_set_add(&set, print));
        }
        CHECK_EQ(set.count, KEYS);
    }
    kc_key_set_free(&set);
    CHECK_EQ(set.capacity, 0);
}

TEST(key_set_prints_depend_on_every_byte) {
    uint8_t bytes[20] = {0};
    const uint64_t zeros = kc_key_print(0, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        CHECK(kc_key_print(0, bytes, sizeof bytes) != zeros);
        bytes[i] = 0;
        CHECK(kc_key_print(0, bytes, i) != zeros);
    }
    CHECK(kc_key_print(1, bytes, sizeof bytes) != zeros);
    CHECK_EQ(kc_key_print(0, NULL, 0), kc_key_print(0, bytes, 0));
}

/* Keys that are chosen to fall into the same place take a few steps each, and are then taken for known. */
TEST(key_set_takes_no_more_steps_for_chosen_keys) {
    kc_key_set set = {0};
    size_t added = 0;
    for (uint64_t i = 0; i < KEYS; i++) added += kc_key_set_add(&set, (i + 1) << 40);
    CHECK(added < 200);
    kc_key_set_free(&set);
}

TEST(key_set_has_a_limit) {
    kc_key_set set = {0};
    size_t added = 0;
    while (kc_key_set_add(&set, kc_key_print(added, NULL, 0))) added++;
    CHECK_EQ(added, KC_KEY_SET_MOST);
    kc_key_set_free(&set);
}
