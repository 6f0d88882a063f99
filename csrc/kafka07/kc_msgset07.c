#include "kafka07/kc_msgset07.h"

#include "checksum/kc_crc32.h"

const kc_field kc_msgset07_fields[KC_NUM_MSGSET07_COLUMNS] = {
    KC_RECORD_FIELDS(KC_BINARY),
    [KC_MSGSET07_NEXT_OFFSET] = {"next_offset", KC_INT64, 0, NULL},
    [KC_MSGSET07_MAGIC] = {"magic", KC_INT8, 0, NULL},
    [KC_MSGSET07_CODEC] = {"codec", KC_STRING, 0, NULL},
};

enum {
    LENGTH_SIZE = 4,
    CODEC_MASK = 3,
    ROWS_PER_RUN = 1024,
    BYTES_PER_RUN = 64 * 1024,
};

void kc_msgset07_init(kc_msgset07_decoder *d, const uint8_t *data, uint64_t size, const kc_msgset07_options *options) {
    memset(d, 0, sizeof *d);
    d->data = data;
    d->size = size;
    d->options = *options;
    d->levels[0] = (kc_msgset07_level){data, data, data + size};
}

/* A message header. */
typedef struct message {
    const uint8_t *payload;
    size_t size; /* of the payload */
    size_t whole;
    uint32_t crc;
    int8_t magic;
    uint8_t codec;
} message;

typedef enum finding { FOUND, SET_ENDS, IS_PARTIAL, BAD_LENGTH, NO_HEADER, UNKNOWN_MAGIC } finding;

/* Finds the message at `p`, without reading beyond the end. */
KC_INLINE finding find_message(const uint8_t *p, const uint8_t *end, message *m) {
    size_t left = (size_t)(end - p);
    if (left < LENGTH_SIZE) return SET_ENDS;
    int32_t length = (int32_t)kc_load_u32(p);
    left -= LENGTH_SIZE;
    if (KC_UNLIKELY(length < 0)) return BAD_LENGTH;
    if (KC_UNLIKELY((size_t)length > left)) return IS_PARTIAL;
    m->whole = LENGTH_SIZE + (size_t)length;
    if (KC_UNLIKELY(length < 1)) return NO_HEADER;
    m->magic = (int8_t)kc_load_u8(p + 4);
    if (KC_UNLIKELY((uint8_t)m->magic > 1)) return UNKNOWN_MAGIC;
    size_t header = KC_MSGSET07_HEADER(m->magic);
    if (KC_UNLIKELY(m->whole < header)) return NO_HEADER;
    m->codec = m->magic ? kc_load_u8(p + 5) & CODEC_MASK : 0;
    m->crc = kc_load_u32(p + header - 4);
    m->payload = p + header;
    m->size = m->whole - header;
    return FOUND;
}

static bool all_zeros(const uint8_t *p, const uint8_t *end) {
    while (p < end && *p == 0) p++;
    return p == end;
}

/* The position of a fault at `p`; inside decompressed bytes, that of the outermost message. */
static uint64_t place(const kc_msgset07_decoder *d, const uint8_t *p) {
    return d->depth ? d->position : (uint64_t)(p - d->data);
}

static int64_t offset_at(const kc_msgset07_decoder *d, uint64_t position) {
    return (int64_t)((uint64_t)d->options.initial_offset + position);
}

static bool wants(const kc_table *t, int id) { return t->columns[id].wanted; }

static int reserve(kc_table *t, int64_t rows, size_t bytes, kc_error *error) {
    static const int columns[] = {KC_COL_OFFSET, KC_COL_VALUE, KC_MSGSET07_NEXT_OFFSET, KC_MSGSET07_MAGIC};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        kc_column *c = &t->columns[columns[i]];
        int code = c->wanted ? kc_column_reserve(c, rows, bytes, error) : KC_OK;
        if (code) return code;
    }
    return KC_OK;
}

static void count_rows(kc_column *c, int64_t rows) {
    if (!c->wanted) return;
    size_t width = kc_type_width(c->field->type);
    c->length += rows;
    c->values.size = width ? (size_t)c->length * width : ((size_t)c->length + 1) * sizeof(int32_t);
}

