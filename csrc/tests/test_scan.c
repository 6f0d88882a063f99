#include "build.h"
#include "cells.h"
#include "check.h"
#include "decode/kc_partial.h"
#include "decode/kc_resync.h"
#include "decode/kc_scan.h"
#include "decode/kc_walk.h"

TEST(log_tells_what_lies_at_a_position) {
    static const struct {
        int32_t length;
        uint8_t magic;
        size_t size;
        kc_walk walk;
        int code;
    } CASES[] = {
        {0, 0, 0, KC_WALK_END, 0},
        {0, 0, 11, KC_WALK_END, 0},
        {0, 0, 200, KC_WALK_END, 0},
        {14, 0, 26, KC_WALK_BATCH, 0},
        {14, 0, 25, KC_WALK_PARTIAL, 0},
        {14, 0, 16, KC_WALK_PARTIAL, 0},
        {13, 0, 200, KC_WALK_FAULT, KC_CORRUPT},
        {-1, 0, 200, KC_WALK_FAULT, KC_CORRUPT},
        {INT32_MIN, 0, 200, KC_WALK_FAULT, KC_CORRUPT},
        {INT32_MAX, 2, 200, KC_WALK_PARTIAL, 0},
        {49, 2, 61, KC_WALK_BATCH, 0},
        {48, 2, 200, KC_WALK_FAULT, KC_CORRUPT},
        {100, 3, 200, KC_WALK_FAULT, KC_BAD_MAGIC},
        {100, 0xff, 200, KC_WALK_FAULT, KC_BAD_MAGIC},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t data[200] = {0};
        kc_store_u32(data + 8, (uint32_t)CASES[i].length);
        data[16] = CASES[i].magic;
        data[KC_BATCH_COUNT_AT + 3] = CASES[i].magic == 2;
        kc_span span;
        kc_error error = {0};
        CHECK_EQ(kc_walk_next(data, CASES[i].size, 0, &span, &error), CASES[i].walk);
        CHECK_EQ(error.code, CASES[i].code);
        if (CASES[i].walk == KC_WALK_BATCH) CHECK_EQ(span.size, CASES[i].length + 12);
    }
}

/* No valid batch begins with these bytes, wherever it would end; the first `needed` of them show it. */
TEST(log_refuses_the_start_of_a_batch_that_cannot_be_valid) {
    static const struct {
        uint8_t magic;
        size_t at;
        uint32_t field;
        size_t needed;
        int code;
        uint64_t position;
    } CASES[] = {
        {0, 0, 0xfffffffe, 17, KC_CORRUPT, 0},     /* offset */
        {2, 0, 0x80000000, 17, KC_CORRUPT, 0},     /* offset */
        {0, 17, 0x04000000, 26, KC_BAD_CODEC, 17}, /* codec 4 */
        {1, 17, 0x07000000, 34, KC_BAD_CODEC, 17}, /* codec 7 */
        {2, 21, 0x00050000, 61, KC_BAD_CODEC, 22}, /* codec 5 */
        {0, 18, 500 - 25, 26, KC_CORRUPT, 18},     /* key length */
        {1, 26, 500 - 33, 34, KC_CORRUPT, 26},     /* key length */
        {2, 57, 0xffffffff, 61, KC_CORRUPT, 57},   /* count */
        {2, 57, 500 / 7, 61, KC_CORRUPT, 57},      /* count */
        {2, 57, 0, 61, KC_CORRUPT, 57},            /* count of none, and yet records */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t data[10 + 200] = {0};
        uint8_t *const at = data + 10;
        kc_span span;
        kc_error error = {0};
        kc_store_u32(at + 8, 500 - 12);
        at[16] = CASES[i].magic;
        at[60] = CASES[i].magic == 2;
        CHECK_EQ(kc_walk_next(data, sizeof data, 10, &span, &error), KC_WALK_PARTIAL);
        kc_store_u32(at + CASES[i].at, CASES[i].field);
        CHECK_EQ(kc_walk_next(data, 10 + CASES[i].needed - 1, 10, &span, &error), KC_WALK_PARTIAL);
        CHECK_EQ(kc_walk_next(data, 10 + CASES[i].needed, 10, &span, &error), KC_WALK_FAULT);
        CHECK_EQ(error.code, CASES[i].code);
        CHECK_EQ(error.position, 10 + CASES[i].position);
    }
}

