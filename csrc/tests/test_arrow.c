/* What leaves through the Arrow C data interface: formats, buffers and ownership are those of its specification. */
#include "arrow/kc_arrow_export.h"
#include "build.h"
#include "check.h"
#include "decode/kc_decoder.h"

static kc_table *three_records(uint32_t want) {
    static const kc_decoder_options options = {
        .verify_crc = true, .include_control = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};
    bytes records = {.size = 0}, data = {.size = 0};
    add_record(&records, 0, 0, "k", "value", "h", "x");
    add_record(&records, 1, 0, NULL, "", NULL, NULL);
    add_record(&records, 2, 0, "", NULL, "n", NULL);
    add_batch(&data, KC_TRANSACTIONAL, 3, &records);
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, want);
    kc_decoder_init(&d, data.data, data.size, &options);
    return kc_decoder_run(&d, t, 100, 10000, &error) == KC_EVENT_END ? t : NULL;
}

static const struct {
    const char *name, *format;
    int64_t n_buffers;
} COLUMNS[] = {
    {"offset", "l", 2},
    {"timestamp", "tsm:UTC", 2},
    {"timestamp_type", "c", 2},
    {"key", "z", 3},
    {"value", "z", 3},
    {"headers", "+l", 2},
    {"partition_leader_epoch", "i", 2},
    {"producer_id", "l", 2},
    {"producer_epoch", "s", 2},
    {"sequence", "i", 2},
    {"is_transactional", "b", 2},
    {"is_control", "b", 2},
    {"magic", "c", 2},
    {"codec", "u", 3},
    {"batch_offset", "l", 2},
    {"batch_position", "l", 2},
};
enum { COUNT = sizeof COLUMNS / sizeof *COLUMNS };

TEST(arrow_schema_names_every_wanted_column) {
    const size_t before = kc_live_bytes();
    kc_table *t = three_records(KC_WANT_DECODED);
    struct ArrowSchema schema;
    kc_error error = {0};
    CHECK(t != NULL);
    CHECK_EQ(kc_arrow_export_schema(t, &schema, &error), KC_OK);
    CHECK(strcmp(schema.format, "+s") == 0 && strcmp(schema.name, "") == 0);
    CHECK_EQ(schema.n_children, COUNT);
    CHECK(schema.metadata == NULL && schema.dictionary == NULL);
    for (int i = 0; i < COUNT; i++) {
        const struct ArrowSchema *child = schema.children[i];
        CHECK(strcmp(child->name, COLUMNS[i].name) == 0 && strcmp(child->format, COLUMNS[i].format) == 0);
        CHECK_EQ(child->flags, ARROW_FLAG_NULLABLE);
        CHECK(child->metadata == NULL && child->dictionary == NULL && child->release != NULL);
        CHECK_EQ(child->n_children, i == 5 ? 1 : 0);
    }
    const struct ArrowSchema *item = schema.children[5]->children[0];
    CHECK(strcmp(item->format, "+s") == 0 && strcmp(item->name, "item") == 0);
    CHECK_EQ(item->n_children, 2);
    CHECK(strcmp(item->children[0]->format, "u") == 0 && strcmp(item->children[0]->name, "key") == 0);
    CHECK(strcmp(item->children[1]->format, "z") == 0 && strcmp(item->children[1]->name, "value") == 0);
    schema.release(&schema);
    CHECK(schema.release == NULL);
    kc_table_release(t);
    CHECK_EQ(kc_live_bytes(), before);
}

static bool text_at(const struct ArrowArray *array, int64_t row, const char *text) {
    const int32_t *ends = array->buffers[1];
    const size_t size = (size_t)(ends[row + 1] - ends[row]);
    return size == strlen(text) && memcmp((const char *)array->buffers[2] + ends[row], text, size) == 0;
}

static int bits_of(const struct ArrowArray *array) { return *(const uint8_t *)array->buffers[0] & 7; }

