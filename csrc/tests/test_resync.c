/* What a search accepts as a batch, and where reading continues after a damaged one. */
#include "build.h"
#include "check.h"
#include "decode/kc_batch.h"
#include "decode/kc_resync.h"

/* Three records of 11, 10 and 9 bytes, in a batch of offsets 100 to 102. */
static void three_records(bytes *b, int attributes) {
    bytes records = {.size = 0};
    add_record(&records, 0, 0, "key", "v", NULL, NULL);
    add_record(&records, 1, 0, "ke", "v", NULL, NULL);
    add_record(&records, 2, 0, "k", "v", NULL, NULL);
    b->size = 0;
    add_batch(b, attributes, 3, &records);
}

static bool plausible(const bytes *b, uint64_t *size) { return kc_resync_plausible(b->data, b->size, 0, size); }

/* One field of a batch of magic 2 set to another value. */
static const struct {
    unsigned at, width;
    int64_t value;
    bool plausible;
} FIELDS[] = {
    {0, 8, 100, true},
    {0, 8, 0, true},
    {0, 8, INT64_MAX, true},
    {0, 8, -1, false},
    {0, 8, INT64_MIN, false},
    {8, 4, 79, true},
    {8, 4, 80, false}, /* beyond the data */
    {8, 4, -1, false},
    {8, 4, INT32_MIN, false},
    {8, 4, 49 + 11 + 14, true}, /* the first record leaves seven bytes for each of the others */
    {8, 4, 49 + 11 + 13, false},
    {8, 4, 48, false},
    {16, 1, 2, true},
    {16, 1, 3, false},
    {16, 1, 255, false},
    {21, 2, 0x78, true},
    {21, 2, 0x80, false},
    {21, 2, 0x100, false},
    {21, 2, 5, false},
    {21, 2, 7, false},
    {23, 4, 2, true},
    {23, 4, 1, false}, /* fewer offsets than records */
    {23, 4, INT32_MAX, true},
    {23, 4, -1, false},
    {57, 4, 3, true},
    {57, 4, 2, true},
    {57, 4, 1, false}, /* the only record would have to take all */
    {57, 4, 0, false},
    {57, 4, -1, false},
    {57, 4, 4, false},
    {61, 1, 0, false},     /* a record of no bytes */
    {61, 1, 2 * 5, false}, /* smaller than any */
    {61, 1, 2 * 6, true},  /* the smallest */
    {61, 1, 2 * 15, true}, /* leaves 14 bytes */
    {61, 1, 2 * 16, false},
    {61, 1, 2 * 10 + 1, false}, /* negative */
};

TEST(resync_holds_a_header_against_itself) {
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        bytes b;
        uint64_t size = 0;
        three_records(&b, 0);
        CHECK_EQ(b.size, 61 + 30);
        for (unsigned k = 0; k < FIELDS[i].width; k++)
            b.data[FIELDS[i].at + k] = (uint8_t)((uint64_t)FIELDS[i].value >> (8 * (FIELDS[i].width - 1 - k)));
        CHECK(plausible(&b, &size) == FIELDS[i].plausible);
        if (FIELDS[i].plausible) CHECK_EQ(size, FIELDS[i].at == 8 ? FIELDS[i].value + 12 : 91);
    }
}

