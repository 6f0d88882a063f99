#include "decode/kc_msgset.h"

#include "checksum/kc_crc32.h"

enum { MAX_MAGIC = 1 };

/* Limit on the bytes of messages in one run, unless the first is longer: the room reserved in the columns. */
enum { RUN_BYTES = 1 << 16 };

/* The columns that are filled from each message. */
enum { WANT_OWN = KC_WANT_RECORD | KC_WANT_VIEWS };

typedef struct message {
    int64_t timestamp; /* -1 if there is none */
    const uint8_t *key, *value;
    int32_t key_size, value_size; /* negative is null */
    int8_t magic, attributes;
} message;

KC_INLINE bool is_compressed(const uint8_t *at) { return kc_load_u8(at + KC_MESSAGE_ATTRIBUTES_AT) & KC_CODEC_MASK; }

/* The size of the message at `at`; 0 if there is no complete message of magic 0 or 1. */
KC_INLINE uint64_t whole_message(const uint8_t *at, const uint8_t *end) {
    const uint64_t left = (uint64_t)(end - at);
    if (KC_UNLIKELY(left < KC_MESSAGE_MIN_SIZE)) return 0;
    const int32_t length = (int32_t)kc_load_u32(at + KC_ENTRY_LENGTH_AT);
    if (KC_UNLIKELY(length < KC_MESSAGE_MIN_LENGTH || (uint64_t)length > left - KC_ENTRY_OVERHEAD)) return 0;
    return kc_load_u8(at + KC_ENTRY_MAGIC_AT) <= MAX_MAGIC ? (uint64_t)length + KC_ENTRY_OVERHEAD : 0;
}

/* Reads the message of `size` bytes at `at`. Positions in the error count from there. */
KC_INLINE int read_message(const uint8_t *at, uint64_t size, bool verify_crc, message *m, kc_error *error) {
    const uint8_t *const end = at + size;
    m->magic = (int8_t)kc_load_u8(at + KC_ENTRY_MAGIC_AT);
    m->attributes = (int8_t)kc_load_u8(at + KC_MESSAGE_ATTRIBUTES_AT);
    if (KC_UNLIKELY(m->magic && size < KC_MESSAGE_V1_MIN_SIZE)) {
        return kc_fail(error, KC_CORRUPT, "a message of magic 1 is too short", 8, (int64_t)size,
                       KC_MESSAGE_V1_MIN_SIZE);
    }
    if (verify_crc) {
        const uint32_t stored = kc_load_u32(at + KC_MESSAGE_CRC_AT),
                       crc = kc_crc32(0, at + KC_ENTRY_MAGIC_AT, (size_t)size - KC_ENTRY_MAGIC_AT);
        if (KC_UNLIKELY(crc != stored)) {
            return kc_fail(error, KC_CRC_MISMATCH, "the CRC-32 of a message is wrong", 0, crc, stored);
        }
    }
    m->timestamp = m->magic ? (int64_t)kc_load_u64(at + KC_MESSAGE_TIMESTAMP_AT) : -1;
    const uint8_t *p = at + (m->magic ? KC_MESSAGE_TIMESTAMP_AT + 8 : KC_MESSAGE_TIMESTAMP_AT);
    m->key_size = (int32_t)kc_load_u32(p);
    m->key = p += 4;
    if (KC_UNLIKELY(m->key_size > end - p - 4)) {
        return kc_fail(error, KC_CORRUPT, "a key runs past its message", (uint64_t)(p - at), m->key_size, end - p - 4);
    }
    if (m->key_size > 0) p += m->key_size;
    m->value_size = (int32_t)kc_load_u32(p);
    m->value = p += 4;
    if (KC_UNLIKELY(end - p != (m->value_size > 0 ? m->value_size : 0))) {
        return kc_fail(error, KC_CORRUPT, "a value does not end where its message ends", (uint64_t)(p - at),
                       m->value_size, end - p);
    }
    return KC_OK;
}

static int8_t timestamp_type(int magic, int attributes) {
    if (magic == 0) return -1;
    return attributes & KC_LOG_APPEND_TIME ? 1 : 0;
}

int kc_msgset_find_value(const uint8_t *data, kc_batch *b, kc_error *error) {
    message m;
    int code = read_message(data + b->position, b->size, false, &m, error);
    if (!code && m.value_size <= 0) {
        code = kc_fail(error, KC_CORRUPT, "a compressed message has no value", 0, m.value_size, 0);
    }
    if (code) {
        error->position += b->position;
        return code;
    }
    b->records = m.value;
    b->records_size = (size_t)m.value_size;
    return KC_OK;
}

void kc_msgset_open(kc_msgset *m, const uint8_t *data, uint64_t size, uint64_t from, bool verify_crc,
                    int64_t first_offset, int64_t end_offset) {
    *m = (kc_msgset){
        .start = data,
        .at = data + from,
        .end = data + size,
        .verify_crc = verify_crc,
        .first_offset = first_offset,
        .end_offset = end_offset,
    };
}

