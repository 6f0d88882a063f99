#include "cases.h"

#include "../fuzz/fuzz.h"

static int64_t take_int(const uint8_t **at, int bytes) {
    uint64_t v = **at & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | *(*at)++;
    return (int64_t)v;
}

static int8_t take_i8(const uint8_t **at) { return (int8_t)take_int(at, 1); }
static int32_t take_i32(const uint8_t **at) { return (int32_t)take_int(at, 4); }
static int64_t take_i64(const uint8_t **at) { return take_int(at, 8); }

text take_text(const uint8_t **at) {
    text t = {.size = take_i32(at)};
    t.data = *at;
    if (t.size > 0) *at += t.size;
    return t;
}

static void *new_list(int32_t count, size_t size) {
    void *list = calloc((size_t)count + 1, size);
    MUST(count >= 0 && list != NULL);
    return list;
}

static part take_part(const uint8_t **at) {
    part p = {.position = (uint64_t)take_i64(at)};
    p.records = take_text(at);
    return p;
}

static batch_said take_batch(const uint8_t **at) {
    batch_said b;
    b.magic = take_i8(at);
    b.codec = take_i8(at);
    b.timestamp_type = take_i8(at);
    b.position = take_i64(at);
    b.size = take_i64(at);
    b.base_offset = take_i64(at);
    b.last_offset = take_i64(at);
    b.base_timestamp = take_i64(at);
    b.max_timestamp = take_i64(at);
    b.producer_id = take_i64(at);
    b.delete_horizon = take_i64(at);
    b.crc = take_i64(at);
    b.producer_epoch = (int16_t)take_int(at, 2);
    b.base_sequence = take_i32(at);
    b.leader_epoch = take_i32(at);
    b.count = take_i32(at);
    b.is_transactional = take_i8(at);
    b.is_control = take_i8(at);
    b.can_be_encoded = take_i8(at);
    return b;
}

static row_said take_row(const uint8_t **at) {
    row_said r;
    r.batch = take_i32(at);
    r.offset = take_i64(at);
    r.timestamp = take_i64(at);
    r.timestamp_type = take_i8(at);
    r.key = take_text(at);
    r.value = take_text(at);
    r.num_headers = take_i32(at);
    r.headers = *at;
    for (int32_t i = 0; i < 2 * r.num_headers; i++) (void)take_text(at);
    return r;
}

bool take_case(const uint8_t **at, const uint8_t *end, golden_case *c) {
    if (*at == end) return false;
    c->name = take_text(at);
    c->data = take_text(at);
    c->undamaged = take_i8(at);
    c->verify_crc = take_i8(at);
    c->ending = (ending)take_i8(at);
    c->valid_bytes = (uint64_t)take_i64(at);
    c->num_parts = take_i32(at);
    c->parts = new_list(c->num_parts, sizeof *c->parts);
    for (int32_t i = 0; i < c->num_parts; i++) c->parts[i] = take_part(at);
    c->num_batches = take_i32(at);
    c->batches = new_list(c->num_batches, sizeof *c->batches);
    for (int32_t i = 0; i < c->num_batches; i++) c->batches[i] = take_batch(at);
    c->num_rows = take_i32(at);
    c->rows = new_list(c->num_rows, sizeof *c->rows);
    for (int32_t i = 0; i < c->num_rows; i++) c->rows[i] = take_row(at);
    MUST(*at <= end);
    return true;
}

void free_case(golden_case *c) {
    free(c->parts);
    free(c->batches);
    free(c->rows);
}
