/* Columns of bytes from foreign arrays, in every layout of Arrow. */
#include "arrow/kc_arrow_bytes.h"
#include "arrow_build.h"
#include "base/kc_copy.h"
#include "check.h"

/* Rows a, bc, (empty), defg and one before them that is not asked for. */
static const char DATA[] = "zabcdefg";
static const int32_t ENDS32[] = {0, 1, 2, 4, 4, 8};
static const int64_t ENDS64[] = {0, 1, 2, 4, 4, 8};
static const char *const WORDS[] = {"a", "bc", "", "defg"};
static const uint8_t THIRD_NULL[] = {0xff & ~(1 << 3)}; /* after an offset of 1 */

static bool span_is(const kc_spans *spans, int64_t i, const char *text) {
    if (!text) return spans->size[i] == -1;
    const size_t size = strlen(text);
    return spans->size[i] == (int32_t)size && (size == 0 || memcmp(spans->data[i], text, size) == 0);
}

/* Imports rows [from, from + rows) and loads all of them. */
static int load(const foreign *f, int64_t from, int64_t rows, kc_arrow_bytes *c, kc_spans *spans, kc_error *error) {
    memset(error, 0, sizeof *error);
    if (kc_arrow_bytes_import(c, &f->schema, &f->array, from, rows, error)) return error->code;
    return rows ? kc_arrow_bytes_load(c, 0, rows, spans, error) : KC_OK;
}

static void variable(foreign *f, const char *format) {
    const bool large = format[0] == 'Z' || format[0] == 'U';
    foreign_column(f, format, "value", 4, 3, NULL, large ? (const void *)ENDS64 : ENDS32, DATA);
    f->array.offset = 1;
}

TEST(bytes_column_reads_offsets_of_both_widths) {
    static const char *const FORMATS[] = {"z", "u", "Z", "U"};
    static kc_spans spans;
    for (int i = 0; i < 4; i++) {
        foreign f;
        kc_arrow_bytes c;
        kc_error error;
        variable(&f, FORMATS[i]);
        CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_OK);
        for (int row = 0; row < 4; row++) CHECK(span_is(&spans, row, WORDS[row]));
        CHECK(!spans.wide);
        CHECK_EQ(kc_arrow_bytes_extent(&c), 7);
        f.buffers[0] = THIRD_NULL;
        f.array.null_count = -1;
        CHECK_EQ(load(&f, 1, 3, &c, &spans, &error), KC_OK);
        CHECK(span_is(&spans, 0, "bc"));
        CHECK(span_is(&spans, 1, NULL));
        CHECK(span_is(&spans, 2, "defg"));
        CHECK_EQ(kc_arrow_bytes_load(&c, 2, 1, &spans, &error), KC_OK);
        CHECK(span_is(&spans, 0, "defg"));
        CHECK_EQ(kc_arrow_bytes_extent(&c), 6);
        CHECK_EQ(load(&f, 4, 0, &c, &spans, &error), KC_OK);
        CHECK_EQ(kc_arrow_bytes_extent(&c), 0);
    }
}

/* Wide copies are allowed where as many bytes follow the last row of the block. */
TEST(bytes_column_tells_where_wide_copies_are_safe) {
    static char data[64];
    static kc_spans spans;
    for (int spare = KC_COPY_SLACK - 1; spare <= KC_COPY_SLACK + 1; spare++) {
        const int32_t ends32[] = {0, 2, 2 + spare};
        const int64_t ends64[] = {0, 2, 2 + spare};
        for (int large = 0; large < 2; large++) {
            foreign f;
            kc_arrow_bytes c;
            kc_error error = {0};
            foreign_column(&f, large ? "Z" : "z", "value", 2, 3, NULL, large ? (const void *)ends64 : ends32, data);
            CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, 2, &error), KC_OK);
            CHECK_EQ(kc_arrow_bytes_load(&c, 0, 1, &spans, &error), KC_OK);
            CHECK_EQ(spans.wide, spare >= KC_COPY_SLACK);
            CHECK_EQ(kc_arrow_bytes_load(&c, 0, 2, &spans, &error), KC_OK);
            CHECK(!spans.wide);
        }
        foreign f;
        kc_arrow_bytes c;
        kc_error error = {0};
        foreign_column(&f, "w:1", "value", 2 + spare, 2, NULL, data, NULL);
        CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, 2 + spare, &error), KC_OK);
        CHECK_EQ(kc_arrow_bytes_load(&c, 0, 2, &spans, &error), KC_OK);
        CHECK_EQ(spans.wide, spare >= KC_COPY_SLACK);
        CHECK_EQ(kc_arrow_bytes_load(&c, 1, 2, &spans, &error), KC_OK);
        CHECK_EQ(spans.wide, spare > KC_COPY_SLACK);
    }
}

