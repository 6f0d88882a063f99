/* The frames around compressed data. Bytes are from the specifications: LZ4 frame format 1.6, RFC 8878, snappy-java. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "checksum/kc_xxh32.h"
#include "frames/kc_lz4_frame.h"
#include "frames/kc_snappy_frame.h"
#include "frames/kc_zstd_frame.h"

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

/* Each cut is a separate allocation, so that the sanitizer sees a read past it. */
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

/* ---- what is refused, with its numbers -------------------------------------------------------------------------- */

static kc_error lz4_fault(const uint8_t *data, size_t size) {
    kc_error error = {0};
    kc_lz4_frame frame;
    kc_lz4_block block;
    if (kc_lz4_open(&frame, data, size, false, &error)) return error;
    do {
        if (kc_lz4_next(&frame, &block, &error)) return error;
    } while (block.data);
    return error;
}

/* The frame with flags and block code of its own, its header's checksum corrected, up to the end of the header. */
static size_t lz4_header(uint8_t *out, uint8_t flags, uint8_t block_code) {
    size_t descriptor = flags & 0x08 ? 10 : 2;
    memcpy(out, LZ4, 4);
    memset(out + 4, 0, 10);
    out[4] = flags;
    out[5] = block_code;
    out[4 + descriptor] = (uint8_t)(kc_xxh32(out + 4, descriptor) >> 8);
    return 5 + descriptor;
}

TEST(lz4_takes_the_headers_of_kafkas_reader) {
    static const struct {
        uint8_t flags, code;
        int result;
        int64_t got, want;
    } CASES[] = {
        {0x60, 0x40, KC_OK, 0, 0},
        {0x60, 0x50, KC_OK, 0, 0},
        {0x60, 0x70, KC_OK, 0, 0},
        {0x68, 0x40, KC_OK, 0, 0},
        {0x64, 0x40, KC_OK, 0, 0},
        {0x70, 0x40, KC_OK, 0, 0},
        {0x20, 0x40, KC_CORRUPT, 0, 1},
        {0xa0, 0x40, KC_CORRUPT, 2, 1},
        {0x40, 0x40, KC_CORRUPT, 0, 0},
        {0x61, 0x40, KC_CORRUPT, 1, 0},
        {0x62, 0x40, KC_CORRUPT, 2, 0},
        {0x60, 0x30, KC_CORRUPT, 0x30, 0x40},
        {0x60, 0x41, KC_CORRUPT, 0x41, 0x40},
        {0x60, 0xc0, KC_CORRUPT, 0xc0, 0x40},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t frame[32];
        kc_lz4_frame f;
        kc_error error = {0};
        const size_t size = lz4_header(frame, CASES[i].flags, CASES[i].code);
        CHECK_EQ(kc_lz4_open(&f, frame, size, false, &error), CASES[i].result);
        if (error.code) CHECK_ERROR(error, KC_CORRUPT, 6, CASES[i].got, CASES[i].want);
        if (!error.code) CHECK_EQ(f.block_max, (size_t)65536 << 2 * ((CASES[i].code >> 4) - 4));
        for (size_t cut = 0; cut < size && !error.code; cut++) {
            kc_error at_cut = {0};
            CHECK_EQ(kc_lz4_open(&f, frame, cut, true, &at_cut), KC_TRUNCATED);
            /* The field that is cut: magic, descriptor, content size if any, checksum. */
            const size_t field = cut < 4 ? 0 : cut < 6 ? 4 : cut < 14 ? 6 : 14;
            CHECK_ERROR(at_cut, KC_TRUNCATED, field, cut, cut < 6 ? 7 : size);
        }
    }
    uint8_t frame[sizeof LZ4];
    memcpy(frame, LZ4, sizeof LZ4);
    frame[3] ^= 1;
    kc_error error = lz4_fault(frame, sizeof frame);
    CHECK_ERROR(error, KC_CORRUPT, 0, 0, 0);
    memcpy(frame, LZ4, sizeof LZ4);
    frame[6] = 0x83;
    error = lz4_fault(frame, sizeof frame);
    CHECK_ERROR(error, KC_CRC_MISMATCH, 7, 0x82, 0x83);
}

