/* Limits on memory: what an exhausted one reports, and what is taken in advance. */
#include <string.h>

#include "arrow/kc_table.h"
#include "base/kc_backing.h"
#include "check.h"

TEST(budget_gives_what_is_left) {
    kc_budget *b = kc_budget_new(100, "too much");
    kc_error error = {0};
    CHECK(kc_budget_take(b, 100));
    CHECK(!kc_budget_take(b, 1));
    CHECK(kc_budget_take(b, 0));
    kc_budget_give(b, 30);
    CHECK(!kc_budget_take(b, 31));
    CHECK_EQ(b->left, 30);
    CHECK_EQ(kc_budget_fail(b, 31, &error), KC_TOTAL_LIMIT);
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, 101, 100);
    CHECK(strcmp(error.what, "too much") == 0);
    CHECK_EQ(kc_budget_fail(b, (size_t)PTRDIFF_MAX, &error), KC_TOTAL_LIMIT);
    const int64_t sum = sizeof(size_t) < 8 ? (int64_t)PTRDIFF_MAX + 70 : INT64_MAX; /* it does not wrap */
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, sum, 100);
    kc_budget_retain(b);
    kc_budget_release(b);
    CHECK_EQ(b->limit, 100);
    kc_budget_release(b);
}

TEST(buffers_report_what_they_cannot_have) {
    kc_budget *budget = kc_budget_new(5000, "too much");
    kc_buffer b = {0};
    kc_error error = {0};
    CHECK_EQ(kc_buffer_grow(&b, (size_t)PTRDIFF_MAX, &error), KC_NO_MEMORY);
    CHECK_ERROR(error, KC_NO_MEMORY, 0, PTRDIFF_MAX, 0);
    CHECK_EQ(kc_buffer_grow(&b, 10, &error), KC_OK);
    b.size = 10;
    CHECK_EQ(kc_buffer_grow(&b, 9, &error), KC_NO_MEMORY); /* a sum that has wrapped */
    CHECK_ERROR(error, KC_NO_MEMORY, 0, 0, 0);
    CHECK_EQ(kc_buffer_grow(&b, 10, &error), KC_OK);
    kc_buffer_free(&b);
    CHECK_EQ(kc_buffer_grow_within(&b, 5001, budget, &error), KC_TOTAL_LIMIT);
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, 5001, 5000);
    CHECK_EQ(budget->left, 5000);
    CHECK_EQ(kc_buffer_grow_within(&b, 5000, budget, &error), KC_OK);
    CHECK_EQ(b.capacity, 5000);
    CHECK_EQ(budget->left, 0);
    CHECK_EQ(kc_buffer_grow_within(&b, 5003, budget, &error), KC_TOTAL_LIMIT);
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, 5003, 5000);
    kc_buffer_free(&b);
    kc_budget_release(budget);
}

