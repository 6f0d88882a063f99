#include <string.h>

#include "arrow/kc_table.h"
#include "cells.h"
#include "check.h"

static const kc_field NUMBERS[] = {{"n", KC_INT64, 0, NULL}, {"b", KC_BINARY, 0, NULL}};

static kc_table *new_table(void) { return kc_table_new(NUMBERS, 2, UINT64_MAX); }

/* A count of rows whose bytes do not fit an address must not wrap to a small allocation. */
TEST(table_refuses_rows_beyond_any_memory) {
    static const int64_t ROWS[] = {(int64_t)(SIZE_MAX / 8), (int64_t)(SIZE_MAX / 8) + 2, (int64_t)(SIZE_MAX / 4),
                                   INT64_MAX / 8 + 2,       INT64_MAX / 4 + 5,           INT64_MAX};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        kc_table *t = new_table();
        kc_error error = {0};
        CHECK(t != NULL);
        CHECK_EQ(kc_column_append_int(&t->columns[0], 7, &error), KC_OK);
        CHECK_EQ(kc_column_append_bytes(&t->columns[1], "x", 1, &error), KC_OK);
        CHECK_EQ(kc_column_reserve(&t->columns[0], ROWS[i], 0, &error), KC_NO_MEMORY);
        CHECK_ERROR(error, KC_NO_MEMORY, 0, ROWS[i], PTRDIFF_MAX / 16 - 1);
        CHECK_EQ(kc_column_reserve(&t->columns[1], ROWS[i], 0, &error), KC_NO_MEMORY);
        CHECK_EQ(kc_column_append_repeated(&t->columns[0], 1, ROWS[i], &error), KC_NO_MEMORY);
        CHECK_EQ(kc_column_append_nulls(&t->columns[0], ROWS[i], &error), KC_NO_MEMORY);
        CHECK_EQ(t->columns[0].length, 1);
        CHECK_EQ(*(const int64_t *)(const void *)t->columns[0].values.data, 7);
        kc_table_release(t);
    }
    /* Up to the limit it is the allocation that fails. */
    enum { LENGTH = 3 };
    const int64_t most = PTRDIFF_MAX / 16 - LENGTH;
    for (int64_t over = 0; over < 2; over++) {
        kc_table *t = new_table();
        kc_error error = {0};
        CHECK_EQ(kc_column_append_repeated(&t->columns[0], 7, LENGTH, &error), KC_OK);
        CHECK_EQ(kc_column_reserve(&t->columns[0], most + over, 0, &error), KC_NO_MEMORY);
        CHECK_ERROR(error, KC_NO_MEMORY, 0, over ? most + over : PTRDIFF_MAX / 16 * 8 + 8, over ? most : 0);
        kc_table_release(t);
    }
}

static const kc_field ALL_TYPES[] = {
    {"bool", KC_BOOL, 0, NULL},         {"int8", KC_INT8, 0, NULL},     {"int16", KC_INT16, 0, NULL},
    {"int32", KC_INT32, 0, NULL},       {"int64", KC_INT64, 0, NULL},   {"uint32", KC_UINT32, 0, NULL},
    {"time", KC_TIMESTAMP_MS, 0, NULL}, {"binary", KC_BINARY, 0, NULL}, {"string", KC_STRING, 0, NULL},
};
enum { TYPES = sizeof ALL_TYPES / sizeof *ALL_TYPES, NUMBERS_END = 7 };

TEST(table_types_have_widths) {
    static const size_t WIDTHS[] = {0, 1, 2, 4, 8, 4, 8, 0, 0};
    for (int i = 0; i < TYPES; i++) CHECK_EQ(kc_type_width(ALL_TYPES[i].type), WIDTHS[i]);
    CHECK_EQ(kc_type_width(KC_LIST), 0);
    CHECK_EQ(kc_type_width(KC_STRUCT), 0);
}

