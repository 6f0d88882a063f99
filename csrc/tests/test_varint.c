#include <string.h>

#include "base/kc_varint.h"
#include "check.h"

/* Bytes and value, unsigned; both directions. From the definition: seven bits a byte, least significant first. */
static const struct {
    const char *bytes;
    int size;
    uint64_t value;
} UNSIGNED[] = {
    {"\x00", 1, 0},
    {"\x01", 1, 1},
    {"\x7f", 1, 127},
    {"\x80\x01", 2, 128},
    {"\xff\x7f", 2, 16383},
    {"\x80\x80\x01", 3, 16384},
    {"\xff\xff\x7f", 3, 2097151},
    {"\x80\x80\x80\x01", 4, 2097152},
    {"\xff\xff\xff\x7f", 4, 268435455},
    {"\x80\x80\x80\x80\x01", 5, 268435456},
    {"\xff\xff\xff\xff\x0f", 5, UINT32_MAX},
    {"\x80\x80\x80\x80\x10", 5, UINT64_C(1) << 32},
    {"\xff\xff\xff\xff\x7f", 5, (UINT64_C(1) << 35) - 1},
    {"\x80\x80\x80\x80\x80\x01", 6, UINT64_C(1) << 35},
    {"\x80\x80\x80\x80\x80\x80\x01", 7, UINT64_C(1) << 42},
    {"\x80\x80\x80\x80\x80\x80\x80\x01", 8, UINT64_C(1) << 49},
    {"\x80\x80\x80\x80\x80\x80\x80\x80\x01", 9, UINT64_C(1) << 56},
    {"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9, INT64_MAX},
    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10, UINT64_C(1) << 63},
    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX},
};

static const struct {
    int64_t value;
    uint64_t zigzag;
} SIGNED[] = {
    {0, 0},
    {-1, 1},
    {1, 2},
    {-2, 3},
    {63, 126},
    {-64, 127},
    {64, 128},
    {-65, 129},
    {INT32_MAX, UINT32_MAX - 1},
    {INT32_MIN, UINT32_MAX},
    {(int64_t)INT32_MAX + 1, UINT64_C(1) << 32},
    {INT64_MAX, UINT64_MAX - 1},
    {INT64_MIN, UINT64_MAX},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define AT(i) ((const uint8_t *)UNSIGNED[i].bytes)

TEST(varint_reads_every_length) {
    for (size_t i = 0; i < COUNT(UNSIGNED); i++) {
        uint64_t value = 0;
        CHECK_EQ(kc_uvarint64_decode(AT(i), AT(i) + UNSIGNED[i].size, &value), UNSIGNED[i].size);
        CHECK_EQ(value, UNSIGNED[i].value);
        uint32_t narrow = 0;
        int n = kc_uvarint32_decode(AT(i), AT(i) + UNSIGNED[i].size, &narrow);
        CHECK_EQ(n, UNSIGNED[i].value <= UINT32_MAX ? UNSIGNED[i].size : -1);
        if (n > 0) CHECK_EQ(narrow, UNSIGNED[i].value);
    }
}

TEST(varint_ends_early_at_every_cut) {
    for (size_t i = 0; i < COUNT(UNSIGNED); i++) {
        for (int cut = 0; cut < UNSIGNED[i].size; cut++) {
            uint64_t value;
            CHECK_EQ(kc_uvarint64_decode(AT(i), AT(i) + cut, &value), 0);
            uint32_t narrow;
            if (cut < KC_VARINT32_MAX_BYTES) CHECK_EQ(kc_uvarint32_decode(AT(i), AT(i) + cut, &narrow), 0);
        }
    }
}

TEST(varint_writes_the_shortest_form) {
    for (size_t i = 0; i < COUNT(UNSIGNED); i++) {
        uint8_t out[KC_VARINT64_MAX_BYTES];
        CHECK_EQ(kc_uvarint64_size(UNSIGNED[i].value), UNSIGNED[i].size);
        CHECK_EQ(kc_uvarint64_encode(out, UNSIGNED[i].value), UNSIGNED[i].size);
        CHECK(memcmp(out, AT(i), (size_t)UNSIGNED[i].size) == 0);
    }
}

TEST(varint_zigzag) {
    for (size_t i = 0; i < COUNT(SIGNED); i++) {
        CHECK_EQ(kc_zigzag64(SIGNED[i].value), SIGNED[i].zigzag);
        CHECK_EQ(kc_unzigzag64(SIGNED[i].zigzag), SIGNED[i].value);
        if (SIGNED[i].value < INT32_MIN || SIGNED[i].value > INT32_MAX) continue;
        CHECK_EQ(kc_zigzag32((int32_t)SIGNED[i].value), SIGNED[i].zigzag);
        CHECK_EQ(kc_unzigzag32((uint32_t)SIGNED[i].zigzag), SIGNED[i].value);
    }
}

TEST(varint_overflow_is_refused) {
    static const char *const TOO_WIDE_64[] = {
        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02",     /* bit 64 */
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",     /* seven bits in the tenth byte */
        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", /* an eleventh byte */
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    };
    for (size_t i = 0; i < COUNT(TOO_WIDE_64); i++) {
        const uint8_t *p = (const uint8_t *)TOO_WIDE_64[i];
        uint64_t value;
        int64_t signed_value;
        CHECK_EQ(kc_uvarint64_decode(p, p + 11, &value), -1);
        CHECK_EQ(kc_varint64_decode(p, p + 11, &signed_value), -1);
    }
    static const char *const TOO_WIDE_32[] = {
        "\x80\x80\x80\x80\x10",     /* bit 32 */
        "\xff\xff\xff\xff\x1f",     /* five bits in the fifth byte */
        "\x80\x80\x80\x80\x80\x00", /* a sixth byte */
    };
    for (size_t i = 0; i < COUNT(TOO_WIDE_32); i++) {
        const uint8_t *p = (const uint8_t *)TOO_WIDE_32[i];
        uint32_t value;
        int32_t signed_value;
        CHECK_EQ(kc_uvarint32_decode(p, p + 6, &value), -1);
        CHECK_EQ(kc_varint32_decode(p, p + 6, &signed_value), -1);
    }
}

TEST(varint_longer_forms_are_read) {
    const uint8_t zero[] = {0x80, 0x80, 0x80, 0x80, 0x00}, one[] = {0x81, 0x80, 0x00};
    uint32_t narrow = 9;
    uint64_t wide = 9;
    CHECK_EQ(kc_uvarint32_decode(zero, zero + 5, &narrow), 5);
    CHECK_EQ(narrow, 0);
    CHECK_EQ(kc_uvarint64_decode(one, one + 3, &wide), 3);
    CHECK_EQ(wide, 1);
}

TEST(varint_round_trips) {
    uint64_t random = 42;
    for (int i = 0; i < 100000; i++) {
        int64_t v = (int64_t)(next_random(&random) >> (next_random(&random) & 63));
        if (random & 1) v = (int64_t)(0 - (uint64_t)v);
        uint8_t out[KC_VARINT64_MAX_BYTES];
        size_t n = kc_varint64_encode(out, v);
        CHECK_EQ(n, kc_varint64_size(v));
        int64_t back = 0;
        CHECK_EQ(kc_varint64_decode(out, out + n, &back), n);
        CHECK_EQ(back, v);
        int32_t w = (int32_t)(v & INT32_MAX), narrow = 0;
        n = kc_varint32_encode(out, w);
        CHECK_EQ(n, kc_varint32_size(w));
        CHECK_EQ(kc_varint32_decode(out, out + n, &narrow), n);
        CHECK_EQ(narrow, w);
    }
}