static int append_empty_lists(kc_column *c, int64_t rows, kc_error *error) {
    int code = kc_column_reserve(c, rows, 0, error);
    if (code) return code;
    int32_t *ends = (int32_t *)(void *)c->values.data + c->length + 1;
    for (int64_t i = 0; i < rows; i++) ends[i] = ends[-1];
    count_rows(c, rows);
    return KC_OK;
}

/* Fills the columns that the format does not have. */
static int append_absent(kc_table *t, int64_t rows, kc_error *error) {
    int code = KC_OK;
    if (wants(t, KC_COL_TIMESTAMP)) code = kc_column_append_nulls(&t->columns[KC_COL_TIMESTAMP], rows, error);
    if (!code && wants(t, KC_COL_TIMESTAMP_TYPE)) {
        code = kc_column_append_repeated(&t->columns[KC_COL_TIMESTAMP_TYPE], -1, rows, error);
    }
    if (!code && wants(t, KC_COL_KEY)) code = kc_column_append_nulls(&t->columns[KC_COL_KEY], rows, error);
    if (!code && wants(t, KC_COL_HEADERS)) code = append_empty_lists(&t->columns[KC_COL_HEADERS], rows, error);
    return code;
}

static int append_codec(kc_table *t, int codec, kc_error *error) {
    const char *name = codec <= KC_CODEC_SNAPPY ? kc_codec_name(codec) : "unknown";
    return kc_column_append_bytes(&t->columns[KC_MSGSET07_CODEC], name, strlen(name), error);
}

static int check_crc(const kc_msgset07_decoder *d, const message *m, const uint8_t *p, kc_error *error) {
    if (!d->options.verify_crc) return KC_OK;
    uint32_t crc = kc_crc32(0, m->payload, m->size);
    if (KC_LIKELY(crc == m->crc)) return KC_OK;
    return kc_fail(error, KC_CRC_MISMATCH, "the CRC-32 of a message is wrong", place(d, p), crc, m->crc);
}

/* Reads messages until one must be decompressed, or the set or the run ends. `*found` is the reason, `*m` the message
 * at which it stopped, if that is complete. */
static int read_plain(kc_msgset07_decoder *d, kc_table *t, int64_t max_rows, message *m, finding *found,
                      kc_error *error) {
    kc_msgset07_level *level = &d->levels[d->depth];
    int64_t limit = max_rows < ROWS_PER_RUN ? max_rows : ROWS_PER_RUN;
    int code = reserve(t, limit, BYTES_PER_RUN, error);
    if (code) return code;
    const bool codecs = wants(t, KC_MSGSET07_CODEC), deep = d->options.deep;
    kc_column *value = wants(t, KC_COL_VALUE) ? &t->columns[KC_COL_VALUE] : NULL;
    int64_t *offset = wants(t, KC_COL_OFFSET) ? (int64_t *)(void *)t->columns[KC_COL_OFFSET].values.data : NULL;
    int64_t *next =
        wants(t, KC_MSGSET07_NEXT_OFFSET) ? (int64_t *)(void *)t->columns[KC_MSGSET07_NEXT_OFFSET].values.data : NULL;
    int8_t *magic = wants(t, KC_MSGSET07_MAGIC) ? (int8_t *)t->columns[KC_MSGSET07_MAGIC].values.data : NULL;
    int64_t row = t->length;
    const int64_t end_row = row + limit, start_row = row;
    const int64_t inner_offset = offset_at(d, d->position);
    const uint8_t *p = level->at, *const end = level->end;

    for (; row < end_row; row++) {
        *found = find_message(p, end, m);
        if (KC_UNLIKELY(*found != FOUND)) break;
        code = check_crc(d, m, p, error);
        if (KC_UNLIKELY(code)) break;
        if (m->codec && deep) break;
        if (value) {
            if (KC_UNLIKELY(m->size > value->data.capacity - value->data.size)) {
                code = kc_column_reserve(value, end_row - value->length, m->size + BYTES_PER_RUN, error);
                if (code) break;
            }
            if (KC_UNLIKELY(value->data.size + m->size > INT32_MAX)) {
                code = kc_column_reserve(value, 0, m->size, error);
                break;
            }
            memcpy(value->data.data + value->data.size, m->payload, m->size);
            value->data.size += m->size;
            ((int32_t *)(void *)value->values.data)[row + 1] = (int32_t)value->data.size;
        }
        if (codecs) {
            code = append_codec(t, d->depth ? d->outer_codec : m->codec, error);
            if (code) break;
        }
        const uint64_t position = (uint64_t)(p - d->data);
        if (offset) offset[row] = d->depth ? inner_offset : offset_at(d, position);
        if (next) next[row] = d->depth ? inner_offset : offset_at(d, position + m->whole);
        if (magic) magic[row] = m->magic;
        p += m->whole;
    }
    const int64_t rows = row - start_row;
    level->at = p;
    count_rows(&t->columns[KC_COL_OFFSET], rows);
    count_rows(&t->columns[KC_COL_VALUE], rows);
    count_rows(&t->columns[KC_MSGSET07_NEXT_OFFSET], rows);
    count_rows(&t->columns[KC_MSGSET07_MAGIC], rows);
    t->length += rows;
    kc_error later = {0};
    int absent = append_absent(t, rows, &later);
    if (!code && absent) *error = later;
    if (d->depth) d->inner_rows += rows;
    return code ? code : absent;
}

