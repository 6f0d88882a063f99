#include <string.h>

#include "check.h"
#include "values/kc_protobuf.h"

/* A message with one field of each kind, a oneof of two, a map of messages, and one of numbers. */
enum { ROOT, INNER, ENTRY, NUMBERS, EMPTY, MESSAGES };
enum { ONEOF, SINGLE, KEY, VALUE, NUMBER_KEY, NUMBER_VALUE, MARKS };

static const kc_protobuf_field FIELD[] = {
    {1, KC_PROTOBUF_INT32, 1, -1, 0, 4},
    {2, KC_PROTOBUF_STRING, 0, -1, 0, 0},
    {3, KC_PROTOBUF_BOOL, 0, ONEOF, 0, 0},
    {4, KC_PROTOBUF_FIXED32, 1, ONEOF, 0, 0},
    {5, KC_PROTOBUF_MESSAGE, 0, SINGLE, INNER, 0},
    {6, KC_PROTOBUF_MAP, 1, -1, ENTRY, 0},
    {7, KC_PROTOBUF_ENUM, 1, -1, 0, 0},
    {8, KC_PROTOBUF_GROUP, 1, -1, 0, 0},
    {9, KC_PROTOBUF_SECONDS, 0, -1, 0, 0},
    {10, KC_PROTOBUF_NANOS, 0, -1, 0, 0},
    {11, KC_PROTOBUF_MAP, 1, -1, NUMBERS, 0},
    {12, KC_PROTOBUF_UINT32, 0, -1, 0, 0},
    {13, KC_PROTOBUF_FIXED64, 0, -1, 0, 0},
    {14, KC_PROTOBUF_INT64, 0, -1, 0, 0},
    {15, KC_PROTOBUF_BYTES, 0, -1, 0, 0},
    {1, KC_PROTOBUF_INT32, 0, -1, 0, 0},   /* INNER */
    {1, KC_PROTOBUF_STRING, 0, KEY, 0, 0}, /* ENTRY */
    {2, KC_PROTOBUF_MESSAGE, 0, VALUE, EMPTY, 0},
    {1, KC_PROTOBUF_FIXED32, 0, NUMBER_KEY, 0, 0}, /* NUMBERS */
    {2, KC_PROTOBUF_INT32, 0, NUMBER_VALUE, 0, 0},
};
enum { FIELDS = sizeof FIELD / sizeof *FIELD, ROOT_FIELDS = 15 };
static const kc_protobuf_message MESSAGE[MESSAGES] = {[ROOT] = {0, ROOT_FIELDS, 0},
                                                      [INNER] = {ROOT_FIELDS, 1, 1},
                                                      [ENTRY] = {ROOT_FIELDS + 1, 2, 1},
                                                      [NUMBERS] = {ROOT_FIELDS + 3, 2, 1},
                                                      [EMPTY] = {FIELDS, 0, 0}};
static const kc_protobuf_enum ENUM[] = {{0, 3}};
static const int32_t NUMBER[] = {-1, 0, 5};
static const kc_protobuf_schema SCHEMA = {MESSAGE, FIELD, ENUM, NUMBER, MESSAGES, FIELDS, 1, 3, MARKS, 10};

static kc_protobuf_row row;
static int64_t budget;

static int form(const char *bytes, int64_t size) {
    kc_error error;
    budget = 10000;
    const int code = kc_protobuf_sort(&SCHEMA, (const uint8_t *)bytes, &size, 1, &budget, &row, &error);
    return code == KC_OK ? row.form : -1;
}

#define PLAIN(bytes) CHECK_EQ(form(bytes, sizeof bytes - 1), KC_PROTOBUF_PLAIN)
#define ODD(bytes) CHECK_EQ(form(bytes, sizeof bytes - 1), KC_PROTOBUF_ODD)

TEST(protobuf_plain_values) {
    PLAIN("");
    PLAIN("\x08\1\x12\2\xc3\xa9\x18\1\x2a\2\x08\7");
    PLAIN("\x12\0\x08\1\x0a\2\1\2\x08\3"); /* in any order, packed or not */
    PLAIN("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1");
    PLAIN("\x08\x81\0");                             /* not the shortest form */
    PLAIN("\x32\5\x0a\1k\x12\0\x32\5\x12\0\x0a\1l"); /* entries with different keys */
    PLAIN("\x38\5\x3a\2\0\5");
    PLAIN("\x48\x83\xfa\x85\xae\x22\x50\xff\x93\xeb\xdc\x03"); /* 9223372035 s, 999999999 ns */
    PLAIN("\x5a\2\x10\1\x5a\5\x0d\1\0\0\0");
    PLAIN(
        "\x60\xff\xff\xff\xff\x0f\x69"
        "12345678\x70\1\x7a\1\xff\x25"
        "1234");
    PLAIN(
        "\x80\6\1\x81\6"
        "12345678\x82\6\1a\x85\6"
        "1234"); /* unknown fields */
}

