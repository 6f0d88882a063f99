#include "decode/kc_record_table.h"

static const kc_field header_fields[] = {
    {"key", KC_STRING, 0, NULL},
    {"value", KC_BINARY, 0, NULL},
};
const kc_field kc_headers_item = {"item", KC_STRUCT, 2, header_fields};

/* The batch columns, and the row of the blob. */
#define BATCH_FIELDS                                                                                             \
    [KC_COL_PARTITION_LEADER_EPOCH] = {"partition_leader_epoch", KC_INT32, 0, NULL},                             \
    [KC_COL_PRODUCER_ID] = {"producer_id", KC_INT64, 0, NULL},                                                   \
    [KC_COL_PRODUCER_EPOCH] = {"producer_epoch", KC_INT16, 0, NULL},                                             \
    [KC_COL_SEQUENCE] = {"sequence", KC_INT32, 0, NULL},                                                         \
    [KC_COL_IS_TRANSACTIONAL] = {"is_transactional", KC_BOOL, 0, NULL},                                          \
    [KC_COL_IS_CONTROL] = {"is_control", KC_BOOL, 0, NULL}, [KC_COL_MAGIC] = {"magic", KC_INT8, 0, NULL},        \
    [KC_COL_CODEC] = {"codec", KC_STRING, 0, NULL}, [KC_COL_BATCH_OFFSET] = {"batch_offset", KC_INT64, 0, NULL}, \
    [KC_COL_BATCH_POSITION] = {"batch_position", KC_INT64, 0, NULL}, [KC_COL_ROW] = {"row", KC_INT64, 0, NULL}

const kc_field kc_record_fields[KC_NUM_RECORD_COLUMNS] = {KC_RECORD_FIELDS(KC_BINARY), BATCH_FIELDS};
const kc_field kc_record_view_fields[KC_NUM_RECORD_COLUMNS] = {KC_RECORD_FIELDS(KC_BINARY_VIEW), BATCH_FIELDS};

uint32_t kc_record_table_wanted(const kc_table *t) {
    const uint32_t want = (uint32_t)t->wanted;
    return t->views.wanted ? want | KC_WANT_VIEWS : want;
}

/* What a row takes of a column's values. Columns with `ends` have a value more than rows: the start of the first. */
typedef struct shape {
    uint8_t width;
    bool ends;
} shape;

static shape shape_of(int id, uint32_t want) {
    switch (id) {
        case KC_COL_OFFSET:
        case KC_COL_TIMESTAMP:
            return (shape){sizeof(int64_t), false};
        case KC_COL_TIMESTAMP_TYPE:
            return (shape){1, false};
        case KC_COL_KEY:
        case KC_COL_VALUE:
            if (want & KC_WANT_VIEWS) return (shape){sizeof(kc_view), false};
            return (shape){sizeof(int32_t), true};
        case KC_COL_HEADERS:
            return (shape){sizeof(int32_t), true};
        default:
            return (shape){sizeof(int32_t), false}; /* the sequence */
    }
}

/* Whether a column without nulls has room already: nearly always in the small batches of one chunk. */
static bool has_room(const kc_column *c, shape s, int64_t rows, size_t bytes) {
    const uint64_t values = ((uint64_t)c->length + (uint64_t)rows + s.ends) * s.width;
    const size_t most = c->data.capacity < INT32_MAX ? c->data.capacity : INT32_MAX;
    return !c->validity.data && values <= c->values.capacity && c->data.size <= most && bytes <= most - c->data.size;
}

static int reserve(kc_column *c, shape s, int64_t rows, size_t bytes, kc_error *error) {
    return KC_LIKELY(has_room(c, s, rows, bytes)) ? KC_OK : kc_column_reserve(c, rows, bytes, error);
}

int kc_record_table_reserve(kc_table *t, uint32_t want, int64_t rows, const uint8_t *from, const uint8_t *to,
                            kc_error *error) {
    const size_t bytes = (size_t)(to - from);
    for (int id = KC_COL_OFFSET; id <= KC_COL_HEADERS; id++) {
        if (!KC_WANTS(want, id)) continue;
        const shape s = shape_of(id, want);
        const bool copied = (id == KC_COL_KEY || id == KC_COL_VALUE) && s.ends;
        int code = reserve(&t->columns[id], s, rows, copied ? bytes + KC_COPY_SLACK : 0, error);
        if (code) return code;
    }
    if (KC_WANTS(want, KC_COL_SEQUENCE)) {
        int code = reserve(&t->columns[KC_COL_SEQUENCE], shape_of(KC_COL_SEQUENCE, want), rows, 0, error);
        if (code) return code;
    }
    return want & KC_WANT_VIEWS ? kc_views_open(&t->views, from, to, t->budget, error) : KC_OK;
}

static void close_column(kc_column *c, shape s, int64_t rows) {
    c->length += rows;
    c->values.size = ((size_t)c->length + s.ends) * s.width;
}

void kc_record_table_close(kc_table *t, uint32_t want, kc_rows s, int64_t rows) {
    for (int id = KC_COL_OFFSET; id <= KC_COL_HEADERS; id++) {
        if (KC_WANTS(want, id)) close_column(&t->columns[id], shape_of(id, want), rows);
    }
    if (KC_WANTS(want, KC_COL_SEQUENCE)) {
        close_column(&t->columns[KC_COL_SEQUENCE], shape_of(KC_COL_SEQUENCE, want), rows);
    }
    if (want & KC_WANT_VIEWS) {
        t->columns[KC_COL_KEY].viewed += s.key_view.bytes;
        t->columns[KC_COL_VALUE].viewed += s.value_view.bytes;
        kc_views_close(&t->views, s.far_end);
    } else {
        if (KC_WANTS(want, KC_COL_KEY)) t->columns[KC_COL_KEY].data.size = (size_t)s.key.end;
        if (KC_WANTS(want, KC_COL_VALUE)) t->columns[KC_COL_VALUE].data.size = (size_t)s.value.end;
    }
    t->length += rows;
}
