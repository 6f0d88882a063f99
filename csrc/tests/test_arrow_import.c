/* Numbers, times and lists of pairs from foreign arrays; formats are those of the Arrow C data interface. */
#include "arrow/kc_arrow_import.h"
#include "arrow_build.h"
#include "check.h"

static const int64_t LONGS[] = {77, -1500, -1, 0, 1, 1999, INT64_C(86400000001)};
static const int32_t INTS[] = {77, -2, -1, 0, 1, 2, INT32_MAX};
enum { ROWS = 6 };

static const struct {
    const char *format;
    const void *values;
    int64_t milliseconds[ROWS];
} TIMES[] = {
    {"l", LONGS, {-1500, -1, 0, 1, 1999, INT64_C(86400000001)}},
    {"i", INTS, {-2, -1, 0, 1, 2, INT32_MAX}},
    {"tss:", LONGS, {-1500000, -1000, 0, 1000, 1999000, INT64_C(86400000001000)}},
    {"tsm:UTC", LONGS, {-1500, -1, 0, 1, 1999, INT64_C(86400000001)}},
    {"tsu:Europe/Berlin", LONGS, {-2, -1, 0, 0, 1, 86400000}}, /* rounded down, also before 1970 */
    {"tsn:", LONGS, {-1, -1, 0, 0, 0, 86400}},
    {"tdD", INTS, {-172800000, -86400000, 0, 86400000, 172800000, INT64_C(185542587100800000)}},
    {"tdm", LONGS, {-1500, -1, 0, 1, 1999, INT64_C(86400000001)}},
};

TEST(arrow_import_gives_milliseconds) {
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        foreign f;
        kc_arrow_ints c;
        kc_error error = {0};
        int64_t out[ROWS + 1];
        foreign_column(&f, TIMES[i].format, "timestamp", ROWS, 2, NULL, TIMES[i].values, NULL);
        f.array.offset = 1;
        CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 0, ROWS, &error), KC_OK);
        out[ROWS] = 5;
        CHECK_EQ(kc_arrow_ints_load(&c, 0, ROWS, false, 0, out, &error), KC_OK);
        for (int row = 0; row < ROWS; row++) CHECK_EQ(out[row], TIMES[i].milliseconds[row]);
        CHECK_EQ(out[ROWS], 5);
        /* A slice of the slice, and a block of that. */
        CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 2, 4, &error), KC_OK);
        CHECK_EQ(c.length, 4);
        CHECK_EQ(kc_arrow_ints_load(&c, 1, 2, false, 0, out, &error), KC_OK);
        CHECK_EQ(out[0], TIMES[i].milliseconds[3]);
        CHECK_EQ(out[1], TIMES[i].milliseconds[4]);
        CHECK_EQ(error.code, KC_OK);
    }
}

TEST(arrow_import_takes_nulls_where_it_may) {
    static const uint8_t validity[] = {0xff & ~(1 << 2)}; /* with an offset of 1: row 1 is null */
    foreign f;
    kc_arrow_ints c;
    kc_error error = {0};
    int64_t out[4];
    foreign_column(&f, "l", "timestamp", 4, 2, validity, LONGS, NULL);
    f.array.offset = 1;
    CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 0, 4, &error), KC_OK);
    CHECK_EQ(kc_arrow_ints_load(&c, 0, 4, true, -9, out, &error), KC_OK);
    CHECK_EQ(out[0], -1500);
    CHECK_EQ(out[1], -9);
    CHECK_EQ(out[2], 0);
    CHECK_EQ(kc_arrow_ints_load(&c, 1, 3, false, 0, out, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
    error.code = KC_OK;
    CHECK_EQ(kc_arrow_ints_load(&c, 2, 2, false, 0, out, &error), KC_OK);
    foreign_column(&f, "l", "timestamp", 4, 2, validity, LONGS, NULL);
    f.array.null_count = 0; /* the bits are not to be looked at */
    CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 0, 4, &error), KC_OK);
    CHECK_EQ(kc_arrow_ints_load(&c, 0, 4, false, 0, out, &error), KC_OK);
}

