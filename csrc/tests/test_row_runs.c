#include "arrow_build.h"
#include "check.h"
#include "encode/kc_encode.h"
#include "encode/kc_row_runs.h"

/* A record batch with a column `row` of int64, after one that is passed over. */
static void table_of_rows(foreign *table, foreign *other, foreign *rows, const int64_t *numbers, int64_t length) {
    foreign_column(table, "+s", "", length, 1, NULL, NULL, NULL);
    foreign_column(other, "l", "offset", length, 2, NULL, numbers, NULL);
    foreign_column(rows, "l", "row", length, 2, NULL, numbers, NULL);
    add_child(table, other);
    add_child(table, rows);
}

static void check_run(kc_row_runs *r, int64_t row, int64_t end) {
    kc_error error = {0};
    int64_t got = -1;
    CHECK_EQ(kc_row_runs_next(r, &got, &error), KC_OK);
    CHECK_EQ(r->row, row);
    CHECK_EQ(got, end);
}

TEST(row_runs_end_where_the_row_changes) {
    static const int64_t numbers[] = {0, 0, 3, 4, 4};
    foreign table, other, rows;
    kc_error error = {0};
    kc_row_runs r;
    table_of_rows(&table, &other, &rows, numbers, 5);
    kc_row_runs_begin(&r);
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    check_run(&r, 0, 2);
    check_run(&r, 3, 3);
    check_run(&r, 4, 5);
    check_run(&r, 4, 5); /* no more */
    /* The same row continues in the next chunk, which is a slice. */
    table.array.offset = 3;
    table.array.length = 2;
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    check_run(&r, 4, 2);
    check_run(&r, 4, 2);
}

TEST(row_runs_go_over_the_ends_of_blocks) {
    enum { RECORDS = 2 * KC_BLOCK_ROWS + 3 };
    static int64_t numbers[RECORDS];
    foreign table, other, rows;
    kc_error error = {0};
    kc_row_runs r;
    for (int i = 0; i < RECORDS; i++) numbers[i] = i < KC_BLOCK_ROWS ? 1 : i < RECORDS - 1 ? 2 : INT64_MAX;
    table_of_rows(&table, &other, &rows, numbers, RECORDS);
    kc_row_runs_begin(&r);
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    check_run(&r, 1, KC_BLOCK_ROWS);
    check_run(&r, 2, RECORDS - 1);
    check_run(&r, INT64_MAX, RECORDS);
    check_run(&r, INT64_MAX, RECORDS);
}

TEST(row_runs_refuse_rows_out_of_order) {
    static const int64_t numbers[] = {5, 4, -1};
    static const uint8_t first_only[] = {1};
    foreign table, other, rows;
    kc_error error = {0};
    kc_row_runs r;
    int64_t end;
    table_of_rows(&table, &other, &rows, numbers, 3);
    kc_row_runs_begin(&r);
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    check_run(&r, 5, 1);
    CHECK_EQ(kc_row_runs_next(&r, &end, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 4, 5);
    table.array.offset = 2;
    table.array.length = 1;
    kc_row_runs_begin(&r);
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    CHECK_EQ(kc_row_runs_next(&r, &end, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, -1, 0);
    table_of_rows(&table, &other, &rows, numbers, 3);
    rows.array.null_count = -1;
    rows.buffers[0] = first_only;
    kc_row_runs_begin(&r);
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    CHECK_EQ(kc_row_runs_next(&r, &end, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
}

TEST(row_runs_need_one_column_of_integers) {
    static const int64_t numbers[] = {0};
    foreign table, other, rows;
    kc_error error = {0};
    kc_row_runs r;
    kc_row_runs_begin(&r);
    table_of_rows(&table, &other, &rows, numbers, 1);
    static const char *const NAMES[][2] = {{"row", "row"}, {NULL, "Row"}, {NULL, NULL}, {NULL, "row"}};
    for (int i = 0; i < 4; i++) {
        other.schema.name = NAMES[i][0];
        rows.schema.name = NAMES[i][1];
        if (i == 3) rows.schema.format = "tsm:UTC";
        error = (kc_error){.position = 9, .got = 9, .want = 9};
        CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    }
}

TEST(row_runs_before_the_first_chunk) {
    kc_row_runs r;
    memset(&r, 0xff, sizeof r);
    kc_row_runs_begin(&r);
    check_run(&r, -1, 0); /* none */
}

TEST(row_runs_of_an_empty_chunk) {
    static const int64_t numbers[] = {0};
    foreign table, other, rows;
    kc_error error = {0};
    kc_row_runs r;
    table_of_rows(&table, &other, &rows, numbers, 0);
    kc_row_runs_begin(&r);
    CHECK_EQ(kc_row_runs_open(&r, &table.schema, &table.array, &error), KC_OK);
    check_run(&r, -1, 0); /* none */
}

TEST(encode_restarts_at_a_row_of_the_chunk) {
    static const int32_t ends[] = {0, 1, 2, 3};
    kc_input_chunk chunk = {
        .rows = 3,
        .value = {.layout = KC_LAYOUT_OFFSETS32, .length = 3, .end = 3, .index = ends, .data = (const uint8_t *)"abc"}};
    const kc_batch_options options = {
        .magic = 2, .producer_id = 1, .base_sequence = 3, .base_offset = 100, .batch_bytes = 1000};
    uint8_t memory[512];
    kc_room room = {memory, memory + sizeof memory};
    kc_error error = {0};
    static kc_encoder e;
    kc_encoder_begin(&e, &options);
    chunk.rows = 2;
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    kc_encoder_close_in_place(&e, &room);
    uint8_t *second = room.at;
    kc_encoder_restart(&e, 2);
    chunk.rows = 3;
    CHECK_EQ(kc_encoder_run(&e, &chunk, &room, &error), KC_ENCODE_ROWS_END);
    CHECK_EQ(e.open.count, 1);
    CHECK_EQ(e.open.base_offset, 100);
    CHECK_EQ(e.open.base_sequence, 3);
    CHECK_EQ(room.at[-2], 'c'); /* and the count of its headers */
    kc_encoder_close_in_place(&e, &room);
    CHECK_EQ(kc_load_u64(second), 100);
}
