#include "check.h"
#include "values/kc_avro.h"

/* A record of an int, a string, an array of longs and a union of null and an enum of two symbols. */
enum { ROOT, NUMBER, TEXT, LIST, CHOICE, ITEM, NOTHING, SYMBOL, NODES };
static const kc_avro_node NODE[NODES] = {
    [ROOT] = {KC_AVRO_RECORD, NUMBER, 4, 0, 20, 4},  [NUMBER] = {KC_AVRO_INT, 0, 0, 0, 4, 1},
    [TEXT] = {KC_AVRO_STRING, 0, 0, 0, 4, 1},        [LIST] = {KC_AVRO_ARRAY, ITEM, 1, 0, 4, 1},
    [CHOICE] = {KC_AVRO_UNION, NOTHING, 2, 0, 5, 1}, [ITEM] = {KC_AVRO_LONG, 0, 0, 0, 8, 1},
    [NOTHING] = {KC_AVRO_NOTHING, 0, 0, 0, 1, 0},    [SYMBOL] = {KC_AVRO_ENUM, 0, 0, 2, 4, 1},
};
static const kc_avro_schema SCHEMA = {NODE, NODES};

static kc_avro_fault fault;

/* Checks one value; whether it is one of the schema. */
static bool is_value(const char *bytes, int64_t size, int64_t budget) {
    return kc_avro_check(&SCHEMA, (const uint8_t *)bytes, &size, 0, 1, &budget, &fault) == 1;
}

#define VALUE(bytes) is_value(bytes, sizeof bytes - 1, 1000)

TEST(avro_values_pass) {
    CHECK(VALUE("\2\2a\0\0"));
    CHECK(VALUE("\1\4\xc3\xa9\4\2\4\0\2\2"));
    CHECK(VALUE("\1\0\3\4\2\4\0\0"));           /* a block with its size */
    CHECK(VALUE("\xfe\xff\xff\xff\x0f\0\0\0")); /* 2^31 - 1 */
}

static const struct {
    const char *bytes;
    int64_t size, position;
    int32_t node;
} BAD[] = {
    {"", 0, 0, NUMBER},
    {"\x80", 1, 0, NUMBER},
    {"\x80\x80\x80\x80\x10\0\0\0", 8, 0, NUMBER},
    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0", 11, 0, NUMBER},
    {"\0\4a", 3, 1, TEXT},
    {"\0\1", 2, 1, TEXT},
    {"\0\2\xff\0\0", 5, 2, TEXT},
    {"\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1\0", 13, 12, LIST},
    {"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0", 13, 2, LIST},
    {"\0\0\3\2\2\4\0\0", 8, 6, LIST}, /* the block ends after its size */
    {"\0\0\1\x7f\0\0", 6, 3, LIST},
    {"\0\0\0\4", 4, 3, CHOICE},
    {"\0\0\0\1", 4, 3, CHOICE},
    {"\0\0\0\2\4", 5, 4, SYMBOL},
    {"\0\0\0\0x", 5, 4, ROOT},
};

TEST(avro_faults_name_place_and_node) {
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        CHECK(!is_value(BAD[i].bytes, BAD[i].size, 1000));
        CHECK(fault.what != NULL);
        CHECK_EQ(fault.position, BAD[i].position);
        CHECK_EQ(fault.node, BAD[i].node);
    }
}

TEST(avro_items_take_memory) {
    CHECK(is_value("\0\0\4\2\4\0\0", 7, 16));
    CHECK(!is_value("\0\0\4\2\4\0\0", 7, 15));
    CHECK_EQ(fault.node, LIST);
}

static bool is_one(int32_t kind, int32_t limit, int64_t width, const char *bytes, int64_t size) {
    const kc_avro_node node = {kind, 0, 0, limit, width, 0};
    const kc_avro_schema schema = {&node, 1};
    int64_t budget = 0;
    fault.what = "";
    return kc_avro_check(&schema, (const uint8_t *)bytes, &size, 0, 1, &budget, &fault) == 1;
}

#define ONE(kind, limit, width, bytes) is_one(kind, limit, width, bytes, sizeof bytes - 1)
#define DECIMAL(bytes) ONE(KC_AVRO_DECIMAL, 0, 4, bytes)
#define FIXED_DECIMAL(bytes) ONE(KC_AVRO_FIXED_DECIMAL, sizeof bytes - 1, 4, bytes)
#define BIG(bytes) ONE(KC_AVRO_BIG_DECIMAL, 3, 4, bytes)

TEST(avro_decimals_fit_their_columns) {
    CHECK(DECIMAL("\2\x80") && DECIMAL("\x08\x80\0\0\0"));
    CHECK(!DECIMAL("\0") && fault.what);
    CHECK(!DECIMAL("\x0a\0\x80\0\0\0") && fault.what);
    CHECK(!DECIMAL("\x0a\xff\x7f\0\0\0") && fault.what);
    CHECK(!DECIMAL("\x0a\1\0\0\0\0") && fault.what);
    CHECK(FIXED_DECIMAL("\xff") && FIXED_DECIMAL("\0\0\0\0\1") && FIXED_DECIMAL("\xff\xff\x80\0\0\0"));
    CHECK(!FIXED_DECIMAL("\0\0\x80\0\0\0") && fault.what);
    CHECK(!FIXED_DECIMAL("\xff\0\x80\0\0\0") && fault.what);
}

