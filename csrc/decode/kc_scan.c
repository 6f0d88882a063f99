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

static int append_row(kc_table *t, const kc_batch *b, bool crc_known, bool crc_ok, kc_error *error) {
    const bool horizon = b->attributes & KC_DELETE_HORIZON, old = b->magic < 2, wrapper = kc_batch_is_wrapper(b);
    const int timestamp_type = b->attributes & KC_LOG_APPEND_TIME ? 1 : 0;
    const cell cells[KC_NUM_HEADER_COLUMNS] = {
        [KC_HEADER_POSITION] = some((int64_t)b->position),
        [KC_HEADER_SIZE_IN_BYTES] = some((int64_t)b->size),
        [KC_HEADER_BASE_OFFSET] = unless(wrapper, b->base_offset),
        [KC_HEADER_LAST_OFFSET] = some(b->last_offset),
        [KC_HEADER_MAGIC] = some(b->magic),
        [KC_HEADER_TIMESTAMP_TYPE] = some(b->magic ? timestamp_type : -1),
        [KC_HEADER_BASE_TIMESTAMP] = unless(b->base_timestamp == -1, b->base_timestamp),
        [KC_HEADER_MAX_TIMESTAMP] = unless(b->max_timestamp == -1, b->max_timestamp),
        [KC_HEADER_COUNT] = unless(wrapper, b->count),
        [KC_HEADER_PRODUCER_ID] = unless(old, b->producer_id),
        [KC_HEADER_PRODUCER_EPOCH] = unless(old, b->producer_epoch),
        [KC_HEADER_BASE_SEQUENCE] = unless(old, b->base_sequence),
        [KC_HEADER_PARTITION_LEADER_EPOCH] = unless(old, b->partition_leader_epoch),
        [KC_HEADER_IS_TRANSACTIONAL] = some(b->attributes & KC_TRANSACTIONAL),
        [KC_HEADER_IS_CONTROL] = some(b->attributes & KC_CONTROL),
        [KC_HEADER_DELETE_HORIZON_MS] = unless(!horizon, b->base_timestamp),
        [KC_HEADER_CRC] = some(b->crc),
        [KC_HEADER_CRC_OK] = unless(!crc_known, crc_ok ? 1 : 0),
    };
    for (int id = 0; id < KC_NUM_HEADER_COLUMNS; id++) {
        kc_column *c = &t->columns[id];
        if (!c->wanted) continue;
        const char *name = kc_codec_name(kc_batch_codec(b));
        int code = id == KC_HEADER_CODEC ? kc_column_append_bytes(c, name, strlen(name), error)
                   : cells[id].null      ? kc_column_append_null(c, error)
                                         : kc_column_append_int(c, cells[id].value, error);
        if (code) return code;
    }
    t->length++;
    return KC_OK;
}

kc_walk kc_scan(const uint8_t *data, uint64_t size, uint64_t *position, bool verify_crc, int64_t max_batches,
                kc_table *t, kc_error *error) {
    kc_cpu_clear_upper_halves();
    while (t->length < max_batches) {
        kc_span span;
        kc_walk found = kc_walk_next(data, size, *position, &span, error);
        if (found != KC_WALK_BATCH) return found;
        kc_batch batch;
        kc_batch_read(data, &span, &batch);
        bool crc_ok = verify_crc && kc_batch_compute_crc(data, &batch) == batch.crc;
        if (append_row(t, &batch, verify_crc, crc_ok, error)) {
            error->position = *position;
            return KC_WALK_FAULT;
        }
        *position += span.size;
    }
    return KC_WALK_BATCH;
}