TEST(lz4_blocks_are_held_against_their_frame) {
    uint8_t frame[64];
    const size_t header = lz4_header(frame, 0x70, 0x40); /* with block checksums */
    const uint8_t block[] = {3, 0, 0, 0x80, 'a', 'b', 'c', 0xff, 0x53, 0xd1, 0x32, 0, 0, 0, 0};
    memcpy(frame + header, block, sizeof block);
    kc_error error = lz4_fault(frame, header + sizeof block);
    CHECK_EQ(error.code, KC_OK);
    frame[header + 7] ^= 1;
    error = lz4_fault(frame, header + sizeof block);
    CHECK_ERROR(error, KC_CRC_MISMATCH, header + 11, 0x32d153ff, 0x32d153fe);
    error = lz4_fault(frame, header + 10);
    CHECK_ERROR(error, KC_TRUNCATED, header + 7, 0, 0);
    error = lz4_fault(frame, header + 6);
    CHECK_ERROR(error, KC_TRUNCATED, header + 4, 2, 3);
    error = lz4_fault(frame, header + 3);
    CHECK_ERROR(error, KC_TRUNCATED, header, 0, 0);
    kc_lz4_frame f;
    kc_lz4_block b;
    frame[header + 7] ^= 1;
    CHECK_EQ(kc_lz4_open(&f, frame, header + sizeof block, false, &error), KC_OK);
    CHECK_EQ(kc_lz4_next(&f, &b, &error), KC_OK);
    CHECK(b.stored && b.data == frame + header + 4);
    CHECK_EQ(b.size, 3);
    CHECK_EQ(kc_lz4_next(&f, &b, &error), KC_OK);
    CHECK(b.data == NULL);
    /* 64 KiB is the most in such a frame. */
    static uint8_t large[80000];
    (void)lz4_header(large, 0x60, 0x40);
    for (uint32_t size = 65536; size <= 65537; size++) {
        large[header] = (uint8_t)size;
        large[header + 1] = (uint8_t)(size >> 8);
        large[header + 2] = (uint8_t)(size >> 16);
        large[header + 3] = 0;
        error = (kc_error){0};
        CHECK_EQ(kc_lz4_open(&f, large, sizeof large, false, &error), KC_OK);
        CHECK_EQ(kc_lz4_next(&f, &b, &error), size == 65536 ? KC_OK : KC_CORRUPT);
        if (error.code) CHECK_ERROR(error, KC_CORRUPT, header + 4, 65537, 65536);
        if (!error.code) CHECK(!b.stored);
    }
    const size_t checked = lz4_header(frame, 0x64, 0x40); /* a checksum of the content after the end mark */
    memset(frame + checked, 0, 8);
    error = lz4_fault(frame, checked + 8);
    CHECK_EQ(error.code, KC_OK);
    error = lz4_fault(frame, checked + 7);
    CHECK_ERROR(error, KC_TRUNCATED, checked + 4, 0, 0);
}

TEST(lz4_old_checksum_takes_the_magic_along) {
    uint8_t frame[16];
    for (int sized = 0; sized < 2; sized++) {
        (void)lz4_header(frame, sized ? 0x68 : 0x60, 0x40);
        CHECK_EQ(kc_lz4_old_checksum(frame, sized), kc_xxh32(frame, sized ? 14 : 6) >> 8 & 0xff);
    }
}

/* Every length up to three steps of the four lanes: by the algorithm's description (xxHash's specification). */
static uint32_t rotated(uint32_t v, int bits) { return v << bits | v >> (32 - bits); }

static uint32_t xxh32_described(const uint8_t *p, size_t size) {
    static const uint32_t P[] = {0, 2654435761u, 2246822519u, 3266489917u, 668265263u, 374761393u};
    uint32_t lanes[4] = {P[1] + P[2], P[2], 0, 0 - P[1]}, hash = P[5];
    size_t at = 0;
    for (; size - at >= 16; at += 16) {
        for (int i = 0; i < 4; i++) {
            lanes[i] += kc_load_le32(p + at + 4 * (size_t)i) * P[2];
            lanes[i] = rotated(lanes[i], 13) * P[1];
        }
    }
    if (at) hash = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
    hash += (uint32_t)size;
    for (; size - at >= 4; at += 4) hash = rotated(hash + kc_load_le32(p + at) * P[3], 17) * P[4];
    for (; at < size; at++) hash = rotated(hash + p[at] * P[5], 11) * P[1];
    hash = (hash ^ hash >> 15) * P[2];
    hash = (hash ^ hash >> 13) * P[3];
    return hash ^ hash >> 16;
}

TEST(xxh32_is_that_of_the_description) {
    uint8_t data[60];
    uint64_t random = 5;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)next_random(&random);
    CHECK_EQ(xxh32_described((const uint8_t *)"Nobody inspects the spammish repetition", 39), 0xE2293B2F);
    for (size_t size = 0; size <= sizeof data; size++) CHECK_EQ(kc_xxh32(data, size), xxh32_described(data, size));
}