TEST(arrow_import_takes_the_null_type) {
    foreign f;
    kc_arrow_ints c;
    kc_error error = {0};
    int64_t out[3] = {0};
    foreign_column(&f, "n", "timestamp", 3, 0, NULL, NULL, NULL);
    CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 0, 3, &error), KC_OK);
    CHECK_EQ(kc_arrow_ints_load(&c, 0, 3, true, -7, out, &error), KC_OK);
    CHECK_EQ(out[0], -7);
    CHECK_EQ(out[2], -7);
    CHECK_EQ(kc_arrow_ints_load(&c, 2, 1, false, 0, out, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 2, 0, 0);
}

TEST(arrow_import_refuses_times_beyond_64_bits) {
    static const uint8_t last_is_null[] = {0x07};
    const int64_t most = INT64_MAX / 1000, values[] = {most, -most, most + 1, -most - 1};
    foreign f;
    kc_arrow_ints c;
    kc_error error = {0};
    int64_t out[4];
    foreign_column(&f, "tss:", "timestamp", 4, 2, last_is_null, values, NULL);
    CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 0, 4, &error), KC_OK);
    CHECK_EQ(kc_arrow_ints_load(&c, 0, 2, false, 0, out, &error), KC_OK);
    CHECK_EQ(out[0], most * 1000);
    CHECK_EQ(out[1], -most * 1000);
    CHECK_EQ(kc_arrow_ints_load(&c, 1, 2, false, 0, out, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 2, most + 1, most);
    CHECK_EQ(kc_arrow_ints_load(&c, 3, 1, true, -1, out, &error), KC_OK); /* what a null slot holds is nothing */
    CHECK_EQ(out[0], -1);
    foreign_column(&f, "tss:", "timestamp", 4, 2, NULL, values, NULL);
    CHECK_EQ(kc_arrow_ints_import(&c, &f.schema, &f.array, 0, 4, &error), KC_OK);
    CHECK_EQ(kc_arrow_ints_load(&c, 3, 1, true, -1, out, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 3, -most - 1, most);
}

static kc_error int_fault(foreign *f, int64_t offset, int64_t length) {
    kc_arrow_ints c;
    kc_error error = {0};
    const int code = kc_arrow_ints_import(&c, &f->schema, &f->array, offset, length, &error);
    if (code != error.code) error.code = -1;
    return error;
}

TEST(arrow_import_refuses_other_numbers) {
    static const char *const FORMATS[] = {"s", "L", "I", "g", "tdd", "tts", "tsx:", "tdDx", "ll", "z", ""};
    foreign f, words;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        foreign_column(&f, FORMATS[i], "offset", 4, 2, NULL, LONGS, NULL);
        const kc_error error = int_fault(&f, 0, 4);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    }
    foreign_column(&f, "l", "offset", 4, 2, NULL, LONGS, NULL);
    foreign_column(&words, "z", "", 0, 3, NULL, NULL, NULL);
    set_dictionary(&f, &words);
    const kc_error error = int_fault(&f, 0, 4);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
}

TEST(arrow_import_checks_what_an_array_says_of_itself) {
    static const int64_t MANY = INT64_MAX / 32;
    static const struct {
        int64_t length, offset, n_buffers, from, rows, got, want;
        int code;
    } CASES[] = {
        {4, 0, 2, 0, 4, 0, 0, KC_OK},
        {4, 0, 2, 4, 0, 0, 0, KC_OK},
        {4, 0, 2, 1, 3, 0, 0, KC_OK},
        {MANY, 0, 2, 0, 0, 0, 0, KC_OK},
        {0, MANY, 2, 0, 0, 0, 0, KC_OK},
        {-1, 0, 2, 0, 0, -1, 0, KC_CANNOT_ENCODE},
        {4, -1, 2, 0, 4, 4, -1, KC_CANNOT_ENCODE},
        {MANY + 1, 0, 2, 0, 0, MANY + 1, 0, KC_CANNOT_ENCODE},
        {0, MANY + 1, 2, 0, 0, 0, MANY + 1, KC_CANNOT_ENCODE},
        {4, 0, 2, 0, 5, 4, 5, KC_CANNOT_ENCODE},
        {4, 0, 2, 5, 0, 4, 5, KC_CANNOT_ENCODE},
        {4, 0, 2, 2, 3, 4, 5, KC_CANNOT_ENCODE},
        {4, 0, 2, -1, 3, 4, 2, KC_CANNOT_ENCODE},
        {4, 0, 2, 0, -1, 4, -1, KC_CANNOT_ENCODE},
        {4, 0, 1, 0, 4, 1, 2, KC_CANNOT_ENCODE},
        {4, 0, 3, 0, 4, 0, 0, KC_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        foreign f;
        foreign_column(&f, "l", "offset", CASES[i].length, CASES[i].n_buffers, NULL, LONGS, NULL);
        f.array.offset = CASES[i].offset;
        kc_error error = int_fault(&f, CASES[i].from, CASES[i].rows);
        CHECK_EQ(error.code, CASES[i].code);
        if (error.code) CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, CASES[i].got, CASES[i].want);
    }
    foreign f;
    foreign_column(&f, "l", "offset", 4, 2, NULL, LONGS, NULL);
    f.array.buffers = NULL;
    kc_error error = int_fault(&f, 0, 4);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 2, 2);
    foreign_column(&f, "l", "offset", 4, 2, NULL, NULL, NULL);
    error = int_fault(&f, 0, 4);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    error = int_fault(&f, 2, 0); /* no rows need no data */
    CHECK_EQ(error.code, KC_OK);
}