/* Ends the outermost message: the next offset of its last row is after it. */
static void close_outermost(kc_msgset07_decoder *d, kc_table *t) {
    kc_column *next = &t->columns[KC_MSGSET07_NEXT_OFFSET];
    if (d->inner_rows && next->wanted) {
        ((int64_t *)(void *)next->values.data)[t->length - 1] = offset_at(d, d->position + d->outer_size);
    }
    d->inner_rows = 0;
    d->position += d->outer_size;
}

/* Records the compressed message that the caller must decompress. */
static kc_event announce(kc_msgset07_decoder *d, const message *m, kc_error *error) {
    const uint8_t *p = d->levels[d->depth].at;
    if (m->codec > KC_CODEC_SNAPPY) {
        kc_fail(error, KC_BAD_CODEC, "unknown Kafka 0.7 compression codec", place(d, p), m->codec, 0);
        return KC_EVENT_FAULT;
    }
    if (d->depth == KC_MSGSET07_MAX_DEPTH) {
        kc_fail(error, KC_LIMIT, "nesting depth of compressed messages", place(d, p), d->depth + 1,
                KC_MSGSET07_MAX_DEPTH);
        return KC_EVENT_FAULT;
    }
    if (!d->depth) d->outer_codec = m->codec;
    d->levels[d->depth].at += m->whole;
    d->codec = m->codec;
    d->payload = m->payload;
    d->payload_size = m->size;
    d->announced = true;
    return KC_EVENT_COMPRESSED;
}

/* Handles the reason that stopped a run: the end of the set, or a fault. */
static bool set_is_over(const kc_msgset07_decoder *d, finding found, const message *m, kc_error *error) {
    const kc_msgset07_level *level = &d->levels[d->depth];
    const uint8_t *p = level->at;
    int32_t length = found == SET_ENDS ? 0 : (int32_t)kc_load_u32(p);
    int64_t left = level->end - p - LENGTH_SIZE;
    switch (found) {
        case SET_ENDS:
            return true;
        case IS_PARTIAL:
            if (p != level->start) return true;
            if (d->depth) {
                kc_fail(error, KC_CORRUPT, "a compressed message ends with a partial message", d->position, left,
                        length);
            } else {
                kc_fail(error, KC_TRUNCATED,
                        "the first message is incomplete (fetch more bytes, or the log is damaged)", place(d, p), left,
                        length);
            }
            return false;
        case BAD_LENGTH:
            kc_fail(error, KC_CORRUPT, "a message's length is negative", place(d, p), length, 0);
            return false;
        case UNKNOWN_MAGIC:
            kc_fail(error, KC_BAD_MAGIC, "unknown Kafka 0.7 magic", place(d, p + LENGTH_SIZE), m->magic, 1);
            return false;
        default:
            if (length == 0 && !d->depth && all_zeros(p, level->end)) return true;
            kc_fail(error, KC_CORRUPT, "a message's length is smaller than its header", place(d, p), length,
                    (int64_t)KC_MSGSET07_HEADER(0) - LENGTH_SIZE);
            return false;
    }
}