/* Values, nulls and runs of both, over the borders of bytes of bits and of growing buffers. */
TEST(table_keeps_numbers_of_every_type) {
    kc_table *t = kc_table_new(ALL_TYPES, TYPES, UINT64_MAX);
    kc_error error = {0};
    CHECK(t != NULL);
    for (int id = 0; id < NUMBERS_END; id++) {
        kc_column *c = &t->columns[id];
        const int64_t value = id == 0 ? 1 : id == 5 ? (int64_t)UINT32_MAX : -7;
        CHECK_EQ(kc_column_append_int(c, value, &error), KC_OK);
        CHECK_EQ(kc_column_append_repeated(c, 0, 3, &error), KC_OK);
        CHECK_EQ(c->null_count, 0);
        CHECK_EQ(kc_column_append_repeated(c, value, 9, &error), KC_OK);
        CHECK_EQ(kc_column_append_null(c, &error), KC_OK);
        CHECK_EQ(kc_column_append_nulls(c, 0, &error), KC_OK);
        CHECK_EQ(kc_column_append_nulls(c, 5, &error), KC_OK);
        for (int i = 0; i < 5000; i++) CHECK_EQ(kc_column_append_int(c, i & 1 ? value : 0, &error), KC_OK);
        CHECK_EQ(c->length, 5019);
        CHECK_EQ(c->null_count, 6);
        CHECK_EQ(c->values.size, id == 0 ? (5019 + 7) / 8 : 5019 * kc_type_width(c->field->type));
        for (int64_t row = 0; row < 5019; row++) {
            const bool null = row >= 13 && row < 19;
            const int64_t want = null ? (id == 6 ? KC_NOT_A_TIME : 0)
                                 : row == 0 || (row > 3 && row < 13) || (row > 18 && ((row - 19) & 1)) ? value
                                                                                                       : 0;
            CHECK_EQ(null_at(c, row), null);
            CHECK_EQ(number_at(c, row), want);
        }
    }
    kc_table_release(t);
}

TEST(table_keeps_bytes) {
    kc_table *t = kc_table_new(ALL_TYPES, TYPES, UINT64_MAX);
    kc_error error = {0};
    for (int id = NUMBERS_END; id < TYPES; id++) {
        static const int32_t ENDS[] = {0, 3, 3, 3, 5, 7, 9, 9, 10};
        kc_column *c = &t->columns[id];
        CHECK_EQ(kc_column_append_bytes(c, "abc", 3, &error), KC_OK);
        CHECK_EQ(kc_column_append_bytes(c, NULL, 0, &error), KC_OK);
        CHECK_EQ(kc_column_append_null(c, &error), KC_OK);
        CHECK_EQ(kc_column_append_repeated_bytes(c, "xy", 2, 3, &error), KC_OK);
        CHECK_EQ(kc_column_append_repeated_bytes(c, "", 0, 1, &error), KC_OK);
        CHECK_EQ(kc_column_append_bytes(c, "z", 1, &error), KC_OK);
        CHECK_EQ(c->length, 8);
        CHECK_EQ(c->null_count, 1);
        CHECK(null_at(c, 2) && !null_at(c, 1));
        CHECK_EQ(c->values.size, 9 * sizeof(int32_t));
        CHECK(memcmp(c->values.data, ENDS, sizeof ENDS) == 0);
        CHECK_EQ(c->data.size, 10);
        CHECK(memcmp(c->data.data, "abcxyxyxyz", 10) == 0);
        error = (kc_error){0};
        CHECK_EQ(kc_column_reserve(c, 1, INT32_MAX - 9, &error), KC_LIMIT);
        CHECK_ERROR(error, KC_LIMIT, 0, (int64_t)INT32_MAX + 1, INT32_MAX);
        static const char block[1 << 16];
        CHECK_EQ(kc_column_append_repeated_bytes(c, block, sizeof block, 1 << 15, &error), KC_LIMIT);
        CHECK_EQ(c->length, 8);
    }
    CHECK_EQ(kc_table_bytes(t), 2 * (9 * 4 + 10 + 1)); /* offsets, bytes, and a byte of validity */
    kc_table_release(t);
}

