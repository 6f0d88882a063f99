#include "kc_records.h"

#include "kc_utf8.h"
#include "kc_varint.h"

static const kc_field header_fields[] = {
    {"key", KC_STRING, 0, NULL},
    {"value", KC_BINARY, 0, NULL},
};
static const kc_field header_struct = {"item", KC_STRUCT, 2, header_fields};

const kc_field kc_record_fields[KC_NUM_RECORD_COLUMNS] = {
    [KC_COL_OFFSET] = {"offset", KC_INT64, 0, NULL},
    [KC_COL_TIMESTAMP] = {"timestamp", KC_TIMESTAMP_MS, 0, NULL},
    [KC_COL_TIMESTAMP_TYPE] = {"timestamp_type", KC_INT8, 0, NULL},
    [KC_COL_KEY] = {"key", KC_BINARY, 0, NULL},
    [KC_COL_VALUE] = {"value", KC_BINARY, 0, NULL},
    [KC_COL_HEADERS] = {"headers", KC_LIST, 1, &header_struct},
    [KC_COL_PARTITION_LEADER_EPOCH] = {"partition_leader_epoch", KC_INT32, 0, NULL},
    [KC_COL_PRODUCER_ID] = {"producer_id", KC_INT64, 0, NULL},
    [KC_COL_PRODUCER_EPOCH] = {"producer_epoch", KC_INT16, 0, NULL},
    [KC_COL_SEQUENCE] = {"sequence", KC_INT32, 0, NULL},
    [KC_COL_IS_TRANSACTIONAL] = {"is_transactional", KC_BOOL, 0, NULL},
    [KC_COL_IS_CONTROL] = {"is_control", KC_BOOL, 0, NULL},
    [KC_COL_MAGIC] = {"magic", KC_INT8, 0, NULL},
    [KC_COL_CODEC] = {"codec", KC_STRING, 0, NULL},
    [KC_COL_BATCH_OFFSET] = {"batch_offset", KC_INT64, 0, NULL},
    [KC_COL_BATCH_POSITION] = {"batch_position", KC_INT64, 0, NULL},
    [KC_COL_ROW] = {"row", KC_INT64, 0, NULL},
};

/* Spare bytes behind what is reserved, so that short values are copied with whole-vector loads and stores. */
enum { COPY_SLACK = 32, COPY_WIDE_MAX = 256 };

int kc_records_open(kc_records *r, const kc_batch *batch, const uint8_t *records, size_t size, int64_t first_offset,
                    int64_t end_offset, kc_error *error) {
    r->start = r->at = records;
    r->end = records + size;
    r->left = 0;
    r->index = 0;
    r->first_offset = first_offset;
    r->end_offset = end_offset;
    if (batch->count < 0) {
        return kc_fail(error, KC_CORRUPT, "the record count of a batch is negative", 0, batch->count, 0);
    }
    if ((uint64_t)batch->count * KC_RECORD_MIN_SIZE > size) {
        return kc_fail(error, KC_CORRUPT, "a batch has fewer bytes than its record count needs", 0, (int64_t)size,
                       (int64_t)batch->count * KC_RECORD_MIN_SIZE);
    }
    if (batch->count == 0 && size > 0) {
        return kc_fail(error, KC_CORRUPT, "a batch that counts no records has bytes for some", 0, (int64_t)size, 0);
    }
    r->left = batch->count;
    return KC_OK;
}

/* Where the rows of one run go. Pointers stand at the table's first free row. */
typedef struct sink {
    int64_t *offset, *timestamp;
    int8_t *timestamp_type;
    int32_t *key_ends, *value_ends, *header_ends, *sequence;
    uint8_t *key, *value; /* where the next bytes go */
    int32_t key_end, value_end, header_end;
} sink;

static kc_column *column(kc_table *t, kc_record_column id) { return &t->columns[id]; }

static int reserve(kc_table *t, uint32_t want, int64_t rows, size_t bytes, kc_error *error) {
    for (int id = KC_COL_OFFSET; id <= KC_COL_HEADERS; id++) {
        if (!(want >> id & 1)) continue;
        int code = kc_column_reserve(&t->columns[id], rows, bytes, error);
        if (code) return code;
    }
    return want >> KC_COL_SEQUENCE & 1 ? kc_column_reserve(column(t, KC_COL_SEQUENCE), rows, 0, error) : KC_OK;
}

