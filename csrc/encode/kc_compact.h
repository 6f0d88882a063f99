/* Takes records out of a batch v2 without reading those that stay: compaction. */
#ifndef KC_COMPACT_H
#define KC_COMPACT_H

#include "decode/kc_batch.h"

/* A record of decompressed records; what is not named is in [rest, end): key, value and headers with their sizes. */
typedef struct kc_stored_record {
    const uint8_t *key, *rest, *end;
    int32_t key_size, value_size; /* -1: null */
    int64_t timestamp_delta;
    int32_t offset_delta;
    uint8_t attributes;
} kc_stored_record;

/* A record with another timestamp has at most so many bytes more. */
enum { KC_RECORD_MAY_GROW = 16 };

/* Reads the record at `*at`, and moves it to the next one. Headers are not examined. */
KC_MUST_CHECK int kc_stored_record_next(const uint8_t **at, const uint8_t *end, kc_stored_record *record,
                                        kc_error *error);

/* Writes a record with another timestamp delta; the position after it. */
uint8_t *kc_stored_record_write(const kc_stored_record *record, int64_t timestamp_delta, uint8_t *out);

/* What changes in the header of a batch. */
typedef struct kc_compacted {
    int64_t base_timestamp, max_timestamp;
    int32_t count;
    bool has_horizon; /* the base timestamp is the delete horizon (KIP-534) */
} kc_compacted;

/* Writes the header of a batch whose records became the `size` bytes at out + KC_BATCH_HEADER_SIZE, and its checksum.
 */
void kc_compacted_header(const uint8_t *batch, const kc_compacted *change, size_t size, uint8_t *out);

#endif
