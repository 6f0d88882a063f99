#include <string.h>

#include "check.h"
#include "kc_table.h"

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
        CHECK_EQ(kc_column_reserve(&t->columns[1], ROWS[i], 0, &error), KC_NO_MEMORY);
        CHECK_EQ(kc_column_append_repeated(&t->columns[0], 1, ROWS[i], &error), KC_NO_MEMORY);
        CHECK_EQ(kc_column_append_nulls(&t->columns[0], ROWS[i], &error), KC_NO_MEMORY);
        CHECK_EQ(t->columns[0].length, 1);
        CHECK_EQ(*(const int64_t *)(const void *)t->columns[0].values.data, 7);
        kc_table_release(t);
    }
}