static sink open_sink(kc_table *t, uint32_t want) {
    sink s = {0};
    size_t row = (size_t)t->length;
    if (want >> KC_COL_OFFSET & 1) s.offset = (int64_t *)(void *)column(t, KC_COL_OFFSET)->values.data + row;
    if (want >> KC_COL_TIMESTAMP & 1) s.timestamp = (int64_t *)(void *)column(t, KC_COL_TIMESTAMP)->values.data + row;
    if (want >> KC_COL_TIMESTAMP_TYPE & 1) {
        s.timestamp_type = (int8_t *)column(t, KC_COL_TIMESTAMP_TYPE)->values.data + row;
    }
    if (want >> KC_COL_KEY & 1) {
        kc_column *c = column(t, KC_COL_KEY);
        s.key_ends = (int32_t *)(void *)c->values.data + row + 1;
        s.key = c->data.data + c->data.size;
        s.key_end = (int32_t)c->data.size;
    }
    if (want >> KC_COL_VALUE & 1) {
        kc_column *c = column(t, KC_COL_VALUE);
        s.value_ends = (int32_t *)(void *)c->values.data + row + 1;
        s.value = c->data.data + c->data.size;
        s.value_end = (int32_t)c->data.size;
    }
    if (want >> KC_COL_HEADERS & 1) {
        kc_column *c = column(t, KC_COL_HEADERS);
        s.header_ends = (int32_t *)(void *)c->values.data + row + 1;
        s.header_end = (int32_t)c->children->length;
    }
    if (want >> KC_COL_SEQUENCE & 1) s.sequence = (int32_t *)(void *)column(t, KC_COL_SEQUENCE)->values.data + row;
    return s;
}

static void close_column(kc_column *c, int64_t rows) {
    c->length += rows;
    size_t n = (size_t)c->length;
    size_t width = kc_type_width(c->field->type);
    c->values.size = width ? n * width : (n + 1) * sizeof(int32_t);
}

/* Takes the sink by value: an address of it in the loop's function would keep it in memory there. */
static void close_sink(kc_table *t, uint32_t want, sink s, int64_t rows) {
    for (int id = KC_COL_OFFSET; id <= KC_COL_HEADERS; id++) {
        if (want >> id & 1) close_column(&t->columns[id], rows);
    }
    if (want >> KC_COL_SEQUENCE & 1) close_column(column(t, KC_COL_SEQUENCE), rows);
    if (want >> KC_COL_KEY & 1) column(t, KC_COL_KEY)->data.size = (size_t)s.key_end;
    if (want >> KC_COL_VALUE & 1) column(t, KC_COL_VALUE)->data.size = (size_t)s.value_end;
    t->length += rows;
}

/* A varint's value and size; size 0 or less where there is none. Small enough to come back in registers, so that
 * the loop's variables need no address. */
typedef struct varint {
    int64_t value;
    int64_t size;
} varint;

static KC_NOINLINE varint long_varint32(const uint8_t *at, const uint8_t *end) {
    int32_t value = 0;
    int n = kc_varint32_decode(at, end, &value);
    return (varint){value, n};
}

static KC_NOINLINE varint long_varint64(const uint8_t *at, const uint8_t *end) {
    int64_t value = 0;
    int n = kc_varint64_decode(at, end, &value);
    return (varint){value, n};
}

/* A varint of one or two bytes where the bytes allow it, else the general way. */
KC_INLINE varint varint_at(const uint8_t *at, const uint8_t *end, varint (*general)(const uint8_t *, const uint8_t *)) {
    if (KC_LIKELY(end - at >= 2)) {
        uint32_t first = at[0];
        if (first < 0x80) return (varint){kc_unzigzag32(first), 1};
        uint32_t second = at[1];
        if (second < 0x80) return (varint){kc_unzigzag32((first & 0x7f) | second << 7), 2};
    }
    return general(at, end);
}

KC_INLINE varint varint32_at(const uint8_t *at, const uint8_t *end) { return varint_at(at, end, long_varint32); }
KC_INLINE varint varint64_at(const uint8_t *at, const uint8_t *end) { return varint_at(at, end, long_varint64); }

/* Copies `n` bytes; both sides may be touched COPY_SLACK bytes beyond their end where `wide` says so. */
KC_INLINE void copy_bytes(uint8_t *to, const uint8_t *from, size_t n, bool wide) {
    if (KC_LIKELY(wide && n <= COPY_WIDE_MAX)) {
        size_t done = 0;
        do {
            memcpy(to + done, from + done, COPY_SLACK);
            done += COPY_SLACK;
        } while (done < n);
    } else if (n) {
        memcpy(to, from, n);
    }
}

