/* The table of records: its columns, and fast functions to add rows. */
#ifndef KC_RECORD_TABLE_H
#define KC_RECORD_TABLE_H

#include "arrow/kc_table.h"
#include "base/kc_copy.h"

/* The columns of decoded records, in their public order. The caller fills topic and partition. */
typedef enum kc_record_column {
    KC_COL_TOPIC,
    KC_COL_PARTITION,
    KC_COL_OFFSET,
    KC_COL_TIMESTAMP,
    KC_COL_TIMESTAMP_TYPE,
    KC_COL_KEY,
    KC_COL_VALUE,
    KC_COL_HEADERS,
    KC_COL_PARTITION_LEADER_EPOCH,
    KC_COL_PRODUCER_ID,
    KC_COL_PRODUCER_EPOCH,
    KC_COL_SEQUENCE,
    KC_COL_IS_TRANSACTIONAL,
    KC_COL_IS_CONTROL,
    KC_COL_MAGIC,
    KC_COL_CODEC,
    KC_COL_BATCH_OFFSET,
    KC_COL_BATCH_POSITION,
    KC_COL_ROW,
    KC_NUM_RECORD_COLUMNS,
} kc_record_column;

/* The items of the column `headers`: a struct of key and value. */
extern const kc_field kc_headers_item;

/* The fields of records in every format, up to the headers; keys and values have the type `bytes`. */
#define KC_RECORD_FIELDS(bytes)                                                                                    \
    [KC_COL_TOPIC] = {"topic", KC_STRING, 0, NULL}, [KC_COL_PARTITION] = {"partition", KC_INT32, 0, NULL},         \
    [KC_COL_OFFSET] = {"offset", KC_INT64, 0, NULL}, [KC_COL_TIMESTAMP] = {"timestamp", KC_TIMESTAMP_MS, 0, NULL}, \
    [KC_COL_TIMESTAMP_TYPE] = {"timestamp_type", KC_INT8, 0, NULL}, [KC_COL_KEY] = {"key", bytes, 0, NULL},        \
    [KC_COL_VALUE] = {"value", bytes, 0, NULL}, [KC_COL_HEADERS] = {"headers", KC_LIST, 1, &kc_headers_item}

extern const kc_field kc_record_fields[KC_NUM_RECORD_COLUMNS];
/* The same, with keys and values as views of the data. */
extern const kc_field kc_record_view_fields[KC_NUM_RECORD_COLUMNS];

/* Sets of columns, a bit for each. */
enum {
    KC_WANT_PLACE = 1u << KC_COL_TOPIC | 1u << KC_COL_PARTITION,
    KC_WANT_PAYLOAD = 1u << KC_COL_KEY | 1u << KC_COL_VALUE,
    KC_WANT_RECORD = KC_WANT_PAYLOAD | 1u << KC_COL_OFFSET | 1u << KC_COL_TIMESTAMP | 1u << KC_COL_TIMESTAMP_TYPE |
        1u << KC_COL_HEADERS,
    KC_WANT_NO_HEADERS = KC_WANT_RECORD & ~(1u << KC_COL_HEADERS),
    KC_WANT_DECODED = (1u << KC_COL_ROW) - (1u << KC_COL_OFFSET), /* all columns from the data */
    KC_WANT_VIEWS = 1u << 30,                                     /* not a column: wanted keys and values are views */
};

/* The wanted columns of the table, and KC_WANT_VIEWS if it has views. */
uint32_t kc_record_table_wanted(const kc_table *t);

#define KC_WANTS(want, id) ((want) >> (id) & 1)

/* Whether an offset is before the end of a range; the largest value means no end. */
KC_INLINE bool kc_before_end(int64_t offset, int64_t end_offset) {
    return KC_LIKELY(offset < end_offset) || end_offset == INT64_MAX;
}

/* The output of the keys or values of one run of rows. */
typedef struct kc_rows_bytes {
    uint8_t *at;
    int32_t *ends;
    int32_t end;
} kc_rows_bytes;

/* The output of the views of keys or values, and the total number of bytes in them. */
typedef struct kc_rows_views {
    kc_view *at;
    uint64_t bytes;
} kc_rows_views;

/* The output of the rows of one run. Pointers start at the table's first free row. */
typedef struct kc_rows {
    int64_t *offset, *timestamp;
    int8_t *timestamp_type;
    int32_t *header_ends, *sequence;
    int32_t header_end;
    kc_rows_bytes key, value;
    kc_rows_views key_view, value_view;
    const uint8_t *origin, *far_end; /* start of the buffer of views; end of the last value in it */
    int32_t buffer;
} kc_rows;

/* Room in the columns of the record itself (and in the sequence) for `rows` rows with keys and values in [from, to). */
KC_MUST_CHECK int kc_record_table_reserve(kc_table *t, uint32_t want, int64_t rows, const uint8_t *from,
                                          const uint8_t *to, kc_error *error);

KC_INLINE kc_rows_bytes kc_rows_open_bytes(const kc_column *c, int64_t row) {
    return (kc_rows_bytes){c->data.data + c->data.size, (int32_t *)(void *)c->values.data + row + 1,
                           (int32_t)c->data.size};
}

KC_INLINE kc_rows_views kc_rows_open_views(const kc_column *c, int64_t row) {
    return (kc_rows_views){(kc_view *)(void *)c->values.data + row, 0};
}