/* Why the bytes at `at` are invalid in a compressed message set. */
static int refuse_inner(const uint8_t *at, const uint8_t *end, kc_error *error) {
    const uint8_t magic = end - at >= KC_MESSAGE_MIN_SIZE ? kc_load_u8(at + KC_ENTRY_MAGIC_AT) : 0;
    if (magic > MAX_MAGIC) {
        return kc_fail(error, KC_BAD_MAGIC, "a compressed message set contains a message of magic", 0, (int8_t)magic,
                       0);
    }
    const int64_t length = end - at >= KC_ENTRY_OVERHEAD ? (int32_t)kc_load_u32(at + KC_ENTRY_LENGTH_AT) : 0;
    return kc_fail(error, KC_CORRUPT, "a compressed message set ends with a partial message", 0, length,
                   end - at - KC_ENTRY_OVERHEAD);
}

int kc_msgset_open_inner(kc_msgset *m, kc_batch *wrapper, const uint8_t *messages, size_t size, bool verify_crc,
                         int64_t first_offset, int64_t end_offset, kc_error *error) {
    kc_msgset_open(m, messages, size, 0, verify_crc, first_offset, end_offset);
    m->inner = true;
    m->timestamp_type = timestamp_type(wrapper->magic, wrapper->attributes);
    m->append_timestamp = wrapper->max_timestamp;
    if (size == 0) return kc_fail(error, KC_CORRUPT, "a compressed message set is empty", 0, 0, 0);
    int64_t last = 0;
    for (const uint8_t *at = m->at; at < m->end;) {
        const uint64_t step = whole_message(at, m->end);
        if (!step) return refuse_inner(at, m->end, error);
        if (is_compressed(at)) {
            return kc_fail(error, KC_CORRUPT, "a compressed message contains another compressed message", 0, 0, 0);
        }
        last = (int64_t)kc_load_u64(at);
        at += step;
    }
    if (wrapper->magic && wrapper->last_offset != 0) {
        if (wrapper->last_offset < last) {
            return kc_fail(error, KC_CORRUPT,
                           "the offset of a compressed message is smaller than the last offset inside it", 0,
                           wrapper->last_offset, last);
        }
        m->offset_shift = (uint64_t)wrapper->last_offset - (uint64_t)last;
    }
    wrapper->base_offset = (int64_t)(kc_load_u64(messages) + m->offset_shift);
    return KC_OK;
}

/* One row of the batch columns: of the wrapper for inner messages, else of the message. */
static KC_NOINLINE int append_batch_columns(const kc_msgset *m, const kc_batch *wrapper, const uint8_t *at,
                                            int64_t offset, kc_table *t, kc_error *error) {
    const char *codec = kc_codec_name(m->inner ? kc_batch_codec(wrapper) : KC_CODEC_NONE);
    const int64_t values[KC_NUM_RECORD_COLUMNS] = {
        [KC_COL_MAGIC] = m->inner ? wrapper->magic : (int8_t)(kc_load_u8(at + KC_ENTRY_MAGIC_AT) != 0),
        [KC_COL_BATCH_OFFSET] = m->inner ? wrapper->base_offset : offset,
        [KC_COL_BATCH_POSITION] = m->inner ? (int64_t)wrapper->position : at - m->start,
    };
    for (int id = KC_COL_PARTITION_LEADER_EPOCH; id <= KC_COL_BATCH_POSITION; id++) {
        kc_column *c = &t->columns[id];
        if (!c->wanted) continue;
        const bool lacking = id <= KC_COL_SEQUENCE;
        int code = lacking              ? kc_column_append_null(c, error)
                   : id == KC_COL_CODEC ? kc_column_append_bytes(c, codec, strlen(codec), error)
                                        : kc_column_append_int(c, values[id], error);
        if (code) return code;
    }
    return KC_OK;
}