TEST(bytes_column_refuses_offsets_that_decrease) {
    static const struct {
        int64_t ends[4];
        int code;
    } CASES[] = {
        {{0, 1, 2, 3}, KC_OK},
        {{-1, 1, 2, 3}, KC_CANNOT_ENCODE},
        {{0, -1, 2, 3}, KC_CANNOT_ENCODE},
        {{0, 2, 1, 3}, KC_CANNOT_ENCODE},
        {{0, 1, 4, 3}, KC_CANNOT_ENCODE},
        {{2, 2, 2, 1}, KC_CANNOT_ENCODE},
        {{0, 0, 0, -1}, KC_CANNOT_ENCODE},
        {{INT32_MIN, INT32_MIN, INT32_MIN, 0}, KC_CANNOT_ENCODE},
    };
    static kc_spans spans;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int32_t ends32[4];
        for (int k = 0; k < 4; k++) ends32[k] = (int32_t)CASES[i].ends[k];
        for (int large = 0; large < 2; large++) {
            foreign f;
            kc_arrow_bytes c;
            kc_error error = {0};
            const void *ends = large ? (const void *)CASES[i].ends : ends32;
            foreign_column(&f, large ? "Z" : "z", "value", 3, 3, NULL, ends, DATA);
            CHECK_EQ(load(&f, 0, 3, &c, &spans, &error), CASES[i].code);
            if (error.code) CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, CASES[i].ends[3] < 0 ? CASES[i].ends[3] : 0, 0);
            CHECK_EQ(load(&f, 0, 0, &c, &spans, &error), KC_OK);
        }
    }
    /* Loading a part gives the values of the part, and the end of the column. */
    static const int32_t later[] = {0, 1, 9, 3};
    static const int64_t later64[] = {0, 1, 9, 3};
    for (int large = 0; large < 2; large++) {
        foreign f;
        kc_arrow_bytes c;
        kc_error error = {0};
        foreign_column(&f, large ? "Z" : "z", "value", 3, 3, NULL, large ? (const void *)later64 : later, DATA);
        CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, 3, &error), KC_OK);
        CHECK_EQ(kc_arrow_bytes_load(&c, 1, 1, &spans, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, 0, 0);
    }
}

