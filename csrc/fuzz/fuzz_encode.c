/* Arrow columns to batches and back: the decoded rows equal the encoded ones, or the encoder reported an error.
 *
 * The input describes the rows and their Arrow layout. Every buffer, also the one that batches are written to, has its
 * exact size, so that a sanitizer detects accesses beyond it. */
#include <string.h>

#include "decode/kc_decoder.h"
#include "encode/kc_encode.h"
#include "fuzz.h"
#include "table_check.h"
#include "tests/arrow_build.h"

enum { MOST_ROWS = 300, MOST_ITEMS = 1000 };

typedef struct cell {
    const uint8_t *data;
    int32_t size; /* -1: null */
} cell;

/* The expected rows; the first `lead` are sliced off. */
static struct {
    int64_t count, lead, items;
    cell key[MOST_ROWS], value[MOST_ROWS], item_key[MOST_ITEMS], item_value[MOST_ITEMS];
    int64_t offset[MOST_ROWS], timestamp[MOST_ROWS];
    int32_t item_ends[MOST_ROWS + 1];
    bool has_offset, has_timestamp, has_headers;
} rows;

/* ---- the input ------------------------------------------------------------------------------------------------ */

static cell take_cell(kc_bytes *in, bool null) {
    const size_t size = null ? 0 : kc_take_u8(in), left = kc_bytes_left(in);
    const size_t there = size < left ? size : left;
    return (cell){kc_take(in, there), null ? -1 : (int32_t)there};
}

static void take_items(kc_bytes *in, int count) {
    static const uint8_t NAMES[] = "abcdefghijklmnopqrstuvwxyz";
    for (; count && rows.items < MOST_ITEMS; count--) {
        const uint8_t how = kc_take_u8(in);
        rows.item_key[rows.items] = (cell){NAMES, how % 26};
        rows.item_value[rows.items++] = take_cell(in, how >= 0xe0);
    }
}

static void take_rows(kc_bytes *in) {
    int64_t offset = kc_take_u16(in), timestamp = 0;
    rows.count = rows.items = 0;
    while (rows.count < MOST_ROWS && kc_bytes_left(in)) {
        const int64_t i = rows.count++;
        const uint8_t how = kc_take_u8(in);
        offset = how & 4 ? kc_take_i64(in) : (int64_t)((uint64_t)offset + 1 + (how & 8 ? kc_take_u8(in) : 0));
        timestamp = how & 16 ? kc_take_i64(in) : (int64_t)((uint64_t)timestamp + (how & 32));
        rows.offset[i] = offset;
        rows.timestamp[i] = timestamp;
        rows.key[i] = take_cell(in, how & 1);
        rows.value[i] = take_cell(in, how & 2);
        take_items(in, how >> 6);
        rows.item_ends[i + 1] = (int32_t)rows.items;
    }
}

/* ---- the columns ---------------------------------------------------------------------------------------------- */

/* A column of bytes in memory that free_column frees. */
typedef struct bytes_column {
    foreign f;
    uint8_t *validity, *index, *data;
    int64_t sizes[1];
} bytes_column;

static void *exactly(size_t size) {
    void *p = calloc(size ? size : 1, 1);
    MUST(p != NULL);
    return p;
}

static void put_view(uint8_t *index, int64_t i, const cell *c, size_t position) {
    kc_view view = {.size = c->size < 0 ? 0 : c->size};
    if (view.size > KC_VIEW_INLINED) {
        memcpy(view.at.far.prefix, c->data, sizeof view.at.far.prefix);
        view.at.far.position = (int32_t)position;
    } else if (view.size) {
        memcpy(view.at.inlined, c->data, (size_t)view.size);
    }
    memcpy(index + (size_t)i * sizeof view, &view, sizeof view);
}

static void put_end(uint8_t *index, int64_t i, size_t width, size_t end) {
    const int32_t narrow = (int32_t)end;
    const int64_t wide = (int64_t)end;
    memcpy(index + (size_t)i * width, width == 4 ? (const void *)&narrow : (const void *)&wide, width);
}