static int append_header_key(kc_column *keys, const uint8_t *key, size_t size, kc_error *error) {
    if (KC_LIKELY(kc_utf8_valid(key, size))) return kc_column_append_bytes(keys, key, size, error);
    int code = kc_column_reserve(keys, 1, 3 * size, error);
    if (code) return code;
    size_t repaired = kc_utf8_repair(key, size, keys->data.data + keys->data.size);
    /* The repaired key stands where an append would put it: appending it in place only counts it in. */
    keys->data.size += repaired;
    ((int32_t *)(void *)keys->values.data)[keys->length + 1] = (int32_t)keys->data.size;
    keys->length++;
    keys->values.size = ((size_t)keys->length + 1) * sizeof(int32_t);
    return KC_OK;
}

/* The headers of one record, which must end at `end`, into the list's children. */
static KC_NOINLINE int read_headers(kc_column *headers, int32_t count, const uint8_t *p, const uint8_t *end,
                                    kc_error *error) {
    kc_column *entries = headers->children;
    if (count < 0 || count > (end - p) / 2) {
        return kc_fail(error, KC_CORRUPT, "the header count of a record does not fit its bytes", 0, count,
                       (end - p) / 2);
    }
    if (count > INT32_MAX - entries->length) {
        return kc_fail(error, KC_LIMIT, "a chunk has too many headers (decode in smaller chunks)", 0, entries->length,
                       INT32_MAX);
    }
    for (int32_t i = 0; i < count; i++) {
        varint size = varint32_at(p, end);
        p += size.size > 0 ? size.size : 0;
        if (size.size <= 0 || size.value > end - p) {
            return kc_fail(error, KC_CORRUPT, "a header key runs past its record", 0, size.value, end - p);
        }
        if (size.value < 0) return kc_fail(error, KC_CORRUPT, "a header key is null", 0, size.value, 0);
        int code = append_header_key(&entries->children[0], p, (size_t)size.value, error);
        if (code) return code;
        p += size.value;
        size = varint32_at(p, end);
        p += size.size > 0 ? size.size : 0;
        if (size.size <= 0 || size.value > end - p) {
            return kc_fail(error, KC_CORRUPT, "a header value runs past its record", 0, size.value, end - p);
        }
        if (size.value < 0) {
            code = kc_column_append_null(&entries->children[1], error);
        } else {
            code = kc_column_append_bytes(&entries->children[1], p, (size_t)size.value, error);
            p += size.value;
        }
        if (code) return code;
        entries->length++;
    }
    if (p != end) return kc_fail(error, KC_CORRUPT, "a record has bytes left over", 0, end - p, 0);
    return KC_OK;
}

/* Takes back the headers of a record that turned out faulty. */
static void drop_headers(kc_column *headers, int32_t length) {
    kc_column *entries = headers->children;
    for (int i = 0; i < 2; i++) {
        kc_column *c = &entries->children[i];
        if (c->length <= length) continue;
        for (int64_t row = length; row < c->length; row++) {
            if (!c->null_count || (c->validity.data[row / 8] >> (row % 8) & 1)) continue;
            c->validity.data[row / 8] |= (uint8_t)(1u << (row % 8));
            c->null_count--;
        }
        c->length = length;
        c->values.size = ((size_t)length + 1) * sizeof(int32_t);
        c->data.size = (size_t)((const int32_t *)(const void *)c->values.data)[length];
    }
    entries->length = length;
}

#define WANTS(id) (want >> (id) & 1)

