/* Any bytes as batch headers: positions increase, and the table is well formed. The work to find the next batch after
 * damage is proportional to the data. */
#include "decode/kc_resync.h"
#include "decode/kc_scan.h"
#include "decode/kc_transactions.h"
#include "fuzz.h"
#include "table_check.h"

/* No more transactions end or are open than there are batches. */
static void follow(const uint8_t *data, size_t size, const int64_t *positions, size_t count) {
    kc_transactions t = {0};
    kc_error error = {0};
    MUST(kc_transactions_follow(&t, data, size, positions, count, &error) == KC_OK);
    MUST(t.ended.size / sizeof(kc_ended) + t.count <= count);
    const kc_ended *ended = (const kc_ended *)(const void *)t.ended.data;
    for (size_t i = 0; i < t.ended.size / sizeof *ended; i++) {
        MUST(ended[i].position >= 0 && (uint64_t)ended[i].position + (uint64_t)ended[i].size <= size);
    }
    kc_transactions_free(&t);
}

static void scan(const uint8_t *data, size_t size) {
    kc_table *t = kc_table_new(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX);
    kc_error error = {0};
    uint64_t position = 0;
    MUST(t != NULL);
    kc_walk end = kc_scan(data, size, &position, true, INT64_MAX, t, &error);
    MUST(end != KC_WALK_BATCH && position <= size);
    MUST(end != KC_WALK_FAULT || (error.code != KC_OK && error.what));
    check_table(t);
    const int64_t *positions = (const int64_t *)(const void *)t->columns[KC_HEADER_POSITION].values.data;
    const int64_t *sizes = (const int64_t *)(const void *)t->columns[KC_HEADER_SIZE_IN_BYTES].values.data;
    int64_t at = 0;
    for (int64_t row = 0; row < t->length; at += sizes[row++]) MUST(positions[row] == at);
    MUST((uint64_t)at == position);
    follow(data, size, positions, (size_t)t->length);
    kc_table_release(t);
}

static void resync(const uint8_t *data, size_t size) {
    kc_resync state = {0, 0, INT64_MAX};
    uint64_t at = 0, total;
    while (at < size) {
        uint64_t next = kc_resync_next(data, size, at, &state);
        MUST(next >= at && next <= size);
        MUST(next == size || (kc_resync_plausible(data, size, next, &total) && next + total <= size));
        at = next + 1;
    }
    MUST(state.examined <= (KC_RESYNC_CREDIT_PER_BYTE + 2) * (uint64_t)size);
    at = 0;
    while (at < size) {
        uint64_t next = kc_resync_after(data, size, at, &state);
        MUST(next > at && next <= size);
        at = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    scan(data, size);
    resync(data, size);
    return 0;
}