static void build_column(bytes_column *c, const char *format, const char *name, const cell *cells, int64_t count) {
    const bool views = format[0] == 'v';
    const size_t width = views ? sizeof(kc_view) : format[0] == 'Z' || format[0] == 'U' ? 8 : 4;
    size_t total = 0, nulls = 0;
    for (int64_t i = 0; i < count; i++) {
        total += cells[i].size > 0 ? (size_t)cells[i].size : 0;
        nulls += cells[i].size < 0;
    }
    c->validity = exactly(((size_t)count + 7) / 8);
    c->index = exactly(((size_t)count + !views) * width);
    c->data = exactly(total);
    c->sizes[0] = (int64_t)total;
    size_t end = 0;
    for (int64_t i = 0; i < count; i++) {
        if (views) put_view(c->index, i, &cells[i], end);
        if (cells[i].size >= 0) c->validity[i / 8] |= (uint8_t)(1u << (i % 8));
        if (cells[i].size > 0) memcpy(c->data + end, cells[i].data, (size_t)cells[i].size);
        end += cells[i].size > 0 ? (size_t)cells[i].size : 0;
        if (!views) put_end(c->index, i + 1, width, end);
    }
    foreign_column(&c->f, format, name, count, views ? 4 : 3, nulls ? c->validity : NULL, c->index, c->data);
    c->f.buffers[3] = c->sizes;
}

static void free_column(bytes_column *c) {
    free(c->validity);
    free(c->index);
    free(c->data);
}

/* ---- there and back ------------------------------------------------------------------------------------------- */

/* Whether the format can represent every row. */
static bool encodable(const kc_batch_options *o) {
    int64_t least = 0;
    for (int64_t i = rows.lead; i < rows.count; i++) {
        if (rows.has_offset) {
            if (rows.offset[i] < least || rows.offset[i] == INT64_MAX) return false;
            least = rows.offset[i] + 1;
        }
        if (o->magic == 2 || o->drop_unsupported) continue;
        if (rows.has_headers && rows.item_ends[i] != rows.item_ends[i + 1]) return false;
        if (o->magic == 0 && rows.has_timestamp && rows.timestamp[i] != -1) return false;
    }
    return true;
}

/* The batches, in memory that grows by exactly the requested size; NULL if the encoder refuses the rows. */
static uint8_t *encode(const kc_input_chunk *chunk, const kc_batch_options *options, size_t *size) {
    static kc_encoder e;
    kc_error error = {0};
    kc_encode_event event;
    uint8_t *memory = exactly(0);
    size_t used = 0, capacity = 0;
    kc_encoder_begin(&e, options);
    for (;;) {
        kc_room room = {memory + used, memory + capacity};
        event = kc_encoder_run(&e, chunk, &room, &error);
        used = (size_t)(room.at - memory);
        MUST(used <= capacity);
        if (event != KC_ENCODE_NO_ROOM) break;
        capacity = used + e.wanted;
        memory = realloc(memory, capacity);
        MUST(memory != NULL);
    }
    MUST((event == KC_ENCODE_ROWS_END) == encodable(options));
    if (event != KC_ENCODE_ROWS_END) {
        MUST(error.code != KC_OK && error.what && error.position < (uint64_t)chunk->rows);
        free(memory);
        return NULL;
    }
    const kc_room room = {memory + used, memory + capacity};
    if (e.open.count) kc_encoder_close_in_place(&e, &room);
    *size = used;
    return memory;
}

static void check_cell(const kc_column *c, int64_t row, const cell *expected) {
    const int32_t *ends = (const int32_t *)(const void *)c->values.data;
    const bool null = c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1);
    const int32_t size = ends[row + 1] - ends[row];
    MUST(null == (expected->size < 0) && size == (null ? 0 : expected->size));
    if (size) MUST(memcmp(c->data.data + ends[row], expected->data, (size_t)size) == 0);
}

static void check_headers(const kc_column *c, int64_t row, int64_t i, bool kept) {
    const int32_t *ends = (const int32_t *)(const void *)c->values.data;
    const int32_t first = rows.item_ends[i], count = kept ? rows.item_ends[i + 1] - first : 0;
    MUST(ends[row + 1] - ends[row] == count);
    for (int32_t k = 0; k < count; k++) {
        check_cell(&c->children->children[0], ends[row] + k, &rows.item_key[first + k]);
        check_cell(&c->children->children[1], ends[row] + k, &rows.item_value[first + k]);
    }
}

