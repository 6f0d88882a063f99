#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/kc_cpu.h"
#include "check.h"
#include "checksum/kc_crc32.h"
#include "checksum/kc_crc32c.h"
#include "checksum/kc_crc_constants.h"
#include "checksum/kc_crc_kernels.h"

typedef struct {
    const kc_crc_kernel *kernels;
    const kc_crc_constants *constants;
    const uint32_t (*slices)[256];
    uint32_t polynomial; /* reflected, without x^32 */
} checksum;

static const checksum CHECKSUMS[] = {
    {kc_crc32c_kernels, &kc_crc32c_constants, kc_crc32c_slices, 0x82f63b78},
    {kc_crc32_kernels, &kc_crc32_constants, kc_crc32_slices, 0xedb88320},
};

#define EACH_CHECKSUM(c) for (const checksum *c = CHECKSUMS; c < CHECKSUMS + 2; c++)

/* The definition: one bit at a time. */
static uint32_t by_bits(uint32_t polynomial, uint32_t state, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        state ^= data[i];
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (state & 1 ? polynomial : 0);
    }
    return state;
}

/* x^n modulo the polynomial, reflected. */
static uint32_t power(uint32_t polynomial, unsigned n) {
    uint32_t state = 0x80000000;
    while (n--) state = state >> 1 ^ (state & 1 ? polynomial : 0);
    return state;
}

static uint64_t reverse33(uint64_t v) {
    uint64_t reversed = 0;
    for (int bit = 0; bit < 33; bit++)
        if (v >> bit & 1) reversed |= UINT64_C(1) << (32 - bit);
    return reversed;
}

/* x^64 divided by the polynomial, reflected in 33 bits: long division in the ordinary bit order. */
static uint64_t quotient(uint64_t polynomial33) {
    uint64_t divisor = reverse33(polynomial33), result = 1; /* x^32, and then the rest of x^64 - x^32 * divisor */
    uint64_t rest = (divisor & UINT32_MAX) << 32;
    for (int bit = 63; bit >= 32; bit--) {
        result <<= 1;
        if (rest >> bit & 1) {
            rest ^= divisor << (bit - 32);
            result |= 1;
        }
    }
    return reverse33(result);
}

TEST(crc_constants_are_what_they_are_called) {
    EACH_CHECKSUM(c) {
        const kc_crc_constants *k = c->constants;
        static const unsigned DISTANCES[] = {2048, 512, 128};
        const uint64_t *folds[] = {k->fold_2048, k->fold_512, k->fold_128};
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(folds[i][0], (uint64_t)power(c->polynomial, DISTANCES[i] + 63) << 32);
            CHECK_EQ(folds[i][1], (uint64_t)power(c->polynomial, DISTANCES[i] - 1) << 32);
        }
        CHECK_EQ(k->fold_96, (uint64_t)power(c->polynomial, 95) << 32);
        CHECK_EQ(k->fold_64, (uint64_t)power(c->polynomial, 63) << 32);
        CHECK_EQ(k->polynomial, (uint64_t)c->polynomial << 1 | 1);
        CHECK_EQ(k->quotient, quotient(k->polynomial));
        CHECK_EQ(k->long_stream[0], power(c->polynomial, 16 * KC_CRC_LONG_STREAM - 33));
        CHECK_EQ(k->long_stream[1], power(c->polynomial, 8 * KC_CRC_LONG_STREAM - 33));
        CHECK_EQ(k->short_stream[0], power(c->polynomial, 16 * KC_CRC_SHORT_STREAM - 33));
        CHECK_EQ(k->short_stream[1], power(c->polynomial, 8 * KC_CRC_SHORT_STREAM - 33));
    }
}

TEST(crc_constants_of_mixed_streams_are_what_they_are_called) {
    const kc_crc_mixed_constants *k = &kc_crc32c_mixed_constants;
    const uint32_t polynomial = CHECKSUMS[0].polynomial;
    static const unsigned STREAMS[] = {KC_CRC_MIXED_STREAMS, 3, 2, 1};
    CHECK_EQ(k->fold_1024[0], (uint64_t)power(polynomial, 1024 + 63) << 32);
    CHECK_EQ(k->fold_1024[1], (uint64_t)power(polynomial, 1024 - 1) << 32);
    CHECK_EQ(k->fold_256[0], (uint64_t)power(polynomial, 256 + 63) << 32);
    CHECK_EQ(k->fold_256[1], (uint64_t)power(polynomial, 256 - 1) << 32);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(k->long_stream[i], power(polynomial, 8 * STREAMS[i] * KC_CRC_MIXED_LONG - 33));
        CHECK_EQ(k->short_stream[i], power(polynomial, 8 * STREAMS[i] * KC_CRC_MIXED_SHORT - 33));
    }
}

TEST(crc_tables_follow_from_the_polynomial) {
    EACH_CHECKSUM(c) {
        for (size_t zeros = 0; zeros < 8; zeros++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                uint8_t message[8] = {(uint8_t)byte};
                CHECK_EQ(c->slices[zeros][byte], by_bits(c->polynomial, 0, message, zeros + 1));
            }
        }
    }
}