/* ---- tables ---- */

TEST(arrow_import_takes_tables_without_null_rows) {
    static const uint8_t third_is_null[] = {0xfb};
    foreign table, child;
    kc_error error = {0};
    foreign_column(&child, "l", "offset", 4, 2, NULL, LONGS, NULL);
    foreign_column(&table, "+s", "", 3, 1, NULL, NULL, NULL);
    add_child(&table, &child);
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_OK);
    foreign_column(&table, "+s", "", 3, 1, third_is_null, NULL, NULL);
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 2, 0, 0);
    table.array.offset = 1; /* rows 1 to 3 of the buffers */
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
    table.array.offset = 3;
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_OK);
    table.array.offset = 0;
    table.array.length = 2; /* the null row is after the end */
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_OK);
    table.schema.format = "+l";
    error = (kc_error){0};
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    table.schema.format = "+s";
    table.schema.n_children = 1;
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    table.schema.n_children = 0;
    table.array.n_buffers = 0;
    CHECK_EQ(kc_struct_check(&table.schema, &table.array, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 1);
}

/* ---- pairs ---- */

static const int32_t KEY_ENDS[] = {0, 1, 2, 3, 4}, VALUE_ENDS[] = {0, 1, 1, 3, 4};
static const int32_t LIST_ENDS[] = {9, 0, 1, 3, 3, 4};
static const int64_t LARGE_ENDS[] = {9, 0, 1, 3, 3, 4};

typedef struct pairs {
    foreign list, items, key, value, other;
} pairs;

/* Rows [a: v], [b: null, c: wx], [], [d: y] of a list whose array begins one row before. */
static void four_lists(pairs *p, const char *format, const void *ends) {
    static const uint8_t second_is_null[] = {0xfd};
    foreign_column(&p->key, "u", "key", 4, 3, NULL, KEY_ENDS, "abcd");
    foreign_column(&p->value, "z", "value", 4, 3, second_is_null, VALUE_ENDS, "vwxy");
    foreign_column(&p->other, "l", "other", 4, 2, NULL, LONGS, NULL);
    foreign_column(&p->items, "+s", "item", 4, 1, NULL, NULL, NULL);
    foreign_column(&p->list, format, "headers", 4, 2, NULL, ends, NULL);
    p->list.array.offset = 1;
    add_child(&p->list, &p->items);
}

static bool spans_are(const kc_spans *spans, int64_t i, const char *text) {
    if (!text) return spans->size[i] == -1;
    return spans->size[i] == (int32_t)strlen(text) && memcmp(spans->data[i], text, strlen(text)) == 0;
}