/* The same of fewer bytes than show the magic, where no more follow. */
TEST(a_few_bytes_that_begin_no_batch_are_refused) {
    static const struct {
        const char *bytes;
        size_t size, at;
        int code;
        uint64_t position;
    } CASES[] = {
        {"\xff\xff\xff\xff", 4, 0, KC_OK, 0}, /* filling, or offset -1 */
        {"\xff\xff\xff\xff\xff\xff\xff\xfe", 8, 0, KC_CORRUPT, 0},
        {"\x80", 1, 0, KC_CORRUPT, 0},
        {"\x80", 1, 10, KC_CORRUPT, 10},
        {"\0\0\0\0\0\0\0\0\x7f", 9, 0, KC_OK, 0},
        {"\0\0\0\0\0\0\0\0\x80", 9, 0, KC_CORRUPT, 8},
        {"\0\0\0\0\0\0\0\0\xff\0\0", 11, 10, KC_CORRUPT, 18},
        {"\0\xff\xff\xff\xff\xff\xff\xff", 8, 0, KC_OK, 0},
        {"\1", 1, 0, KC_CORRUPT, 0},
        {"a text of 16 byt", 16, 0, KC_CORRUPT, 0},
        {"a text of 16 byt", 16, 10, KC_OK, 0}, /* batches precede it */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t data[40] = {0};
        kc_span span;
        kc_error error = {0};
        memcpy(data + CASES[i].at, CASES[i].bytes, CASES[i].size);
        CHECK_EQ(kc_partial_check_few(data, CASES[i].at, CASES[i].size, &error), CASES[i].code);
        CHECK_EQ(error.position, CASES[i].position);
        /* more may follow in a file of which this is a piece */
        if (CASES[i].size < KC_ENTRY_OVERHEAD)
            CHECK_EQ(kc_walk_next(data, CASES[i].at + CASES[i].size, CASES[i].at, &span, &error), KC_WALK_PARTIAL);
    }
}

/* What brokers put at the end of an answer whose batches they have converted to an older format. */
TEST(log_takes_filling_as_a_partial_message) {
    uint8_t data[200] = {0};
    kc_span span;
    kc_error error = {0};
    memset(data, 0xff, 8);
    kc_store_u32(data + 8, 190);
    for (size_t size = 12; size <= 200; size++) CHECK_EQ(kc_walk_next(data, size, 0, &span, &error), KC_WALK_PARTIAL);
}

TEST(log_reaches_the_batch_at_a_target) {
    bytes data = {.size = 0};
    for (int i = 0; i < 3; i++) add_message(&data, 1, 0, i, 5, NULL, "value", 5);
    const uint64_t one = data.size / 3;
    CHECK_EQ(kc_walk_reach(data.data, data.size, 0, 0), 0);
    CHECK_EQ(kc_walk_reach(data.data, data.size, 0, 1), one);
    CHECK_EQ(kc_walk_reach(data.data, data.size, 0, one), one);
    CHECK_EQ(kc_walk_reach(data.data, data.size, one, one + 1), 2 * one);
    CHECK_EQ(kc_walk_reach(data.data, data.size, 0, data.size), data.size);
    CHECK_EQ(kc_walk_reach(data.data, data.size, 0, data.size + 1), data.size); /* below the target: nothing follows */
    CHECK_EQ(kc_walk_reach(data.data, data.size - 1, 0, data.size), 2 * one);   /* a partial batch */
    data.data[one + KC_ENTRY_MAGIC_AT] = 3;
    CHECK_EQ(kc_walk_reach(data.data, data.size, 0, data.size), one);
}

TEST(scan_tells_headers_and_checksums) {
    bytes data = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "k", "v", NULL, NULL);
    add_batch(&data, KC_TRANSACTIONAL, 1, &records);
    const size_t second = data.size;
    add_message(&data, 1, KC_CODEC_GZIP, 300, 5, NULL, "packed", 6);
    data.data[data.size - 1] ^= 1;
    kc_table *t = kc_table_new(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX);
    kc_error error = {0};
    uint64_t position = 0;
    CHECK_EQ(kc_scan(data.data, data.size, &position, true, INT64_MAX, t, &error), KC_WALK_END);
    CHECK_EQ(position, data.size);
    CHECK_EQ(t->length, 2);
    CHECK_EQ(((const int64_t *)(const void *)t->columns[KC_HEADER_POSITION].values.data)[1], second);
    CHECK_EQ(t->columns[KC_HEADER_CRC_OK].values.data[0], 1); /* the first right, the second wrong */
    CHECK_EQ(t->columns[KC_HEADER_IS_TRANSACTIONAL].values.data[0], 1);
    CHECK_EQ(t->columns[KC_HEADER_COUNT].null_count, 1); /* unknown for a wrapper */
    kc_table_release(t);
}