static kc_error snappy_fault(const uint8_t *data, size_t size) {
    kc_error error = {0};
    kc_snappy_frame frame;
    kc_snappy_block block;
    if (kc_snappy_open(&frame, data, size, &error)) return error;
    do {
        if (kc_snappy_next(&frame, &block, &error)) return error;
    } while (block.data);
    return error;
}

TEST(snappy_blocks_are_given_with_their_sizes) {
    static const uint8_t raw[] = {3, 2 << 2, 'a', 'b', 'c'}; /* a literal of three bytes */
    kc_error error = {0};
    kc_snappy_frame frame;
    kc_snappy_block block = {0};
    CHECK_EQ(kc_snappy_open(&frame, raw, sizeof raw, &error), KC_OK);
    CHECK_EQ(kc_snappy_next(&frame, &block, &error), KC_OK);
    CHECK(block.data == raw);
    CHECK_EQ(block.size, sizeof raw);
    CHECK_EQ(block.content_size, 3);
}

TEST(snappy_faults_tell_where_and_what) {
    uint8_t data[sizeof XERIAL + 20];
    memcpy(data, XERIAL, sizeof XERIAL);
    kc_error error = snappy_fault(data, 0);
    CHECK_ERROR(error, KC_TRUNCATED, 0, 0, 0);
    error = snappy_fault(data, 15); /* a header that is cut */
    CHECK_ERROR(error, KC_TRUNCATED, 0, 0, 0);
    error = snappy_fault(data, 19);
    CHECK_ERROR(error, KC_TRUNCATED, 16, 0, 0);
    error = snappy_fault(data, 22);
    CHECK_ERROR(error, KC_TRUNCATED, 20, 2, 3);
    data[19] = 0;
    error = snappy_fault(data, sizeof XERIAL);
    CHECK_ERROR(error, KC_CORRUPT, 20, 0, 1);
    data[16] = 0xff;
    error = snappy_fault(data, sizeof XERIAL);
    CHECK_ERROR(error, KC_CORRUPT, 20, (int32_t)0xff000000, 1);
    memcpy(data, XERIAL, sizeof XERIAL);
    data[11] = 0; /* version 0 */
    error = snappy_fault(data, sizeof XERIAL);
    CHECK_ERROR(error, KC_CORRUPT, 16, 0, 1);
    memcpy(data, XERIAL, sizeof XERIAL);
    memset(data + 20, 0xff, 3); /* a length that does not end */
    error = snappy_fault(data, 23);
    CHECK_ERROR(error, KC_CORRUPT, 20, 0, 0);
    /* Streams may be concatenated: a header without a block after the first. */
    memcpy(data, XERIAL, sizeof XERIAL);
    memcpy(data + sizeof XERIAL, XERIAL, 16);
    error = snappy_fault(data, sizeof XERIAL + 16);
    CHECK_EQ(error.code, KC_OK);
    /* Three bytes may hold 64, and what begins may be one more such element. */
    const uint8_t most[] = {0x80, 0x01, 0}, more[] = {0x81, 0x01, 0};
    error = snappy_fault(most, 3);
    CHECK_EQ(error.code, KC_OK);
    error = snappy_fault(more, 3);
    CHECK_ERROR(error, KC_CORRUPT, 0, 129, 128);
    uint8_t header[16];
    kc_xerial_header(header);
    CHECK(memcmp(header, XERIAL, sizeof header) == 0);
}

static kc_error zstd_fault(const uint8_t *data, size_t size, kc_zstd_frame *frame, size_t *position) {
    kc_error error = {0};
    *position = 0;
    (void)(kc_zstd_next(data, size, position, frame, &error) == 0);
    return error;
}