/* Offsets of 32 bits are loaded four at a time, and the last rows one by one. */
TEST(bytes_column_checks_every_row_of_a_block) {
    enum { ROWS = 11 };
    static const char data[ROWS] = {0};
    static kc_spans spans;
    for (int bad = 0; bad < ROWS; bad++) { /* the last one says where the data end */
        static const int64_t VALUES[] = {-1, ROWS + 1, INT32_MIN};
        for (int kind = 0; kind < 3; kind++) {
            int32_t ends32[ROWS + 1];
            int64_t ends64[ROWS + 1];
            for (int i = 0; i <= ROWS; i++) ends32[i] = i;
            ends32[bad] = (int32_t)VALUES[kind];
            for (int i = 0; i <= ROWS; i++) ends64[i] = ends32[i];
            for (int large = 0; large < 2; large++) {
                foreign f;
                kc_arrow_bytes c;
                kc_error error = {0};
                const void *ends = large ? (const void *)ends64 : ends32;
                foreign_column(&f, large ? "Z" : "z", "value", ROWS, 3, NULL, ends, data);
                CHECK_EQ(load(&f, 0, ROWS, &c, &spans, &error), KC_CANNOT_ENCODE);
                CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
            }
        }
    }
    int32_t sound[ROWS + 1];
    for (int i = 0; i <= ROWS; i++) sound[i] = i;
    foreign f;
    kc_arrow_bytes c;
    kc_error error;
    foreign_column(&f, "z", "value", ROWS, 3, NULL, sound, data);
    for (int rows = 1; rows <= ROWS; rows++) {
        CHECK_EQ(load(&f, 0, rows, &c, &spans, &error), KC_OK);
        for (int i = 0; i < rows; i++) {
            CHECK(spans.data[i] == (const uint8_t *)data + i);
            CHECK_EQ(spans.size[i], 1);
        }
    }
}

/* A word near the end of the dictionary's data is one that must not be copied wide. */
TEST(bytes_column_copies_wide_only_where_every_word_allows_it) {
    static char data[1 + KC_COPY_SLACK + 1];
    static const int32_t ends[] = {0, 1, 1 + KC_COPY_SLACK + 1};
    static const int8_t first_only[] = {0, 0}, last_too[] = {1, 0};
    static kc_spans spans;
    for (int last = 0; last < 2; last++) {
        foreign f, words;
        kc_arrow_bytes c;
        kc_error error;
        foreign_column(&words, "z", "words", 2, 3, NULL, ends, data);
        foreign_column(&f, "c", "value", 2, 2, NULL, last ? last_too : first_only, NULL);
        set_dictionary(&f, &words);
        CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_OK);
        CHECK_EQ(spans.wide, !last);
    }
}