/* Reads a varint at p into `name` and steps over it. */
#define TAKE(name, type, width, limit_at, text)                   \
    const varint name##_varint = varint##width##_at(p, limit_at); \
    if (KC_UNLIKELY(name##_varint.size <= 0)) FAULT(text, 0, 0);  \
    const type name = (type)name##_varint.value;                  \
    p += name##_varint.size

/* Steps over `size` bytes of a field, if it is not null; they must lie inside the record. */
#define PASS(size, text)                                                           \
    if (KC_UNLIKELY((size) > record_end - p)) FAULT(text, (size), record_end - p); \
    p += (size) > 0 ? (size) : 0

#define FAULT(text, value, bound) \
    do {                          \
        what = (text);            \
        got = (value);            \
        limit = (bound);          \
        goto out;                 \
    } while (0)

/* The loop. `want` and `filter` are constants in each of its instances, so that columns not wanted leave no code. */
KC_INLINE int read_rows(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, const uint32_t want,
                        const bool filter, kc_error *error) {
    sink s = open_sink(t, want);
    const uint8_t *at = r->at, *const end = r->end;
    const bool append_time = batch->attributes & KC_LOG_APPEND_TIME;
    const uint64_t base_offset = (uint64_t)batch->base_offset, base_timestamp = (uint64_t)batch->base_timestamp;
    const int64_t max_timestamp = batch->max_timestamp;
    const int64_t first_row = t->length;
    int64_t row = 0, got = 0, limit = 0;
    int32_t done = 0;
    int code = KC_OK;
    const char *what = NULL;
    for (; done < rows; done++) {
        const uint8_t *p = at;
        TAKE(size, int32_t, 32, end, "a record's length cannot be read");
        if (KC_UNLIKELY(size < KC_RECORD_MIN_SIZE - 1 || size > end - p)) {
            FAULT("a record's length does not fit its batch", size, end - p);
        }
        const uint8_t *const record_end = p + size;
        p++; /* attributes: one byte, unused */
        TAKE(timestamp_delta, int64_t, 64, record_end, "a timestamp delta cannot be read");
        TAKE(offset_delta, int32_t, 32, record_end, "an offset delta cannot be read");
        TAKE(key_size, int32_t, 32, record_end, "a key length cannot be read");
        const uint8_t *const key = p;
        PASS(key_size, "a key runs past its record");
        TAKE(value_size, int32_t, 32, record_end, "a value length cannot be read");
        const uint8_t *const value = p;
        PASS(value_size, "a value runs past its record");
        TAKE(num_headers, int32_t, 32, record_end, "a header count cannot be read");
        if (KC_UNLIKELY(num_headers < 0)) FAULT("a header count is negative", num_headers, 0);
        if (KC_UNLIKELY(num_headers == 0 && p != record_end)) FAULT("a record has bytes left over", record_end - p, 0);

        const int64_t offset = (int64_t)(base_offset + (uint64_t)(int64_t)offset_delta);
        if (filter && (offset < r->first_offset || offset >= r->end_offset)) {
            at = record_end;
            continue;
        }
        if (WANTS(KC_COL_HEADERS)) {
            if (KC_UNLIKELY(num_headers != 0)) {
                kc_column *headers = column(t, KC_COL_HEADERS);
                code = read_headers(headers, num_headers, p, record_end, error);
                if (code) {
                    drop_headers(headers, s.header_end);
                    error->position = (uint64_t)(at - r->start);
                    goto out;
                }
                s.header_end = (int32_t)headers->children->length;
            }
            s.header_ends[row] = s.header_end;
        }
        if (WANTS(KC_COL_OFFSET)) s.offset[row] = offset;
        if (WANTS(KC_COL_TIMESTAMP)) {
            int64_t timestamp = append_time ? max_timestamp : (int64_t)(base_timestamp + (uint64_t)timestamp_delta);
            if (KC_UNLIKELY(timestamp == -1)) {
                timestamp = KC_NOT_A_TIME;
                code = kc_column_set_null(column(t, KC_COL_TIMESTAMP), first_row + row, error);
                if (code) goto out;
            }
            s.timestamp[row] = timestamp;
        }
        if (WANTS(KC_COL_TIMESTAMP_TYPE)) s.timestamp_type[row] = append_time;
        const bool wide = end - record_end >= COPY_SLACK;
        if (WANTS(KC_COL_KEY)) {
            if (KC_LIKELY(key_size >= 0)) {
                copy_bytes(s.key, key, (size_t)key_size, wide);
                s.key += key_size;
                s.key_end += key_size;
            } else {
                code = kc_column_set_null(column(t, KC_COL_KEY), first_row + row, error);
                if (code) goto out;
            }
            s.key_ends[row] = s.key_end;
        }
        if (WANTS(KC_COL_VALUE)) {
            if (KC_LIKELY(value_size >= 0)) {
                copy_bytes(s.value, value, (size_t)value_size, wide);
                s.value += value_size;
                s.value_end += value_size;
            } else {
                code = kc_column_set_null(column(t, KC_COL_VALUE), first_row + row, error);
                if (code) goto out;
            }
            s.value_ends[row] = s.value_end;
        }
        if (WANTS(KC_COL_SEQUENCE)) s.sequence[row] = kc_batch_sequence(batch, offset_delta);
        row++;
        at = record_end;
    }
out:
    close_sink(t, want, s, row);
    r->at = at;
    r->index += done;
    r->left -= done;
    return what ? kc_fail(error, KC_CORRUPT, what, (uint64_t)(at - r->start), got, limit) : code;
}
#undef TAKE
#undef PASS
#undef FAULT

enum {
    WANT_PAYLOAD = 1u << KC_COL_KEY | 1u << KC_COL_VALUE,
    WANT_PLAIN = WANT_PAYLOAD | 1u << KC_COL_OFFSET | 1u << KC_COL_TIMESTAMP | 1u << KC_COL_TIMESTAMP_TYPE |
        1u << KC_COL_HEADERS,
    WANT_NO_HEADERS = WANT_PLAIN & ~(1u << KC_COL_HEADERS),
    WANT_VALUE = 1u << KC_COL_VALUE,
    WANT_POSITION = 1u << KC_COL_OFFSET | 1u << KC_COL_TIMESTAMP,
};

#define INSTANCE(name, want)                                                                            \
    static int name(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, kc_error *error) { \
        return read_rows(r, batch, t, rows, want, false, error);                                        \
    }

INSTANCE(read_plain, WANT_PLAIN)
INSTANCE(read_no_headers, WANT_NO_HEADERS)
INSTANCE(read_payload, WANT_PAYLOAD)
INSTANCE(read_value, WANT_VALUE)
INSTANCE(read_position, WANT_POSITION)

static KC_NOINLINE int read_any(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, uint32_t want,
                                kc_error *error) {
    return read_rows(r, batch, t, rows, want, true, error);
}

static uint32_t wanted(const kc_table *t) {
    uint32_t want = 0;
    for (int id = 0; id < KC_NUM_RECORD_COLUMNS; id++) want |= (uint32_t)t->columns[id].wanted << id;
    return want;
}

/* The columns that are the same for all records of a batch. */
static int append_batch_columns(const kc_batch *b, kc_table *t, int64_t rows, kc_error *error) {
    const int64_t values[KC_NUM_RECORD_COLUMNS] = {
        [KC_COL_PARTITION_LEADER_EPOCH] = b->partition_leader_epoch,
        [KC_COL_PRODUCER_ID] = b->producer_id,
        [KC_COL_PRODUCER_EPOCH] = b->producer_epoch,
        [KC_COL_IS_TRANSACTIONAL] = b->attributes & KC_TRANSACTIONAL,
        [KC_COL_IS_CONTROL] = b->attributes & KC_CONTROL,
        [KC_COL_MAGIC] = b->magic,
        [KC_COL_BATCH_OFFSET] = b->base_offset,
        [KC_COL_BATCH_POSITION] = (int64_t)b->position,
    };
    for (int id = KC_COL_PARTITION_LEADER_EPOCH; id <= KC_COL_BATCH_POSITION; id++) {
        kc_column *c = &t->columns[id];
        if (!c->wanted || id == KC_COL_SEQUENCE) continue;
        int code = KC_OK;
        if (id == KC_COL_CODEC) {
            const char *name = kc_codec_name(kc_batch_codec(b));
            for (int64_t i = 0; !code && i < rows; i++) code = kc_column_append_bytes(c, name, strlen(name), error);
        } else {
            code = kc_column_append_repeated(c, values[id], rows, error);
        }
        if (code) return code;
    }
    return KC_OK;
}

int kc_records_read(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, kc_error *error) {
    const uint32_t want = wanted(t), core = want & (WANT_PLAIN | 1u << KC_COL_SEQUENCE);
    if (rows > r->left) rows = r->left;
    int code = reserve(t, core, rows, (size_t)(r->end - r->at) + COPY_SLACK, error);
    if (code) return code;
    const int64_t before = t->length;
    const bool filter = r->first_offset > batch->base_offset || r->end_offset <= batch->last_offset;
    if (filter) {
        code = read_any(r, batch, t, rows, core, error);
    } else if (core == WANT_PLAIN) {
        code = read_plain(r, batch, t, rows, error);
    } else if (core == WANT_NO_HEADERS) {
        code = read_no_headers(r, batch, t, rows, error);
    } else if (core == WANT_PAYLOAD) {
        code = read_payload(r, batch, t, rows, error);
    } else if (core == WANT_VALUE) {
        code = read_value(r, batch, t, rows, error);
    } else if (core == WANT_POSITION) {
        code = read_position(r, batch, t, rows, error);
    } else {
        code = read_any(r, batch, t, rows, core, error);
    }
    kc_error later = {0};
    int appended = want == core ? KC_OK : append_batch_columns(batch, t, t->length - before, &later);
    if (!code && appended) *error = later;
    if (!code) code = appended;
    if (!code && r->left == 0 && r->at != r->end) {
        code = kc_fail(error, KC_CORRUPT, "bytes are left over after the last record of a batch",
                       (uint64_t)(r->at - r->start), r->end - r->at, 0);
    }
    return code;
}