static void check_rows(const kc_table *t, const kc_batch_options *o) {
    const int64_t *offsets = (const int64_t *)(const void *)t->columns[KC_COL_OFFSET].values.data;
    const int64_t *timestamps = (const int64_t *)(const void *)t->columns[KC_COL_TIMESTAMP].values.data;
    const kc_column *time = &t->columns[KC_COL_TIMESTAMP];
    MUST(t->length == rows.count - rows.lead);
    check_table(t);
    for (int64_t row = 0; row < t->length; row++) {
        const int64_t i = rows.lead + row;
        const bool null = time->null_count && !(time->validity.data[row / 8] >> (row % 8) & 1);
        MUST(offsets[row] == (rows.has_offset ? rows.offset[i] : o->base_offset + row));
        const int64_t expected = rows.has_timestamp && o->magic ? rows.timestamp[i] : -1;
        MUST((null ? -1 : timestamps[row]) == expected);
        check_cell(&t->columns[KC_COL_KEY], row, &rows.key[i]);
        check_cell(&t->columns[KC_COL_VALUE], row, &rows.value[i]);
        check_headers(&t->columns[KC_COL_HEADERS], row, i, rows.has_headers && o->magic == 2);
    }
}

static void decode_again(const uint8_t *data, size_t size, const kc_batch_options *options) {
    const kc_decoder_options all = {.verify_crc = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};
    kc_decoder d;
    kc_error error = {0};
    kc_table *t = kc_table_new(kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_RECORD);
    MUST(t != NULL);
    kc_decoder_init(&d, data, size, &all);
    MUST(kc_decoder_run(&d, t, INT32_MAX, UINT64_MAX, &error) == KC_EVENT_END && d.position == size);
    check_rows(t, options);
    kc_table_release(t);
}

static void there_and_back(const struct ArrowSchema *schema, const struct ArrowArray *array,
                           const kc_batch_options *options) {
    kc_input_chunk chunk;
    kc_error error = {0};
    const char *name = NULL;
    MUST(kc_input_chunk_import(&chunk, schema, array, &name, &error) == KC_OK);
    MUST(chunk.rows == rows.count - rows.lead);
    size_t size = 0;
    uint8_t *batches = encode(&chunk, options, &size);
    if (!batches) return;
    uint8_t *exact = exactly(size);
    if (size) memcpy(exact, batches, size);
    decode_again(exact, size, options);
    free(exact);
    free(batches);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const FORMATS[] = {"z", "Z", "vz"};
    static const char *const TEXT[] = {"u", "U", "vu"};
    kc_bytes in = kc_bytes_over(data, size);
    const uint8_t magic = kc_take_u8(&in), formats = kc_take_u8(&in), columns = kc_take_u8(&in);
    const kc_batch_options options = {.magic = (int8_t)(magic % 3),
                                      .drop_unsupported = columns & 1,
                                      .producer_id = -1,
                                      .base_sequence = -1,
                                      .leader_epoch = -1,
                                      .producer_epoch = -1,
                                      .base_offset = columns & 2 ? 1000 : 0,
                                      .batch_bytes = 1 + (int64_t)kc_take_u16(&in)};
    take_rows(&in);
    rows.lead = columns & 4 && rows.count ? 1 : 0;
    rows.has_offset = columns & 8;
    rows.has_timestamp = columns & 16;
    rows.has_headers = columns & 32;

    bytes_column key, value, item_key, item_value;
    foreign table, offset, timestamp, headers, item;
    build_column(&key, FORMATS[formats % 3], "key", rows.key, rows.count);
    build_column(&value, FORMATS[formats / 3 % 3], "value", rows.value, rows.count);
    build_column(&item_key, TEXT[formats / 9 % 3], "key", rows.item_key, rows.items);
    build_column(&item_value, FORMATS[formats / 27 % 3], "value", rows.item_value, rows.items);
    foreign_column(&table, "+s", "", rows.count - rows.lead, 1, NULL, NULL, NULL);
    table.array.offset = rows.lead;
    foreign_column(&offset, "l", "offset", rows.count, 2, NULL, rows.offset, NULL);
    foreign_column(&timestamp, "l", "timestamp", rows.count, 2, NULL, rows.timestamp, NULL);
    foreign_column(&headers, "+l", "headers", rows.count, 2, NULL, rows.item_ends, NULL);
    foreign_column(&item, "+s", "item", rows.items, 1, NULL, NULL, NULL);
    add_child(&item, &item_key.f);
    add_child(&item, &item_value.f);
    add_child(&headers, &item);
    add_child(&table, &key.f);
    add_child(&table, &value.f);
    if (rows.has_offset) add_child(&table, &offset);
    if (rows.has_timestamp) add_child(&table, &timestamp);
    if (rows.has_headers) add_child(&table, &headers);
    there_and_back(&table.schema, &table.array, &options);
    free_column(&key);
    free_column(&value);
    free_column(&item_key);
    free_column(&item_value);
    return 0;
}