TEST(arrow_array_shows_the_columns_in_place) {
    const size_t before = kc_live_bytes();
    kc_table *t = three_records(KC_WANT_DECODED);
    struct ArrowArray array;
    kc_error error = {0};
    CHECK_EQ(kc_arrow_export_array(t, &array, &error), KC_OK);
    kc_table_release(t); /* the array keeps it */
    CHECK_EQ(array.length, 3);
    CHECK_EQ(array.null_count, 0);
    CHECK_EQ(array.offset, 0);
    CHECK_EQ(array.n_buffers, 1);
    CHECK(array.buffers[0] == NULL && array.dictionary == NULL);
    CHECK_EQ(array.n_children, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const struct ArrowArray *child = array.children[i];
        CHECK_EQ(child->length, 3);
        CHECK_EQ(child->offset, 0);
        CHECK_EQ(child->n_buffers, COLUMNS[i].n_buffers);
        CHECK_EQ(child->null_count, i == 3 || i == 4 ? 1 : 0);
        CHECK((child->buffers[0] != NULL) == (child->null_count > 0));
        CHECK(child->buffers[1] != NULL && child->dictionary == NULL);
        CHECK_EQ(child->n_children, i == 5 ? 1 : 0);
    }
    CHECK_EQ(((const int64_t *)array.children[0]->buffers[1])[2], 102);
    CHECK(text_at(array.children[3], 0, "k") && text_at(array.children[3], 2, ""));
    CHECK_EQ(bits_of(array.children[3]), 5);
    CHECK(text_at(array.children[4], 0, "value") && text_at(array.children[4], 1, ""));
    CHECK_EQ(bits_of(array.children[4]), 3);
    CHECK(text_at(array.children[13], 2, "none"));
    const int32_t *ends = array.children[5]->buffers[1];
    CHECK(ends[0] == 0 && ends[1] == 1 && ends[2] == 1 && ends[3] == 2);
    const struct ArrowArray *item = array.children[5]->children[0];
    CHECK_EQ(item->length, 2);
    CHECK_EQ(item->n_buffers, 1);
    CHECK(text_at(item->children[0], 1, "n") && text_at(item->children[1], 0, "x"));
    CHECK_EQ(item->children[1]->null_count, 1);
    /* A consumer may take a child for itself. */
    struct ArrowArray moved = *array.children[4];
    array.children[4]->release = NULL;
    array.release(&array);
    CHECK(array.release == NULL);
    CHECK(text_at(&moved, 0, "value"));
    moved.release(&moved);
    CHECK(moved.release == NULL);
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(arrow_array_has_a_buffer_where_there_are_no_bytes) {
    kc_table *t = kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, 1u << KC_COL_VALUE);
    struct ArrowArray array;
    kc_error error = {0};
    CHECK_EQ(kc_arrow_export_array(t, &array, &error), KC_OK);
    CHECK_EQ(array.length, 0);
    CHECK_EQ(array.n_children, 1);
    CHECK(array.children[0]->buffers[2] != NULL);
    CHECK_EQ(*(const int32_t *)array.children[0]->buffers[1], 0);
    array.release(&array);
    kc_table_release(t);
}

TEST(arrow_stream_gives_one_array) {
    const size_t before = kc_live_bytes();
    kc_table *t = three_records(KC_WANT_RECORD);
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array;
    kc_error error = {0};
    CHECK_EQ(kc_arrow_export_stream(t, &stream, &error), KC_OK);
    kc_table_release(t);
    for (int i = 0; i < 2; i++) { /* a schema may be asked for again */
        CHECK_EQ(stream.get_schema(&stream, &schema), 0);
        CHECK_EQ(schema.n_children, 6);
        schema.release(&schema);
    }
    CHECK(stream.get_last_error(&stream) == NULL);
    CHECK_EQ(stream.get_next(&stream, &array), 0);
    CHECK_EQ(array.length, 3);
    CHECK(array.release != NULL);
    array.release(&array);
    for (int i = 0; i < 2; i++) { /* and so may the end */
        memset(&array, 0xff, sizeof array);
        CHECK_EQ(stream.get_next(&stream, &array), 0);
        CHECK(array.release == NULL);
    }
    stream.release(&stream);
    CHECK(stream.release == NULL);
    CHECK_EQ(kc_live_bytes(), before);
}
