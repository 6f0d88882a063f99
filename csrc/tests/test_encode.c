#include <stdlib.h>

#include "arrow_build.h"
#include "build.h"
#include "check.h"
#include "encode/kc_encode.h"

/* Four rows at offsets 100 to 103: two short ones, one of nulls, one with a header and a longer value. */
static const char long_value[] = "a value of some length, so that it takes more than one of the wide copies there are";
static const int32_t key_ends[] = {0, 1, 3, 3, 3};
static const int32_t header_ends[] = {0, 0, 0, 0, 1}, name_ends[] = {0, 1}, content_ends[] = {0, 2};
static const int64_t times[] = {1000, 2000, 1000, 900};
static const uint8_t not_third[] = {0x0b};

static kc_arrow_bytes column(const int32_t *ends, int64_t rows, const char *data) {
    return (kc_arrow_bytes){
        .layout = KC_LAYOUT_OFFSETS32, .length = rows, .end = ends[rows], .index = ends, .data = (const uint8_t *)data};
}

static kc_input_chunk four_rows(const int32_t *value_ends, const char *values) {
    kc_input_chunk chunk = {.rows = 4, .key = column(key_ends, 4, "abc"), .value = column(value_ends, 4, values)};
    chunk.value.validity = not_third;
    chunk.timestamp =
        (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = 4, .values = times, .multiply = 1, .divide = 1};
    chunk.headers = (kc_arrow_pairs){.layout = KC_LAYOUT_OFFSETS32,
                                     .length = 4,
                                     .index = header_ends,
                                     .items = 1,
                                     .key = column(name_ends, 1, "h"),
                                     .value = column(content_ends, 1, "hv")};
    return chunk;
}

static const kc_batch_options OPTIONS = {.magic = 2,
                                         .producer_id = 55,
                                         .base_sequence = 40,
                                         .leader_epoch = 7,
                                         .producer_epoch = 3,
                                         .base_offset = 100,
                                         .batch_bytes = 16384};

static bytes one_batch(void) {
    bytes expected = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "a", "v", NULL, NULL);
    add_record(&records, 1, 1000, "bc", "", NULL, NULL);
    add_record(&records, 2, 0, "", NULL, NULL, NULL);
    add_record(&records, 3, -100, "", long_value, "h", "hv");
    add_batch(&expected, 0, 4, &records);
    return expected;
}

TEST(encode_writes_the_batch_of_the_specification) {
    const int32_t value_ends[] = {0, 1, 1, 1, 1 + (int32_t)sizeof long_value - 1};
    char values[sizeof long_value + 1] = "v";
    memcpy(values + 1, long_value, sizeof long_value);
    const kc_input_chunk chunk = four_rows(value_ends, values);
    const bytes expected = one_batch();
    CHECK(kc_input_chunk_bytes(&chunk) >= expected.size - KC_BATCH_HEADER_SIZE);
    /* Room is given a few bytes at a time, and ends where the memory does. */
    for (size_t step = 1; step < expected.size + 40; step += 3) {
        kc_encoder *e = malloc(sizeof *e);
        kc_error error = {0};
        uint8_t *memory = malloc(1);
        size_t capacity = 0, used = 0;
        kc_encode_event event;
        kc_encoder_begin(e, &OPTIONS);
        do {
            capacity += step;
            memory = realloc(memory, capacity);
            kc_room room = {memory + used, memory + capacity};
            event = kc_encoder_fill(e, &chunk, &room, &error);
            used = (size_t)(room.at - memory);
            CHECK(used <= capacity);
        } while (event == KC_ENCODE_NO_ROOM);
        CHECK_EQ(event, KC_ENCODE_ROWS_END);
        CHECK_EQ(e->open.count, 4);
        const kc_room room = {memory + used, memory + capacity};
        kc_encoder_close_in_place(e, &room);
        CHECK_EQ(used, expected.size);
        CHECK(memcmp(memory, expected.data, used) == 0);
        CHECK_EQ(e->next_sequence, 44);
        free(memory);
        free(e);
    }
}