/* A value of the schema, but not for a decoder that takes no more bytes than a column has. */
TEST(avro_long_decimals_are_told) {
    CHECK(!DECIMAL("\x0a\0\1\2\3\4"));
    CHECK(fault.what == NULL);
    CHECK_EQ(fault.position, 6);
    CHECK(!DECIMAL("\x0a\0\1\2\3\4\0") && fault.what); /* one byte follows */
}

TEST(avro_big_decimals_have_digits_and_scale) {
    CHECK(BIG("\6\2\x7b\4") && BIG("\x0a\6\1\2\3\0") && BIG("\x0e\2\1\xfe\xff\xff\xff\x0f"));
    CHECK(!BIG("\0") && !BIG("\2\2") && !BIG("\4\0\0") && !BIG("\4\2\1") && !BIG("\x08\2\1\0\0"));
    CHECK(!BIG("\x0c\x08\1\2\3\4\0"));
    CHECK_EQ(fault.got, 4);
    CHECK(!BIG("\x0e\2\1\x80\x80\x80\x80\x10"));
    CHECK_EQ(fault.got, INT64_C(1) << 31);
}

TEST(avro_times_are_within_a_day) {
    CHECK(ONE(KC_AVRO_TIME_MILLIS, 0, 4, "\0") && ONE(KC_AVRO_TIME_MILLIS, 0, 4, "\xfe\xef\xb2\x52"));
    CHECK(!ONE(KC_AVRO_TIME_MILLIS, 0, 4, "\x80\xf0\xb2\x52") && !ONE(KC_AVRO_TIME_MILLIS, 0, 4, "\1"));
    CHECK_EQ(fault.want, 86400000);
    CHECK(ONE(KC_AVRO_TIME_MICROS, 0, 8, "\xfe\xff\xba\xdd\x83\5"));
    CHECK(!ONE(KC_AVRO_TIME_MICROS, 0, 8, "\x80\x80\xbb\xdd\x83\5"));
    CHECK_EQ(fault.got, INT64_C(86400000000));
}

/* An array of null with 2^60 items: no bytes, and no time. */
TEST(avro_items_without_bytes_are_counted) {
    static const kc_avro_node nodes[] = {{KC_AVRO_ARRAY, 1, 1, 0, 4, 1}, {KC_AVRO_NOTHING, 0, 0, 0, 1, 0}};
    const kc_avro_schema schema = {nodes, 2};
    const char bomb[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x20";
    const int64_t size = sizeof bomb;
    int64_t budget = INT64_C(1) << 40;
    CHECK(kc_avro_schema_valid(&schema));
    CHECK_EQ(kc_avro_check(&schema, (const uint8_t *)bomb, &size, 0, 1, &budget, &fault), 0);
    CHECK_EQ(fault.got, INT64_C(1) << 60);
    CHECK_EQ(kc_avro_check(&schema, (const uint8_t *)"\6\0", &(int64_t){2}, 0, 1, &budget, &fault), 1);
}

TEST(avro_rows_are_checked_from_any) {
    const int64_t ends[] = {4, 4, 8};
    int64_t budget = 1000;
    const uint8_t *data = (const uint8_t *)"\0\0\0\0\0\0\0\0";
    CHECK_EQ(kc_avro_check(&SCHEMA, data, ends, 0, 3, &budget, &fault), 1);
    CHECK_EQ(fault.position, 4);
    CHECK_EQ(kc_avro_check(&SCHEMA, data, ends, 2, 3, &budget, &fault), 3);
}

static bool valid(kc_avro_node *nodes, int32_t count) {
    const kc_avro_schema schema = {nodes, count};
    return kc_avro_schema_valid(&schema);
}

TEST(avro_schemas_are_trees) {
    kc_avro_node nodes[NODES];
    CHECK(kc_avro_schema_valid(&SCHEMA));
    CHECK(!valid(nodes, 0));
    for (int32_t i = 0; i < NODES; i++) {
        memcpy(nodes, NODE, sizeof nodes);
        nodes[i].kind = KC_AVRO_KINDS;
        CHECK(!valid(nodes, NODES));
        memcpy(nodes, NODE, sizeof nodes);
        nodes[i].count++;
        CHECK(!valid(nodes, NODES));
        memcpy(nodes, NODE, sizeof nodes);
        nodes[i].width = 0;
        CHECK(!valid(nodes, NODES));
        memcpy(nodes, NODE, sizeof nodes);
        if (nodes[i].count) nodes[i].first = i;
        CHECK_EQ(valid(nodes, NODES), nodes[i].count == 0);
    }
    CHECK(!valid(nodes, NODES - 1));
}

TEST(avro_schemas_have_limited_depth) {
    kc_avro_node nodes[KC_AVRO_MAX_DEPTH + 1];
    for (int32_t i = 0; i <= KC_AVRO_MAX_DEPTH; i++) nodes[i] = (kc_avro_node){KC_AVRO_ARRAY, i + 1, 1, 0, 4, 1};
    nodes[KC_AVRO_MAX_DEPTH] = (kc_avro_node){KC_AVRO_LONG, 0, 0, 0, 8, 1};
    CHECK(!valid(nodes, KC_AVRO_MAX_DEPTH + 1));
    nodes[KC_AVRO_MAX_DEPTH - 1] = nodes[KC_AVRO_MAX_DEPTH];
    CHECK(valid(nodes, KC_AVRO_MAX_DEPTH));
}