/* What messages of magic 0 and 1 have no field for is -1. */
TEST(scan_finds_no_producer_in_messages) {
    for (int magic = 0; magic < 2; magic++) {
        bytes data = {.size = 0};
        kc_span span;
        kc_batch b;
        kc_error error = {0};
        add_message(&data, magic, 0, 300, 5, NULL, "value", 5);
        CHECK_EQ(kc_walk_next(data.data, data.size, 0, &span, &error), KC_WALK_BATCH);
        kc_batch_read(data.data, &span, &b);
        CHECK_EQ(b.producer_id, -1);
        CHECK_EQ(b.producer_epoch, -1);
        CHECK_EQ(b.base_sequence, -1);
        CHECK_EQ(b.partition_leader_epoch, -1);
        CHECK_EQ(b.max_timestamp, magic ? 5 : -1);
        CHECK_EQ(b.base_timestamp, b.max_timestamp);
        CHECK_EQ(b.count, 1);
    }
}

TEST(resync_finds_batches_in_garbage) {
    bytes data = {.size = 0}, records = {.size = 0};
    uint64_t random = 11;
    for (int i = 0; i < 500; i++) add_u8(&data, (unsigned)next_random(&random) & 255);
    const size_t first = data.size;
    add_record(&records, 0, 0, "k", "v", NULL, NULL);
    add_batch(&data, 0, 1, &records);
    for (int i = 0; i < 100; i++) add_u8(&data, (unsigned)next_random(&random) & 255);
    const size_t second = data.size;
    add_message(&data, 0, 0, 7, 0, "k", "v", 1);
    kc_resync state = kc_resync_start();
    CHECK_EQ(kc_resync_next(data.data, data.size, 0, &state), first);
    CHECK_EQ(kc_resync_next(data.data, data.size, first + 1, &state), second);
    CHECK_EQ(kc_resync_next(data.data, data.size, second + 1, &state), data.size);
}

TEST(log_faults_tell_where_and_what) {
    uint8_t data[100] = {0};
    kc_span span;
    kc_error error = {0};
    kc_store_u32(data + 18, 13);
    CHECK_EQ(kc_walk_next(data, 100, 10, &span, &error), KC_WALK_FAULT);
    CHECK_ERROR(error, KC_CORRUPT, 18, 13, 14);
    kc_store_u32(data + 18, 14);
    data[26] = 3;
    CHECK_EQ(kc_walk_next(data, 100, 10, &span, &error), KC_WALK_FAULT);
    CHECK_ERROR(error, KC_BAD_MAGIC, 26, 3, 2);
    data[26] = 2;
    CHECK_EQ(kc_walk_next(data, 100, 10, &span, &error), KC_WALK_FAULT);
    CHECK_ERROR(error, KC_CORRUPT, 18, 14, 49);
    data[26] = 1;
    data[17] = 7;
    CHECK_EQ(kc_walk_next(data, 100, 10, &span, &error), KC_WALK_BATCH);
    CHECK_EQ(span.position, 10);
    CHECK_EQ(span.size, 26);
    CHECK_EQ(span.base_offset, 7);
    CHECK_EQ(span.magic, 1);
    CHECK_EQ(kc_walk_next(data, 100, 100, &span, &error), KC_WALK_END);
    CHECK_EQ(kc_walk_next(data, 100, 101, &span, &error), KC_WALK_END);
    CHECK_EQ(kc_walk_next(data, 21, 10, &span, &error), KC_WALK_PARTIAL); /* 11 bytes, not all zero */
    CHECK_EQ(kc_walk_next(data, 100, 36, &span, &error), KC_WALK_END);    /* zeros */
    CHECK_EQ(kc_walk_next(data, 18, 17, &span, &error), KC_WALK_PARTIAL); /* one byte, and that is 7 */
    CHECK_EQ(kc_walk_next(data, 19, 18, &span, &error), KC_WALK_END);
    data[99] = 1;
    CHECK_EQ(kc_walk_next(data, 100, 36, &span, &error), KC_WALK_FAULT); /* a length of 0 in other bytes */
    CHECK_ERROR(error, KC_CORRUPT, 44, 0, 14);
}

TEST(scan_stops_at_the_limit) {
    bytes data = {.size = 0};
    for (int i = 0; i < 3; i++) add_message(&data, 0, 0, i, 0, "k", "v", 1);
    data.data[16 + 28] = 9;
    kc_table *t = kc_table_new(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX);
    kc_error error = {0};
    uint64_t position = 0;
    CHECK_EQ(kc_scan(data.data, data.size, &position, false, 1, t, &error), KC_WALK_BATCH);
    CHECK_EQ(position, 28);
    CHECK_EQ(t->columns[KC_HEADER_CRC_OK].null_count, 1); /* not requested */
    CHECK_EQ(kc_scan(data.data, data.size, &position, true, 5, t, &error), KC_WALK_FAULT);
    CHECK_ERROR(error, KC_BAD_MAGIC, 44, 9, 2);
    CHECK_EQ(t->length, 1);
    kc_table_release(t);
}

