/* Tables of chosen rows: numbers, bits, bytes, views, lists of structs. */
#include <stdlib.h>

#include "arrow/kc_take.h"
#include "build.h"
#include "cells.h"
#include "check.h"
#include "decode/kc_decoder.h"

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

static const char LONG[] = "a value that is longer than a view";
static const char *const KEYS[] = {"k", NULL, LONG, ""}, *const VALUES[] = {LONG, "", NULL, "short"};
static const char *const HEADERS[] = {NULL, "h", NULL, "name"}, *const CONTENTS[] = {NULL, "x", NULL, NULL};
enum { ROWS = 4 };

/* The records in a table, over memory that ends with their batch and lives as long as the table needs it. */
static kc_table *decoded(const kc_field *fields) {
    bytes records = {.size = 0}, data = {.size = 0};
    kc_error error = {0};
    kc_decoder d;
    for (int i = 0; i < ROWS; i++) add_record(&records, i, i, KEYS[i], VALUES[i], HEADERS[i], CONTENTS[i]);
    add_batch(&data, 16, ROWS, &records);
    uint8_t *copy = malloc(data.size);
    kc_table *t = kc_table_new(fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED);
    if (!copy || !t) return NULL;
    memcpy(copy, data.data, data.size);
    kc_decoder_init(&d, copy, data.size, &OPTIONS);
    d.held = kc_backing_of(copy, data.size, NULL, free, copy, &error);
    const kc_event event = kc_decoder_run(&d, t, 100, 1000, &error);
    kc_backing_release(d.held);
    return event == KC_EVENT_END && t->length == ROWS ? t : NULL;
}

static bool bytes_are(const kc_column *c, int64_t row, const char *want) {
    int32_t size;
    const uint8_t *data = kc_column_bytes(c, row, &size);
    return want ? size == (int32_t)strlen(want) && memcmp(data, want, (size_t)size) == 0 : size == -1;
}

static bool headers_are(const kc_column *headers, int64_t row, int64_t *entry, const char *name, const char *content) {
    const int32_t *ends = (const int32_t *)(const void *)headers->values.data;
    const kc_column *pair = &headers->children[0];
    if (ends[row + 1] - ends[row] != (name ? 1 : 0)) return false;
    if (!name) return true;
    const int64_t at = (*entry)++;
    return ends[row] == at && bytes_are(&pair->children[0], at, name) && bytes_are(&pair->children[1], at, content);
}

static bool taken_is(const kc_table *t, const int64_t *rows, int64_t count) {
    int64_t entry = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = rows[i];
        if (number_at(&t->columns[KC_COL_OFFSET], i) != 100 + from) return false;
        if (number_at(&t->columns[KC_COL_IS_TRANSACTIONAL], i) != 1) return false;
        if (!bytes_are(&t->columns[KC_COL_KEY], i, KEYS[from])) return false;
        if (!bytes_are(&t->columns[KC_COL_VALUE], i, VALUES[from])) return false;
        if (!headers_are(&t->columns[KC_COL_HEADERS], i, &entry, HEADERS[from], CONTENTS[from])) return false;
    }
    return t->length == count && t->columns[KC_COL_HEADERS].children[0].length == entry;
}

static bool takes(const kc_field *fields, const int64_t *rows, int64_t count) {
    kc_error error = {0};
    kc_table *t = decoded(fields);
    kc_table *taken = kc_table_new(fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED);
    if (!t || !taken || kc_table_take(taken, t, rows, count, &error)) return false;
    kc_table_release(t); /* the rows that were taken do not need it */
    const bool right = taken_is(taken, rows, count);
    kc_table_release(taken);
    return right;
}

TEST(take_copies_chosen_rows) {
    static const int64_t ORDERS[][6] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 1, 3, 1, 0, 2}, {2}};
    static const int64_t COUNTS[] = {4, 4, 6, 1};
    const size_t before = kc_live_bytes();
    for (int i = 0; i < 4; i++) {
        CHECK(takes(kc_record_fields, ORDERS[i], COUNTS[i]));
        CHECK(takes(kc_record_view_fields, ORDERS[i], COUNTS[i]));
    }
    CHECK(takes(kc_record_fields, NULL, 0));
    CHECK(takes(kc_record_view_fields, NULL, 0));
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(take_counts_the_bytes_of_views) {
    static const int64_t ALL[] = {0, 1, 2, 3};
    kc_error error = {0};
    kc_table *t = decoded(kc_record_view_fields);
    kc_table *taken = kc_table_new(kc_record_view_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED);
    CHECK_EQ(kc_table_take(taken, t, ALL, ROWS, &error), KC_OK);
    CHECK_EQ(taken->columns[KC_COL_KEY].viewed, t->columns[KC_COL_KEY].viewed);
    CHECK_EQ(taken->columns[KC_COL_VALUE].viewed, strlen(LONG) + strlen("short"));
    CHECK_EQ(kc_table_bytes(taken), kc_table_bytes(t));
    kc_table_release(taken);
    kc_table_release(t);
}