TEST(bytes_column_refuses_values_beyond_31_bits) {
    static const int64_t ends[] = {0, 1, 1 + (int64_t)INT32_MAX + 1, 1 + (int64_t)INT32_MAX + 1};
    static kc_spans spans;
    foreign f;
    kc_arrow_bytes c;
    kc_error error = {0};
    foreign_column(&f, "Z", "value", 3, 3, NULL, ends, DATA);
    CHECK_EQ(load(&f, 0, 3, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, (int64_t)INT32_MAX + 1, INT32_MAX);
    const int64_t last[] = {0, 1, 2, 3 + (int64_t)INT32_MAX};
    foreign_column(&f, "Z", "value", 3, 3, NULL, last, DATA);
    CHECK_EQ(load(&f, 0, 3, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 2, (int64_t)INT32_MAX + 1, INT32_MAX);
    const int64_t most[] = {0, INT32_MAX, INT32_MAX};
    foreign_column(&f, "Z", "value", 2, 3, NULL, most, DATA);
    CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_OK); /* nothing is read of what the array says */
    CHECK_EQ(spans.size[0], INT32_MAX);
}

TEST(bytes_column_reads_views) {
    static const char far_text[] = "..a value of twenty one..";
    const char *text = "a value of twenty one";
    kc_view views[5] = {{.size = 2}, {.size = 12}, {.size = 21}, {.size = 0}, {.size = -5}};
    memcpy(views[0].at.inlined, "ab", 2);
    memcpy(views[1].at.inlined, "twelve bytes", 12);
    views[2].at.far.buffer = 1;
    views[2].at.far.position = 2;
    const int64_t sizes[] = {0, sizeof far_text - 1};
    static const uint8_t last_null[] = {0x0f};
    static kc_spans spans;
    foreign f;
    kc_arrow_bytes c;
    kc_error error;
    foreign_column(&f, "vz", "value", 5, 5, last_null, views, "");
    f.buffers[3] = far_text;
    f.buffers[4] = sizes;
    CHECK_EQ(load(&f, 0, 5, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, "ab"));
    CHECK(span_is(&spans, 1, "twelve bytes"));
    CHECK(span_is(&spans, 2, text));
    CHECK(span_is(&spans, 3, ""));
    CHECK(span_is(&spans, 4, NULL)); /* whatever its slot holds */
    CHECK_EQ(kc_arrow_bytes_extent(&c), 35);
    CHECK_EQ(load(&f, 1, 2, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 1, text));
    CHECK_EQ(kc_arrow_bytes_load(&c, 1, 1, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, text));
    f.schema.format = "vu";
    CHECK_EQ(load(&f, 2, 1, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, text));
    f.array.null_count = 0;
    CHECK_EQ(load(&f, 3, 2, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, -5, 0);
}

TEST(bytes_column_keeps_views_within_their_buffers) {
    static const struct {
        int32_t size, buffer, position;
        int64_t got, want;
        int code;
    } CASES[] = {
        {20, 0, 0, 0, 0, KC_OK},
        {20, 0, 5, 0, 0, KC_OK},
        {20, 0, 6, 6, 25, KC_CANNOT_ENCODE},
        {26, 0, 0, 0, 25, KC_CANNOT_ENCODE},
        {20, 0, -1, -1, 25, KC_CANNOT_ENCODE},
        {INT32_MAX, 0, INT32_MAX, INT32_MAX, 25, KC_CANNOT_ENCODE},
        {20, 1, 0, 1, 2, KC_CANNOT_ENCODE}, /* that buffer is not there */
        {20, 2, 0, 2, 2, KC_CANNOT_ENCODE},
        {20, -1, 0, -1, 2, KC_CANNOT_ENCODE},
    };
    static const char data[] = "twenty five bytes of data";
    static const int64_t sizes[] = {25, 0};
    static kc_spans spans;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kc_view view = {.size = CASES[i].size};
        view.at.far.buffer = CASES[i].buffer;
        view.at.far.position = CASES[i].position;
        foreign f;
        kc_arrow_bytes c;
        kc_error error;
        foreign_column(&f, "vz", "value", 1, 5, NULL, &view, data);
        f.buffers[4] = sizes;
        CHECK_EQ(load(&f, 0, 1, &c, &spans, &error), CASES[i].code);
        if (error.code) CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, CASES[i].got, CASES[i].want);
    }
    /* Wide copies: of what lies in views, as many views' bytes must follow; of far values, their buffer's. */
    kc_view views[4] = {{.size = 20}, {.size = 1}, {.size = 1}, {.size = 1}};
    static char longer[80];
    const int64_t longer_sizes[] = {20 + KC_COPY_SLACK};
    foreign f;
    kc_arrow_bytes c;
    kc_error error = {0};
    views[0].at.far.buffer = 0;
    foreign_column(&f, "vz", "value", 4, 4, NULL, views, longer);
    f.buffers[3] = longer_sizes;
    for (int32_t position = 0; position < 2; position++) {
        views[0].at.far.position = position;
        if (position == 1) views[0].size = 20;
        CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, 4, &error), KC_OK);
        CHECK_EQ(kc_arrow_bytes_load(&c, 0, 2, &spans, &error), KC_OK);
        CHECK_EQ(spans.wide, position == 0);
        CHECK_EQ(kc_arrow_bytes_load(&c, 0, 3, &spans, &error), KC_OK);
        CHECK(!spans.wide);
    }
}