/* What no header has: a cell that is null. */
#define NONE (INT64_MIN + 1)

static bool header_is(const kc_table *t, int64_t row, const int64_t *want, const char *codec) {
    for (int id = 0; id < KC_NUM_HEADER_COLUMNS; id++) {
        const kc_column *c = &t->columns[id];
        int32_t size;
        if (id == KC_HEADER_CODEC) {
            const uint8_t *name = kc_column_bytes(c, row, &size);
            if (size != (int32_t)strlen(codec) || memcmp(name, codec, strlen(codec)) != 0) return false;
        } else if (null_at(c, row) != (want[id] == NONE) || (want[id] != NONE && number_at(c, row) != want[id])) {
            return false;
        }
    }
    return true;
}

TEST(scan_reads_every_field) {
    bytes data = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "k", "v", NULL, NULL);
    add_record(&records, 1, 0, "k", "v", NULL, NULL);
    add_batch(&data, KC_TRANSACTIONAL | KC_CONTROL | KC_DELETE_HORIZON, 2, &records);
    const int64_t one = (int64_t)data.size;
    add_batch(&data, KC_CODEC_ZSTD | KC_LOG_APPEND_TIME, 2, &records);
    const int64_t two = (int64_t)data.size;
    add_message(&data, 0, KC_LOG_APPEND_TIME, 9, 0, "k", "v", 1); /* a bit without a meaning in magic 0 */
    const int64_t three = (int64_t)data.size;
    add_message(&data, 1, KC_LOG_APPEND_TIME, 10, 77, "k", "v", 1);
    const int64_t four = (int64_t)data.size;
    add_message(&data, 1, KC_CODEC_SNAPPY, 12, 78, NULL, "packed", 6);
    const int64_t at[] = {0, one, two, three, four, (int64_t)data.size};
    int64_t crc[5];
    for (int i = 0; i < 5; i++) crc[i] = kc_load_u32(data.data + at[i] + (i < 2 ? 17 : 12));
    static const char *const CODECS[] = {"none", "zstd", "none", "none", "snappy"};
    const int64_t want[5][KC_NUM_HEADER_COLUMNS] = {
        /* position, size, offsets, magic, codec, time type and times, count, producer, sequence, epoch, flags, CRC */
        {0, one, 100, 101, 2, 0, 0, 1000, 2000, 2, 55, 3, 40, 7, 1, 1, 1000, crc[0], 1},
        {one, two - one, 100, 101, 2, 0, 1, 1000, 2000, 2, 55, 3, 40, 7, 0, 0, NONE, crc[1], 1},
        {two, 28, 9, 9, 0, 0, -1, NONE, NONE, 1, NONE, NONE, NONE, NONE, 0, 0, NONE, crc[2], 1},
        {three, 36, 10, 10, 1, 0, 1, 77, 77, 1, NONE, NONE, NONE, NONE, 0, 0, NONE, crc[3], 1},
        {four, at[5] - four, NONE, 12, 1, 0, 0, NONE, 78, NONE, NONE, NONE, NONE, NONE, 0, 0, NONE, crc[4], 1},
    };
    kc_table *t = kc_table_new(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX);
    kc_error error = {0};
    uint64_t position = 0;
    CHECK_EQ(kc_scan(data.data, data.size, &position, true, INT64_MAX, t, &error), KC_WALK_END);
    CHECK_EQ(t->length, 5);
    for (int row = 0; row < 5; row++) CHECK(header_is(t, row, want[row], CODECS[row]));
    kc_table_release(t);
}

/* Memory that is exhausted is reported at the batch that needed it. */
TEST(scan_tells_where_a_budget_ends) {
    bytes data = {.size = 0};
    for (int i = 0; i < 100; i++) add_message(&data, 0, 0, i, 0, "k", "v", 1);
    size_t used = 0, failed = 0;
    for (size_t limit = 2000; !used && limit < 40000; limit += 500) {
        kc_budget *budget = kc_budget_new(limit, "too much");
        kc_error error = {0};
        uint64_t position = 0;
        kc_table *t = kc_table_new_within(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX, budget, &error);
        if (t) {
            const kc_walk end = kc_scan(data.data, data.size, &position, true, INT64_MAX, t, &error);
            CHECK_EQ(position, 28 * t->length);
            if (end == KC_WALK_END) used = limit;
            if (end != KC_WALK_END) {
                failed += t->length > 0;
                CHECK_EQ(end, KC_WALK_FAULT);
                CHECK_ERROR(error, KC_TOTAL_LIMIT, position, error.got, limit);
                CHECK(error.got > (int64_t)limit);
            }
            kc_table_release(t);
        }
        CHECK_EQ(budget->left, limit);
        kc_budget_release(budget);
    }
    CHECK(used > 0 && failed > 0);
}