TEST(encode_splits_where_a_batch_is_full) {
    const int32_t value_ends[] = {0, 1, 1, 1, 1};
    const kc_input_chunk chunk = four_rows(value_ends, "v");
    kc_batch_options options = OPTIONS;
    options.batch_bytes = KC_BATCH_HEADER_SIZE + 19;
    uint8_t memory[1024];
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    static kc_encoder e;
    kc_encoder_begin(&e, &options);
    CHECK_EQ(kc_encoder_fill(&e, &chunk, &room, &error), KC_ENCODE_BATCH);
    CHECK_EQ(e.open.count, 2);
    CHECK_EQ(e.open.max_timestamp, 2000);
    CHECK_EQ(room.at - memory, e.open.size);
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(kc_encoder_fill(&e, &chunk, &room, &error), KC_ENCODE_BATCH);
    CHECK_EQ(e.open.base_offset, 102);
    CHECK_EQ(e.open.base_sequence, 42);
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(e.open.count, 1);
    /* The same rows again as another chunk: offsets and the open batch continue. */
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(e.open.last_offset, 107);
}

TEST(encode_names_the_row_at_fault) {
    static const int64_t offsets[] = {5, 6, 6, 7};
    const int32_t value_ends[] = {0, 1, 1, 1, 1};
    kc_input_chunk chunk = four_rows(value_ends, "v");
    chunk.offset =
        (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = 4, .values = offsets, .multiply = 1, .divide = 1};
    uint8_t memory[1024];
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    static kc_encoder e;
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 2, 6, 7);
}

/* ---- messages of magic 0 and 1 --------------------------------------------------------------------------------- */

static const int32_t short_ends[] = {0, 1, 1, 1, 1};

/* Encodes the four rows without their headers in one go; the number of bytes, or 0 after a fault. */
static size_t encoded(const kc_batch_options *options, bool headers, uint8_t *memory, size_t size, kc_error *error) {
    static kc_encoder e;
    kc_input_chunk chunk = four_rows(short_ends, "v");
    if (!headers) chunk.headers = (kc_arrow_pairs){0};
    kc_room room = {memory, memory + size};
    memset(error, 0, sizeof *error);
    kc_encoder_begin(&e, options);
    if (kc_encoder_run(&e, &chunk, &room, error) != KC_ENCODE_ROWS_END) return 0;
    if (e.open.count) kc_encoder_close_in_place(&e, &room);
    return (size_t)(room.at - memory);
}

TEST(encode_writes_messages_of_the_specification) {
    for (int magic = 0; magic < 2; magic++) {
        bytes expected = {.size = 0};
        add_message(&expected, magic, 0, 100, 1000, "a", "v", 1);
        add_message(&expected, magic, 0, 101, 2000, "bc", "", 0);
        add_message(&expected, magic, 0, 102, 1000, "", NULL, -1);
        add_message(&expected, magic, 0, 103, 900, "", "", 0);
        kc_batch_options options = {
            .magic = (int8_t)magic, .drop_unsupported = magic == 0, .base_offset = 100, .batch_bytes = 16384};
        uint8_t memory[1024];
        kc_error error;
        CHECK_EQ(encoded(&options, false, memory, sizeof memory, &error), expected.size);
        CHECK(memcmp(memory, expected.data, expected.size) == 0);
        options.drop_unsupported = true;
        CHECK_EQ(encoded(&options, true, memory, sizeof memory, &error), expected.size);
        CHECK(memcmp(memory, expected.data, expected.size) == 0);
        options.drop_unsupported = false;
        CHECK_EQ(encoded(&options, true, memory, sizeof memory, &error), 0);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, magic ? 3 : 0, 0, 0);
    }
    const kc_batch_options options = {.magic = 0, .base_offset = 100, .batch_bytes = 16384};
    uint8_t memory[1024];
    kc_error error;
    CHECK_EQ(encoded(&options, false, memory, sizeof memory, &error), 0);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
}

