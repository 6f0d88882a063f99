#include "arrow_build.h"
#include "check.h"
#include "decode/kc_confluent.h"

enum { ROWS = 7, AT = 3 };

/* Values: framed with a short and a long payload, framed and empty, not framed, too short for a frame, null, empty. */
#define LONG_PAYLOAD "a payload that no view holds in place"
static const char *const VALUES[ROWS] = {
    "\0\0\0\1\2short", ("\0\x7f\0\0\1" LONG_PAYLOAD), "\0\0\0\0\3", "\1\0\0\0\1plain", "\0\0\0\1", "", ""};
static const int32_t SIZES[ROWS] = {10, 5 + (int32_t)sizeof LONG_PAYLOAD - 1, 5, 10, 4, 0, 0};
static const int32_t IDS[ROWS] = {0x00000102, 0x7f000001, 3, 0, 0, 0, 0};
static const bool FRAMED[ROWS] = {true, true, true, false, false, false, false};
static const uint8_t SIXTH_NULL[] = {0x5f};

typedef struct split {
    int32_t ids[AT + ROWS];
    uint8_t id_validity[2], payload_validity[2];
    kc_view payloads[AT + ROWS];
} split;

static kc_confluent_parts parts_of(split *s) {
    memset(s, 0, sizeof *s);
    return (kc_confluent_parts){s->ids, s->id_validity, s->payload_validity, s->payloads};
}

static bool bit(const uint8_t *bits, int row) { return bits[row >> 3] >> (row & 7) & 1; }

static bool parts_are_right(const split *s) {
    for (int row = 0; row < AT; row++) {
        if (bit(s->id_validity, row) || bit(s->payload_validity, row)) return false;
    }
    for (int i = 0; i < ROWS; i++) {
        const int32_t size = SIZES[i] - (FRAMED[i] ? 5 : 0);
        if (bit(s->id_validity, AT + i) != FRAMED[i] || bit(s->payload_validity, AT + i) != (i != 5)) return false;
        if (s->ids[AT + i] != IDS[i] || s->payloads[AT + i].size != size) return false;
        const char *payload = VALUES[i] + (FRAMED[i] ? 5 : 0);
        if (size && memcmp(s->payloads[AT + i].at.inlined, payload, size <= 12 ? (size_t)size : 4) != 0) return false;
    }
    return true;
}

TEST(confluent_splits_values_of_every_layout) {
    char data[128];
    int32_t ends[ROWS + 1] = {3}; /* bytes before the first row are not used */
    int64_t large_ends[ROWS + 1] = {3};
    kc_view views[ROWS] = {{0}};
    for (int i = 0; i < ROWS; i++) {
        memcpy(data + ends[i], VALUES[i], (size_t)SIZES[i]);
        large_ends[i + 1] = ends[i + 1] = ends[i] + SIZES[i];
        views[i].size = SIZES[i];
        if (SIZES[i] <= 12) {
            memcpy(views[i].at.inlined, VALUES[i], (size_t)SIZES[i]);
        } else {
            views[i].at.far.position = ends[i];
        }
    }
    const int64_t view_sizes[] = {sizeof data};
    for (int layout = 0; layout < 3; layout++) {
        foreign f;
        kc_arrow_bytes c;
        kc_error error = {0};
        split s;
        const kc_confluent_parts parts = parts_of(&s);
        static const char *const FORMATS[] = {"z", "Z", "vz"};
        const void *index[] = {ends, large_ends, views};
        foreign_column(&f, FORMATS[layout], "value", ROWS, layout == 2 ? 4 : 3, SIXTH_NULL, index[layout], data);
        f.buffers[3] = view_sizes;
        CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, ROWS, &error), KC_OK);
        CHECK_EQ(kc_confluent_split(&c, &parts, AT, 7, &error), KC_OK);
        CHECK(parts_are_right(&s));
        CHECK_EQ(s.payloads[AT + 1].at.far.buffer, 7);
        CHECK_EQ(s.payloads[AT + 1].at.far.position, ends[1] + 5);
        CHECK_EQ(kc_confluent_buffers(&c), 1);
        int64_t size;
        CHECK(kc_confluent_buffer(&c, 0, &size) == data);
        CHECK_EQ(size, layout == 2 ? (int64_t)sizeof data : ends[ROWS]);
    }
}

