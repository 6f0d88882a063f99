/* Reads batch headers into columns, one row per batch, without decompressing or reading records. */
#ifndef KC_SCAN_H
#define KC_SCAN_H

#include "arrow/kc_table.h"
#include "decode/kc_batch.h"

typedef enum kc_header_column {
    KC_HEADER_POSITION,
    KC_HEADER_SIZE_IN_BYTES,
    KC_HEADER_BASE_OFFSET,
    KC_HEADER_LAST_OFFSET,
    KC_HEADER_MAGIC,
    KC_HEADER_CODEC,
    KC_HEADER_TIMESTAMP_TYPE,
    KC_HEADER_BASE_TIMESTAMP,
    KC_HEADER_MAX_TIMESTAMP,
    KC_HEADER_COUNT,
    KC_HEADER_PRODUCER_ID,
    KC_HEADER_PRODUCER_EPOCH,
    KC_HEADER_BASE_SEQUENCE,
    KC_HEADER_PARTITION_LEADER_EPOCH,
    KC_HEADER_IS_TRANSACTIONAL,
    KC_HEADER_IS_CONTROL,
    KC_HEADER_DELETE_HORIZON_MS,
    KC_HEADER_CRC,
    KC_HEADER_CRC_OK,
    KC_NUM_HEADER_COLUMNS,
} kc_header_column;

extern const kc_field kc_header_fields[KC_NUM_HEADER_COLUMNS];

/* Reads headers from *position until no complete batch is left (KC_WALK_END, KC_WALK_PARTIAL), a fault (KC_WALK_FAULT)
 * or the table has `max_batches` rows (KC_WALK_BATCH). *position is then the end of the last batch read. A wrong CRC is
 * a value of crc_ok, not a fault. */
kc_walk kc_scan(const uint8_t *data, uint64_t size, uint64_t *position, bool verify_crc, int64_t max_batches,
                kc_table *t, kc_error *error);

#endif
