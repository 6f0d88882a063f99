/* The frames around compressed data. Bytes are from the specifications: LZ4 frame format 1.6, RFC 8878, snappy-java. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kc_lz4_frame.h"
#include "kc_snappy_frame.h"
#include "kc_xxh32.h"
#include "kc_zstd_frame.h"

/* A frame of independent 64 KiB blocks with one stored block, "abc". */
static const uint8_t LZ4[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 3, 0, 0, 0x80, 'a', 'b', 'c', 0, 0, 0, 0};

/* Xerial's header, then two blocks of one literal each: "a" and "bc". */
static const uint8_t XERIAL[] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0,   0,  1,
                                 0,    0,   0,   3,   1,   0,   'a', 0, 0, 0, 4, 2, 4, 'b', 'c'};

/* A frame without content size and with a window of 1 KiB: a raw block of two bytes, a run of 300, and an empty end. */
static const uint8_t ZSTD[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00, 0x10, 0, 0,
                               'a',  'b',  0x62, 0x09, 0,    'x',  0x01, 0, 0};

static uint32_t xxh32_of(const char *text) { return kc_xxh32((const uint8_t *)text, strlen(text)); }

TEST(xxh32_known_values) {
    CHECK_EQ(xxh32_of(""), 0x02CC5D05);
    CHECK_EQ(xxh32_of("a"), 0x550D7456);
    CHECK_EQ(xxh32_of("abc"), 0x32D153FF);
    CHECK_EQ(xxh32_of("Nobody inspects the spammish repetition"), 0xE2293B2F);
}

/* Walks to the end; the code of the first fault, or KC_OK with the bytes of all blocks added up. */
static int walk_lz4(const uint8_t *data, size_t size, bool any_checksum, size_t *total) {
    kc_error error = {0};
    kc_lz4_frame frame;
    kc_lz4_block block;
    *total = 0;
    if (kc_lz4_open(&frame, data, size, any_checksum, &error)) return error.code;
    do {
        if (kc_lz4_next(&frame, &block, &error)) return error.code;
        *total += block.size;
    } while (block.data);
    return KC_OK;
}

static int walk_snappy(const uint8_t *data, size_t size, bool any_checksum, size_t *total) {
    kc_error error = {0};
    kc_snappy_frame frame;
    kc_snappy_block block;
    (void)any_checksum;
    *total = 0;
    if (kc_snappy_open(&frame, data, size, &error)) return error.code;
    do {
        if (kc_snappy_next(&frame, &block, &error)) return error.code;
        *total += block.content_size;
    } while (block.data);
    return KC_OK;
}

static int walk_zstd(const uint8_t *data, size_t size, bool any_checksum, size_t *total) {
    kc_error error = {0};
    kc_zstd_frame frame;
    size_t position = 0;
    (void)any_checksum;
    *total = 0;
    while (position < size) {
        if (kc_zstd_next(data, size, &position, &frame, &error)) return error.code;
        *total += (size_t)frame.most_content;
    }
    return KC_OK;
}

static const struct {
    int (*walk)(const uint8_t *data, size_t size, bool any_checksum, size_t *total);
    const uint8_t *data;
    size_t size, content;
    bool whole_prefix; /* the walk of a cut may end well where a block or frame does */
} FRAMES[] = {
    {walk_lz4, LZ4, sizeof LZ4, 3, false},
    {walk_snappy, XERIAL, sizeof XERIAL, 3, true},
    {walk_zstd, ZSTD, sizeof ZSTD, 302, true},
};

TEST(frames_are_walked_to_their_end) {
    for (size_t i = 0; i < sizeof FRAMES / sizeof *FRAMES; i++) {
        size_t total;
        CHECK_EQ(FRAMES[i].walk(FRAMES[i].data, FRAMES[i].size, false, &total), KC_OK);
        CHECK_EQ(total, FRAMES[i].content);
    }
}

/* Each cut lies in memory of its own, so that the sanitizer sees a read past it. */
TEST(frames_cut_anywhere_are_not_read_past) {
    for (size_t i = 0; i < sizeof FRAMES / sizeof *FRAMES; i++)
        for (size_t size = 0; size < FRAMES[i].size; size++) {
            uint8_t *cut = malloc(size ? size : 1);
            memcpy(cut, FRAMES[i].data, size);
            size_t total;
            int code = FRAMES[i].walk(cut, size, true, &total);
            free(cut);
            CHECK(code != KC_OK || FRAMES[i].whole_prefix);
            CHECK(total <= FRAMES[i].content);
        }
}

TEST(frames_changed_anywhere_stay_within_bounds) {
    for (size_t i = 0; i < sizeof FRAMES / sizeof *FRAMES; i++)
        for (size_t bit = 0; bit < 8 * FRAMES[i].size; bit++) {
            uint8_t *changed = malloc(FRAMES[i].size);
            memcpy(changed, FRAMES[i].data, FRAMES[i].size);
            changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
            size_t total;
            (void)FRAMES[i].walk(changed, FRAMES[i].size, true, &total);
            free(changed);
            CHECK(total <= 3 * ((size_t)128 << 10));
        }
}

TEST(lz4_header_checksum_counts_except_where_asked) {
    uint8_t frame[sizeof LZ4];
    size_t total;
    memcpy(frame, LZ4, sizeof LZ4);
    CHECK_EQ(kc_xxh32(frame + 4, 2) >> 8 & 0xff, 0x82);
    frame[6] = kc_lz4_old_checksum(frame, false);
    CHECK(frame[6] != 0x82);
    CHECK_EQ(walk_lz4(frame, sizeof frame, false, &total), KC_CRC_MISMATCH);
    CHECK_EQ(walk_lz4(frame, sizeof frame, true, &total), KC_OK);
}

TEST(snappy_claims_are_held_against_the_bytes) {
    const uint8_t claims_much[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'a'}, densest[] = {64, 0xfe, 1, 0};
    size_t total;
    CHECK_EQ(walk_snappy(claims_much, sizeof claims_much, false, &total), KC_CORRUPT);
    CHECK_EQ(walk_snappy(densest, sizeof densest, false, &total), KC_OK);
    CHECK_EQ(total, 64);
}

TEST(zstd_content_size_is_held_against_the_blocks) {
    /* Single segment, eight bytes of content size: 2^60, then an empty last block. */
    const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x10, 1, 0, 0};
    const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'y'};
    size_t total;
    CHECK_EQ(walk_zstd(frame, sizeof frame, false, &total), KC_CORRUPT);
    CHECK_EQ(walk_zstd(skippable, sizeof skippable, false, &total), KC_OK);
    CHECK_EQ(total, 0);
    CHECK_EQ(walk_zstd(skippable, sizeof skippable - 1, false, &total), KC_TRUNCATED);
}
