/* Limits of columns and of tables that are joined, with sizes that are only claimed: 2 GiB need not be filled. */
#include <string.h>

#include "arrow/kc_table.h"
#include "check.h"

static const kc_field PAIR[] = {{"key", KC_STRING, 0, NULL}, {"value", KC_BINARY, 0, NULL}};
static const kc_field ITEM = {"item", KC_STRUCT, 2, PAIR};
static const kc_field FIELDS[] = {{"list", KC_LIST, 1, &ITEM}, {"bytes", KC_BINARY, 0, NULL}};

/* One row: a list of a pair, and two bytes. */
static kc_table *one_row(void) {
    kc_table *t = kc_table_new(FIELDS, 2, UINT64_MAX);
    kc_error error = {0};
    kc_column *list = &t->columns[0], *item = list->children;
    int code = kc_column_append_bytes(&item->children[0], "key", 3, &error);
    if (!code) code = kc_column_append_bytes(&item->children[1], "value", 5, &error);
    if (!code) code = kc_column_append_bytes(&t->columns[1], "xy", 2, &error);
    if (!code) code = kc_column_reserve(list, 1, 0, &error);
    if (code) return NULL;
    item->length = 1;
    ((int32_t *)(void *)list->values.data)[++list->length] = 1;
    list->values.size = 2 * sizeof(int32_t);
    t->length = 1;
    return t;
}

/* What must stay below the limit: the bytes of a column, and the entries and bytes of a list. */
enum { BYTES, ENTRIES, KEYS, VALUES, LIMITED };

static void claim(kc_table *t, int which, int64_t size) {
    kc_column *item = t->columns[0].children;
    if (which == BYTES) t->columns[1].data.size = (size_t)size;
    if (which == ENTRIES) item->length = size;
    if (which == KEYS) item->children[0].data.size = (size_t)size;
    if (which == VALUES) item->children[1].data.size = (size_t)size;
}

TEST(tables_fit_up_to_the_limit_of_every_column) {
    static const int64_t SIZES[LIMITED] = {2, 1, 3, 5}; /* of the row that is added */
    for (int which = 0; which < LIMITED; which++) {
        for (size_t spare = 0; spare < 300; spare += 100) {
            for (int over = 0; over < 2; over++) {
                kc_table *t = one_row(), *u = one_row();
                CHECK(t && u && kc_table_fits(t, u, spare));
                const int64_t most = (int64_t)INT32_MAX - (int64_t)spare - SIZES[which] + over;
                claim(t, which, most);
                CHECK_EQ(kc_table_fits(t, u, spare), !over);
                claim(t, which, SIZES[which]);
                claim(u, which, most);
                CHECK_EQ(kc_table_fits(t, u, spare), !over);
                claim(t, which, 0);
                claim(u, which, (int64_t)INT32_MAX - (int64_t)spare + over);
                CHECK_EQ(kc_table_fits(t, u, spare), !over);
                claim(t, which, SIZES[which]);
                claim(u, which, SIZES[which]);
                kc_table_release(t);
                kc_table_release(u);
            }
        }
    }
    kc_table *t = one_row(), *other = kc_table_new(FIELDS, 2, 1), *same = kc_table_new(FIELDS, 2, 1);
    CHECK(!kc_table_fits(t, other, 0)); /* other columns */
    CHECK(!kc_table_fits(other, t, 0));
    other->columns[1].data.size = INT32_MAX; /* not wanted */
    CHECK(kc_table_fits(other, same, 1));
    other->columns[1].data.size = 0;
    kc_table_release(t);
    kc_table_release(other);
    kc_table_release(same);
}

TEST(tables_do_not_join_beyond_a_limit) {
    /* Columns with room for that many entries do not fit 32-bit addresses. */
    const int64_t cases = sizeof(size_t) > 4 ? 2 : 1;
    for (int64_t spare = 0; spare < cases; spare++) {
        kc_table *t = one_row(), *u = one_row();
        kc_error error = {0};
        claim(t, ENTRIES, INT32_MAX - spare);
        CHECK_EQ(kc_table_move(t, u, &error), spare ? KC_OK : KC_LIMIT);
        if (error.code) CHECK_ERROR(error, KC_LIMIT, 0, INT32_MAX, INT32_MAX);
        kc_table_release(t);
        kc_table_release(u);
    }
}

TEST(tables_join_lists) {
    kc_table *t = one_row(), *u = one_row();
    kc_error error = {0};
    CHECK_EQ(kc_table_move(t, u, &error), KC_OK);
    const kc_column *list = &t->columns[0], *item = list->children;
    static const int32_t ENDS[] = {0, 1, 2}, KEY_ENDS[] = {0, 3, 6};
    CHECK_EQ(t->length, 2);
    CHECK_EQ(list->length, 2);
    CHECK_EQ(item->length, 2);
    CHECK(memcmp(list->values.data, ENDS, sizeof ENDS) == 0);
    CHECK(memcmp(item->children[0].values.data, KEY_ENDS, sizeof KEY_ENDS) == 0);
    CHECK(memcmp(item->children[1].data.data, "valuevalue", 10) == 0);
    CHECK_EQ(u->length, 0);
    CHECK_EQ(u->columns[0].length, 0);
    CHECK_EQ(u->columns[0].children->length, 0);
    kc_table_release(t);
    kc_table_release(u);
}

/* The budget ends the growth where the limit of the column does not. */
TEST(columns_of_bytes_end_at_31_bits) {
    for (size_t over = 0; over < 2; over++) {
        kc_budget *budget = kc_budget_new(1 << 20, "too much");
        kc_error error = {0};
        kc_table *t = kc_table_new_within(FIELDS, 2, UINT64_MAX, budget, &error);
        CHECK(t != NULL);
        CHECK_EQ(kc_column_append_bytes(&t->columns[1], "xy", 2, &error), KC_OK);
        const size_t bytes = (size_t)INT32_MAX - 2 + over;
        CHECK_EQ(kc_column_reserve(&t->columns[1], 0, bytes, &error), over ? KC_LIMIT : KC_TOTAL_LIMIT);
        if (over) CHECK_ERROR(error, KC_LIMIT, 0, (int64_t)INT32_MAX + 1, INT32_MAX);
        kc_table_release(t);
        kc_budget_release(budget);
    }
}

TEST(views_of_a_table_have_31_bits_of_buffers) {
    enum { MOST = INT32_MAX / (int)sizeof(kc_view_buffer) };
    kc_budget *budget = kc_budget_new(1000, "too much");
    for (int32_t over = 0; over < 2; over++) {
        kc_views v = {.reach = KC_VIEW_REACH}, from = {.reach = KC_VIEW_REACH};
        kc_error error = {0};
        int32_t first = 0;
        v.list.size = (size_t)(MOST - 2 + over) * sizeof(kc_view_buffer);
        from.list.size = 2 * sizeof(kc_view_buffer);
        CHECK_EQ(kc_views_move(&v, &from, &first, budget, &error), over ? KC_LIMIT : KC_TOTAL_LIMIT);
        if (over) CHECK_ERROR(error, KC_LIMIT, 0, MOST - 1, MOST);
        CHECK_EQ(first, MOST - 2 + over);
    }
    kc_budget_release(budget);
}
