#include <stdlib.h>

#include "build.h"
#include "check.h"
#include "kc_encode.h"

/* Four rows at offsets 100 to 103: two short ones, one of nulls, one with a header and a longer value. */
static const char long_value[] = "a value of some length, so that it takes more than one of the wide copies there are";
static const int32_t key_ends[] = {0, 1, 3, 3, 3};
static const int32_t header_ends[] = {0, 0, 0, 0, 1}, name_ends[] = {0, 1}, content_ends[] = {0, 2};
static const int64_t times[] = {1000, 2000, 1000, 900};
static const uint8_t not_third[] = {0x0b};

static kc_bytes_column column(const int32_t *ends, int64_t rows, const char *data) {
    return (kc_bytes_column){
        .layout = KC_LAYOUT_OFFSETS32, .length = rows, .end = ends[rows], .index = ends, .data = (const uint8_t *)data};
}

static kc_record_chunk four_rows(const int32_t *value_ends, const char *values) {
    kc_record_chunk chunk = {.rows = 4, .key = column(key_ends, 4, "abc"), .value = column(value_ends, 4, values)};
    chunk.value.validity = not_third;
    chunk.timestamp =
        (kc_int_column){.layout = KC_LAYOUT_INT64, .length = 4, .values = times, .multiply = 1, .divide = 1};
    chunk.headers = (kc_pairs_column){.layout = KC_LAYOUT_OFFSETS32,
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
    const kc_record_chunk chunk = four_rows(value_ends, values);
    const bytes expected = one_batch();
    CHECK(kc_record_chunk_bytes(&chunk) >= expected.size - KC_BATCH_HEADER_SIZE);
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
    const kc_record_chunk chunk = four_rows(value_ends, "v");
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
    /* The same rows again as another chunk: offsets and the open batch go on. */
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(e.open.last_offset, 107);
}

TEST(encode_names_the_row_at_fault) {
    static const int64_t offsets[] = {5, 6, 6, 7};
    const int32_t value_ends[] = {0, 1, 1, 1, 1};
    kc_record_chunk chunk = four_rows(value_ends, "v");
    chunk.offset =
        (kc_int_column){.layout = KC_LAYOUT_INT64, .length = 4, .values = offsets, .multiply = 1, .divide = 1};
    uint8_t memory[1024];
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    static kc_encoder e;
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
    CHECK_EQ(error.position, 2);
    CHECK_EQ(error.want, 7);
}
