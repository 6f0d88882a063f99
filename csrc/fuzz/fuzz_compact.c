/* Any bytes as the records of a batch that is compacted: records that stay can be read again, with the timestamps they
 * were given, in no more room than is promised; the header that is made fits them. The first bytes of the input are the
 * header of the batch, the last ones the timestamps. */
#include <string.h>

#include "decode/kc_walk.h"
#include "encode/kc_compact.h"
#include "fuzz.h"

enum { NUMBERS = 8 + 1 };

static void same_record(const kc_stored_record *one, const kc_stored_record *other, int64_t timestamp_delta) {
    MUST(other->timestamp_delta == timestamp_delta && other->offset_delta == one->offset_delta);
    MUST(other->attributes == one->attributes && other->key_size == one->key_size);
    MUST(other->value_size == one->value_size && other->end - other->rest == one->end - one->rest);
    MUST(memcmp(other->rest, one->rest, (size_t)(one->end - one->rest)) == 0);
    MUST(one->key_size <= 0 || memcmp(other->key, one->key, (size_t)one->key_size) == 0);
}

/* The header of a batch of the bytes at out + KC_BATCH_HEADER_SIZE can be read, and its checksum is right. */
static void check_batch(const uint8_t *header, uint8_t *out, size_t size, const kc_compacted *change) {
    kc_compacted_header(header, change, size, out);
    kc_span span;
    kc_error error = {0};
    kc_batch batch;
    const uint64_t whole = KC_BATCH_HEADER_SIZE + size;
    if (header[KC_ENTRY_MAGIC_AT] != 2) return; /* callers only have batches of magic 2 */
    MUST(kc_walk_next(out, whole, 0, &span, &error) == KC_WALK_BATCH && span.size == whole);
    kc_batch_read(out, &span, &batch);
    MUST(kc_batch_compute_crc(out, &batch) == batch.crc && batch.count == change->count);
    MUST(batch.base_timestamp == change->base_timestamp && batch.max_timestamp == change->max_timestamp);
    MUST(((batch.attributes & KC_DELETE_HORIZON) != 0) == change->has_horizon);
    const unsigned changed = (unsigned)(uint16_t)batch.attributes ^ kc_load_u16(header + KC_BATCH_ATTRIBUTES_AT);
    MUST((changed & ~(unsigned)KC_DELETE_HORIZON) == 0);
    MUST(memcmp(out, header, 8) == 0 && memcmp(out + 12, header + 12, 5) == 0);
    MUST(memcmp(out + 23, header + 23, 4) == 0 && memcmp(out + 43, header + 43, 14) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < KC_BATCH_HEADER_SIZE + NUMBERS) return 0;
    const uint8_t *at = data + KC_BATCH_HEADER_SIZE, *end = data + size - NUMBERS;
    const int64_t shift = (int64_t)kc_load_u64(end);
    const uint8_t kept = end[8];
    uint8_t *out = malloc(2 * size + KC_RECORD_MAY_GROW * size);
    MUST(out != NULL);
    uint8_t *to = out + KC_BATCH_HEADER_SIZE;
    kc_compacted change = {shift, shift, 0, (kept & 1) != 0};
    kc_stored_record record, again;
    kc_error error = {0};
    while (at < end) {
        const uint8_t *begin = at;
        if (kc_stored_record_next(&at, end, &record, &error)) {
            MUST(error.code == KC_CORRUPT && error.what);
            break;
        }
        MUST(at == record.end && at > begin && at <= end && record.rest > begin && record.rest <= at);
        MUST(record.key_size >= -1 && record.value_size >= -1 && record.key >= record.rest);
        MUST(record.key + (record.key_size > 0 ? record.key_size : 0) <= record.end);
        if (record.offset_delta & kept & 2) continue; /* taken out */
        const int64_t delta = (int64_t)((uint64_t)record.timestamp_delta + (uint64_t)shift);
        uint8_t *after = kc_stored_record_write(&record, delta, to);
        MUST(after > to && (size_t)(after - to) <= (size_t)(at - begin) + KC_RECORD_MAY_GROW);
        const uint8_t *back = to;
        MUST(kc_stored_record_next(&back, after, &again, &error) == KC_OK && back == after);
        same_record(&record, &again, delta);
        to = after;
        change.count++;
    }
    check_batch(data, out, (size_t)(to - out) - KC_BATCH_HEADER_SIZE, &change);
    free(out);
    return 0;
}
