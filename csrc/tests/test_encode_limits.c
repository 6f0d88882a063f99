/* What does not fit a batch, the room that is asked for, and the rows that errors name. */
#include <stdlib.h>
#include <string.h>

#include "base/kc_copy.h"
#include "check.h"
#include "encode/kc_encode.h"

static const kc_batch_options OPTIONS = {.magic = 2, .producer_id = -1, .base_sequence = -1, .batch_bytes = 16384};

enum { HEADER = KC_BATCH_HEADER_SIZE, MOST = INT32_MAX - HEADER };

/* Rows of one byte, except that row `large` claims `size` bytes: they are not read, since the batch is refused. */
static kc_input_chunk one_large(int64_t rows, int64_t large, int64_t size, int64_t *ends) {
    static const uint8_t data[2 * KC_BLOCK_ROWS];
    ends[0] = 0;
    for (int64_t i = 0; i < rows; i++) ends[i + 1] = ends[i] + (i == large ? size : 1);
    return (kc_input_chunk){
        .rows = rows,
        .value = {.layout = KC_LAYOUT_OFFSETS64, .length = rows, .end = ends[rows], .index = ends, .data = data}};
}

/* Fills until something other than a full batch happens. */
static kc_encode_event fill(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, kc_error *error) {
    *error = (kc_error){0};
    return kc_encoder_run(e, chunk, room, error);
}

TEST(encode_refuses_records_beyond_a_batch) {
    /* Around a large value: five bytes each for its length and the record's; attributes, deltas, key, headers. */
    static const struct {
        int8_t magic;
        int64_t around, header;
    } FORMATS[] = {{2, 5 + 5 + 5, HEADER}, {1, KC_MESSAGE_V1_MIN_SIZE, 0}, {0, KC_MESSAGE_MIN_SIZE, 0}};
    static int64_t ends[2 * KC_BLOCK_ROWS + 1];
    static uint8_t memory[1 << 16];
    static kc_encoder e;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        for (int64_t large = 0; large < KC_BLOCK_ROWS + 3; large += KC_BLOCK_ROWS / 2 + 1) {
            for (int64_t over = 0; over < 2; over++) {
                /* The offset delta stays a byte, since every batch starts with the row that did not fit. */
                const int64_t size = MOST - FORMATS[i].around + over;
                const kc_input_chunk chunk = one_large(large + 2, large, size, ends);
                kc_batch_options options = OPTIONS;
                kc_room room = {memory, memory + sizeof memory};
                kc_error error;
                options.magic = FORMATS[i].magic;
                kc_encoder_begin(&e, &options);
                CHECK_EQ(fill(&e, &chunk, &room, &error), over ? KC_ENCODE_FAULT : KC_ENCODE_NO_ROOM);
                if (over) CHECK_ERROR(error, KC_CANNOT_ENCODE, large, (int64_t)MOST + 1, MOST);
                if (!over) CHECK_EQ(e.wanted, (size_t)FORMATS[i].header + MOST + KC_COPY_SLACK);
            }
        }
    }
}

/* Room is needed for the record and what wide copies write after it; for the first one, also for the header. */
TEST(encode_asks_for_the_room_it_needs) {
    static int64_t ends[3];
    enum { RECORD = 8 }; /* length, attributes, two deltas, key, length and byte of the value, headers */
    const kc_input_chunk chunk = one_large(2, -1, 0, ends);
    const size_t needed[] = {HEADER + RECORD + KC_COPY_SLACK, RECORD + KC_COPY_SLACK};
    static kc_encoder e;
    kc_error error;
    for (size_t less = 0; less < 3; less++) {
        uint8_t *memory = malloc(HEADER + 2 * RECORD + KC_COPY_SLACK);
        kc_room room = {memory, memory + needed[0] - less};
        kc_encoder_begin(&e, &OPTIONS);
        CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_NO_ROOM);
        CHECK_EQ(e.open.count, less ? 0 : 1);
        CHECK_EQ(room.at - memory, less ? 0 : HEADER + RECORD);
        CHECK_EQ(e.wanted, needed[less ? 0 : 1]);
        room.end = memory + needed[0];
        if (less) CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_NO_ROOM);
        CHECK_EQ(e.open.count, 1);
        CHECK_EQ(e.wanted, needed[1]);
        room.end += RECORD - (less == 2);
        CHECK_EQ(fill(&e, &chunk, &room, &error), less == 2 ? KC_ENCODE_NO_ROOM : KC_ENCODE_ROWS_END);
        CHECK_EQ(e.open.count, less == 2 ? 1 : 2);
        free(memory);
    }
}

/* A row after the first block of the chunk. */
TEST(encode_names_rows_of_later_blocks) {
    enum { ROWS = KC_BLOCK_ROWS + 50, BAD = KC_BLOCK_ROWS + 7 };
    static int64_t offsets[ROWS], times[ROWS], ends[ROWS + 1];
    static uint8_t memory[1 << 16];
    static kc_encoder e;
    kc_input_chunk chunk = one_large(ROWS, -1, 0, ends);
    for (int64_t i = 0; i < ROWS; i++) {
        offsets[i] = i == BAD ? i - 1 : i;
        times[i] = i == BAD ? 5 : -1;
    }
    chunk.offset =
        (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = ROWS, .values = offsets, .multiply = 1, .divide = 1};
    kc_room room = {memory, memory + sizeof memory};
    kc_error error;
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, BAD, BAD - 1, BAD);
    offsets[BAD] = INT64_MAX;
    room.at = memory;
    kc_encoder_begin(&e, &OPTIONS);
    CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, BAD, INT64_MAX, INT64_MAX - 1);
    chunk.offset = (kc_arrow_ints){0};
    chunk.timestamp =
        (kc_arrow_ints){.layout = KC_LAYOUT_INT64, .length = ROWS, .values = times, .multiply = 1, .divide = 1};
    kc_batch_options old = OPTIONS;
    old.magic = 0;
    room.at = memory;
    kc_encoder_begin(&e, &old);
    CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, BAD, 0, 0);
}

