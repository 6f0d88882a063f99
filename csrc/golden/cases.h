/* The file that tests/golden_cases.py writes: golden bytes, their decompressed parts, and what Kafka's own reader made
 * of them. Reads are written out here rather than taken from the library, which is what is being tested. */
#ifndef CASES_H
#define CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands for no timestamp or no delete horizon. */
#define NONE INT64_MIN

/* Size of the key of a header that was no UTF-8, so that the expected text is not known. */
enum { UNKNOWN_SIZE = -2 };

typedef enum ending { ENDS, FAULTS, ENDS_OR_FAULTS } ending;

typedef struct text {
    const uint8_t *data;
    int32_t size; /* -1: null */
} text;

typedef struct part {
    uint64_t position;
    text records;
} part;

typedef struct batch_said {
    int8_t magic, codec, timestamp_type;
    int64_t position, size, base_offset, last_offset, base_timestamp, max_timestamp, producer_id, delete_horizon, crc;
    int16_t producer_epoch;
    int32_t base_sequence, leader_epoch, count;
    bool is_transactional, is_control, can_be_encoded;
} batch_said;

typedef struct row_said {
    int32_t batch;
    int64_t offset, timestamp;
    int8_t timestamp_type;
    text key, value;
    int32_t num_headers;
    const uint8_t *headers; /* take_text gives their keys and values in turn */
} row_said;

typedef struct golden_case {
    text name, data;
    bool undamaged, verify_crc;
    ending ending;
    uint64_t valid_bytes;
    int32_t num_parts, num_batches, num_rows;
    part *parts;
    batch_said *batches;
    row_said *rows;
} golden_case;

/* The case at *at, which moves past it; false at the end. */
bool take_case(const uint8_t **at, const uint8_t *end, golden_case *c);
void free_case(golden_case *c);

text take_text(const uint8_t **at);

#endif
