/* Every allocation fails once alone and once with all that follow: the result is KC_NO_MEMORY without a leak.
 *
 * The linker replaces the functions of the C library by those below (see -Wl,--wrap in the Makefile). */
#include <malloc.h>
#include <stdlib.h>

#include "arrow/kc_arrow_export.h"
#include "build.h"
#include "check.h"
#include "decode/kc_scan.h"
#include "decode/kc_transactions.h"
#include "kafka07/kc_msgset07.h"
#include "values/kc_protobuf.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);

/* The allocation that fails: none if `left` is negative, else that after `left` others; if `stays`, also all later
 * ones. */
static _Thread_local int64_t left = -1;
static _Thread_local bool stays, reached;
static _Thread_local int64_t blocks; /* of the C library, as far as this thread counts them */

static bool fails(void) {
    if (left < 0) return false;
    if (left > 0) {
        left--;
        return false;
    }
    reached = true;
    if (!stays) left = -1;
    return true;
}

static void *counted(void *block) {
    if (block) blocks++;
    return block;
}

/* A block that has moved to an address with other low bits, as realloc may choose. */
enum { SKEW = 16 };
static _Thread_local bool skews;
static _Thread_local char *skewed_block;

static void *skewed(void *block, size_t size) {
    const size_t old = malloc_usable_size(block);
    char *moved = __real_malloc(size + SKEW);
    if (!moved) return NULL;
    memcpy(moved + SKEW, block, old < size ? old : size);
    __real_free(block);
    return skewed_block = moved + SKEW;
}

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size) { return fails() ? NULL : counted(__real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : counted(__real_calloc(count, size)); }
void *__wrap_realloc(void *block, size_t size) {
    if (fails()) return NULL;
    if (skews && block) return skewed(block, size);
    void *grown = __real_realloc(block, size);
    return block ? grown : counted(grown);
}
void __wrap_free(void *block) {
    if (block) blocks--;
    if (block && block == skewed_block) {
        block = skewed_block - SKEW;
        skewed_block = NULL;
    }
    __real_free(block);
}

/* Runs a function with each of its allocations failing, until none is left to fail. What it returns is a kc_code. */
static bool survives(int (*run)(void), const char *name) {
    for (int mode = 0; mode < 2; mode++) {
        for (int64_t n = 0;; n++) {
            (void)kc_trim();
            const size_t live = kc_live_bytes();
            const int64_t held = blocks;
            left = n;
            stays = mode == 1;
            reached = false;
            const int code = run();
            left = -1;
            (void)kc_trim();
            if (!check(kc_live_bytes() == live && blocks == held, __FILE__, __LINE__, name, blocks - held, n))
                return false;
            if (!reached) {
                if (!check(code == KC_OK && n > 0, __FILE__, __LINE__, name, code, n)) return false;
                break;
            }
            /* One failure alone is made up for by what the pool gives back. */
            if (!check(code == KC_OK || (stays && code == KC_NO_MEMORY), __FILE__, __LINE__, name, code, n))
                return false;
        }
    }
    return true;
}

static bytes sample; /* magic 2, 1 and 0, one after the other */

static void fill_sample(void) {
    static const char value[] = "a value of some length, so that the columns grow with it";
    bytes records = {.size = 0};
    add_record(&records, 0, 0, "k", value, NULL, NULL);
    add_record(&records, 1, -5, NULL, "", "header", "content");
    add_record(&records, 4, 7, "", NULL, "n", NULL);
    sample.size = 0;
    add_batch(&sample, 0, 3, &records);
    add_message(&sample, 1, 0, 105, 3000, "key", value, sizeof value);
    add_message(&sample, 0, 0, 106, 0, NULL, value, sizeof value);
}

enum { ROUNDS = 60 }; /* of the sample into one table, so that its columns grow several times */

static int exported(kc_table *t) {
    kc_error error = {0};
    struct ArrowSchema schema = {0};
    struct ArrowArray array = {0};
    struct ArrowArrayStream stream = {0};
    int code = kc_arrow_export_schema(t, &schema, &error);
    if (!code) code = kc_arrow_export_array(t, &array, &error);
    if (!code) code = kc_arrow_export_stream(t, &stream, &error);
    if (!code) {
        struct ArrowSchema again = {0};
        struct ArrowArray rows = {0};
        code = stream.get_schema(&stream, &again) ? KC_NO_MEMORY : KC_OK;
        if (!code) code = stream.get_next(&stream, &rows) ? KC_NO_MEMORY : KC_OK;
        if (again.release) again.release(&again);
        if (rows.release) rows.release(&rows);
    }
    if (schema.release) schema.release(&schema);
    if (array.release) array.release(&array);
    if (stream.release) stream.release(&stream);
    return code;
}

static int decode_into(const kc_field *fields) {
    static const kc_decoder_options options = {
        .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};
    kc_error error = {0};
    kc_event event = KC_EVENT_END;
    kc_table *t = kc_table_new_within(fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED, NULL, &error);
    if (!t) return error.code;
    for (int i = 0; i < ROUNDS && event == KC_EVENT_END; i++) {
        kc_decoder d;
        kc_backing *held = kc_backing_of(sample.data, sample.size, NULL, NULL, NULL, &error);
        kc_decoder_init(&d, sample.data, sample.size, &options);
        d.held = held;
        event = held ? kc_decoder_run(&d, t, INT32_MAX, UINT64_MAX, &error) : KC_EVENT_FAULT;
        if (event == KC_EVENT_END && i % 2 && kc_views_own(&t->views, held, NULL, &error)) event = KC_EVENT_FAULT;
        kc_backing_release(held);
    }
    int code = event == KC_EVENT_END ? exported(t) : error.code;
    kc_table_release(t);
    return code;
}

static int decode(void) { return decode_into(kc_record_fields); }
static int decode_views(void) { return decode_into(kc_record_view_fields); }

static int scan(void) {
    kc_error error = {0};
    kc_walk walk = KC_WALK_END;
    kc_table *t = kc_table_new_within(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX, NULL, &error);
    if (!t) return error.code;
    for (int i = 0; i < ROUNDS && walk != KC_WALK_FAULT; i++) {
        uint64_t position = 0;
        walk = kc_scan(sample.data, sample.size, &position, true, INT64_MAX, t, &error);
    }
    int code = walk == KC_WALK_FAULT ? error.code : exported(t);
    kc_table_release(t);
    return code;
}

static int decode07(void) {
    static const kc_msgset07_options options = {.verify_crc = true, .deep = true};
    uint8_t set[64];
    kc_error error = {0};
    kc_event event = KC_EVENT_END;
    const size_t size = KC_MSGSET07_HEADER(1) + 7;
    kc_msgset07_write_header(set, 1, 0, (const uint8_t *)"payload", 7);
    memcpy(set + KC_MSGSET07_HEADER(1), "payload", 7);
    kc_table *t = kc_table_new_within(kc_msgset07_fields, KC_NUM_MSGSET07_COLUMNS,
                                      UINT64_MAX & ~(uint64_t)KC_WANT_PLACE, NULL, &error);
    if (!t) return error.code;
    for (int i = 0; i < ROUNDS && event == KC_EVENT_END; i++) {
        kc_msgset07_decoder d;
        kc_msgset07_init(&d, set, size, &options);
        event = kc_msgset07_run(&d, t, INT32_MAX, UINT64_MAX, &error);
    }
    int code = event == KC_EVENT_END ? exported(t) : error.code;
    kc_table_release(t);
    return code;
}

/* What fetch_to_columns does to a table besides. */
static int places(void) {
    kc_error error = {0};
    kc_table *t = kc_table_new_within(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_PLACE, NULL, &error);
    if (!t) return error.code;
    int code = KC_OK;
    for (int i = 0; i < ROUNDS && !code; i++) {
        code = kc_column_append_repeated_bytes(&t->columns[KC_COL_TOPIC], "a-topic", 7, 30, &error);
        if (!code) code = kc_column_append_repeated(&t->columns[KC_COL_PARTITION], i, 30, &error);
    }
    kc_table_release(t);
    return code;
}

TEST(no_memory_for_columns_of_records) {
    fill_sample();
    CHECK(survives(decode, "decode"));
    CHECK(survives(decode_views, "decode_views"));
    CHECK(survives(places, "places"));
}

TEST(no_memory_for_columns_of_headers) {
    fill_sample();
    CHECK(survives(scan, "scan"));
}

TEST(no_memory_for_columns_of_old_messages) { CHECK(survives(decode07, "decode07")); }

/* A map of numbers with enough keys for its set to grow. Without memory for the keys, the value is not plain. */
static int sort_protobuf(void) {
    static const kc_protobuf_field fields[] = {
        {1, KC_PROTOBUF_MAP, 1, -1, 1, 0}, {1, KC_PROTOBUF_FIXED32, 0, 0, 0, 0}, {2, KC_PROTOBUF_INT32, 0, 1, 0, 0}};
    static const kc_protobuf_message messages[] = {{0, 1, 0}, {1, 2, 1}};
    const kc_protobuf_schema schema = {messages, fields, NULL, NULL, 2, 3, 0, 0, 2, 0};
    enum { KEYS = 1000 };
    uint8_t value[KEYS * 7];
    for (int i = 0; i < KEYS; i++)
        memcpy(value + 7 * i, (uint8_t[]){0x0a, 5, 0x0d, (uint8_t)i, (uint8_t)(i >> 8), 0, 0}, 7);
    const int64_t size = sizeof value;
    int64_t budget = INT64_MAX;
    kc_protobuf_row row = {KC_PROTOBUF_DAMAGED, 0, 0};
    kc_error error = {0};
    const int code = kc_protobuf_sort(&schema, value, &size, 1, &budget, &row, &error);
    if (code || row.form == KC_PROTOBUF_PLAIN) return code;
    return row.form == KC_PROTOBUF_ODD ? KC_NO_MEMORY : KC_CORRUPT;
}

TEST(no_memory_for_the_keys_of_maps) { CHECK(survives(sort_protobuf, "sort_protobuf")); }

/* Transactions of many producers, all open, and one that ends. */
static int follow_transactions(void) {
    bytes records = {.size = 0}, log = {.size = 0};
    kc_transactions t = {0};
    kc_error error = {0};
    int code = KC_OK;
    add_record(&records, 0, 0, "key", NULL, NULL, NULL);
    add_batch(&log, KC_TRANSACTIONAL | KC_CONTROL, 1, &records);
    for (int64_t producer = 0; producer < 100 && !code; producer++) {
        code = kc_transactions_open(&t, producer, producer, &error);
    }
    const int64_t start = 0;
    if (!code) code = kc_transactions_follow(&t, log.data, log.size, &start, 1, &error);
    kc_transactions_free(&t);
    return code;
}

TEST(no_memory_for_open_transactions) { CHECK(survives(follow_transactions, "follow_transactions")); }

static kc_error make_table(void) {
    kc_error error = {0};
    kc_table *t = kc_table_new_within(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED, NULL, &error);
    if (t) kc_table_release(t);
    return error;
}

static kc_error make_backings(void) {
    kc_error error = {0};
    kc_backing *b = kc_backing_new(5000, 0, NULL, &error);
    kc_backing *of = b ? kc_backing_of(sample.data, sample.size, NULL, NULL, NULL, &error) : NULL;
    kc_backing_release(b);
    kc_backing_release(of);
    return error;
}

static kc_table *exported_table;

static kc_error make_schema(void) {
    kc_error error = {0};
    struct ArrowSchema schema;
    if (!kc_arrow_export_schema(exported_table, &schema, &error)) schema.release(&schema);
    return error;
}

static kc_error make_array(void) {
    kc_error error = {0};
    struct ArrowArray array;
    if (!kc_arrow_export_array(exported_table, &array, &error)) array.release(&array);
    return error;
}

static kc_error make_stream(void) {
    kc_error error = {0};
    struct ArrowArrayStream stream;
    if (!kc_arrow_export_stream(exported_table, &stream, &error)) stream.release(&stream);
    return error;
}

TEST(no_memory_for_a_budget_or_a_block) {
    (void)kc_trim();
    stays = true;
    left = 0;
    kc_budget *budget = kc_budget_new(100, "too much");
    void *small = kc_alloc(10), *zeroed = kc_alloc_zeroed(10), *large = kc_alloc((size_t)100 << 20);
    left = -1;
    CHECK(!budget && !small && !zeroed && !large);
    void *block = kc_alloc((size_t)65 << 20);
    const size_t live = kc_live_bytes();
    left = 0;
    void *grown = kc_realloc(block, 5, (size_t)100 << 20);
    left = -1;
    CHECK(grown == NULL); /* and the block is as it was */
    CHECK_EQ(kc_live_bytes(), live);
    CHECK_EQ(kc_capacity(block), (size_t)80 << 20);
    kc_free(block);
    (void)kc_trim();
}

/* These errors have no position and no limit, and the size of a buffer where it is one that was asked for. */
TEST(no_memory_is_reported_without_a_place) {
    kc_error (*const makers[])(void) = {make_table, make_backings, make_schema, make_array, make_stream};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        exported_table = kc_table_new(kc_record_view_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED);
        CHECK(exported_table != NULL);
        bool done = false;
        for (int64_t n = 0; !done; n++) {
            (void)kc_trim();
            left = n;
            stays = true;
            reached = false;
            const kc_error error = makers[i]();
            left = -1;
            done = !reached;
            CHECK_EQ(error.code, done ? KC_OK : KC_NO_MEMORY);
            if (!done) CHECK_ERROR(error, KC_NO_MEMORY, 0, error.got, 0);
            if (!done) CHECK(error.got == 0 || error.got > 7);
        }
        kc_table_release(exported_table);
    }
}

/* Blocks are aligned to 64 bytes wherever the system puts them. */
TEST(no_bytes_are_lost_when_a_large_block_moves) {
    enum { SIZE = 65 << 20, LARGER = 100 << 20 };
    const size_t live = kc_live_bytes();
    (void)kc_trim();
    uint8_t *block = kc_alloc(SIZE);
    CHECK(block != NULL);
    for (size_t i = 0; i < SIZE; i += 64) block[i] = (uint8_t)(i >> 6);
    block[SIZE - 1] = 7;
    skews = true;
    block = kc_realloc(block, SIZE, LARGER);
    skews = false;
    CHECK(block != NULL);
    CHECK(skewed_block != NULL);
    CHECK_EQ((uintptr_t)block % 64, 0);
    CHECK(kc_capacity(block) >= LARGER);
    for (size_t i = 0; i < SIZE; i += 64) CHECK_EQ(block[i], (uint8_t)(i >> 6));
    CHECK_EQ(block[SIZE - 1], 7);
    kc_free(block);
    (void)kc_trim();
    CHECK(skewed_block == NULL);
    CHECK_EQ(kc_live_bytes(), live);
}
