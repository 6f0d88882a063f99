#include "decode/kc_records.h"

#include "base/kc_utf8.h"
#include "base/kc_varint.h"
#include "checksum/kc_crc32c.h"

int kc_records_check_count(int32_t count, uint64_t size, kc_error *error) {
    if (count < 0) return kc_fail(error, KC_CORRUPT, "the record count of a batch is negative", 0, count, 0);
    if ((uint64_t)count * KC_RECORD_MIN_SIZE > size) {
        return kc_fail(error, KC_CORRUPT, "a batch has fewer bytes than its record count needs", 0, (int64_t)size,
                       (int64_t)count * KC_RECORD_MIN_SIZE);
    }
    if (count == 0 && size > 0) {
        return kc_fail(error, KC_CORRUPT, "a batch with a record count of 0 contains records", 0, (int64_t)size, 0);
    }
    return KC_OK;
}

int kc_records_open(kc_records *r, const kc_batch *batch, const uint8_t *records, size_t size, int64_t first_offset,
                    int64_t end_offset, kc_error *error) {
    r->start = r->at = records;
    r->end = records + size;
    r->left = 0;
    r->index = 0;
    r->first_offset = first_offset;
    r->end_offset = end_offset;
    const int32_t count = batch->count;
    if (kc_records_check_count(count, size, error)) return error->code;
    r->left = count;
    return KC_OK;
}

/* The fields of one record. `fault` is NULL if they are valid. */
typedef struct fields {
    const uint8_t *end, *key, *value, *headers;
    int64_t timestamp_delta;
    int32_t offset_delta, key_size, value_size, num_headers;
    const char *fault;
    int64_t got, want;
} fields;

/* Reads a varint of up to three bytes without checking the end; `more` collects whether one was longer. */
KC_INLINE const uint8_t *short_varint(const uint8_t *p, uint32_t *raw, uint32_t *more) {
    uint32_t byte = kc_load_u8(p);
    if (byte < 0x80) {
        *raw = byte;
        return p + 1;
    }
    uint32_t second = kc_load_u8(p + 1);
    *raw = (byte & 0x7f) | second << 7;
    if (second < 0x80) return p + 2;
    uint32_t third = kc_load_u8(p + 2);
    *raw = (*raw & 0x3fff) | third << 14;
    *more |= third & 0x80;
    return p + 3;
}

/* Skips a nullable field of `raw` zigzag-coded bytes at p; returns its size (-1: null). */
KC_INLINE const uint8_t *short_field(const uint8_t *p, uint32_t raw, int32_t *size) {
    if (KC_UNLIKELY(raw & 1)) {
        *size = -1;
        return p;
    }
    *size = (int32_t)(raw >> 1);
    return p + *size;
}

enum { SHORT_HEAD = 16, SHORT_MIDDLE = 8 }; /* more than the size of the short varints before and after the key */

/* Reads a record with short varints and fields that fit. If it returns false, read_fields must read the record. */
KC_INLINE bool read_short_fields(const uint8_t *at, const uint8_t *end, fields *f) {
    if (KC_UNLIKELY(end - at < SHORT_HEAD)) return false;
    uint32_t size, timestamp_delta, offset_delta, key_size, value_size, more = 0;
    const uint8_t *p = short_varint(at, &size, &more);
    if (KC_UNLIKELY((size & 1) || (int64_t)(size >> 1) > end - p)) return false;
    f->end = p + (size >> 1);
    p = short_varint(p + 1, &timestamp_delta, &more);
    p = short_varint(p, &offset_delta, &more);
    p = short_varint(p, &key_size, &more);
    if (KC_UNLIKELY(more || (int64_t)(key_size >> 1) > f->end - p)) return false;
    f->key = p;
    p = short_field(p, key_size, &f->key_size);
    if (KC_UNLIKELY(end - p < SHORT_MIDDLE)) return false;
    p = short_varint(p, &value_size, &more);
    if (KC_UNLIKELY(more || (int64_t)(value_size >> 1) >= f->end - p)) return false;
    f->value = p;
    p = short_field(p, value_size, &f->value_size);
    const uint8_t num_headers = kc_load_u8(p);
    f->headers = p + 1;
    if (KC_UNLIKELY(num_headers & 0x81 || (num_headers == 0 && f->headers != f->end))) return false;
    f->num_headers = num_headers >> 1;
    f->timestamp_delta = kc_unzigzag32(timestamp_delta);
    f->offset_delta = kc_unzigzag32(offset_delta);
    f->fault = NULL;
    return true;
}