TEST(table_keeps_null_lists) {
    static const kc_field ITEM = {"item", KC_INT32, 0, NULL};
    static const kc_field FIELDS[] = {{"list", KC_LIST, 1, &ITEM}, {"struct", KC_STRUCT, 1, &ITEM}};
    static const int32_t ENDS[] = {0, 0, 0, 2, 2, 2, 2};
    kc_table *t = kc_table_new(FIELDS, 2, UINT64_MAX);
    kc_error error = {0};
    CHECK(t != NULL);
    kc_column *c = &t->columns[0];
    CHECK_EQ(kc_column_append_nulls(c, 2, &error), KC_OK);
    CHECK_EQ(kc_column_append_repeated(&c->children[0], 7, 2, &error),
             KC_OK); /* a row of two items, as decoders add them */
    CHECK_EQ(kc_column_reserve(c, 1, 0, &error), KC_OK);
    ((int32_t *)(void *)c->values.data)[++c->length] = (int32_t)c->children[0].length;
    CHECK_EQ(kc_column_append_null(c, &error), KC_OK);
    CHECK_EQ(kc_column_append_nulls(c, 2, &error), KC_OK);
    CHECK_EQ(c->length, 6);
    CHECK_EQ(c->null_count, 5);
    CHECK_EQ(c->values.size, sizeof ENDS);
    CHECK(memcmp(c->values.data, ENDS, sizeof ENDS) == 0);
    for (int64_t row = 0; row < 6; row++) CHECK_EQ(null_at(c, row), row != 2);
    CHECK_EQ(c->children[0].length, 2);

    CHECK_EQ(kc_column_append_nulls(&t->columns[1], 3, &error), KC_LIMIT);
    CHECK_ERROR(error, KC_LIMIT, 0, 3, 0);
    CHECK_EQ(t->columns[1].length, 0);
    kc_table_release(t);
}

TEST(table_leaves_unwanted_columns_empty) {
    const size_t before = kc_live_bytes();
    kc_table *t = kc_table_new(ALL_TYPES, TYPES, 1 << 3 | 1 << 8);
    for (int id = 0; id < TYPES; id++) {
        CHECK_EQ(t->columns[id].wanted, id == 3 || id == 8);
        CHECK((t->columns[id].values.data != NULL) == (id == 3 || id == 8));
        CHECK_EQ(t->columns[id].values.size, id == 8 ? 4 : 0);
    }
    CHECK_EQ(kc_table_bytes(t), 4);
    CHECK_EQ(t->num_columns, TYPES);
    kc_table_retain(t);
    kc_table_release(t);
    CHECK_EQ(t->num_columns, TYPES);
    kc_table_release(t);
    CHECK_EQ(kc_live_bytes(), before);
}

/* What is appended to a table that has nulls and bits at odd places already. */
TEST(table_moves_rows_after_others) {
    kc_table *t = kc_table_new(ALL_TYPES, TYPES, UINT64_MAX), *u;
    kc_error error = {0};
    for (int part = 0; part < 4; part++) {
        u = kc_table_new(ALL_TYPES, TYPES, UINT64_MAX);
        for (int id = 0; id < TYPES; id++) {
            kc_column *c = &u->columns[id];
            for (int64_t row = 0; row < 5; row++) {
                if (row == part)
                    CHECK_EQ(kc_column_append_null(c, &error), KC_OK);
                else if (id < NUMBERS_END)
                    CHECK_EQ(kc_column_append_int(c, (row + part) & 1, &error), KC_OK);
                else
                    CHECK_EQ(kc_column_append_bytes(c, &"rows"[row % 4], (size_t)(4 - row % 4), &error), KC_OK);
            }
        }
        u->length = 5;
        CHECK_EQ(kc_table_move(t, u, &error), KC_OK);
        kc_table_release(u);
    }
    CHECK_EQ(t->length, 20);
    for (int id = 0; id < TYPES; id++) {
        const kc_column *c = &t->columns[id];
        CHECK_EQ(c->length, 20);
        CHECK_EQ(c->null_count, 4);
        for (int64_t row = 0; row < 20; row++) {
            const int64_t part = row / 5, own = row % 5;
            CHECK_EQ(null_at(c, row), own == part);
            if (own == part) continue;
            if (id < NUMBERS_END) {
                CHECK_EQ(number_at(c, row), (own + part) & 1);
                continue;
            }
            const int32_t *ends = (const int32_t *)(const void *)c->values.data + row;
            CHECK_EQ(ends[1] - ends[0], 4 - own % 4);
            CHECK(memcmp(c->data.data + ends[0], &"rows"[own % 4], (size_t)(4 - own % 4)) == 0);
        }
    }
    kc_table_release(t);
}
