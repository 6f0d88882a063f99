#include "decode/kc_scan.h"

#include "base/kc_cpu.h"

const kc_field kc_header_fields[KC_NUM_HEADER_COLUMNS] = {
    [KC_HEADER_POSITION] = {"position", KC_INT64, 0, NULL},
    [KC_HEADER_SIZE_IN_BYTES] = {"size_in_bytes", KC_INT64, 0, NULL},
    [KC_HEADER_BASE_OFFSET] = {"base_offset", KC_INT64, 0, NULL},
    [KC_HEADER_LAST_OFFSET] = {"last_offset", KC_INT64, 0, NULL},
    [KC_HEADER_MAGIC] = {"magic", KC_INT8, 0, NULL},
    [KC_HEADER_CODEC] = {"codec", KC_STRING, 0, NULL},
    [KC_HEADER_TIMESTAMP_TYPE] = {"timestamp_type", KC_INT8, 0, NULL},
    [KC_HEADER_BASE_TIMESTAMP] = {"base_timestamp", KC_TIMESTAMP_MS, 0, NULL},
    [KC_HEADER_MAX_TIMESTAMP] = {"max_timestamp", KC_TIMESTAMP_MS, 0, NULL},
    [KC_HEADER_COUNT] = {"count", KC_INT32, 0, NULL},
    [KC_HEADER_PRODUCER_ID] = {"producer_id", KC_INT64, 0, NULL},
    [KC_HEADER_PRODUCER_EPOCH] = {"producer_epoch", KC_INT16, 0, NULL},
    [KC_HEADER_BASE_SEQUENCE] = {"base_sequence", KC_INT32, 0, NULL},
    [KC_HEADER_PARTITION_LEADER_EPOCH] = {"partition_leader_epoch", KC_INT32, 0, NULL},
    [KC_HEADER_IS_TRANSACTIONAL] = {"is_transactional", KC_BOOL, 0, NULL},
    [KC_HEADER_IS_CONTROL] = {"is_control", KC_BOOL, 0, NULL},
    [KC_HEADER_DELETE_HORIZON_MS] = {"delete_horizon_ms", KC_INT64, 0, NULL},
    [KC_HEADER_CRC] = {"crc", KC_UINT32, 0, NULL},
    [KC_HEADER_CRC_OK] = {"crc_ok", KC_BOOL, 0, NULL},
};

typedef struct cell {
    int64_t value;
    bool null;
} cell;

static cell some(int64_t value) { return (cell){value, false}; }
static cell unless(bool null, int64_t value) { return (cell){value, null}; }

/* A column's value in the row of a batch; crc_ok is negative if the checksum was not computed. The codec is a name. */
static cell cell_of(kc_header_column id, const kc_batch *b, int crc_ok) {
    const bool old = b->magic < 2;
    switch (id) {
        case KC_HEADER_POSITION:
            return some((int64_t)b->position);
        case KC_HEADER_SIZE_IN_BYTES:
            return some((int64_t)b->size);
        case KC_HEADER_BASE_OFFSET:
            return unless(kc_batch_is_wrapper(b), b->base_offset);
        case KC_HEADER_LAST_OFFSET:
            return some(b->last_offset);
        case KC_HEADER_MAGIC:
            return some(b->magic);
        case KC_HEADER_TIMESTAMP_TYPE:
            return some(!b->magic ? -1 : b->attributes & KC_LOG_APPEND_TIME ? 1 : 0);
        case KC_HEADER_BASE_TIMESTAMP:
            return unless(b->base_timestamp == -1, b->base_timestamp);
        case KC_HEADER_MAX_TIMESTAMP:
            return unless(b->max_timestamp == -1, b->max_timestamp);
        case KC_HEADER_COUNT:
            return unless(kc_batch_is_wrapper(b), b->count);
        case KC_HEADER_PRODUCER_ID:
            return unless(old, b->producer_id);
        case KC_HEADER_PRODUCER_EPOCH:
            return unless(old, b->producer_epoch);
        case KC_HEADER_BASE_SEQUENCE:
            return unless(old, b->base_sequence);
        case KC_HEADER_PARTITION_LEADER_EPOCH:
            return unless(old, b->partition_leader_epoch);
        case KC_HEADER_IS_TRANSACTIONAL:
            return some(b->attributes & KC_TRANSACTIONAL);
        case KC_HEADER_IS_CONTROL:
            return some(b->attributes & KC_CONTROL);
        case KC_HEADER_DELETE_HORIZON_MS:
            return unless(!(b->attributes & KC_DELETE_HORIZON), b->base_timestamp);
        case KC_HEADER_CRC:
            return some(b->crc);
        case KC_HEADER_CRC_OK:
            return unless(crc_ok < 0, crc_ok);
        default:
            return (cell){0, true};
    }
}

/* The columns that a table has. */
typedef struct wanted_columns {
    int count;
    kc_header_column ids[KC_NUM_HEADER_COLUMNS];
} wanted_columns;

static wanted_columns wanted_of(const kc_table *t) {
    wanted_columns wanted = {.count = 0};
    for (int id = 0; id < KC_NUM_HEADER_COLUMNS; id++) {
        if (t->columns[id].wanted) wanted.ids[wanted.count++] = (kc_header_column)id;
    }
    return wanted;
}

/* Appends a value to a column of int64 with room, which has no nulls; false for others, which it leaves as they are. */
static bool push_int64(kc_column *c, int64_t value) {
    const size_t used = c->values.size;
    if (c->field->type != KC_INT64 || c->validity.data || c->values.capacity - used < sizeof value) return false;
    memcpy(c->values.data + used, &value, sizeof value);
    c->values.size = used + sizeof value;
    c->length++;
    return true;
}

static int append_row(kc_table *t, const wanted_columns *wanted, const kc_batch *b, int crc_ok, kc_error *error) {
    for (int i = 0; i < wanted->count; i++) {
        const kc_header_column id = wanted->ids[i];
        kc_column *c = &t->columns[id];
        int code = KC_OK;
        if (id == KC_HEADER_CODEC) {
            const char *name = kc_codec_name(kc_batch_codec(b));
            code = kc_column_append_bytes(c, name, strlen(name), error);
        } else {
            const cell it = cell_of(id, b, crc_ok);
            if (it.null) {
                code = kc_column_append_null(c, error);
            } else if (KC_UNLIKELY(!push_int64(c, it.value))) {
                code = kc_column_append_int(c, it.value, error);
            }
        }
        if (code) return code;
    }
    t->length++;
    return KC_OK;
}

kc_walk kc_scan(const uint8_t *data, uint64_t size, uint64_t *position, bool verify_crc, int64_t max_batches,
                kc_table *t, kc_error *error) {
    const wanted_columns wanted = wanted_of(t);
    kc_cpu_clear_upper_halves();
    while (t->length < max_batches) {
        kc_span span;
        kc_walk found = kc_walk_next(data, size, *position, &span, error);
        if (found != KC_WALK_BATCH) return found;
        kc_batch batch;
        kc_batch_read(data, &span, &batch);
        const int crc_ok = !verify_crc ? -1 : kc_batch_compute_crc(data, &batch) == batch.crc;
        if (append_row(t, &wanted, &batch, crc_ok, error)) {
            error->position = *position;
            return KC_WALK_FAULT;
        }
        *position += span.size;
    }
    return KC_WALK_BATCH;
}