TEST(encode_wraps_compressed_messages) {
    for (int magic = 0; magic < 2; magic++) {
        /* Offsets in a wrapper of magic 1 count from its first message. */
        bytes inner = {.size = 0}, expected = {.size = 0};
        for (int i = 0; i < 4; i++) {
            static const char *const KEYS[] = {"a", "bc", "", ""}, *const VALUES[] = {"v", "", NULL, ""};
            const int64_t size = VALUES[i] ? (int64_t)strlen(VALUES[i]) : -1;
            add_message(&inner, magic, 0, magic ? i : 100 + i, times[i], KEYS[i], VALUES[i], size);
        }
        add_message(&expected, magic, KC_CODEC_GZIP, 103, 2000, NULL, "packed", 6);
        kc_batch_options options = {.magic = (int8_t)magic,
                                    .drop_unsupported = true,
                                    .attributes = KC_CODEC_GZIP,
                                    .base_offset = 100,
                                    .batch_bytes = 16384};
        static kc_encoder e;
        const kc_input_chunk chunk = four_rows(short_ends, "v");
        uint8_t memory[1024], out[64];
        kc_room room = {memory, memory + sizeof memory};
        kc_error error = {0};
        kc_encoder_begin(&e, &options);
        CHECK_EQ(kc_encoder_fill(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
        CHECK_EQ(e.open.max_timestamp, magic ? 2000 : -1); /* times are dropped where there are none */
        const size_t header = kc_batch_header_bytes(&options);
        CHECK_EQ(header, magic ? 34 : 26);
        CHECK_EQ(e.open.size, room.at - memory);
        CHECK_EQ(e.open.size, header + inner.size);
        CHECK(memcmp(memory + header, inner.data, inner.size) == 0);
        memcpy(out + header, "packed", 6);
        kc_encoder_close(&e, out + header, 6, out);
        CHECK_EQ(expected.size, header + 6);
        CHECK(memcmp(out, expected.data, expected.size) == 0);
        CHECK_EQ(e.open.count, 0);
    }
}

/* ---- limits ---------------------------------------------------------------------------------------------------- */

static kc_encode_event offsets_fault(const int64_t *offsets, int64_t base_offset, kc_error *error) {
    static kc_encoder e;
    static const int32_t ends[] = {0, 0, 0, 0, 0};
    kc_input_chunk chunk = four_rows(ends, "");
    chunk.headers = (kc_arrow_pairs){0};
    chunk.offset =
        (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = 4, .values = offsets, .multiply = 1, .divide = 1};
    kc_batch_options options = OPTIONS;
    options.base_offset = base_offset;
    uint8_t memory[2048];
    kc_room room = {memory, memory + sizeof memory};
    memset(error, 0, sizeof *error);
    kc_encoder_begin(&e, &options);
    return kc_encoder_run(&e, &chunk, &room, error);
}

TEST(encode_takes_offsets_that_increase) {
    static const struct {
        int64_t offsets[4], position, got, want;
        bool good;
    } CASES[] = {
        {{0, 1, 2, 3}, 0, 0, 0, true}, /* below the base offset, which does not apply to a column */
        {{5, 900, 901, INT64_MAX - 1}, 0, 0, 0, true},
        {{-1, 1, 2, 3}, 0, -1, INT64_MAX - 1, false},
        {{5, 6, 7, INT64_MAX}, 3, INT64_MAX, INT64_MAX - 1, false},
        {{5, 6, 6, 7}, 2, 6, 7, false},
        {{5, 4, 6, 7}, 1, 4, 6, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kc_error error;
        const kc_encode_event event = offsets_fault(CASES[i].offsets, 100, &error);
        CHECK_EQ(event, CASES[i].good ? KC_ENCODE_ROWS_END : KC_ENCODE_FAULT);
        if (!CASES[i].good) CHECK_ERROR(error, KC_CANNOT_ENCODE, CASES[i].position, CASES[i].got, CASES[i].want);
    }
}

/* A batch's offset deltas have 31 bits. */
TEST(encode_begins_a_batch_where_a_delta_would_overflow) {
    static const int64_t offsets[] = {10, 10 + (int64_t)INT32_MAX, 11 + (int64_t)INT32_MAX, 12 + (int64_t)INT32_MAX};
    static kc_encoder e;
    static const int32_t ends[] = {0, 0, 0, 0, 0};
    kc_input_chunk chunk = four_rows(ends, "");
    chunk.offset =
        (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = 4, .values = offsets, .multiply = 1, .divide = 1};
    uint8_t memory[1024];
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(kc_encoder_fill(&e, &chunk, &room, &error), KC_ENCODE_BATCH);
    CHECK_EQ(e.open.count, 2);
    CHECK_EQ(e.open.last_offset - e.open.base_offset, INT32_MAX);
    const uint8_t *start = room.at - e.open.size;
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(kc_load_u32(start + KC_BATCH_LAST_DELTA_AT), INT32_MAX);
    /* Sequences continue after the span of the offsets, and at 0 after 2^31 - 1. */
    CHECK_EQ(e.next_sequence, 40 + (int64_t)INT32_MAX + 1 - (INT64_C(1) << 31));
    CHECK_EQ(kc_encoder_fill(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(e.open.base_offset, offsets[2]);
    CHECK_EQ(e.open.count, 2);
}

TEST(encode_covers_a_range_of_offsets) {
    static const struct {
        int64_t first, last, position, got, want; /* a fault, or zeros */
    } CASES[] = {
        {100, 103, 0, 0, 0},
        {90, 200, 0, 0, 0},
        {101, 200, 0, 100, 101},
        {90, 102, 3, 103, 102},
    };
    static const int64_t offsets[] = {100, 101, 102, 103};
    uint8_t memory[1024];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        static kc_encoder e;
        kc_batch_options options = OPTIONS;
        options.has_range = true;
        options.first_offset = CASES[i].first;
        options.last_offset = CASES[i].last;
        kc_input_chunk chunk = four_rows(short_ends, "v");
        chunk.offset =
            (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = 4, .values = offsets, .multiply = 1, .divide = 1};
        kc_room room = {memory, memory + sizeof memory};
        kc_error error = {0};
        kc_encoder_begin(&e, &options);
        const kc_encode_event event = kc_encoder_run(&e, &chunk, &room, &error);
        if (CASES[i].got) {
            CHECK_EQ(event, KC_ENCODE_FAULT);
            CHECK_ERROR(error, KC_CANNOT_ENCODE, CASES[i].position, CASES[i].got, CASES[i].want);
            continue;
        }
        CHECK_EQ(event, KC_ENCODE_ROWS_END);
        CHECK_EQ(kc_encoder_end(&e, &error), KC_OK);
        kc_encoder_close_in_place(&e, &room);
        CHECK_EQ(kc_load_u64(memory), (uint64_t)options.first_offset);
        CHECK_EQ(kc_load_u32(memory + KC_BATCH_LAST_DELTA_AT), (uint64_t)(options.last_offset - options.first_offset));
        CHECK_EQ(kc_load_u32(memory + KC_BATCH_COUNT_AT), 4);
        CHECK_EQ(e.next_sequence, 40 + options.last_offset - options.first_offset + 1);
    }
}

TEST(encode_gives_records_without_a_time_the_default) {
    static const int64_t some[] = {1000, -1, 0, -1};
    uint8_t memory[1024];
    static kc_encoder e;
    kc_batch_options options = OPTIONS;
    options.has_time = true;
    options.time = 5000;
    kc_input_chunk chunk = four_rows(short_ends, "v");
    chunk.timestamp.values = some;
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    kc_encoder_begin(&e, &options);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(kc_encoder_end(&e, &error), KC_OK);
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(kc_load_u64(memory + KC_BATCH_BASE_TIMESTAMP_AT), 1000);
    CHECK_EQ(kc_load_u64(memory + KC_BATCH_MAX_TIMESTAMP_AT), 5000);
}

/* The last offset of a range without rows is as far from the first as it can be, or one further. */
TEST(encode_writes_a_batch_without_records) {
    for (int64_t over = 0; over < 2; over++) {
        static kc_encoder e;
        kc_batch_options options = OPTIONS;
        options.attributes = 0x11; /* gzip, transactional */
        options.has_range = true;
        options.first_offset = 5;
        options.last_offset = 5 + (int64_t)INT32_MAX + over;
        kc_error error = {0};
        kc_encoder_begin(&e, &options);
        CHECK_EQ(kc_encoder_end(&e, &error), over ? KC_CANNOT_ENCODE : KC_OK);
        if (over) continue;
        uint8_t memory[KC_BATCH_HEADER_SIZE];
        kc_batch_write_empty(&options, 1234, memory);
        CHECK_EQ(kc_load_u64(memory), 5);
        CHECK_EQ(kc_load_u32(memory + KC_ENTRY_LENGTH_AT), KC_BATCH_HEADER_SIZE - KC_ENTRY_OVERHEAD);
        CHECK_EQ(kc_load_u16(memory + KC_BATCH_ATTRIBUTES_AT), 0x10);
        CHECK_EQ(kc_load_u32(memory + KC_BATCH_LAST_DELTA_AT), INT32_MAX);
        CHECK_EQ(kc_load_u64(memory + KC_BATCH_BASE_TIMESTAMP_AT), UINT64_MAX);
        CHECK_EQ(kc_load_u64(memory + KC_BATCH_MAX_TIMESTAMP_AT), 1234);
        CHECK_EQ(kc_load_u32(memory + KC_BATCH_BASE_SEQUENCE_AT), 40);
        CHECK_EQ(kc_load_u32(memory + KC_BATCH_COUNT_AT), 0);
    }
}

TEST(encode_keeps_batches_within_their_bytes) {
    /* Records of 9, 10, 7 and 13 bytes after the header's 61; a time that differs less from the first takes a byte
     * less. */
    static const struct {
        int64_t bytes;
        int32_t counts[4];
    } CASES[] = {{61 + 39, {4}},       {61 + 38, {3, 1}},       {61 + 19, {2, 1, 1}},
                 {61 + 17, {1, 2, 1}}, {61 + 16, {1, 1, 1, 1}}, {1, {1, 1, 1, 1}}};
    uint8_t memory[1024];
    kc_error error = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        static kc_encoder e;
        kc_batch_options options = OPTIONS;
        options.batch_bytes = CASES[i].bytes;
        const kc_input_chunk chunk = four_rows(short_ends, "v");
        kc_room room = {memory, memory + sizeof memory};
        kc_encoder_begin(&e, &options);
        for (int k = 0; k < 4 && CASES[i].counts[k]; k++) {
            CHECK(kc_encoder_fill(&e, &chunk, &room, &error) != KC_ENCODE_FAULT);
            CHECK_EQ(e.open.count, CASES[i].counts[k]);
            kc_encoder_close_in_place(&e, &room);
        }
    }
}

TEST(encode_reads_no_columns_that_are_not_there) {
    kc_input_chunk chunk = {.rows = 2, .value = column(short_ends, 4, "v")};
    bytes expected = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, NULL, "v", NULL, NULL);
    add_record(&records, 1, 0, NULL, "", NULL, NULL);
    add_batch(&expected, 0, 2, &records);
    static kc_encoder e;
    uint8_t memory[256];
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(kc_load_u64(memory + KC_BATCH_BASE_TIMESTAMP_AT), UINT64_MAX); /* no timestamp is -1 */
    CHECK_EQ(kc_load_u64(memory + KC_BATCH_MAX_TIMESTAMP_AT), UINT64_MAX);
    CHECK_EQ(room.at - memory, (ptrdiff_t)expected.size);
    CHECK(memcmp(memory + KC_BATCH_HEADER_SIZE, records.data, records.size) == 0);
}

/* ---- columns by name ------------------------------------------------------------------------------------------- */

static const int64_t FOUR[] = {100, 101, 102, 103};

typedef struct named {
    foreign table, key, value, offset, timestamp, headers, items, name, content;
} named;

static void named_columns(named *n) {
    foreign_column(&n->key, "z", "key", 4, 3, NULL, key_ends, "abc");
    foreign_column(&n->value, "z", "value", 4, 3, not_third, short_ends, "v");
    foreign_column(&n->offset, "l", "offset", 4, 2, NULL, FOUR, NULL);
    foreign_column(&n->timestamp, "tsm:", "timestamp", 4, 2, NULL, times, NULL);
    foreign_column(&n->name, "u", "key", 1, 3, NULL, name_ends, "h");
    foreign_column(&n->content, "z", "value", 1, 3, NULL, content_ends, "hv");
    foreign_column(&n->items, "+s", "item", 1, 1, NULL, NULL, NULL);
    foreign_column(&n->headers, "+l", "headers", 4, 2, NULL, header_ends, NULL);
    add_child(&n->items, &n->name);
    add_child(&n->items, &n->content);
    add_child(&n->headers, &n->items);
    foreign_column(&n->table, "+s", "", 4, 1, NULL, NULL, NULL);
}

TEST(encode_finds_columns_by_name) {
    named n;
    kc_input_chunk chunk;
    const char *name;
    kc_error error = {0};
    bytes expected = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "a", "v", NULL, NULL);
    add_record(&records, 1, 1000, "bc", "", NULL, NULL);
    add_record(&records, 2, 0, "", NULL, NULL, NULL);
    add_record(&records, 3, -100, "", "", "h", "hv");
    add_batch(&expected, 0, 4, &records);
    named_columns(&n);
    foreign other;
    foreign_column(&other, "g", "batch_position", 4, 2, NULL, FOUR, NULL);
    foreign *const order[] = {&n.headers, &other, &n.timestamp, &n.value, &n.offset, &n.key};
    for (int i = 0; i < 6; i++) add_child(&n.table, order[i]);
    CHECK_EQ(kc_input_chunk_import(&chunk, &n.table.schema, &n.table.array, &name, &error), KC_OK);
    CHECK(name == NULL);
    CHECK_EQ(chunk.rows, 4);
    static kc_encoder e;
    uint8_t memory[1024];
    kc_room room = {memory, memory + sizeof memory};
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(room.at - memory, (ptrdiff_t)expected.size);
    CHECK(memcmp(memory + KC_BATCH_HEADER_SIZE, records.data, records.size) == 0);
    CHECK_EQ(kc_input_chunk_bytes(&chunk), 3 + 1 + 1 + 2 + 4 * 24 + 2);
    /* A slice of the table is one of every column. */
    n.table.array.offset = 1;
    n.table.array.length = 2;
    CHECK_EQ(kc_input_chunk_import(&chunk, &n.table.schema, &n.table.array, &name, &error), KC_OK);
    CHECK_EQ(chunk.rows, 2);
    CHECK_EQ(chunk.key.first, 1);
    CHECK_EQ(chunk.offset.first, 1);
    CHECK_EQ(chunk.headers.first, 1);
}

TEST(encode_names_the_column_at_fault) {
    static const char *const NAMES[] = {"offset",  "offset", "timestamp", "key", "value",
                                        "headers", "key",    "valeu",     NULL};
    for (int number = 0; number < 9; number++) {
        named n;
        kc_input_chunk chunk;
        const char *name = "";
        kc_error error = {0};
        named_columns(&n);
        if (number == 0) n.offset.schema.format = "tsm:"; /* a timestamp is not an offset */
        if (number == 1) n.offset.schema.format = "ll";
        if (number == 2) n.timestamp.schema.format = "z";
        if (number == 3) n.key.schema.format = "l";
        if (number == 4) n.value.schema.format = "+l";
        if (number == 5) n.headers.schema.format = "z";
        foreign misspelt;
        foreign_column(&misspelt, "u", "valeu", 4, 2, NULL, FOUR, NULL);
        if (number < 8) add_child(&n.table, &n.key);
        if (number == 6) add_child(&n.table, &n.key);
        if (number == 4) add_child(&n.table, &n.value);
        if (number == 7) add_child(&n.table, &misspelt);
        add_child(&n.table, &n.headers);
        add_child(&n.table, &n.offset);
        add_child(&n.table, &n.timestamp);
        CHECK_EQ(kc_input_chunk_import(&chunk, &n.table.schema, &n.table.array, &name, &error), KC_CANNOT_ENCODE);
        CHECK(NAMES[number] ? strcmp(name, NAMES[number]) == 0 : name == NULL);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    }
}

/* Keys and values alone are taken, and a slice of the table is one of both; all else is left to the encoder. */
TEST(encode_imports_keys_and_values_alone) {
    named n;
    kc_arrow_bytes key, value;
    named_columns(&n);
    n.table.array.offset = 1;
    n.table.array.length = 2;
    CHECK(!kc_key_values_import(&key, &value, &n.table.schema, &n.table.array));
    add_child(&n.table, &n.value);
    CHECK(kc_key_values_import(&key, &value, &n.table.schema, &n.table.array));
    CHECK_EQ(key.layout, KC_LAYOUT_ABSENT);
    CHECK_EQ(value.first, 1);
    add_child(&n.table, &n.key);
    CHECK(kc_key_values_import(&key, &value, &n.table.schema, &n.table.array));
    CHECK_EQ(key.first, 1);
    kc_spans spans;
    kc_error error = {0};
    CHECK_EQ(kc_arrow_bytes_load(&key, 0, 2, &spans, &error), KC_OK);
    CHECK_EQ(spans.size[0], 2);
    CHECK(memcmp(spans.data[0], "bc", 2) == 0);
    CHECK_EQ(spans.size[1], 0);
    add_child(&n.table, &n.offset); /* which the broker assigns */
    CHECK(kc_key_values_import(&key, &value, &n.table.schema, &n.table.array));
    for (int number = 0; number < 7; number++) {
        named_columns(&n);
        foreign misspelt;
        foreign_column(&misspelt, "u", "valeu", 4, 2, NULL, FOUR, NULL);
        add_child(&n.table, &n.key);
        if (number == 0) add_child(&n.table, &n.key);
        if (number == 1) add_child(&n.table, &n.timestamp);
        if (number == 2) add_child(&n.table, &n.headers);
        if (number == 3) n.key.schema.format = "l";
        if (number == 4) n.key.array.length = 3; /* shorter than the table */
        if (number == 5) n.table.array.offset = -1;
        if (number == 6) add_child(&n.table, &misspelt);
        CHECK(!kc_key_values_import(&key, &value, &n.table.schema, &n.table.array));
    }
}

/* More headers than a block holds, in one row and over many. */
TEST(encode_writes_many_headers) {
    enum { MANY = 2 * KC_BLOCK_ROWS + 7 };
    static int32_t ends[MANY + 1];
    static const int32_t lists[] = {0, 1, MANY};
    static char names[MANY];
    static uint8_t memory[8 * MANY], expected[8 * MANY];
    for (int i = 0; i < MANY; i++) {
        ends[i + 1] = i + 1;
        names[i] = (char)('a' + i % 26);
    }
    kc_input_chunk chunk = {.rows = 2};
    chunk.headers = (kc_arrow_pairs){.layout = KC_LAYOUT_OFFSETS32,
                                     .length = 2,
                                     .index = lists,
                                     .items = MANY,
                                     .key = column(ends, MANY, names),
                                     .value = {.layout = KC_LAYOUT_ABSENT, .length = MANY}};
    static kc_encoder e;
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    /* Attributes, deltas and null key and value take a byte each; a header its key's length, the key and a null. */
    uint8_t *p = expected;
    const int32_t count[] = {1, MANY - 1};
    for (int row = 0; row < 2; row++) {
        const size_t count_size = row ? 2 : 1;
        const size_t body = 5 + count_size + 3 * (size_t)count[row];
        bytes head = {.size = 0};
        add_varint(&head, (int64_t)body);
        add_u8(&head, 0);
        add_varint(&head, 0);
        add_varint(&head, row);
        add_varint(&head, -1);
        add_varint(&head, -1);
        add_varint(&head, count[row]);
        memcpy(p, head.data, head.size);
        p += head.size;
        for (int i = lists[row]; i < lists[row + 1]; i++) {
            *p++ = 2;
            *p++ = (uint8_t)names[i];
            *p++ = 1;
        }
    }
    CHECK_EQ(e.open.size - KC_BATCH_HEADER_SIZE, p - expected);
    CHECK(memcmp(memory + KC_BATCH_HEADER_SIZE, expected, (size_t)(p - expected)) == 0);
    /* The error for a null key has its row. */
    static const uint8_t one_null[MANY / 8 + 1] = {0xff, 0x0f};
    chunk.headers.key.validity = one_null;
    kc_encoder_begin(&e, &OPTIONS);
    room = (kc_room){memory, memory + sizeof memory};
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
}