kc_event kc_msgset07_run(kc_msgset07_decoder *d, kc_table *t, int64_t max_rows, uint64_t max_bytes, kc_error *error) {
    while (!d->announced) {
        bool full = t->length >= max_rows || (t->length && t->columns[KC_COL_VALUE].data.size >= max_bytes);
        if (!d->depth && full) return KC_EVENT_FULL;
        message m = {0};
        finding found = FOUND;
        int64_t rows = d->depth ? ROWS_PER_RUN : max_rows - t->length;
        int code = read_plain(d, t, rows, &m, &found, error);
        if (!d->depth) {
            d->position = (uint64_t)(d->levels[0].at - d->data);
            d->located = m.whole && found != IS_PARTIAL && found != BAD_LENGTH;
            d->outer_size = m.whole;
        }
        if (code) return KC_EVENT_FAULT;
        if (found == FOUND) {
            if (m.codec && d->options.deep) return announce(d, &m, error);
        } else if (!set_is_over(d, found, &m, error)) {
            return KC_EVENT_FAULT;
        } else if (!d->depth) {
            return KC_EVENT_END;
        } else if (--d->depth == 0) {
            close_outermost(d, t);
        }
    }
    return KC_EVENT_COMPRESSED;
}

int kc_msgset07_provide(kc_msgset07_decoder *d, const uint8_t *data, size_t size, kc_error *error) {
    if (d->depth == KC_MSGSET07_MAX_DEPTH) {
        return kc_fail(error, KC_LIMIT, "nesting depth of compressed messages", d->position, d->depth + 1,
                       KC_MSGSET07_MAX_DEPTH);
    }
    d->announced = false;
    d->levels[++d->depth] = (kc_msgset07_level){data, data, data + size};
    return KC_OK;
}

uint64_t kc_msgset07_skip(kc_msgset07_decoder *d) {
    uint64_t from = d->position;
    d->position = d->located ? d->position + d->outer_size : d->size;
    d->levels[0].at = d->data + d->position;
    d->depth = 0;
    d->inner_rows = 0;
    d->announced = d->located = false;
    return d->position - from;
}

int kc_msgset07_outermost(const uint8_t *data, uint64_t size, uint64_t max_payload, kc_msgset07_outline *found,
                          kc_error *error) {
    const uint8_t *p = data, *const end = data + size;
    *found = (kc_msgset07_outline){0};
    for (;;) {
        message m = {0};
        const uint64_t at = (uint64_t)(p - data);
        switch (find_message(p, end, &m)) {
            case FOUND:
                break;
            case SET_ENDS:
                return KC_OK;
            case IS_PARTIAL:
                if (at) return KC_OK;
                return kc_fail(error, KC_TRUNCATED, "the first message is incomplete", at, (int64_t)size - LENGTH_SIZE,
                               (int32_t)kc_load_u32(p));
            case UNKNOWN_MAGIC:
                return kc_fail(error, KC_BAD_MAGIC, "unknown Kafka 0.7 magic", at + LENGTH_SIZE, m.magic, 1);
            default:
                return kc_fail(error, KC_CORRUPT, "a message's length is smaller than its header", at,
                               (int32_t)kc_load_u32(p), (int64_t)KC_MSGSET07_HEADER(0) - LENGTH_SIZE);
        }
        uint32_t crc = kc_crc32(0, m.payload, m.size);
        if (KC_UNLIKELY(crc != m.crc)) {
            return kc_fail(error, KC_CRC_MISMATCH, "the CRC-32 of a message is wrong", at, crc, m.crc);
        }
        if (KC_UNLIKELY(m.size > max_payload)) {
            found->too_large = true;
            return KC_OK;
        }
        p += m.whole;
        found->size = at + m.whole;
        found->messages++;
        found->compressed += m.codec != 0;
    }
}

void kc_msgset07_write_header(uint8_t *out, int magic, int codec, const uint8_t *payload, uint32_t size) {
    size_t header = KC_MSGSET07_HEADER(magic);
    kc_store_u32(out, (uint32_t)(header - LENGTH_SIZE) + size);
    out[4] = (uint8_t)magic;
    if (magic) out[5] = (uint8_t)codec;
    kc_store_u32(out + header - 4, kc_crc32(0, payload, size));
}
