/* Where chunks end: at the first row with as many bytes of keys, values and headers as were asked for. */
#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

static const kc_decoder_options OPTIONS = {
    .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};

/* Records of one kind. A header counts with its two offsets in the columns, 8 bytes. */
static const struct {
    const char *key, *value, *header, *content;
    uint64_t bytes, header_bytes;
} KINDS[] = {
    {"k", "value", NULL, NULL, 6, 0},     {NULL, "value", NULL, NULL, 5, 0},
    {"key", NULL, NULL, NULL, 3, 0},      {"k", "v", "h", "content", 2, 8 + 1 + 7},
    {NULL, NULL, "name", NULL, 0, 8 + 4}, {"a key that no view has in place", "and a value", "h", "", 42, 8 + 1},
};
enum { KINDS_END = sizeof KINDS / sizeof *KINDS, ROWS = 30 };

/* Reads everything in chunks of `most` bytes, which must all have the same number of rows, save the last. */
static bool chunks_are(const bytes *data, const kc_field *fields, uint64_t want, uint64_t most, int64_t rows) {
    kc_decoder d;
    kc_error error = {0};
    kc_event event;
    int64_t total = 0;
    bool right = true;
    kc_decoder_init(&d, data->data, data->size, &OPTIONS);
    d.held = kc_backing_of(data->data, data->size, NULL, NULL, NULL, &error);
    do {
        kc_table *t = kc_table_new(fields, KC_NUM_RECORD_COLUMNS, want);
        event = kc_decoder_run(&d, t, ROWS + 1, most, &error);
        const int64_t left = ROWS - total, expected = left < rows ? left : rows;
        right = right && t->length == expected && (event == KC_EVENT_FULL || event == KC_EVENT_END);
        right = right && (event == KC_EVENT_FULL || t->length < rows || left == 0);
        total += t->length;
        kc_table_release(t);
    } while (right && event == KC_EVENT_FULL);
    kc_backing_release(d.held);
    return right && total == ROWS;
}

TEST(chunks_end_at_bytes_of_records) {
    static const struct {
        const kc_field *fields;
        uint64_t want;
        bool payload, headers;
    } TABLES[] = {
        {kc_record_fields, KC_WANT_DECODED, true, true},       {kc_record_view_fields, KC_WANT_DECODED, true, true},
        {kc_record_fields, KC_WANT_NO_HEADERS, true, false},   {kc_record_view_fields, KC_WANT_PAYLOAD, true, false},
        {kc_record_fields, 1u << KC_COL_HEADERS, false, true},
    };
    for (size_t k = 0; k < KINDS_END; k++) {
        bytes records = {.size = 0}, data = {.size = 0};
        for (int i = 0; i < ROWS; i++)
            add_record(&records, i, 0, KINDS[k].key, KINDS[k].value, KINDS[k].header, KINDS[k].content);
        add_batch(&data, 0, ROWS, &records);
        for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++) {
            const uint64_t bytes_of_one =
                (TABLES[i].payload ? KINDS[k].bytes : 0) + (TABLES[i].headers ? KINDS[k].header_bytes : 0);
            for (uint64_t most = 0; bytes_of_one && most < (ROWS - 2) * bytes_of_one; most += 1 + most / 50) {
                const uint64_t rows = most ? (most + bytes_of_one - 1) / bytes_of_one : 1;
                CHECK(chunks_are(&data, TABLES[i].fields, TABLES[i].want, most, (int64_t)rows));
            }
        }
    }
}

TEST(chunks_end_at_bytes_of_messages) {
    for (size_t k = 0; k < 3; k++) {
        const char *value = KINDS[k].value;
        for (int magic = 0; magic < 2; magic++) {
            bytes data = {.size = 0};
            for (int i = 0; i < ROWS; i++)
                add_message(&data, magic, 0, i, 5, KINDS[k].key, value, value ? (int64_t)strlen(value) : -1);
            for (uint64_t most = 0; most < (ROWS - 2) * KINDS[k].bytes; most++) {
                const uint64_t rows = most ? (most + KINDS[k].bytes - 1) / KINDS[k].bytes : 1;
                CHECK(chunks_are(&data, kc_record_fields, KC_WANT_DECODED, most, (int64_t)rows));
                CHECK(chunks_are(&data, kc_record_view_fields, KC_WANT_DECODED, most, (int64_t)rows));
            }
        }
    }
}

/* Rows are estimated from the average of the rest of a batch, and at most 1,024 are read until the next estimate. */
TEST(chunks_of_uneven_records_are_bounded) {
    enum { LARGE = 1500, SMALL = 8500, VALUE = 100 };
    static uint8_t records[LARGE * (VALUE + 16) + SMALL * 16];
    size_t size = 0;
    for (int i = 0; i < LARGE + SMALL; i++) {
        char value[VALUE + 1] = "";
        bytes record = {.size = 0};
        if (i < LARGE) memset(value, 'v', VALUE);
        add_record(&record, 0, 0, NULL, value, NULL, NULL);
        memcpy(records + size, record.data, record.size);
        size += record.size;
    }
    bytes data = {.size = 0}, stored = {.size = 0};
    add(&stored, "packed", 6);
    add_batch(&data, KC_CODEC_GZIP, LARGE + SMALL, &stored);
    static const struct {
        uint64_t most;
        int64_t rows;
    } CASES[] = {{50000, 1024}, {102400, 1024}, {102401, 1025}, {1 << 20, LARGE + SMALL}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kc_decoder d;
        kc_error error = {0};
        kc_table *t = kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_RECORD);
        kc_decoder_init(&d, data.data, data.size, &OPTIONS);
        CHECK_EQ(kc_decoder_run(&d, t, 20000, CASES[i].most, &error), KC_EVENT_COMPRESSED);
        CHECK_EQ(kc_decoder_provide(&d, records, size, &error), KC_OK);
        CHECK_EQ(kc_decoder_run(&d, t, 20000, CASES[i].most, &error), i == 3 ? KC_EVENT_END : KC_EVENT_FULL);
        CHECK_EQ(t->length, CASES[i].rows);
        kc_table_release(t);
    }
}