TEST(protobuf_odd_values) {
    ODD("\x18\1\x18\1");
    ODD("\x18\1\x25"
        "1234"); /* two members of a oneof */
    ODD("\x2a\0\x2a\0");
    ODD("\x18\2");
    ODD("\x08\x80\x80\x80\x80\x10");
    ODD("\x08\xff\xff\xff\xff\x0f");
    ODD("\x60\x80\x80\x80\x80\x10");
    ODD("\x38\4");
    ODD("\x3a\2\0\4");
    ODD("\x48\x84\xfa\x85\xae\x22");
    ODD("\x50\x80\x94\xeb\xdc\x03");
    ODD("\x12\0\x10\1"); /* another wire type */
    ODD("\x43\x44");     /* a group */
    ODD("\x42\0");
    ODD("\x83\6\x80\6\1\x8b\6\x8c\6\x84\6"); /* an unknown group with another one */
    ODD("\x2a\2\x10\1");                     /* an unknown field of a message that is closed */
    ODD("\x32\3\x0a\1k");                    /* an entry without its value */
    ODD("\x32\0");
    ODD("\x32\6\x12\0\x0a\0\x0a\0");
    ODD("\x32\5\x0a\1k\x12\0\x32\5\x12\0\x0a\1k"); /* entries with the same key */
    ODD("\x32\2\x12\0\x32\4\x0a\0\x12\0");
    ODD("\x5a\2\x10\1\x5a\5\x0d\0\0\0\0");
}