TEST(bytes_column_reads_fixed_sizes) {
    static kc_spans spans;
    foreign f;
    kc_arrow_bytes c;
    kc_error error;
    foreign_column(&f, "w:3", "value", 2, 2, NULL, "...abcdef", NULL);
    f.array.offset = 1;
    CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, "abc"));
    CHECK(span_is(&spans, 1, "def"));
    CHECK_EQ(kc_arrow_bytes_extent(&c), 6);
    CHECK_EQ(kc_arrow_bytes_load(&c, 1, 1, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, "def"));
    foreign_column(&f, "w:0", "value", 2, 2, NULL, NULL, NULL);
    CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, ""));
    CHECK(!spans.wide);
    foreign_column(&f, "w:1342177279", "value", 1, 2, NULL, DATA, NULL); /* the largest */
    CHECK_EQ(load(&f, 0, 1, &c, &spans, &error), KC_OK);
    CHECK_EQ(spans.size[0], 1342177279);
    foreign_column(&f, "w:12", "value", 2, 2, NULL, "twelve bytesmore bytes..", NULL);
    CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 1, "more bytes.."));
    static const char *const IMPOSSIBLE[] = {"w:-1", "w:1x", "w:99999999999", "w:/", "w::", "w:1342177280"};
    static const int64_t READ[] = {0, 1, 999999999, 0, 0, INT32_MAX / 16 + 1};
    for (int i = 0; i < 6; i++) {
        foreign_column(&f, IMPOSSIBLE[i], "value", 2, 2, NULL, DATA, NULL);
        CHECK_EQ(load(&f, 0, 1, &c, &spans, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, READ[i], INT32_MAX);
    }
}

/* Indexes 2, 0, 1 and null after one that is not requested, in each of Arrow's widths. */
TEST(bytes_column_reads_dictionaries) {
    static const int8_t c8[] = {9, 2, 0, 1, 9};
    static const int16_t c16[] = {9, 2, 0, 1, 9};
    static const int32_t c32[] = {9, 2, 0, 1, 9};
    static const int64_t c64[] = {9, 2, 0, 1, 9};
    static const struct {
        const char *format;
        const void *numbers;
    } CASES[] = {{"c", c8}, {"C", c8}, {"s", c16}, {"S", c16}, {"i", c32}, {"I", c32}, {"l", c64}, {"L", c64}};
    static const uint8_t fourth_null[] = {0xff & ~(1 << 4)};
    static kc_spans spans;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        foreign f, words;
        kc_arrow_bytes c;
        kc_error error;
        variable(&words, "u");
        foreign_column(&f, CASES[i].format, "value", 4, 2, fourth_null, CASES[i].numbers, NULL);
        f.array.offset = 1;
        set_dictionary(&f, &words);
        CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_OK);
        CHECK(span_is(&spans, 0, WORDS[2]));
        CHECK(span_is(&spans, 1, WORDS[0]));
        CHECK(span_is(&spans, 2, WORDS[1]));
        CHECK(span_is(&spans, 3, NULL));
        CHECK_EQ(kc_arrow_bytes_extent(&c), 0);
        CHECK_EQ(kc_arrow_bytes_load(&c, 2, 1, &spans, &error), KC_OK);
        CHECK(span_is(&spans, 0, WORDS[1]));
        words.array.length = 2; /* word 2 is not there any more */
        CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 2, 2);
        CHECK_EQ(load(&f, 1, 2, &c, &spans, &error), KC_OK);
    }
}

TEST(bytes_column_reads_numbers_with_their_sign) {
    static const int8_t minus[] = {0, -1};
    static const uint8_t high[] = {0, 200};
    static const int16_t minus16[] = {0, -1};
    static const uint16_t high16[] = {0, 65535};
    static const uint32_t high32[] = {0, UINT32_MAX};
    static const struct {
        const char *format;
        const void *numbers;
        int64_t got;
    } CASES[] = {
        {"c", minus, -1}, {"C", high, 200}, {"s", minus16, -1}, {"S", high16, 65535}, {"I", high32, UINT32_MAX}};
    static kc_spans spans;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        foreign f, words;
        kc_arrow_bytes c;
        kc_error error;
        variable(&words, "u");
        foreign_column(&f, CASES[i].format, "value", 2, 2, NULL, CASES[i].numbers, NULL);
        set_dictionary(&f, &words);
        CHECK_EQ(load(&f, 0, 2, &c, &spans, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 1, CASES[i].got, 4);
    }
}