/* Offsets that would continue beyond the largest. */
TEST(encode_ends_at_the_largest_offset) {
    static int64_t ends[4];
    static uint8_t memory[512];
    static kc_encoder e;
    const kc_input_chunk chunk = one_large(3, -1, 0, ends);
    for (int64_t over = 0; over < 2; over++) {
        kc_batch_options options = OPTIONS;
        options.base_offset = INT64_MAX - 3 + over;
        kc_room room = {memory, memory + sizeof memory};
        kc_error error;
        kc_encoder_begin(&e, &options);
        CHECK_EQ(fill(&e, &chunk, &room, &error), over ? KC_ENCODE_FAULT : KC_ENCODE_ROWS_END);
        if (over) CHECK_ERROR(error, KC_CANNOT_ENCODE, 2, INT64_MAX, INT64_MAX - 1);
    }
}

/* The count of headers has 32 bits. Keys that are null end the row whose count is still allowed. */
TEST(encode_refuses_more_headers_than_can_be_counted) {
    static uint8_t memory[512];
    static kc_encoder e;
    for (int64_t over = 0; over < 2; over++) {
        const int64_t items = (int64_t)INT32_MAX + over, lists[] = {0, 0, items};
        kc_input_chunk chunk = {.rows = 2};
        chunk.headers = (kc_arrow_pairs){
            .layout = KC_LAYOUT_OFFSETS64, .length = 2, .index = lists, .items = items, .key.length = items};
        kc_room room = {memory, memory + sizeof memory};
        kc_error error;
        kc_encoder_begin(&e, &OPTIONS);
        CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_FAULT);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, over ? items : 0, over ? INT32_MAX : 0);
    }
}

/* Rows are measured when their block is loaded, and headers are read again when they are written. */
TEST(encode_notices_headers_that_change) {
    static const int32_t lists[] = {0, 0, 0, 2}, keys[] = {0, 1, 2};
    static const uint8_t second_null[] = {1};
    static const struct {
        int32_t ends[3]; /* of the values, first {0, 2, 4} */
        bool null_key;
        uint64_t position;
        kc_encode_event event;
    } CASES[] = {
        {{0, 2, 4}, false, 0, KC_ENCODE_ROWS_END}, {{0, 3, 4}, false, 0, KC_ENCODE_ROWS_END},
        {{0, 2, 3}, false, 2, KC_ENCODE_FAULT},    {{0, 2, 5}, false, 2, KC_ENCODE_FAULT},
        {{0, 2, 400}, false, 2, KC_ENCODE_FAULT},  {{0, 2, 4}, true, 2, KC_ENCODE_FAULT},
    };
    static uint8_t memory[512], data[400];
    static kc_encoder e;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int32_t ends[] = {0, 2, 4};
        kc_input_chunk chunk = {.rows = 3};
        chunk.headers = (kc_arrow_pairs){
            .layout = KC_LAYOUT_OFFSETS32,
            .length = 3,
            .index = lists,
            .items = 2,
            .key = {.layout = KC_LAYOUT_OFFSETS32, .length = 2, .end = 2, .index = keys, .data = data},
            .value = {.layout = KC_LAYOUT_OFFSETS32, .length = 2, .end = sizeof data, .index = ends, .data = data}};
        kc_room room = {memory, memory};
        kc_error error;
        kc_encoder_begin(&e, &OPTIONS);
        CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_NO_ROOM);
        memcpy(ends, CASES[i].ends, sizeof ends);
        if (CASES[i].null_key) chunk.headers.key.validity = second_null;
        room.end = memory + sizeof memory;
        CHECK_EQ(fill(&e, &chunk, &room, &error), CASES[i].event);
        if (CASES[i].event == KC_ENCODE_FAULT) CHECK_ERROR(error, KC_CANNOT_ENCODE, CASES[i].position, 0, 0);
    }
}

/* Whatever was not finished is left, also rows of a block that is loaded. */
TEST(encode_restarts_in_the_middle_of_a_block) {
    static int64_t ends[5];
    static uint8_t memory[512];
    static kc_encoder e;
    const kc_input_chunk chunk = one_large(4, -1, 0, ends);
    kc_batch_options options = OPTIONS;
    options.base_offset = 70;
    options.base_sequence = 8;
    kc_error error;
    kc_room room = {memory, memory + HEADER + 8 + KC_COPY_SLACK}; /* for one row */
    kc_encoder_begin(&e, &options);
    CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_NO_ROOM);
    CHECK_EQ(e.next, 1);
    kc_encoder_restart(&e, 3);
    room = (kc_room){memory, memory + sizeof memory};
    CHECK_EQ(fill(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(e.open.count, 1); /* row 3 alone, numbered from the start */
    CHECK_EQ(e.open.base_offset, 70);
    CHECK_EQ(e.open.base_sequence, 8);
    CHECK_EQ(e.open.size, HEADER + 8);
}

/* A length takes a byte for each seven bits of twice its value. */
TEST(encode_counts_the_bytes_of_lengths) {
    static const int32_t SIZES[] = {-1, 0, 63, 64, 8191, 8192, 1048575, 1048576, 134217727, 134217728, INT32_MAX};
    static const int BYTES[] = {1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        CHECK_EQ(kc_span_bytes(SIZES[i]), BYTES[i] + (int64_t)(SIZES[i] > 0 ? SIZES[i] : 0));
}