static fields unreadable(const char *fault, int64_t got, int64_t want) {
    fields f = {0};
    f.fault = fault;
    f.got = got;
    f.want = want;
    return f;
}

/* Reads a varint of 32 bits; false and a value of 0 if there is none. */
KC_INLINE bool take_varint32(const uint8_t **p, const uint8_t *end, int32_t *value) {
    const uint8_t first = *p < end ? kc_load_u8(*p) : 0xff;
    if (KC_LIKELY(first < 0x80)) {
        *value = kc_unzigzag32(first);
        ++*p;
        return true;
    }
    int n = kc_varint32_decode(*p, end, value);
    if (n <= 0) {
        *value = 0;
        return false;
    }
    *p += n;
    return true;
}

/* Reads any record, or sets the fault. */
static __attribute__((noinline)) fields read_fields(const uint8_t *at, const uint8_t *end) {
    fields f = {0};
    const uint8_t *p = at;
    int32_t size = 0;
    if (!take_varint32(&p, end, &size)) return unreadable("a record's length is not a valid varint", 0, 0);
    if (size < KC_RECORD_MIN_SIZE - 1 || size > end - p) {
        return unreadable("a record's length does not fit its batch", size, end - p);
    }
    f.end = p + size;
    p++; /* attributes: one byte, unused */
    int n = kc_varint64_decode(p, f.end, &f.timestamp_delta);
    if (n <= 0) return unreadable("a timestamp delta is not a valid varint", 0, 0);
    p += n;
    if (!take_varint32(&p, f.end, &f.offset_delta)) return unreadable("an offset delta is not a valid varint", 0, 0);
    if (!take_varint32(&p, f.end, &f.key_size)) return unreadable("a key's length is not a valid varint", 0, 0);
    if (f.key_size > f.end - p) return unreadable("a key runs past its record", f.key_size, f.end - p);
    f.key = p;
    if (f.key_size > 0) p += f.key_size;
    if (!take_varint32(&p, f.end, &f.value_size)) return unreadable("a value's length is not a valid varint", 0, 0);
    if (f.value_size > f.end - p) return unreadable("a value runs past its record", f.value_size, f.end - p);
    f.value = p;
    if (f.value_size > 0) p += f.value_size;
    if (!take_varint32(&p, f.end, &f.num_headers)) return unreadable("a header count is not a valid varint", 0, 0);
    if (f.num_headers < 0) return unreadable("a header count is negative", f.num_headers, 0);
    if (f.num_headers == 0 && p != f.end) return unreadable("unexpected bytes at the end of a record", f.end - p, 0);
    f.headers = p;
    return f;
}

static int append_header_key(kc_column *keys, const uint8_t *key, size_t size, kc_error *error) {
    int code = kc_column_append_bytes(keys, key, size, error);
    if (code || !size) return code;
    /* Check the copy, which other threads cannot change. */
    if (KC_LIKELY(kc_utf8_valid(keys->data.data + keys->data.size - size, size))) return KC_OK;
    code = kc_column_reserve(keys, 0, 3 * size, error);
    if (code) return code;
    uint8_t *start = keys->data.data + keys->data.size - size, *after = start + size;
    const size_t repaired = kc_utf8_repair(start, size, after);
    memmove(start, after, repaired);
    keys->data.size = (size_t)(start - keys->data.data) + repaired;
    ((int32_t *)(void *)keys->values.data)[keys->length] = (int32_t)keys->data.size;
    return KC_OK;
}

static int append_header_value(kc_column *values, const uint8_t *value, int32_t size, kc_error *error) {
    return size < 0 ? kc_column_append_null(values, error) : kc_column_append_bytes(values, value, (size_t)size, error);
}