/* What may be wrong with a column, by number. */
static kc_error fault_of(int number) {
    static const int8_t numbers[] = {0, 1};
    static kc_spans spans;
    foreign f, words, more;
    kc_arrow_bytes c;
    kc_error error;
    variable(&words, "u");
    variable(&more, "u");
    foreign_column(&f,
                   number == 0   ? "g"
                   : number == 1 ? "ii"
                                 : "c",
                   "value", 2, number == 7 ? 1 : 2, NULL, numbers, NULL);
    set_dictionary(&f, &words);
    if (number == 2) f.array.dictionary = NULL;
    if (number == 3) words.schema.dictionary = &more.schema;
    if (number == 4) words.schema.format = "l";
    if (number == 5) f.buffers[1] = NULL;
    if (number == 6) words.array.length = -1;
    (void)(load(&f, 0, 2, &c, &spans, &error) == 0);
    return error;
}

TEST(bytes_column_refuses_other_types) {
    static const int64_t GOT_WANT[][2] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {-1, 1}, {1, 2}};
    for (int number = 0; number < 8; number++) {
        const kc_error error_of_number = fault_of(number);
        CHECK_ERROR(error_of_number, KC_CANNOT_ENCODE, 0, GOT_WANT[number][0], GOT_WANT[number][1]);
    }
    CHECK_EQ(fault_of(8).code, KC_OK);
    static const char *const FORMATS[] = {"l", "", "zz", "vl", "v", "w", "+s", "x:3"};
    static kc_spans spans;
    foreign f;
    kc_arrow_bytes c;
    kc_error error;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        variable(&f, FORMATS[i]);
        CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_CANNOT_ENCODE);
        CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    }
    variable(&f, "z");
    f.buffers[2] = NULL;
    CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 8, 0);
    f.buffers[1] = NULL;
    CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    CHECK_EQ(load(&f, 0, 0, &c, &spans, &error), KC_OK);
    variable(&f, "z");
    f.array.n_buffers = 2;
    CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 2, 3);
    foreign_column(&f, "w:1", "value", 4, 1, NULL, DATA, NULL);
    CHECK_EQ(load(&f, 0, 4, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 1, 2);
    kc_view view = {.size = 0};
    foreign_column(&f, "vz", "value", 1, 4, NULL, &view, DATA);
    CHECK_EQ(load(&f, 0, 1, &c, &spans, &error), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, 0);
    f.array.n_buffers = 3; /* no far buffers, so no sizes */
    CHECK_EQ(load(&f, 0, 1, &c, &spans, &error), KC_OK);
    f.buffers[2] = NULL;
    CHECK_EQ(load(&f, 0, 1, &c, &spans, &error), KC_OK);
    foreign_column(&f, "n", "value", 3, 0, NULL, NULL, NULL);
    CHECK_EQ(load(&f, 0, 3, &c, &spans, &error), KC_OK);
    CHECK(span_is(&spans, 0, NULL));
    CHECK(span_is(&spans, 2, NULL));
    CHECK_EQ(kc_arrow_bytes_extent(&c), 0);
}

TEST(arrow_bytes_that_lie_together) {
    static const int32_t ends[] = {0, 3, 7};
    static const int64_t far_ends[] = {0, 3, 7};
    static const uint8_t data[32] = {0};
    static const struct {
        const char *format;
        const void *index;
        bool together;
        size_t size;
    } CASES[] = {{"z", ends, true, 7}, {"U", far_ends, true, 7}, {"w:5", data, true, 10}, {"vz", data, false, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        foreign f;
        kc_arrow_bytes c;
        kc_error error = {0};
        const uint8_t *start = NULL;
        size_t size = 0;
        const bool fixed = CASES[i].format[0] == 'w';
        foreign_column(&f, CASES[i].format, "v", 2, fixed ? 2 : 3, NULL, CASES[i].index, data);
        CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, 2, &error), KC_OK);
        CHECK_EQ(kc_arrow_bytes_together(&c, &start, &size), CASES[i].together);
        if (!CASES[i].together) continue;
        CHECK(start == data);
        CHECK_EQ(size, CASES[i].size);
    }
}