/* Reads the rows above and returns the code of the first fault. */
static int read_four(pairs *p, bool *right, kc_error *error) {
    static const int64_t BOUNDS[] = {0, 1, 1, 3, 0, 0, 3, 4};
    kc_arrow_pairs c;
    static kc_spans keys, values;
    int64_t bounds[10] = {0};
    bounds[8] = bounds[9] = 42;
    *right = false;
    if (kc_arrow_pairs_import(&c, &p->list.schema, &p->list.array, 0, 4, error)) return error->code;
    if (kc_arrow_pairs_load(&c, 0, 4, bounds, error)) return error->code;
    if (kc_arrow_pairs_items(&c, 0, 4, &keys, &values, error)) return error->code;
    *right = bounds[8] == 42 && bounds[9] == 42;
    for (int i = 0; i < 8; i++) {
        if (i != 4 && i != 5) *right = *right && bounds[i] == BOUNDS[i];
    }
    *right = *right && bounds[4] == bounds[5] && spans_are(&keys, 0, "a") && spans_are(&keys, 3, "d") &&
             spans_are(&values, 0, "v") && spans_are(&values, 1, NULL) && spans_are(&values, 2, "wx");
    if (kc_arrow_pairs_load(&c, 3, 1, bounds, error)) return error->code;
    *right = *right && bounds[0] == 3 && bounds[1] == 4;
    if (kc_arrow_pairs_items(&c, 2, 2, &keys, &values, error)) return error->code;
    *right = *right && spans_are(&keys, 0, "c") && spans_are(&values, 1, "y");
    return KC_OK;
}

TEST(arrow_import_reads_lists_of_pairs) {
    static const struct {
        const char *format;
        const void *ends;
    } LISTS[] = {{"+l", LIST_ENDS}, {"+L", LARGE_ENDS}, {"+m", LIST_ENDS}};
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        for (int order = 0; order < 3; order++) {
            pairs p;
            kc_error error = {0};
            bool right;
            four_lists(&p, LISTS[i].format, LISTS[i].ends);
            if (order == 1) add_child(&p.items, &p.other);
            add_child(&p.items, order == 2 ? &p.value : &p.key);
            add_child(&p.items, order == 2 ? &p.key : &p.value);
            /* The fields of a map have their places, those of a list their names. */
            if (i == 2 && order) continue;
            if (i == 2) p.key.schema.name = p.value.schema.name = "anything";
            CHECK_EQ(read_four(&p, &right, &error), KC_OK);
            CHECK(right);
        }
    }
}

