#include "encode/kc_append.h"

#include "base/kc_bytes.h"
#include "checksum/kc_crc32c.h"
#include "encode/kc_record_write.h"

/* More than a batch can hold: sizes up to it are added without overflow. */
#define TOO_LARGE ((int64_t)INT32_MAX)

static int64_t cell_bytes(const kc_cell *cell) {
    return cell->size > INT32_MAX ? TOO_LARGE + KC_VARINT32_MAX_BYTES : kc_span_bytes((int32_t)cell->size);
}

/* The size of the record's body without its deltas; at least TOO_LARGE if it does not fit a batch. */
static int64_t fixed_bytes(const kc_new_record *r) {
    if (r->num_headers > INT32_MAX) return TOO_LARGE;
    int64_t size = 1 + (int64_t)kc_varint32_size((int32_t)r->num_headers) + cell_bytes(&r->key) + cell_bytes(&r->value);
    for (int64_t i = 0; i < 2 * r->num_headers && size < TOO_LARGE; i++) size += cell_bytes(&r->headers[i]);
    return size;
}

static uint8_t *put_cell(uint8_t *p, const kc_cell *cell) {
    return kc_put_bytes(p, cell->data, (int32_t)cell->size, false);
}

static uint8_t *put_record(uint8_t *p, const kc_new_record *r, const kc_record_size *s) {
    p = kc_put_record_head(p, s);
    p = put_cell(p, &r->key);
    p = put_cell(p, &r->value);
    p = kc_put_uvarint(p, 2 * (uint64_t)r->num_headers);
    for (int64_t i = 0; i < 2 * r->num_headers; i++) p = put_cell(p, &r->headers[i]);
    return p;
}

static void open_batch(kc_appender *a, int64_t timestamp) {
    a->open = (kc_open_batch){
        .base_timestamp = timestamp, .max_timestamp = timestamp, .size = KC_BATCH_HEADER_SIZE, .base_sequence = -1};
    a->batch.size = KC_BATCH_HEADER_SIZE;
}

int kc_appender_add(kc_appender *a, const kc_new_record *r, int64_t limit, int64_t most, int64_t *added,
                    kc_error *error) {
    if (!a->open.count) {
        a->batch.size = 0;
        if (kc_buffer_reserve(&a->batch, KC_BATCH_HEADER_SIZE, error)) return error->code;
        open_batch(a, r->timestamp);
    }
    kc_open_batch *open = &a->open;
    const kc_record_size s = kc_record_measure_at(open, open->count, r->timestamp, fixed_bytes(r));
    if (most > INT32_MAX - KC_BATCH_HEADER_SIZE) most = INT32_MAX - KC_BATCH_HEADER_SIZE;
    if (KC_UNLIKELY(s.total > most))
        return kc_fail(error, KC_CANNOT_ENCODE, "a record exceeds its maximum size", 0, s.total, most);
    *added = 0;
    if (open->count && open->size + s.total > (limit < INT32_MAX ? limit : INT32_MAX)) return KC_OK;
    if (kc_buffer_reserve(&a->batch, (size_t)s.total, error)) return error->code;
    put_record(a->batch.data + a->batch.size, r, &s);
    a->batch.size += (size_t)s.total;
    open->size += s.total;
    open->last_offset = open->count++;
    *added = s.total;
    if (r->timestamp > open->max_timestamp) open->max_timestamp = r->timestamp;
    return KC_OK;
}

void kc_appender_close(const kc_appender *a, int codec, const uint8_t *records, size_t size, uint8_t *out) {
    const kc_batch_options options = {
        .magic = 2, .producer_id = -1, .leader_epoch = -1, .producer_epoch = -1, .attributes = (int16_t)codec};
    kc_batch_write_header(&a->open, &options, records, size, out);
}

void kc_appender_free(kc_appender *a) {
    kc_buffer_free(&a->batch);
    a->open.count = 0;
}

/* A batch from this size on is not read again for its checksum: another processor's caches may have it. */
enum { READ_AGAIN = 1 << 16 };

int kc_batch_set_producer(uint8_t *batch, size_t size, const kc_producer *producer, kc_error *error) {
    if (size < KC_BATCH_HEADER_SIZE)
        return kc_fail(error, KC_TRUNCATED, "a batch ends in its header", size, (int64_t)size, KC_BATCH_HEADER_SIZE);
    if (batch[KC_ENTRY_MAGIC_AT] != 2)
        return kc_fail(error, KC_BAD_MAGIC, "only batches of magic 2 have a producer, not", KC_ENTRY_MAGIC_AT,
                       batch[KC_ENTRY_MAGIC_AT], 2);
    const size_t head = KC_BATCH_HEADER_SIZE - KC_BATCH_ATTRIBUTES_AT, rest = size - KC_BATCH_HEADER_SIZE;
    uint8_t *checked = batch + KC_BATCH_ATTRIBUTES_AT;
    const uint32_t before = kc_crc32c(0, checked, head);
    const uint16_t others = kc_load_u16(checked) & (uint16_t)~KC_TRANSACTIONAL;
    kc_store_u64(batch, 0);
    kc_store_u16(checked, (uint16_t)(others | (producer->transactional ? KC_TRANSACTIONAL : 0)));
    kc_store_u64(batch + KC_BATCH_PRODUCER_ID_AT, (uint64_t)producer->id);
    kc_store_u16(batch + KC_BATCH_PRODUCER_EPOCH_AT, (uint16_t)producer->epoch);
    kc_store_u32(batch + KC_BATCH_BASE_SEQUENCE_AT, (uint32_t)producer->base_sequence);
    const uint32_t after = kc_crc32c(0, checked, head);
    const uint32_t crc = rest < READ_AGAIN
                             ? kc_crc32c(after, checked + head, rest)
                             : kc_crc32c_changed(kc_load_u32(batch + KC_BATCH_CRC_AT), before, after, rest);
    kc_store_u32(batch + KC_BATCH_CRC_AT, crc);
    return KC_OK;
}