TEST(confluent_splits_fixed_sizes) {
    static const char data[] = "..................\0\0\0\0\5thirteen byte\1nothing framed at";
    foreign f;
    kc_arrow_bytes c;
    kc_error error = {0};
    split s;
    const kc_confluent_parts parts = parts_of(&s);
    int64_t size;
    foreign_column(&f, "w:18", "value", 2, 2, NULL, data, NULL);
    f.array.offset = 1;
    CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, 2, &error), KC_OK);
    CHECK_EQ(kc_confluent_split(&c, &parts, 0, 2, &error), KC_OK);
    CHECK_EQ(s.ids[0], 5);
    CHECK_EQ(s.payloads[0].size, 13);
    CHECK_EQ(s.payloads[0].at.far.buffer, 2);
    CHECK_EQ(s.payloads[0].at.far.position, 23);
    CHECK(memcmp(s.payloads[0].at.far.prefix, "thir", 4) == 0);
    CHECK_EQ(s.payloads[1].size, 18);
    CHECK_EQ(s.payloads[1].at.far.position, 36);
    CHECK_EQ(s.id_validity[0], 1);
    CHECK_EQ(s.payload_validity[0], 3);
    CHECK_EQ(kc_confluent_buffers(&c), 1);
    CHECK(kc_confluent_buffer(&c, 0, &size) == data);
    CHECK_EQ(size, 54);
}

/* Positions have 31 bits: data of more bytes is described in pieces of 2^30 that reach to its end. */
TEST(confluent_describes_large_data_in_pieces) {
    static const struct {
        int64_t end, pieces;
    } CASES[] = {{0, 0}, {1, 1}, {INT64_C(1) << 30, 2}, {(INT64_C(1) << 31) - 1, 2}, {(INT64_C(5) << 30) + 9, 6}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const uint8_t here = 0;
        const kc_arrow_bytes c = {.layout = KC_LAYOUT_OFFSETS64, .end = CASES[i].end, .data = &here};
        int64_t size;
        CHECK_EQ(kc_confluent_buffers(&c), CASES[i].pieces);
        CHECK(kc_confluent_buffer(&c, 0, &size) == &here);
        CHECK_EQ(size, CASES[i].end);
    }
}

TEST(confluent_splits_more_rows_than_a_block) {
    enum { MANY = 2 * KC_BLOCK_ROWS + 3 };
    static int32_t ends[MANY + 1], ids[MANY];
    static uint8_t id_validity[MANY / 8 + 1], payload_validity[MANY / 8 + 1];
    static kc_view payloads[MANY];
    static char data[6 * MANY];
    for (int i = 0; i < MANY; i++) {
        ends[i + 1] = 6 * (i + 1);
        data[6 * i + 3] = (char)(i >> 8);
        data[6 * i + 4] = (char)i;
        data[6 * i + 5] = (char)(i % 100);
    }
    foreign f;
    kc_arrow_bytes c;
    kc_error error = {0};
    const kc_confluent_parts parts = {ids, id_validity, payload_validity, payloads};
    foreign_column(&f, "z", "value", MANY, 3, NULL, ends, data);
    CHECK_EQ(kc_arrow_bytes_import(&c, &f.schema, &f.array, 0, MANY, &error), KC_OK);
    CHECK_EQ(kc_confluent_split(&c, &parts, 0, 0, &error), KC_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(ids[i], i);
        CHECK_EQ(payloads[i].size, 1);
        CHECK_EQ(payloads[i].at.inlined[0], i % 100);
        CHECK(bit(id_validity, i) && bit(payload_validity, i));
    }
    ends[MANY] = 0; /* a fault in the last block */
    c.end = 0;
    CHECK_EQ(kc_confluent_split(&c, &parts, 0, 0, &error), KC_CANNOT_ENCODE);
}

/* A payload after the first piece; the column's data would begin 2^30 bytes before these. */
TEST(confluent_numbers_pieces) {
    static const char text[] = "\0\0\0\0\7a payload that no view holds in place";
    enum { FAR = 1 << KC_PIECE_SHIFT, SIZE = sizeof text - 1 };
    for (int32_t before = 0; before < 8; before++) { /* where the payload starts, seen from the piece */
        const int64_t start = (int64_t)FAR - 5 + before, ends[] = {start, start + SIZE};
        const uint8_t *data = (const uint8_t *)((uintptr_t)text - (uintptr_t)start);
        const kc_arrow_bytes c = {
            .layout = KC_LAYOUT_OFFSETS64, .length = 1, .end = start + SIZE, .index = ends, .data = data};
        kc_error error = {0};
        split s;
        const kc_confluent_parts parts = parts_of(&s);
        int64_t size;
        CHECK_EQ(kc_confluent_split(&c, &parts, 0, 3, &error), KC_OK);
        CHECK_EQ(s.ids[0], 7);
        CHECK_EQ(s.payloads[0].at.far.buffer, 3 + 1);
        CHECK_EQ(s.payloads[0].at.far.position, before);
        CHECK_EQ(kc_confluent_buffers(&c), 2);
        CHECK((uintptr_t)kc_confluent_buffer(&c, 1, &size) == (uintptr_t)data + FAR);
        CHECK_EQ(size, start + SIZE - FAR);
    }
}