static const struct {
    const char *bytes;
    int64_t size, position;
    int32_t field;
} DAMAGED[] = {
    {"\x80", 1, 0, -1},
    {"\0\1", 2, 0, -1},
    {"\x08", 1, 1, 0},
    {"\x08\1\x88\x80\x80\x80\x10\1", 8, 2, -1},
    {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0", 12, 1, 0},
    {"\x12\2a", 3, 1, 1},
    {"\x12\1\xff", 3, 2, 1},
    {"\x0a\1\x80", 3, 2, 0},
    {"\x22\5"
     "12345",
     7, 6, 3},
    {"\x25"
     "123",
     4, 1, 3},
    {"\x2a\1\x08", 3, 3, ROOT_FIELDS},
    {"\x32\2\x0a\1", 4, 3, 16},
    {"\x08\1\x0e", 3, 2, 0},
    {"\x0c", 1, 0, 0},
    {"\x43\x4c", 2, 1, 7},
    {"\x43", 1, 1, 7},
    {"\x83\6", 2, 2, -1},
    {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, 1, 1},
};

TEST(protobuf_damage_has_place_and_field) {
    for (size_t i = 0; i < sizeof DAMAGED / sizeof *DAMAGED; i++) {
        CHECK_EQ(form(DAMAGED[i].bytes, DAMAGED[i].size), KC_PROTOBUF_DAMAGED);
        CHECK_EQ(row.position, DAMAGED[i].position);
        CHECK_EQ(row.field, DAMAGED[i].field);
    }
}

TEST(protobuf_rows_are_apart) {
    budget = 1000;
    const uint8_t *data = (const uint8_t *)"\x2a\0\x2a\0\x18\2\x32\4\x12\0\x0a\0\x32\4\x12\0\x0a\0\x08";
    const int64_t ends[] = {2, 2, 4, 6, 12, 18, 19};
    kc_protobuf_row rows[7];
    kc_error error;
    CHECK_EQ(kc_protobuf_sort(&SCHEMA, data, ends, 7, &budget, rows, &error), KC_OK);
    const int32_t forms[] = {KC_PROTOBUF_PLAIN, KC_PROTOBUF_PLAIN, KC_PROTOBUF_PLAIN,  KC_PROTOBUF_ODD,
                             KC_PROTOBUF_PLAIN, KC_PROTOBUF_PLAIN, KC_PROTOBUF_DAMAGED};
    for (int i = 0; i < 7; i++) CHECK_EQ(rows[i].form, forms[i]);
    CHECK_EQ(rows[6].position, 1);
}

TEST(protobuf_columns_take_memory) {
    /* A row of 10 bytes in columns, those of the value, and 4 for each number of the list. */
    const struct {
        const char *bytes;
        int64_t size, needed;
    } values[] = {{"", 0, 10}, {"\x12\1a", 3, 13}, {"\x08\1\x08\2", 4, 22}, {"\x0a\3\1\2\3", 5, 27}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const uint8_t *bytes = (const uint8_t *)values[i].bytes;
        kc_error error;
        budget = values[i].needed;
        CHECK_EQ(kc_protobuf_sort(&SCHEMA, bytes, &values[i].size, 1, &budget, &row, &error), KC_OK);
        CHECK_EQ(row.form, KC_PROTOBUF_PLAIN);
        CHECK_EQ(budget, 0);
        budget = values[i].needed - 1;
        CHECK_EQ(kc_protobuf_sort(&SCHEMA, bytes, &values[i].size, 1, &budget, &row, &error), KC_OK);
        CHECK_EQ(row.form, KC_PROTOBUF_LARGE);
        CHECK_EQ(budget, values[i].needed - 1);
    }
}

/* Groups that are nested as deeply as Protobuf's own library takes them, and one level more. */
TEST(protobuf_groups_have_limited_depth) {
    char bytes[4 * (KC_PROTOBUF_MAX_DEPTH + 1)];
    for (int levels = KC_PROTOBUF_MAX_DEPTH; levels <= KC_PROTOBUF_MAX_DEPTH + 1; levels++) {
        for (int i = 0; i < levels; i++) memcpy(bytes + 2 * i, "\x83\6", 2);
        for (int i = levels; i < 2 * levels; i++) memcpy(bytes + 2 * i, "\x84\6", 2);
        CHECK_EQ(form(bytes, 4 * levels), levels > KC_PROTOBUF_MAX_DEPTH ? KC_PROTOBUF_DAMAGED : KC_PROTOBUF_ODD);
    }
}

TEST(protobuf_messages_have_limited_depth) {
    enum { LEVELS = KC_PROTOBUF_MAX_DEPTH + 1, ROOM = 4 * LEVELS };
    kc_protobuf_field fields[LEVELS];
    kc_protobuf_message messages[LEVELS + 1] = {[LEVELS] = {LEVELS, 0, 0}};
    for (int32_t i = 0; i < LEVELS; i++) {
        fields[i] = (kc_protobuf_field){1, KC_PROTOBUF_MESSAGE, 0, -1, i + 1, 0};
        messages[i] = (kc_protobuf_message){i, 1, 0};
    }
    const kc_protobuf_schema schema = {messages, fields, ENUM, NUMBER, LEVELS + 1, LEVELS, 1, 3, 0, 0};
    CHECK(kc_protobuf_schema_valid(&schema));
    budget = INT64_MAX;
    uint8_t bytes[ROOM]; /* filled from its end, a message around those before */
    int64_t size = 0;
    for (int depth = 1; depth <= LEVELS; depth++) {
        kc_error error;
        const int64_t inner = size;
        if (inner > 127) bytes[ROOM - ++size] = (uint8_t)(inner >> 7);
        bytes[ROOM - ++size] = (uint8_t)(inner > 127 ? inner | 128 : inner);
        bytes[ROOM - ++size] = 0x0a;
        CHECK_EQ(kc_protobuf_sort(&schema, bytes + ROOM - size, &size, 1, &budget, &row, &error), KC_OK);
        CHECK_EQ(row.form, depth < KC_PROTOBUF_MAX_DEPTH ? KC_PROTOBUF_PLAIN : KC_PROTOBUF_DAMAGED);
    }
}

static bool valid(const kc_protobuf_message *messages, const kc_protobuf_field *fields, const int32_t *numbers,
                  int32_t marks) {
    const kc_protobuf_schema schema = {messages, fields, ENUM, numbers, MESSAGES, FIELDS, 1, 3, marks, 0};
    return kc_protobuf_schema_valid(&schema);
}

TEST(protobuf_schemas_are_checked) {
    kc_protobuf_field fields[FIELDS];
    kc_protobuf_message messages[MESSAGES];
    CHECK(kc_protobuf_schema_valid(&SCHEMA));
    CHECK(!valid(MESSAGE, FIELD, NUMBER, MARKS - 1));
    CHECK(!valid(MESSAGE, FIELD, (const int32_t[]){0, 0, 5}, MARKS));
    for (int32_t i = 0; i < FIELDS; i++) {
        const int32_t kind = FIELD[i].kind;
        const bool has_child = kind == KC_PROTOBUF_MESSAGE || kind == KC_PROTOBUF_MAP || kind == KC_PROTOBUF_ENUM;
        const kc_protobuf_field wrong[] = {
            {0, kind, 0, FIELD[i].once, FIELD[i].child, 0},
            {FIELD[i].number, KC_PROTOBUF_KINDS, 0, FIELD[i].once, FIELD[i].child, 0},
            {FIELD[i].number, -1, 0, FIELD[i].once, FIELD[i].child, 0},
            {FIELD[i].number, kind, 0, -2, FIELD[i].child, 0},
            {FIELD[i].number, kind, 0, MARKS, FIELD[i].child, 0},
            {FIELD[i].number, kind, 0, FIELD[i].once, has_child ? MESSAGES : 1, 0},
            {FIELD[i].number, kind, 0, FIELD[i].once, -1, 0},
            {FIELD[i].number, kind, 0, FIELD[i].once, FIELD[i].child, -1},
        };
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            memcpy(fields, FIELD, sizeof fields);
            fields[i] = wrong[j];
            CHECK(!valid(MESSAGE, fields, NUMBER, MARKS));
        }
    }
    for (int32_t i = 0; i < MESSAGES; i++) {
        memcpy(messages, MESSAGE, sizeof messages);
        messages[i].count = FIELDS + 1;
        CHECK(!valid(messages, FIELD, NUMBER, MARKS));
        messages[i] = (kc_protobuf_message){-1, MESSAGE[i].count, 0};
        CHECK(!valid(messages, FIELD, NUMBER, MARKS));
    }
    memcpy(fields, FIELD, sizeof fields);
    fields[4].child = ROOT; /* a message in itself */
    CHECK(!valid(MESSAGE, fields, NUMBER, MARKS));
}