TEST(resync_knows_how_records_begin) {
    static const struct {
        int codec;
        const char *start;
        size_t size;
        bool plausible;
    } CASES[] = {
        {KC_CODEC_GZIP, "\x1f\x8b\x08\x00", 4, true},
        {KC_CODEC_GZIP, "\x1f\x8c\x08\x00", 4, false},
        {KC_CODEC_GZIP, "\x1f\x8b\x08", 3, false},
        {KC_CODEC_LZ4, "\x04\x22\x4d\x18", 4, true},
        {KC_CODEC_LZ4, "\x04\x22\x4d\x19", 4, false},
        {KC_CODEC_ZSTD, "\x28\xb5\x2f\xfd", 4, true},
        {KC_CODEC_ZSTD, "\x50\x2a\x4d\x18", 4, true},
        {KC_CODEC_ZSTD, "\x5f\x2a\x4d\x18", 4, true},
        {KC_CODEC_ZSTD, "\x60\x2a\x4d\x18", 4, false},
        {KC_CODEC_ZSTD, "\x28\xb5\x2f\xfc", 4, false},
        {KC_CODEC_SNAPPY, "?", 1, true},
        {KC_CODEC_SNAPPY, "", 0, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bytes b = {.size = 0}, stored = {.size = 0};
        uint64_t size;
        add(&stored, CASES[i].start, CASES[i].size);
        add_batch(&b, CASES[i].codec, 3, &stored);
        CHECK(plausible(&b, &size) == CASES[i].plausible);
    }
    bytes b = {.size = 0}, gzip = {.size = 0}, cut = {.size = 0};
    const bytes none = {.size = 0};
    add(&gzip, "\x1f\x8b\x08\x00", 4);
    add_batch(&cut, KC_CODEC_GZIP, 3, &gzip);
    for (uint32_t length = 14; length <= 48; length++) { /* the header itself is longer */
        uint64_t ignored;
        kc_store_u32(cut.data + 8, length);
        CHECK(!plausible(&cut, &ignored));
    }
    uint64_t size = 0;
    add_batch(&b, 0, 0, &none); /* what compaction leaves of a producer's last batch */
    CHECK(plausible(&b, &size));
    CHECK_EQ(size, 61);
}

TEST(resync_adds_up_the_sizes_of_a_message) {
    static const struct {
        int magic;
        unsigned at;
        uint8_t byte;
        bool plausible;
    } CASES[] = {
        {0, 17, 0x0f, true}, {0, 17, 0x10, false}, {1, 17, 0x0f, true},  {1, 17, 0x20, false}, {0, 21, 2, true},
        {0, 21, 3, false},   {0, 21, 1, false},    {0, 18, 0xff, false}, {0, 27, 3, true},     {0, 27, 2, false},
        {0, 27, 4, false},   {0, 24, 0x80, false}, {1, 29, 2, true},     {1, 29, 1, false},    {1, 35, 3, true},
        {1, 35, 4, false},   {0, 11, 13, false},   {0, 0, 0x80, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bytes b = {.size = 0};
        uint64_t size = 0;
        add_message(&b, CASES[i].magic, 0, 7, 5, "ab", "cde", 3);
        b.data[CASES[i].at] = CASES[i].byte;
        CHECK(plausible(&b, &size) == CASES[i].plausible);
        if (CASES[i].plausible) CHECK_EQ(size, b.size);
    }
    bytes nulls = {.size = 0}, cut = {.size = 0};
    uint64_t size = 0;
    add_message(&nulls, 0, 0, 7, 0, NULL, NULL, -1);
    CHECK(plausible(&nulls, &size));
    CHECK_EQ(size, 26);
    CHECK(!kc_resync_plausible(nulls.data, 25, 0, &size));
    CHECK(!kc_resync_plausible(nulls.data, 26, 1, &size));
    CHECK(!kc_resync_plausible(nulls.data, 26, 27, &size));
    nulls.data[21] = 0xfe; /* a size of -2 */
    CHECK(!plausible(&nulls, &size));
    add_message(&cut, 1, 0, 7, 5, NULL, NULL, -1); /* of magic 1, but as long as one of magic 0 */
    kc_store_u32(cut.data + 8, 14);
    CHECK(!plausible(&cut, &size));
    kc_store_u32(cut.data + 8, 22);
    CHECK(plausible(&cut, &size));
}

/* A batch at any place of the blocks that are searched at a time, the last bytes of the data included. */
TEST(resync_finds_a_batch_wherever_it_lies) {
    for (int magic = 0; magic < 3; magic++) {
        for (size_t before = 0; before < 140; before++) {
            for (size_t after = 0; after < 2; after++) {
                bytes b = {.size = before}, one = {.size = 0};
                memset(b.data, 0xff, sizeof b.data);
                if (magic == 2)
                    three_records(&one, 0);
                else
                    add_message(&one, magic, 0, 7, 5, "k", "v", 1);
                add(&b, one.data, one.size);
                b.size += 70 * after;
                kc_resync state = kc_resync_start();
                CHECK_EQ(kc_resync_next(b.data, b.size, 0, &state), before);
                CHECK_EQ(state.examined, before + one.size);
                CHECK_EQ(state.credit, KC_RESYNC_FIRST_CREDIT + 16 * before - one.size);
                CHECK_EQ(kc_resync_next(b.data, b.size, before, &state), before);
                CHECK_EQ(kc_resync_next(b.data, b.size, before + 1, &state), b.size);
                b.data[before + one.size - 1] ^= 1; /* the checksum is wrong now */
                state = kc_resync_start();
                CHECK_EQ(kc_resync_next(b.data, b.size, 0, &state), b.size);
                const size_t searched = b.size - (KC_MESSAGE_MIN_SIZE - 1);
                CHECK_EQ(state.examined, searched + one.size);
                CHECK_EQ(state.credit, KC_RESYNC_FIRST_CREDIT + 16 * searched - one.size);
            }
        }
    }
}

/* Batches whose length has its bits in one byte alone: the search looks at the bytes of a length one by one. */
TEST(resync_finds_batches_of_every_size) {
    enum { GARBAGE = 3, LARGEST = 1 << 24 };
    static uint8_t data[GARBAGE + KC_ENTRY_OVERHEAD + LARGEST];
    static const uint32_t LENGTHS[] = {14, 255, 256, 0xff00, 1 << 16, 0xff0000, LARGEST};
    memset(data, 0xff, GARBAGE);
    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        uint8_t *message = data + GARBAGE; /* of magic 0, without a key */
        const size_t size = KC_ENTRY_OVERHEAD + (size_t)LENGTHS[i];
        memset(message, 0, size);
        kc_store_u64(message, 300);
        kc_store_u32(message + KC_ENTRY_LENGTH_AT, LENGTHS[i]);
        kc_store_u32(message + 18, UINT32_MAX);
        kc_store_u32(message + 22, LENGTHS[i] - 14);
        kc_store_u32(message + KC_MESSAGE_CRC_AT, kc_crc32(0, message + KC_ENTRY_MAGIC_AT, size - KC_ENTRY_MAGIC_AT));
        kc_resync state = kc_resync_start();
        CHECK_EQ(kc_resync_next(data, GARBAGE + size, 0, &state), GARBAGE);
    }
}

/* Every position where the smallest message would fit is searched, and earns credit. */
TEST(resync_earns_credit_for_every_position) {
    uint8_t garbage[300];
    memset(garbage, 0xff, sizeof garbage);
    for (size_t size = 0; size <= sizeof garbage; size++) {
        const size_t searched = size < KC_MESSAGE_MIN_SIZE ? 0 : size - KC_MESSAGE_MIN_SIZE + 1;
        kc_resync state = kc_resync_start();
        CHECK_EQ(kc_resync_next(garbage, size, 0, &state), size);
        CHECK_EQ(state.examined, searched);
        CHECK_EQ(state.credit, KC_RESYNC_FIRST_CREDIT + 16 * searched);
    }
}

TEST(resync_passes_over_what_the_credit_does_not_cover) {
    for (size_t before = 0; before < 4; before++) {
        bytes b = {.size = before};
        memset(b.data, 0xff, before);
        add_message(&b, 0, 0, 7, 0, "k", "vvvv", 4); /* 31 bytes */
        kc_resync state = {0, 0, INT64_MAX};
        CHECK_EQ(kc_resync_next(b.data, b.size, 0, &state), before < 2 ? b.size : before);
        if (before >= 2) CHECK_EQ(state.credit, 16 * before - 31);
        state = (kc_resync){31, 0, INT64_MAX};
        CHECK_EQ(kc_resync_next(b.data, b.size, before, &state), before);
        CHECK_EQ(state.credit, 0);
        state = (kc_resync){30, 0, INT64_MAX};
        CHECK_EQ(kc_resync_next(b.data, b.size, before, &state), b.size);
    }
}

/* ---- after a damaged batch ---- */

static uint64_t after(const bytes *b, uint64_t position) {
    kc_resync state = kc_resync_start();
    return kc_resync_after(b->data, b->size, position, &state);
}

TEST(resync_goes_on_at_the_end_of_a_batch_that_tells_it) {
    bytes b, another;
    three_records(&b, 0);
    three_records(&another, 0);
    const size_t one = b.size;
    b.data[one - 1] ^= 1;
    kc_resync end = kc_resync_start();
    CHECK(!kc_resync_used(&end));
    CHECK_EQ(kc_resync_after(b.data, b.size, 0, &end), one); /* the end of the data */
    CHECK_EQ(end.credit, KC_RESYNC_FIRST_CREDIT + 16 * one);
    CHECK_EQ(end.examined, 0);
    CHECK(kc_resync_used(&end));
    CHECK_EQ(after(&b, one), one);
    CHECK_EQ(after(&b, one + 5), one);
    add(&b, another.data, another.size);
    CHECK_EQ(after(&b, 0), one); /* an intact batch */
    kc_resync state = kc_resync_start();
    CHECK_EQ(kc_resync_after(b.data, b.size, 0, &state), one);
    CHECK_EQ(state.credit, KC_RESYNC_FIRST_CREDIT + 16 * one - one);
    CHECK_EQ(state.examined, one);
    CHECK(kc_resync_used(&state));
    b.size -= 10;
    CHECK_EQ(after(&b, 0), one); /* the start of a partial one */
    memset(b.data + one, 0, another.size);
    CHECK_EQ(after(&b, 0), one); /* a preallocated file's zeros */
}

TEST(resync_searches_where_a_length_is_wrong) {
    bytes b, another;
    three_records(&b, 0);
    three_records(&another, 0);
    const size_t one = b.size;
    add(&b, another.data, another.size);
    add(&b, another.data, another.size);
    kc_store_u32(b.data + 8, (uint32_t)one - 12 + 5); /* ends inside the next one */
    CHECK_EQ(after(&b, 0), one);
    kc_store_u32(b.data + 8, (uint32_t)(2 * one) - 12); /* takes the next one along */
    CHECK_EQ(after(&b, 0), 2 * one);
    kc_store_u32(b.data + 8, 3); /* cannot be */
    CHECK_EQ(after(&b, 0), one);
    kc_store_u32(b.data + 8, (uint32_t)one - 12);
    b.data[16] = 9;
    CHECK_EQ(after(&b, 0), one);
    b.data[16] = 2;
    b.data[one + 16] = 9; /* and the next one is damaged, too: the one after it */
    CHECK_EQ(after(&b, 0), 2 * one);
    b.data[2 * one + 16] = 9;
    CHECK_EQ(after(&b, 0), 3 * one);
}

/* Batches after a partial one may be bytes of a value in it: their offsets must follow. */
TEST(resync_takes_batches_in_order_after_a_partial_one) {
    static const struct {
        int64_t offset, found;
        bool counts;
    } CASES[] = {
        {10, 11, true}, {10, 10 + (int64_t)INT32_MAX, true}, {10, 11 + (int64_t)INT32_MAX, false}, {10, 10, false},
        {10, 9, false}, {INT64_C(1) << 48, 9, true}, /* no batch has that */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bytes b = {.size = 0};
        add_message(&b, 0, 0, CASES[i].offset, 0, "k", "vvvvvvvv", 8);
        const size_t one = b.size;
        kc_store_u32(b.data + 8, 1000);
        add_message(&b, 0, 0, CASES[i].found, 0, "k", "v", 1);
        CHECK_EQ(after(&b, 0), CASES[i].counts ? one : b.size);
        const size_t two = b.size;
        add_message(&b, 0, 0, 12, 0, "k", "v", 1);
        CHECK_EQ(after(&b, 0), CASES[i].counts ? one : two);
    }
    bytes b = {.size = 0};
    add_message(&b, 0, 0, 1, 0, "k", "v", 1);
    b.size = 11; /* not even a length */
    CHECK_EQ(after(&b, 0), 11);
}
