#include <string.h>

#include "check.h"
#include "encode/kc_murmur2.h"

/* The values of UtilsTest.testMurmur2 in kafka-clients. */
static const struct {
    const char *key;
    int32_t hash;
} KNOWN[] = {
    {"21", -973932308},
    {"foobar", -790332482},
    {"a-little-bit-long-string", -985981536},
    {"a-little-bit-longer-string", -1486304829},
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
    {"abc", 479470107},
};
enum { COUNT = sizeof KNOWN / sizeof *KNOWN };

TEST(murmur2_known_values) {
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ((int32_t)kc_murmur2((const uint8_t *)KNOWN[i].key, strlen(KNOWN[i].key)), KNOWN[i].hash);
    }
}

/* The partitioner: the hash without its sign, modulo; keys that are null have none. */
TEST(murmur2_partitions_of_keys) {
    static kc_spans keys;
    int32_t out[COUNT + 1];
    for (int i = 0; i < COUNT; i++) {
        keys.data[i] = (const uint8_t *)KNOWN[i].key;
        keys.size[i] = (int32_t)strlen(KNOWN[i].key);
    }
    keys.size[COUNT] = -1;
    kc_murmur2_partitions(&keys, COUNT + 1, 1000, out);
    for (int i = 0; i < COUNT; i++) CHECK_EQ(out[i], (KNOWN[i].hash & INT32_MAX) % 1000);
    CHECK_EQ(out[COUNT], -1);
}

/* Numbers are hashed as Kafka's serializers write them: big-endian, in four or eight bytes. */
TEST(murmur2_partitions_of_numbers) {
    static const int64_t numbers[] = {0, 1, -2, INT64_C(0x0102030405060708)};
    for (size_t width = 4; width <= 8; width += 4) {
        int32_t out[4];
        kc_murmur2_int_partitions(numbers, 4, width, 97, out);
        for (int i = 0; i < 4; i++) {
            uint8_t bytes[8];
            for (size_t k = 0; k < width; k++) bytes[k] = (uint8_t)((uint64_t)numbers[i] >> (8 * (width - 1 - k)));
            CHECK_EQ(out[i], (kc_murmur2(bytes, width) & INT32_MAX) % 97);
        }
    }
}

/* Every length, with other bytes after the key: step by step as Utils.murmur2 of kafka-clients. */
static uint32_t described(const uint8_t *data, size_t size) {
    const uint32_t m = 0x5bd1e995;
    uint32_t h = 0x9747b28c ^ (uint32_t)size;
    for (size_t i = 0; i < size / 4; i++) {
        uint32_t k = 0;
        for (size_t byte = 4; byte > 0; byte--) k = k << 8 | data[4 * i + byte - 1];
        k *= m;
        k ^= k >> 24;
        k *= m;
        h *= m;
        h ^= k;
    }
    for (size_t rest = size % 4; rest > 0; rest--) {
        h ^= (uint32_t)data[size / 4 * 4 + rest - 1] << 8 * (rest - 1);
        if (rest == 1) h *= m;
    }
    h ^= h >> 13;
    h *= m;
    return h ^ h >> 15;
}

TEST(murmur2_of_every_length) {
    uint8_t data[24];
    uint64_t random = 3;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(next_random(&random) | 1);
    CHECK_EQ((int32_t)described((const uint8_t *)"foobar", 6), -790332482);
    for (size_t size = 0; size < sizeof data; size++) CHECK_EQ(kc_murmur2(data, size), described(data, size));
}