/* RFC 3720 B.4 for CRC-32C; the check value of both is that of "123456789". */
TEST(crc_published_values) {
    uint8_t bytes[32];
    CHECK_EQ(kc_crc32c(0, (const uint8_t *)"123456789", 9), 0xe3069283);
    CHECK_EQ(kc_crc32(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
    memset(bytes, 0, 32);
    CHECK_EQ(kc_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    CHECK_EQ(kc_crc32c(0, bytes, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++) bytes[i] = i;
    CHECK_EQ(kc_crc32c(0, bytes, 32), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++) bytes[i] = (uint8_t)(31 - i);
    CHECK_EQ(kc_crc32c(0, bytes, 32), 0x113fdb5c);
    CHECK_EQ(kc_crc32c(0, NULL, 0), 0);
    CHECK_EQ(kc_crc32(17, NULL, 0), 17);
}

/* Exactly sized copies on the heap, so that the sanitizer sees a read before or after them. */
static void agree(const checksum *c, const kc_crc_kernel *kernel, uint64_t *random, size_t size) {
    size_t offset = next_random(random) & 63;
    uint8_t *block = malloc(offset + size + 1);
    CHECK(block != NULL);
    uint8_t *data = malloc(size ? size : 1);
    CHECK(data != NULL);
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)next_random(random);
    memcpy(block + offset, data, size);
    uint32_t state = (uint32_t)next_random(random);
    uint32_t want = by_bits(c->polynomial, state, data, size);
    CHECK_EQ(kernel->run(state, data, size), want);
    CHECK_EQ(kernel->run(state, block + offset, size), want);
    size_t cut = size ? (size_t)next_random(random) % size : 0;
    CHECK_EQ(kernel->run(kernel->run(state, data, cut), data + cut, size - cut), want);
    free(data);
    free(block);
}

static void each_kernel_agrees(uint64_t seed, size_t from, size_t to, size_t step) {
    uint64_t random = seed;
    EACH_CHECKSUM(c) {
        for (const kc_crc_kernel *kernel = c->kernels;; kernel++) {
            if ((kernel->needs & ~kc_cpu_features()) == 0)
                for (size_t size = from; size < to; size += step) agree(c, kernel, &random, size);
            if (!kernel->needs) break;
        }
    }
}

TEST(crc_kernels_agree_on_every_short_length) { each_kernel_agrees(1, 0, 1100, 1); }

TEST(crc_kernels_agree_on_longer_ones) { each_kernel_agrees(2, 1101, 20000, 397); }

static const char *chosen_with(const char *name, const kc_crc_kernel *kernels) {
    /* The tests themselves may run with a forced kernel. */
    char *before = strdup(kc_forced_kernel());
    setenv("KAFKACODEC_FORCE_KERNEL", name, 1);
    const char *chosen = kc_crc_choose(kernels)->name;
    setenv("KAFKACODEC_FORCE_KERNEL", before, 1);
    free(before);
    return chosen;
}

TEST(crc_kernel_can_be_forced) {
    EACH_CHECKSUM(c) {
        const char *automatic = chosen_with("", c->kernels);
        for (const kc_crc_kernel *kernel = c->kernels;; kernel++) {
            bool available = (kernel->needs & ~kc_cpu_features()) == 0;
            CHECK(strcmp(chosen_with(kernel->name, c->kernels), available ? kernel->name : automatic) == 0);
            if (!kernel->needs) break;
        }
        CHECK(strcmp(chosen_with("no such kernel", c->kernels), automatic) == 0);
        CHECK(strcmp(chosen_with("", c->kernels), automatic) == 0);
    }
}

TEST(crc_needs_nothing_fetched_ahead_only_where_it_streams) {
    CHECK_EQ(kc_crc32c_streams(), strcmp(kc_crc32c_kernel(), "vpclmul") == 0);
}

static void *check_value(void *unused) {
    (void)unused;
    bool right = kc_crc32c(0, (const uint8_t *)"123456789", 9) == 0xe3069283;
    return right ? "" : NULL;
}

TEST(crc_first_use_by_many_threads) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_create(&threads[i], NULL, check_value, NULL), 0);
    for (int i = 0; i < 8; i++) {
        void *right = NULL;
        CHECK_EQ(pthread_join(threads[i], &right), 0);
        CHECK(right != NULL);
    }
}

TEST(changed_bytes_change_the_checksum_of_all) {
    static const size_t SIZES[] = {0, 1, 7, 64, 4096, 65535, 65536, 1000003};
    static uint8_t data[64 + 1000003];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 167 >> 3);
    for (size_t n = 0; n < sizeof SIZES / sizeof *SIZES; n++) {
        const uint32_t whole = kc_crc32c(0, data, 40 + SIZES[n]), before = kc_crc32c(0, data, 40);
        for (size_t i = 0; i < 40; i += 3) data[i] ^= (uint8_t)(0x5a + n);
        const uint32_t after = kc_crc32c(0, data, 40);
        CHECK_EQ(kc_crc32c_changed(whole, before, after, SIZES[n]), kc_crc32c(0, data, 40 + SIZES[n]));
        CHECK_EQ(kc_crc32c_changed(whole, before, before, SIZES[n]), whole);
    }
}