/* Headers of RFC 8878, 3.1.1.1, each with a last raw block of two bytes. */
TEST(zstd_headers_of_every_form) {
    static const struct {
        const char *header;
        size_t size;
        uint64_t content, window;
        bool says_size;
    } CASES[] = {
        {"\x00\x00", 2, 2, 1024, false},                 /* a window of 2^10 */
        {"\x00\x07", 2, 2, 1024 + 7 * 128, false},       /* and seven eighths */
        {"\x00\x08", 2, 2, 2048, false},                 /* 2^11 */
        {"\x20\x02", 2, 2, 2, true},                     /* a single segment: one byte of content size */
        {"\x60\x00\x00", 3, 256, 256, true},             /* two bytes, plus 256 */
        {"\xa0\x02\0\0\0", 5, 2, 2, true},               /* four */
        {"\xe0\x02\0\0\0\0\0\0\0", 9, 2, 2, true},       /* eight */
        {"\x80\x00\x02\0\0\0", 6, 2, 1024, true},        /* four, with a window */
        {"\x80\x00\x01\0\0\0", 6, 1, 1024, true},        /* less than its blocks could hold */
        {"\x01\x00\x09", 3, 2, 1024, false},             /* a dictionary's number of one byte */
        {"\x02\x00\x09\x09", 4, 2, 1024, false},         /* two */
        {"\x03\x00\x09\x09\x09\x09", 6, 2, 1024, false}, /* four */
        {"\x04\x00", 2, 2, 1024, false},                 /* a checksum after the blocks */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t data[64] = {0x28, 0xb5, 0x2f, 0xfd};
        const bool checksum = CASES[i].header[0] & 4;
        size_t at = 4, position;
        memcpy(data + at, CASES[i].header, CASES[i].size);
        at += CASES[i].size;
        const uint32_t block = 2 << 3 | 1;
        data[at] = (uint8_t)block;
        const size_t size = at + 5 + (checksum ? 4 : 0);
        kc_zstd_frame frame;
        kc_error error = zstd_fault(data, size, &frame, &position);
        if (CASES[i].content == 256) { /* two bytes cannot hold as many */
            CHECK_ERROR(error, KC_CORRUPT, at, 256, 2);
            continue;
        }
        CHECK_EQ(error.code, KC_OK);
        CHECK_EQ(position, size);
        CHECK_EQ(frame.size, size);
        CHECK(frame.data == data);
        CHECK_EQ(frame.most_content, CASES[i].content);
        CHECK_EQ(frame.says_size, CASES[i].says_size);
        CHECK(!frame.skippable);
        for (size_t cut = 0; cut < size; cut++) {
            error = zstd_fault(data, cut, &frame, &position);
            CHECK(error.position <= cut);
            /* The magic, a field of the header, the block with its data, or the checksum. */
            const size_t field = cut < 4 ? 0 : cut < at ? (size_t)error.position : cut < at + 5 ? at : at + 5;
            CHECK_ERROR(error, KC_TRUNCATED, field, 0, 0);
            CHECK(cut < 4 || cut >= at || error.position >= 4);
            CHECK_EQ(position, 0);
        }
        /* A compressed block holds as much as the window, but no more than 128 KiB. */
        data[at] = (uint8_t)(2 << 3 | 2 << 1 | 1);
        error = zstd_fault(data, size, &frame, &position);
        CHECK_EQ(error.code, KC_OK);
        if (!CASES[i].says_size) CHECK_EQ(frame.most_content, CASES[i].window);
        data[at] = (uint8_t)(2 << 3 | 3 << 1 | 1); /* a type that is reserved */
        error = zstd_fault(data, size, &frame, &position);
        CHECK_ERROR(error, KC_CORRUPT, at, 0, 0);
    }
}

TEST(zstd_blocks_are_held_against_the_window) {
    uint8_t data[16] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00};
    size_t position;
    kc_zstd_frame frame;
    for (uint32_t content = 1024; content <= 1025; content++) { /* a run of as many */
        const uint32_t head = content << 3 | 1 << 1 | 1;
        data[6] = (uint8_t)head;
        data[7] = (uint8_t)(head >> 8);
        data[8] = (uint8_t)(head >> 16);
        const kc_error error = zstd_fault(data, 10, &frame, &position);
        CHECK_EQ(error.code, content == 1024 ? KC_OK : KC_CORRUPT);
        if (error.code) CHECK_ERROR(error, KC_CORRUPT, 6, 0, 0);
        if (!error.code) CHECK_EQ(frame.most_content, 1024);
    }
    data[5] = 0x50; /* a window of 1 MiB: blocks hold 128 KiB all the same */
    const uint32_t head = 2 << 3 | 2 << 1 | 1;
    data[6] = (uint8_t)head;
    data[7] = data[8] = 0;
    kc_error error = zstd_fault(data, 11, &frame, &position);
    CHECK_EQ(error.code, KC_OK);
    CHECK_EQ(frame.most_content, 131072);
    memcpy(data, "\x5f\x2a\x4d\x18\x02\0\0\0xy", 10);
    error = zstd_fault(data, 11, &frame, &position);
    CHECK_EQ(error.code, KC_OK);
    CHECK(frame.skippable);
    CHECK_EQ(position, 10);
    CHECK_EQ(frame.most_content, 0);
    error = zstd_fault(data, 9, &frame, &position);
    CHECK_ERROR(error, KC_TRUNCATED, 8, 0, 0);
    data[0] = 0x60;
    error = zstd_fault(data, 11, &frame, &position);
    CHECK_ERROR(error, KC_CORRUPT, 0, 0, 0);
    error = zstd_fault(data, 3, &frame, &position);
    CHECK_ERROR(error, KC_TRUNCATED, 0, 0, 0);
}