/* The loop, up to `limit`. `want` is a constant in each instance, so that unwanted columns generate no code. */
KC_INLINE int read_rows(kc_msgset *m, const kc_batch *wrapper, kc_table *t, int64_t rows, const uint8_t *limit,
                        const uint32_t want, kc_error *error) {
    kc_rows s = kc_record_table_open(t, want);
    const uint8_t *at = m->at, *const end = m->end;
    const bool inner = m->inner, verify_crc = m->verify_crc;
    const int64_t first_offset = m->first_offset, end_offset = m->end_offset, first_row = t->length;
    const uint64_t offset_shift = m->offset_shift;
    int64_t row = 0;
    uint64_t size = 0;
    int code = KC_OK;
    while (row < rows && at < limit) {
        size = whole_message(at, end);
        if (KC_UNLIKELY(!size || size > (uint64_t)(limit - at) || is_compressed(at))) break;
        if (!inner) kc_fetch_ahead(at, at + size);
        const int64_t offset = (int64_t)(kc_load_u64(at) + offset_shift);
        if (KC_LIKELY(offset >= first_offset && kc_before_end(offset, end_offset))) {
            message x;
            code = read_message(at, size, verify_crc, &x, error);
            if (KC_UNLIKELY(code)) {
                error->position += (uint64_t)(at - m->start);
                break;
            }
            if (KC_WANTS(want, KC_COL_OFFSET)) s.offset[row] = offset;
            const int8_t type = inner ? m->timestamp_type : timestamp_type(x.magic, x.attributes);
            if (KC_WANTS(want, KC_COL_TIMESTAMP_TYPE)) s.timestamp_type[row] = type;
            if (KC_WANTS(want, KC_COL_TIMESTAMP)) {
                if (inner && type == 1 && x.magic) x.timestamp = m->append_timestamp;
                s.timestamp[row] = x.timestamp;
                if (x.timestamp == -1) {
                    s.timestamp[row] = KC_NOT_A_TIME;
                    code = kc_column_set_null(&t->columns[KC_COL_TIMESTAMP], first_row + row, error);
                    if (KC_UNLIKELY(code)) break;
                }
            }
            if (KC_WANTS(want, KC_COL_HEADERS)) s.header_ends[row] = s.header_end;
            const bool wide = (uint64_t)(end - at) - size >= KC_COPY_SLACK;
            code = kc_rows_put(&s, want, t, first_row, row, x.key, x.key_size, x.value, x.value_size, wide, error);
            if (KC_UNLIKELY(code)) break;
            if (want & ~(uint32_t)WANT_OWN) {
                code = append_batch_columns(m, wrapper, at, offset, t, error);
                if (KC_UNLIKELY(code)) break;
            }
            row++;
        }
        at += size;
        m->index++;
    }
    kc_record_table_close(t, want & WANT_OWN, s, row);
    m->at = at;
    m->faulty_size = size;
    return code;
}

#define INSTANCE(name, want)                                                                                \
    static int name(kc_msgset *m, const kc_batch *wrapper, kc_table *t, int64_t rows, const uint8_t *limit, \
                    kc_error *error) {                                                                      \
        return read_rows(m, wrapper, t, rows, limit, want, error);                                          \
    }

INSTANCE(read_record, KC_WANT_RECORD)
INSTANCE(read_no_headers, KC_WANT_NO_HEADERS)
INSTANCE(read_record_views, KC_WANT_RECORD | KC_WANT_VIEWS)
INSTANCE(read_any, kc_record_table_wanted(t))

/* The damaged message at m->at as a batch. Its bytes may have changed since, but its size is the one that was read. */
static void describe(const kc_msgset *m, kc_batch *batch) {
    const kc_span span = {(uint64_t)(m->at - m->start), m->faulty_size, (int64_t)kc_load_u64(m->at),
                          (int8_t)(kc_load_u8(m->at + KC_ENTRY_MAGIC_AT) != 0)};
    kc_batch_read(m->start, &span, batch);
}

kc_msgset_end kc_msgset_read(kc_msgset *m, kc_batch *batch, kc_table *t, int64_t rows, uint64_t bytes,
                             kc_error *error) {
    if (m->at >= m->end) return KC_MSGSET_DONE;
    const uint64_t first = whole_message(m->at, m->end);
    if (!first || is_compressed(m->at)) {
        if (!m->inner) return KC_MSGSET_OTHER;
        (void)refuse_inner(m->at, m->end, error); /* it was complete before: the bytes have changed */
        return KC_MSGSET_FAULT;
    }
    uint64_t window = bytes < RUN_BYTES ? bytes : RUN_BYTES;
    if (window < first) window = first;
    if (window > (uint64_t)(m->end - m->at)) window = (uint64_t)(m->end - m->at);
    const int64_t most = (int64_t)(window / KC_MESSAGE_MIN_SIZE);
    const uint32_t want = kc_record_table_wanted(t);
    int code = kc_record_table_reserve(t, want & WANT_OWN, rows < most ? rows : most, m->at, m->at + window, error);
    if (code) {
        error->position = (uint64_t)(m->at - m->start);
        m->faulty_size = first;
    } else {
        int (*read)(kc_msgset *, const kc_batch *, kc_table *, int64_t, const uint8_t *, kc_error *) =
            want == KC_WANT_RECORD                     ? read_record
            : want == KC_WANT_NO_HEADERS               ? read_no_headers
            : want == (KC_WANT_RECORD | KC_WANT_VIEWS) ? read_record_views
                                                       : read_any;
        code = read(m, batch, t, rows, m->at + window, error);
    }
    if (!code) return KC_MSGSET_MORE;
    if (!m->inner) describe(m, batch);
    return KC_MSGSET_FAULT;
}