/* Reads the headers of one record, which must end at `end`; if they are wanted, into the entries of a list. */
KC_INLINE int read_headers(kc_column *entries, const bool wanted, int32_t count, const uint8_t *p, const uint8_t *end,
                           kc_error *error) {
    if (count < 0 || count > (end - p) / 2) {
        return kc_fail(error, KC_CORRUPT, "a record has fewer bytes than its header count needs", 0, count,
                       (end - p) / 2);
    }
    if (wanted && count > INT32_MAX - entries->length) {
        return kc_fail(error, KC_LIMIT, "a chunk has too many headers (decode in smaller chunks)", 0, entries->length,
                       INT32_MAX);
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t size = 0;
        if (!take_varint32(&p, end, &size) || size > end - p) {
            return kc_fail(error, KC_CORRUPT, "a header key runs past its record", 0, size, end - p);
        }
        if (size < 0) return kc_fail(error, KC_CORRUPT, "a header key is null", 0, size, 0);
        if (wanted && append_header_key(&entries->children[0], p, (size_t)size, error)) return error->code;
        p += size;
        if (!take_varint32(&p, end, &size) || size > end - p) {
            return kc_fail(error, KC_CORRUPT, "a header value runs past its record", 0, size, end - p);
        }
        if (wanted && append_header_value(&entries->children[1], p, size, error)) return error->code;
        if (size > 0) p += size;
        if (wanted) entries->length++;
    }
    if (p != end) return kc_fail(error, KC_CORRUPT, "unexpected bytes at the end of a record", 0, end - p, 0);
    return KC_OK;
}

/* Whether `rows` rows and `size` bytes fit what the column has, with what kc_copy writes beyond them. */
KC_INLINE bool has_room(const kc_column *c, size_t rows, size_t size) {
    const size_t ends = ((size_t)c->length + rows + 1) * sizeof(int32_t);
    return ends <= c->values.capacity && c->data.size <= INT32_MAX - KC_COPY_SLACK &&
           size <= (size_t)INT32_MAX - KC_COPY_SLACK - c->data.size &&
           c->data.size + size + KC_COPY_SLACK <= c->data.capacity;
}

/* Where the fields of one column of headers go. */
typedef struct header_fields {
    uint8_t *at;
    int32_t *ends;
    int32_t end;
} header_fields;

KC_INLINE header_fields open_fields(const kc_column *c) {
    return (header_fields){c->data.data + c->data.size, (int32_t *)(void *)c->values.data + c->length + 1,
                           (int32_t)c->data.size};
}

/* Copies a field of up to 63 bytes; NULL where it is null, longer or runs past `end`. */
KC_INLINE const uint8_t *take_field(header_fields *f, int32_t i, const uint8_t *p, const uint8_t *end, bool wide) {
    const uint8_t raw = p < end ? kc_load_u8(p) : 1;
    const size_t size = raw >> 1;
    if (KC_UNLIKELY(raw & 0x81 || size > (size_t)(end - p - 1))) return NULL;
    kc_copy(f->at, p + 1, size, wide);
    f->at += size;
    f->end += (int32_t)size;
    f->ends[i] = f->end;
    return p + 1 + size;
}

static void close_fields(kc_column *c, int32_t count, const header_fields *f) {
    c->length += count;
    c->values.size = ((size_t)c->length + 1) * sizeof(int32_t);
    c->data.size = (size_t)f->end;
}

/* Appends headers with ASCII keys and short fields, none of them null, to entries that have room for them. False, and
 * nothing appended, sends them to append_headers, which tells what is wrong if anything is. */
static __attribute__((noinline)) bool append_short_headers(kc_column *entries, int32_t count, const uint8_t *p,
                                                           const uint8_t *end, const uint8_t *batch_end) {
    kc_column *const keys = &entries->children[0], *const values = &entries->children[1];
    const size_t size = (size_t)(end - p);
    const bool wide = batch_end - end >= KC_COPY_SLACK;
    if (count > INT32_MAX - entries->length || !has_room(keys, (size_t)count, size) ||
        !has_room(values, (size_t)count, size))
        return false;
    header_fields key = open_fields(keys), value = open_fields(values);
    const uint8_t *const first_key = key.at;
    for (int32_t i = 0; i < count; i++) {
        p = take_field(&key, i, p, end, wide);
        if (KC_LIKELY(p != NULL)) p = take_field(&value, i, p, end, wide);
        if (KC_UNLIKELY(!p)) return false;
    }
    if (KC_UNLIKELY(p != end || !kc_utf8_is_ascii(first_key, (size_t)(key.at - first_key)))) return false;
    close_fields(keys, count, &key);
    close_fields(values, count, &value);
    entries->length += count;
    return true;
}