/* Small buffers double, and room that is not needed yet takes an eighth of the rest of the budget. */
TEST(buffers_grow_with_room) {
    static const struct {
        size_t limit; /* 0: no budget */
        size_t steps[4], capacities[4];
    } CASES[] = {
        {0, {100, 101, 201, 1000}, {100, 200, 400, 1000}},
        {1000, {100, 101, 201, 302}, {100, 200, 201 + 100, 302 + 699 / 8}},
        {100000, {5000, 8193, 0, 0}, {8192, 16384, 16384, 16384}}, /* blocks of the pool are used whole */
        {20000, {5000, 0, 0, 0}, {5000, 5000, 5000, 5000}},        /* where that is little */
        {5000 + 8 * 3192, {5000, 0, 0, 0}, {8192, 8192, 8192, 8192}},
        {5000 + 8 * 3192 - 1, {5000, 0, 0, 0}, {5000, 5000, 5000, 5000}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kc_budget *budget = CASES[i].limit ? kc_budget_new(CASES[i].limit, "too much") : NULL;
        kc_buffer b = {0};
        kc_error error = {0};
        for (int k = 0; k < 4; k++) {
            if (CASES[i].steps[k]) CHECK_EQ(kc_buffer_grow_within(&b, CASES[i].steps[k], budget, &error), KC_OK);
            CHECK_EQ(b.capacity, CASES[i].capacities[k]);
            if (budget) CHECK_EQ(budget->left, CASES[i].limit - b.capacity);
        }
        kc_buffer_free(&b);
        if (budget) kc_budget_release(budget);
    }
}

/* An allocation that fails returns what it took. */
TEST(buffers_return_what_they_did_not_get) {
    kc_budget *budget = kc_budget_new(SIZE_MAX, "too much");
    kc_buffer b = {0};
    kc_error error = {0};
    CHECK_EQ(kc_buffer_grow_within(&b, (size_t)PTRDIFF_MAX, budget, &error), KC_NO_MEMORY);
    CHECK_ERROR(error, KC_NO_MEMORY, 0, PTRDIFF_MAX, 0);
    CHECK_EQ(budget->left, SIZE_MAX);
    CHECK_EQ(kc_buffer_grow_within(&b, 100, budget, &error), KC_OK);
    const size_t capacity = b.capacity;
    CHECK_EQ(kc_buffer_grow_within(&b, (size_t)PTRDIFF_MAX, budget, &error), KC_NO_MEMORY);
    CHECK_EQ(b.capacity, capacity);
    CHECK_EQ(budget->left, SIZE_MAX - capacity);
    kc_budget_give(budget, capacity);
    kc_buffer_free(&b);
    CHECK(kc_backing_new((size_t)PTRDIFF_MAX, 0, budget, &error) == NULL);
    CHECK_ERROR(error, KC_NO_MEMORY, 0, PTRDIFF_MAX, 0);
    CHECK_EQ(budget->left, SIZE_MAX);
    CHECK(kc_backing_new((size_t)PTRDIFF_MAX, 0, NULL, &error) == NULL);
    CHECK_ERROR(error, KC_NO_MEMORY, 0, PTRDIFF_MAX, 0);
    kc_budget_release(budget);
}

TEST(backings_report_what_they_cannot_have) {
    static const uint8_t data[8];
    kc_budget *budget = kc_budget_new(800, "too much");
    kc_error error = {0};
    CHECK(kc_backing_new(801, 900, budget, &error) == NULL);
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, 801, 800);
    CHECK(kc_backing_of(data, 802, budget, NULL, NULL, &error) == NULL);
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, 802, 800);
    CHECK_EQ(budget->left, 800);
    /* More than the minimum is given up to an eighth of the rest. */
    static const size_t MOST[] = {0, 10, 11, 100, 101}, GOT[] = {10, 10, 11, 100, 10};
    for (size_t i = 0; i < sizeof MOST / sizeof *MOST; i++) {
        kc_backing *b = kc_backing_new(10, MOST[i], budget, &error);
        CHECK(b != NULL);
        CHECK_EQ(b->capacity, GOT[i]);
        CHECK_EQ(b->taken, GOT[i]);
        CHECK_EQ(b->size, 0);
        CHECK_EQ(budget->left, 800 - GOT[i]);
        kc_backing_release(b);
        CHECK_EQ(budget->left, 800);
    }
    kc_backing *of = kc_backing_of(data, sizeof data, budget, NULL, NULL, &error);
    CHECK(of && of->data == data && of->owned == NULL);
    CHECK_EQ(of->size, sizeof data);
    CHECK_EQ(of->taken, sizeof data);
    kc_backing_release(of);
    CHECK_EQ(budget->left, 800);
    kc_backing *nothing = kc_backing_new(0, 0, budget, &error); /* one byte, so that there is an address */
    CHECK(nothing && nothing->data);
    CHECK_EQ(nothing->capacity, 1);
    kc_backing_release(nothing);
    kc_backing *unlimited = kc_backing_new(10, 100, NULL, &error);
    CHECK_EQ(unlimited->capacity, 100);
    CHECK_EQ(unlimited->taken, 0);
    kc_backing_release(unlimited);
    kc_budget_release(budget);
}

/* ---- columns ---- */

static const kc_field FIELDS[] = {{"n", KC_INT64, 0, NULL}, {"b", KC_BINARY, 0, NULL}};

TEST(columns_take_an_estimate_in_part) {
    static const struct {
        size_t limit, bytes, most;
        int64_t rows;
    } CASES[] = {
        {1 << 20, 1000, 1 << 16, 100}, {1 << 20, 1 << 30, 1 << 16, 1 << 30}, {1 << 20, 0, 1 << 16, 0},
        {1 << 14, 100, 1 << 10, 1000}, {1 << 14, 2000, 1 << 10, 10},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kc_budget *budget = kc_budget_new(CASES[i].limit, "too much");
        kc_error error = {0};
        kc_table *t = kc_table_new_within(FIELDS, 2, UINT64_MAX, budget, &error);
        CHECK(t != NULL);
        for (int id = 0; id < 2; id++) {
            kc_column *c = &t->columns[id];
            const size_t left = budget->left / 16, width = id ? 4 : 8;
            const size_t rows = (size_t)CASES[i].rows < left / width ? (size_t)CASES[i].rows : left / width,
                         bytes = CASES[i].bytes < left ? CASES[i].bytes : left;
            CHECK(left <= CASES[i].most);
            const size_t before = budget->left;
            kc_column_expect(c, CASES[i].rows, CASES[i].bytes);
            CHECK(c->values.capacity >= rows * width);
            CHECK(c->data.capacity >= (id ? bytes : 0));
            CHECK_EQ(c->length, 0);
            if (CASES[i].rows > 1000) CHECK(before - budget->left <= 2 * CASES[i].most + CASES[i].limit / 8);
        }
        kc_table_release(t);
        CHECK_EQ(budget->left, CASES[i].limit);
        kc_budget_release(budget);
    }
}

TEST(columns_report_the_budget) {
    kc_budget *budget = kc_budget_new(4096, "too much");
    kc_error error = {0};
    kc_table *t = kc_table_new_within(FIELDS, 2, 1, budget, &error);
    CHECK(t != NULL);
    const size_t used = 4096 - budget->left, room = t->columns[0].values.capacity;
    CHECK_EQ(used, room);
    CHECK_EQ(kc_column_reserve(&t->columns[0], 1000, 0, &error), KC_TOTAL_LIMIT);
    CHECK_ERROR(error, KC_TOTAL_LIMIT, 0, 8 * 1000 + 8, 4096);
    CHECK_EQ(kc_column_append_repeated(&t->columns[0], 1, 1000, &error), KC_TOTAL_LIMIT);
    CHECK_EQ(t->columns[0].length, 0);
    kc_table_release(t);
    CHECK_EQ(budget->left, 4096);
    kc_budget_release(budget);
}