TEST(arrow_import_reads_sliced_lists_and_items) {
    static const uint8_t second_row_null[] = {0xff & ~(1 << 2)}, third_item_null[] = {0xff & ~(1 << 2)};
    pairs p;
    kc_error error = {0};
    kc_arrow_pairs c;
    static kc_spans keys, values;
    int64_t bounds[8];
    four_lists(&p, "+l", LIST_ENDS);
    add_child(&p.items, &p.key);
    add_child(&p.items, &p.value);
    p.list.buffers[0] = second_row_null;
    p.list.array.null_count = -1;
    CHECK_EQ(kc_arrow_pairs_import(&c, &p.list.schema, &p.list.array, 1, 3, &error), KC_OK);
    CHECK_EQ(c.length, 3);
    CHECK_EQ(kc_arrow_pairs_load(&c, 0, 3, bounds, &error), KC_OK);
    CHECK_EQ(bounds[0], 0); /* null has no headers */
    CHECK_EQ(bounds[1], 0);
    CHECK_EQ(bounds[4], 3);
    CHECK_EQ(bounds[5], 4);
    /* Items with an offset of their own: pair 0 is b. */
    p.items.array.offset = 1;
    p.items.array.length = 3;
    CHECK_EQ(kc_arrow_pairs_import(&c, &p.list.schema, &p.list.array, 0, 1, &error), KC_OK);
    CHECK_EQ(c.items, 3);
    CHECK_EQ(kc_arrow_pairs_items(&c, 0, 3, &keys, &values, &error), KC_OK);
    CHECK(spans_are(&keys, 0, "b"));
    CHECK(spans_are(&values, 2, "y"));
    p.items.buffers[0] = third_item_null;
    p.items.array.null_count = 1;
    CHECK_EQ(kc_arrow_pairs_import(&c, &p.list.schema, &p.list.array, 0, 1, &error), KC_OK);
    CHECK_EQ(kc_arrow_pairs_items(&c, 0, 1, &keys, &values, &error), KC_OK);
    CHECK_EQ(kc_arrow_pairs_items(&c, 0, 3, &keys, &values, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
    CHECK_EQ(kc_arrow_pairs_items(&c, 1, 1, &keys, &values, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
    CHECK_EQ(kc_arrow_pairs_items(&c, 2, 1, &keys, &values, &error), KC_OK);
}

TEST(arrow_import_refuses_null_keys) {
    static const uint8_t fourth_is_null[] = {0x07};
    pairs p;
    kc_error error = {0};
    kc_arrow_pairs c;
    static kc_spans keys, values;
    four_lists(&p, "+l", LIST_ENDS);
    add_child(&p.items, &p.key);
    add_child(&p.items, &p.value);
    p.key.buffers[0] = fourth_is_null;
    p.key.array.null_count = 1;
    CHECK_EQ(kc_arrow_pairs_import(&c, &p.list.schema, &p.list.array, 0, 4, &error), KC_OK);
    CHECK_EQ(kc_arrow_pairs_items(&c, 1, 2, &keys, &values, &error), KC_OK);
    CHECK_EQ(kc_arrow_pairs_items(&c, 1, 3, &keys, &values, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 3, 0, 0);
}

TEST(arrow_import_refuses_lists_that_pass_their_items) {
    static const int32_t CASES[][3] = {{0, 5, 5}, {3, 2, 4}, {-1, 1, 4}};
    static const int64_t ENDS[] = {5, 2, 1};
    for (int i = 0; i < 3; i++) {
        pairs p;
        kc_error error = {0};
        kc_arrow_pairs c;
        int64_t bounds[2];
        four_lists(&p, "+l", CASES[i]);
        add_child(&p.items, &p.key);
        add_child(&p.items, &p.value);
        p.list.array.offset = 0;
        p.list.array.length = 1;
        CHECK_EQ(kc_arrow_pairs_import(&c, &p.list.schema, &p.list.array, 0, 1, &error), KC_OK);
        CHECK_EQ(kc_arrow_pairs_load(&c, 0, 1, bounds, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, ENDS[i], 4);
    }
}

/* What may be wrong with a list of pairs, by number. */
static kc_error pairs_fault(int number) {
    pairs p;
    kc_error error = {0};
    kc_arrow_pairs c;
    four_lists(&p,
               number == 0   ? "+s"
               : number == 1 ? "z"
               : number == 2 ? "+w:2"
               : number == 7 ? "+m"
                             : "+l",
               LIST_ENDS);
    add_child(&p.items, &p.key);
    if (number != 6 && number != 7) add_child(&p.items, &p.value);
    if (number == 3) p.items.schema.format = "+l";
    if (number == 4) p.key.schema.name = "name";
    if (number == 5) p.value.schema.name = NULL;
    if (number == 8) p.list.array.n_children = 0;
    if (number == 9) p.items.array.n_children = 1;
    if (number == 10) p.items.array.length = -1;
    if (number == 11) p.list.buffers[1] = NULL;
    if (number == 12) p.key.schema.format = "l";
    if (number == 13) p.value.array.length = 3;
    if (number == 14) p.list.array.n_buffers = 1;
    if (number == 15) p.items.array.n_buffers = 0;
    if (kc_arrow_pairs_import(&c, &p.list.schema, &p.list.array, 0, 4, &error) != error.code) error.code = -1;
    return error;
}

TEST(arrow_import_refuses_other_lists) {
    static const int64_t GOT_WANT[][2] = {{0, 0}, {0, 0}, {0, 0},  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0},
                                          {0, 1}, {0, 0}, {-1, 0}, {0, 0}, {0, 0}, {3, 4}, {1, 2}, {0, 1}};
    for (int number = 0; number < 16; number++) {
        const kc_error error = pairs_fault(number);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, GOT_WANT[number][0], GOT_WANT[number][1]);
    }
}

TEST(arrow_import_takes_lists_of_the_null_type) {
    foreign f;
    kc_arrow_pairs c;
    kc_error error = {0};
    int64_t bounds[4] = {1, 2, 3, 4};
    foreign_column(&f, "n", "headers", 2, 0, NULL, NULL, NULL);
    CHECK_EQ(kc_arrow_pairs_import(&c, &f.schema, &f.array, 0, 2, &error), KC_OK);
    CHECK_EQ(kc_arrow_pairs_load(&c, 0, 2, bounds, &error), KC_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(bounds[i], 0);
}