static __attribute__((noinline)) int append_headers(kc_column *headers, int32_t count, const uint8_t *p,
                                                    const uint8_t *end, kc_error *error) {
    return read_headers(headers->children, true, count, p, end, error);
}

/* Headers that are not wanted are validated by the same rules: whether a record is valid does not depend on the
 * columns.
 */
static __attribute__((noinline)) int check_headers(int32_t count, const uint8_t *p, const uint8_t *end,
                                                   kc_error *error) {
    return read_headers(NULL, false, count, p, end, error);
}

/* Removes the headers of a damaged record. */
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

/* The loop. `want` and `filter` are constants in each instance, so that unwanted columns generate no code. */
KC_INLINE int read_rows(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, const uint32_t want,
                        const bool filter, kc_error *error) {
    kc_rows s = kc_record_table_open(t, want);
    const uint8_t *at = r->at, *const end = r->end;
    const bool ahead = !kc_crc32c_streams();
    const bool append_time = batch->attributes & KC_LOG_APPEND_TIME;
    const uint64_t base_offset = (uint64_t)batch->base_offset, base_timestamp = (uint64_t)batch->base_timestamp;
    const int64_t max_timestamp = batch->max_timestamp;
    const int64_t first_row = t->length;
    /* Decompressed records can be larger than positions in views allow: another run reads the rest. */
    const bool scattered = want & KC_WANT_VIEWS && (size_t)(end - s.origin) > t->views.reach;
    int64_t row = 0;
    int32_t done = 0;
    int code = KC_OK;
    for (; done < rows; done++) {
        fields f;
        if (KC_UNLIKELY(!read_short_fields(at, end, &f))) {
            f = read_fields(at, end);
            if (f.fault) {
                code = kc_fail(error, KC_CORRUPT, f.fault, (uint64_t)(at - r->start), f.got, f.want);
                break;
            }
        }
        if (!KC_WANTS(want, KC_COL_HEADERS) && KC_UNLIKELY(f.num_headers != 0)) {
            code = check_headers(f.num_headers, f.headers, f.end, error);
            if (code) {
                error->position = (uint64_t)(at - r->start);
                break;
            }
        }
        if (want & KC_WANT_VIEWS && KC_UNLIKELY(scattered && done && (size_t)(f.end - s.origin) > t->views.reach))
            break;
        if (ahead) kc_fetch_ahead(at, f.end);
        const int64_t offset = (int64_t)(base_offset + (uint64_t)(int64_t)f.offset_delta);
        if (filter && (offset < r->first_offset || !kc_before_end(offset, r->end_offset))) {
            if (KC_WANTS(want, KC_COL_HEADERS) && KC_UNLIKELY(f.num_headers != 0) &&
                check_headers(f.num_headers, f.headers, f.end, error)) {
                code = error->code;
                error->position = (uint64_t)(at - r->start);
                break;
            }
            at = f.end;
            continue;
        }
        if (KC_WANTS(want, KC_COL_HEADERS)) {
            if (KC_UNLIKELY(f.num_headers != 0)) {
                kc_column *headers = &t->columns[KC_COL_HEADERS];
                if (!append_short_headers(headers->children, f.num_headers, f.headers, f.end, end))
                    code = append_headers(headers, f.num_headers, f.headers, f.end, error);
                if (code) {
                    drop_headers(headers, s.header_end);
                    error->position = (uint64_t)(at - r->start);
                    break;
                }
                s.header_end = (int32_t)headers->children->length;
            }
            s.header_ends[row] = s.header_end;
        }
        if (KC_WANTS(want, KC_COL_OFFSET)) s.offset[row] = offset;
        if (KC_WANTS(want, KC_COL_TIMESTAMP)) {
            int64_t timestamp = append_time ? max_timestamp : (int64_t)(base_timestamp + (uint64_t)f.timestamp_delta);
            if (KC_UNLIKELY(timestamp == -1)) {
                timestamp = KC_NOT_A_TIME;
                code = kc_column_set_null(&t->columns[KC_COL_TIMESTAMP], first_row + row, error);
                if (code) break;
            }
            s.timestamp[row] = timestamp;
        }
        if (KC_WANTS(want, KC_COL_TIMESTAMP_TYPE)) s.timestamp_type[row] = append_time;
        const bool wide = end - f.end >= KC_COPY_SLACK;
        code = kc_rows_put(&s, want, t, first_row, row, f.key, f.key_size, f.value, f.value_size, wide, error);
        if (KC_UNLIKELY(code)) break;
        if (KC_WANTS(want, KC_COL_SEQUENCE)) s.sequence[row] = kc_sequence_after(batch->base_sequence, f.offset_delta);
        row++;
        at = f.end;
    }
    kc_record_table_close(t, want, s, row);
    r->at = at;
    r->index += done;
    r->left -= done;
    return code;
}

