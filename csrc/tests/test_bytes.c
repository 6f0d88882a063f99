#include "base/kc_bytes.h"
#include "check.h"

static const uint8_t DATA[15] = {0x80, 0x01, 0x02, 0xff, 0xfe, 0xfd, 0xfc, 0x00,
                                 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07};

/* One code per exception class: none stands for two. */
TEST(error_codes_are_distinct) {
    static const int CODES[] = {KC_OK,    KC_TRUNCATED, KC_CORRUPT,   KC_CRC_MISMATCH,  KC_BAD_MAGIC,
                                KC_LIMIT, KC_NO_MEMORY, KC_BAD_CODEC, KC_CANNOT_ENCODE, KC_TOTAL_LIMIT};
    for (int i = 0; i < (int)(sizeof CODES / sizeof *CODES); i++) CHECK_EQ(CODES[i], i);
}

TEST(bytes_reads_big_endian) {
    kc_bytes b = kc_bytes_over(DATA, sizeof DATA);
    CHECK_EQ(kc_take_i8(&b), -128);
    CHECK_EQ(kc_take_u16(&b), 0x0102);
    CHECK_EQ(kc_take_i32(&b), -66052);
    CHECK_EQ(kc_take_u64(&b), 0x0001020304050607);
    CHECK_EQ(kc_bytes_left(&b), 0);
    CHECK(!b.failed);
}

TEST(bytes_signs) {
    kc_bytes b = kc_bytes_over(DATA + 3, 12);
    CHECK_EQ(kc_take_i16(&b), -2);
    b = kc_bytes_over(DATA + 3, 12);
    CHECK_EQ(kc_take_i64(&b), (int64_t)UINT64_C(0xfffefdfc00010203));
}

TEST(bytes_refuses_what_is_not_there) {
    for (size_t size = 0; size < 8; size++) {
        kc_bytes b = kc_bytes_over(DATA, size);
        CHECK_EQ(kc_take_u64(&b), 0);
        CHECK(b.failed);
        CHECK_EQ(kc_bytes_left(&b), size);
    }
    kc_bytes b = kc_bytes_over(DATA, 3);
    CHECK_EQ(kc_take_u32(&b), 0);
    CHECK(b.failed);
}

TEST(bytes_failure_sticks) {
    kc_bytes b = kc_bytes_over(DATA, 4);
    CHECK_EQ(kc_take_u64(&b), 0);
    CHECK_EQ(kc_take_u8(&b), 0);
    CHECK_EQ(kc_take_u16(&b), 0);
    CHECK(kc_take(&b, 0) == NULL);
    CHECK_EQ(kc_bytes_left(&b), 4);
}

TEST(bytes_refuses_huge_lengths) {
    kc_bytes b = kc_bytes_over(DATA, sizeof DATA);
    CHECK(kc_take(&b, SIZE_MAX) == NULL);
    b = kc_bytes_over(DATA, sizeof DATA);
    CHECK(kc_take(&b, sizeof DATA + 1) == NULL);
    b = kc_bytes_over(DATA, sizeof DATA);
    CHECK(kc_take(&b, sizeof DATA) == DATA);
}

TEST(bytes_empty) {
    kc_bytes b = kc_bytes_over(DATA, 0);
    CHECK(kc_take(&b, 0) == DATA);
    CHECK(!b.failed);
    CHECK(kc_take(&b, 1) == NULL);
}

TEST(bytes_stores_what_it_loads) {
    uint8_t out[8];
    uint64_t random = 7;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = next_random(&random);
        kc_store_u64(out, v);
        CHECK(kc_load_u64(out) == v);
        kc_store_u32(out, (uint32_t)v);
        CHECK(kc_load_u32(out) == (uint32_t)v);
        kc_store_u16(out, (uint16_t)v);
        CHECK(kc_load_u16(out) == (uint16_t)v);
    }
    kc_store_u32(out, 0x01020304);
    CHECK_EQ(out[0], 1);
    CHECK_EQ(out[3], 4);
}