/* Opens the wanted columns for reserved rows. */
KC_INLINE kc_rows kc_record_table_open(kc_table *t, uint32_t want) {
    kc_rows s = {0};
    const int64_t row = t->length;
    const kc_column *c = t->columns;
    if (KC_WANTS(want, KC_COL_OFFSET)) s.offset = (int64_t *)(void *)c[KC_COL_OFFSET].values.data + row;
    if (KC_WANTS(want, KC_COL_TIMESTAMP)) s.timestamp = (int64_t *)(void *)c[KC_COL_TIMESTAMP].values.data + row;
    if (KC_WANTS(want, KC_COL_TIMESTAMP_TYPE)) {
        s.timestamp_type = (int8_t *)c[KC_COL_TIMESTAMP_TYPE].values.data + row;
    }
    if (want & KC_WANT_VIEWS) {
        if (KC_WANTS(want, KC_COL_KEY)) s.key_view = kc_rows_open_views(&c[KC_COL_KEY], row);
        if (KC_WANTS(want, KC_COL_VALUE)) s.value_view = kc_rows_open_views(&c[KC_COL_VALUE], row);
        s.origin = t->views.origin;
        s.buffer = t->views.current;
    } else {
        if (KC_WANTS(want, KC_COL_KEY)) s.key = kc_rows_open_bytes(&c[KC_COL_KEY], row);
        if (KC_WANTS(want, KC_COL_VALUE)) s.value = kc_rows_open_bytes(&c[KC_COL_VALUE], row);
    }
    if (KC_WANTS(want, KC_COL_HEADERS)) {
        s.header_ends = (int32_t *)(void *)c[KC_COL_HEADERS].values.data + row + 1;
        s.header_end = (int32_t)c[KC_COL_HEADERS].children->length;
    }
    if (KC_WANTS(want, KC_COL_SEQUENCE)) s.sequence = (int32_t *)(void *)c[KC_COL_SEQUENCE].values.data + row;
    return s;
}

/* Adds the `rows` rows that were written to the columns. By value, because taking the address of the struct would keep
 * it in memory in the loop. */
void kc_record_table_close(kc_table *t, uint32_t want, kc_rows s, int64_t rows);

/* Copies a key or value to row `row` of the run; a negative size is null. */
KC_INLINE int kc_rows_copy(kc_rows_bytes *s, kc_column *c, int64_t first_row, int64_t row, const uint8_t *data,
                           int32_t size, bool wide, kc_error *error) {
    int code = KC_OK;
    if (KC_LIKELY(size >= 0)) {
        if (KC_LIKELY(size <= KC_COPY_WIDE_MAX)) kc_fetch_to_write(s->at, (size_t)size);
        kc_copy(s->at, data, (size_t)size, wide);
        s->at += size;
        s->end += size;
    } else {
        code = kc_column_set_null(c, first_row + row, error);
    }
    s->ends[row] = s->end;
    return code;
}

/* Up to twelve bytes and zeros. */
KC_INLINE void kc_view_inline(kc_view *v, const uint8_t *data, int32_t size, bool wide) {
    static const uint8_t keep[2 * KC_VIEW_INLINED] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint64_t head = 0, mask;
    uint32_t tail = 0, tail_mask;
    if (KC_LIKELY(wide)) {
        memcpy(&head, data, sizeof head);
        memcpy(&tail, data + sizeof head, sizeof tail);
    } else if (size) {
        uint8_t some[KC_VIEW_INLINED] = {0};
        memcpy(some, data, (size_t)size);
        memcpy(&head, some, sizeof head);
        memcpy(&tail, some + sizeof head, sizeof tail);
    }
    memcpy(&mask, keep + KC_VIEW_INLINED - size, sizeof mask);
    memcpy(&tail_mask, keep + KC_VIEW_INLINED - size + sizeof mask, sizeof tail_mask);
    head &= mask;
    tail &= tail_mask;
    memcpy(v->at.inlined, &head, sizeof head);
    memcpy(v->at.inlined + sizeof head, &tail, sizeof tail);
}

/* The same as a view; if `wide`, KC_COPY_SLACK bytes may be read after it. */
KC_INLINE int kc_rows_view(kc_rows *s, kc_rows_views *views, kc_column *c, int64_t first_row, int64_t row,
                           const uint8_t *data, int32_t size, bool wide, kc_error *error) {
    kc_view *const v = &views->at[row];
    if (KC_UNLIKELY(size < 0)) {
        memset(v, 0, sizeof *v);
        return kc_column_set_null(c, first_row + row, error);
    }
    v->size = size;
    views->bytes += (uint32_t)size;
    if (size <= KC_VIEW_INLINED) {
        kc_view_inline(v, data, size, wide);
        return KC_OK;
    }
    memcpy(v->at.far.prefix, data, sizeof v->at.far.prefix);
    v->at.far.buffer = s->buffer;
    v->at.far.position = (int32_t)(data - s->origin);
    s->far_end = data + size;
    return KC_OK;
}

/* Writes the key and the value of row `row` of the run, if they are wanted; a negative size is null. */
KC_INLINE int kc_rows_put(kc_rows *s, const uint32_t want, kc_table *t, int64_t first_row, int64_t row,
                          const uint8_t *key, int32_t key_size, const uint8_t *value, int32_t value_size, bool wide,
                          kc_error *error) {
    const bool views = want & KC_WANT_VIEWS;
    if (KC_WANTS(want, KC_COL_KEY)) {
        kc_column *c = &t->columns[KC_COL_KEY];
        const int code = views ? kc_rows_view(s, &s->key_view, c, first_row, row, key, key_size, wide, error)
                               : kc_rows_copy(&s->key, c, first_row, row, key, key_size, wide, error);
        if (KC_UNLIKELY(code)) return code;
    }
    if (KC_WANTS(want, KC_COL_VALUE)) {
        kc_column *c = &t->columns[KC_COL_VALUE];
        return views ? kc_rows_view(s, &s->value_view, c, first_row, row, value, value_size, wide, error)
                     : kc_rows_copy(&s->value, c, first_row, row, value, value_size, wide, error);
    }
    return KC_OK;
}

#endif