enum {
    WANT_VALUE = 1u << KC_COL_VALUE,
    WANT_POSITION = 1u << KC_COL_OFFSET | 1u << KC_COL_TIMESTAMP,
    WANT_OWN = KC_WANT_RECORD | 1u << KC_COL_SEQUENCE | KC_WANT_VIEWS, /* columns that differ between records */
};

#define INSTANCE(name, want, filter)                                                                           \
    static __attribute__((noinline)) int name(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, \
                                              kc_error *error) {                                               \
        return read_rows(r, batch, t, rows, want, filter, error);                                              \
    }

INSTANCE(read_record, KC_WANT_RECORD, false)
INSTANCE(read_record_in_range, KC_WANT_RECORD, true)
INSTANCE(read_record_views, KC_WANT_RECORD | KC_WANT_VIEWS, false)
INSTANCE(read_no_headers, KC_WANT_NO_HEADERS, false)
INSTANCE(read_no_headers_in_range, KC_WANT_NO_HEADERS, true)
INSTANCE(read_payload, KC_WANT_PAYLOAD, false)
INSTANCE(read_value, WANT_VALUE, false)
INSTANCE(read_position, WANT_POSITION, false)
INSTANCE(read_value_views, WANT_VALUE | KC_WANT_VIEWS, false)
INSTANCE(read_any_in_range, kc_record_table_wanted(t) & WANT_OWN, true)
INSTANCE(read_any, kc_record_table_wanted(t) & WANT_OWN, false)

typedef int reader(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, kc_error *error);

/* The instance for these columns. Each record is compared with the range, since the offsets of a header may be wrong.
 */
static reader *reader_for(uint32_t want, bool range) {
    static const struct {
        uint32_t want;
        reader *all, *in_range;
    } READERS[] = {
        {KC_WANT_RECORD, read_record, read_record_in_range},
        {KC_WANT_NO_HEADERS, read_no_headers, read_no_headers_in_range},
        {KC_WANT_PAYLOAD, read_payload, read_any_in_range},
        {WANT_VALUE, read_value, read_any_in_range},
        {WANT_POSITION, read_position, read_any_in_range},
        {KC_WANT_RECORD | KC_WANT_VIEWS, read_record_views, read_any_in_range},
        {WANT_VALUE | KC_WANT_VIEWS, read_value_views, read_any_in_range},
    };
    for (size_t i = 0; i < sizeof READERS / sizeof *READERS; i++) {
        if (READERS[i].want == want) return range ? READERS[i].in_range : READERS[i].all;
    }
    return range ? read_any_in_range : read_any;
}

/* Fills the columns that are the same for all records of a batch. */
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
            code = kc_column_append_repeated_bytes(c, name, strlen(name), rows, error);
        } else {
            code = kc_column_append_repeated(c, values[id], rows, error);
        }
        if (code) return code;
    }
    return KC_OK;
}

int kc_records_read(kc_records *r, const kc_batch *batch, kc_table *t, int32_t rows, kc_error *error) {
    const uint32_t want = kc_record_table_wanted(t), core = want & WANT_OWN;
    if (rows > r->left) rows = r->left;
    int code = kc_record_table_reserve(t, core, rows, r->at, r->end, error);
    if (code) return code;
    const int64_t before = t->length;
    const bool range = r->first_offset != INT64_MIN || r->end_offset != INT64_MAX;
    code = reader_for(core, range)(r, batch, t, rows, error);
    kc_error later = {0};
    int appended = want == core ? KC_OK : append_batch_columns(batch, t, t->length - before, &later);
    if (!code && appended) *error = later;
    if (!code) code = appended;
    if (!code && r->left == 0 && r->at != r->end) {
        code = kc_fail(error, KC_CORRUPT, "unexpected bytes after the last record of a batch",
                       (uint64_t)(r->at - r->start), r->end - r->at, 0);
    }
    return code;
}
