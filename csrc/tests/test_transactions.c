#include "build.h"
#include "check.h"
#include "decode/kc_marker.h"
#include "decode/kc_transactions.h"

enum { HEADER = KC_BATCH_HEADER_SIZE, MOST = 64 };

/* Batches of producers, and where they begin. */
typedef struct log_of {
    bytes data;
    int64_t positions[MOST];
    size_t count;
} log_of;

/* A batch of one record whose key is `key` (4 bytes), of a producer; offset and attributes as given. */
static void add_one(log_of *log, int64_t producer, int64_t offset, int attributes, const uint8_t *key) {
    bytes records = {.size = 0};
    const uint8_t start[] = {20, 0, 0, 0, 8}, end[] = {1, 0};
    add(&records, start, sizeof start);
    add(&records, key, 4);
    add(&records, end, sizeof end);
    uint8_t *at = log->data.data + log->data.size;
    log->positions[log->count++] = (int64_t)log->data.size;
    add_batch(&log->data, attributes, 1, &records);
    kc_store_u64(at, (uint64_t)offset);
    kc_store_u64(at + KC_BATCH_PRODUCER_ID_AT, (uint64_t)producer);
    kc_store_u32(at + KC_BATCH_CRC_AT, kc_crc32c(0, at + KC_BATCH_ATTRIBUTES_AT, HEADER - 21 + records.size));
}

static const uint8_t ABORT[] = {0, 0, 0, 0}, COMMIT[] = {0, 0, 0, 1}, OTHER[] = {0, 0, 255, 254};

static void write_record(log_of *log, int64_t producer, int64_t offset) {
    add_one(log, producer, offset, KC_TRANSACTIONAL, ABORT);
}

static void write_marker(log_of *log, int64_t producer, int64_t offset, const uint8_t *key) {
    add_one(log, producer, offset, KC_TRANSACTIONAL | KC_CONTROL, key);
}

static int follow(kc_transactions *t, const log_of *log) {
    kc_error error = {0};
    return kc_transactions_follow(t, log->data.data, log->data.size, log->positions, log->count, &error);
}

static bool ended_is(const kc_transactions *t, size_t row, int64_t producer, int64_t first, int64_t last,
                     int64_t kind) {
    const kc_ended *e = (const kc_ended *)(const void *)t->ended.data + row;
    return row < t->ended.size / sizeof *e && e->producer_id == producer && e->first_offset == first &&
           e->last_offset == last && e->kind == kind;
}

TEST(transactions_end_with_their_markers) {
    kc_transactions t = {0};
    log_of log = {.count = 0};
    write_record(&log, 5, 10);
    add_one(&log, 5, 11, 0, ABORT); /* of no transaction */
    write_record(&log, 9, 12);
    write_record(&log, 5, 13);
    write_marker(&log, 5, 14, COMMIT);
    write_marker(&log, 5, 15, ABORT); /* without records */
    write_marker(&log, 9, 16, ABORT);
    write_marker(&log, -1, 17, OTHER);
    write_record(&log, 5, 18);
    add_one(&log, 5, 19, KC_CONTROL, ABORT);
    CHECK_EQ(follow(&t, &log), KC_OK);
    CHECK_EQ(t.ended.size, 4 * sizeof(kc_ended));
    CHECK(ended_is(&t, 0, 5, 10, 14, KC_MARKER_COMMIT));
    CHECK(ended_is(&t, 1, 5, 15, 15, KC_MARKER_ABORT));
    CHECK(ended_is(&t, 2, 9, 12, 16, KC_MARKER_ABORT));
    CHECK(ended_is(&t, 3, -1, 17, 17, 65534));
    CHECK_EQ(t.count, 1);
    const kc_ended *first = (const kc_ended *)(const void *)t.ended.data;
    CHECK_EQ(first->position, log.positions[4]);
    CHECK_EQ(first->size, log.positions[5] - log.positions[4]);
    /* The transaction that is left goes on in the next bytes. */
    t.ended.size = 0;
    log.data.size = log.count = 0;
    write_marker(&log, 5, 20, ABORT);
    CHECK_EQ(follow(&t, &log), KC_OK);
    CHECK(ended_is(&t, 0, 5, 18, 20, KC_MARKER_ABORT));
    CHECK_EQ(t.count, 0);
    kc_transactions_free(&t);
}

TEST(committed_transactions_are_left_out_if_they_are_not_wanted) {
    kc_transactions t = {.without_commits = true};
    log_of log = {.count = 0};
    write_record(&log, 5, 10);
    write_record(&log, 9, 11);
    write_marker(&log, 5, 12, COMMIT);
    write_record(&log, 5, 13);
    write_marker(&log, 5, 14, ABORT);
    write_marker(&log, 9, 15, COMMIT);
    log.data.data[log.data.size - 1] ^= 1; /* what it was is not known */
    write_marker(&log, 7, 16, OTHER);
    CHECK_EQ(follow(&t, &log), KC_OK);
    CHECK_EQ(t.ended.size, 3 * sizeof(kc_ended));
    CHECK(ended_is(&t, 0, 5, 13, 14, KC_MARKER_ABORT));
    CHECK(ended_is(&t, 1, 9, 11, 15, KC_MARKER_UNREADABLE));
    CHECK(ended_is(&t, 2, 7, 16, 16, 65534));
    CHECK_EQ(t.count, 0);
    kc_transactions_free(&t);
}

TEST(transactions_whose_markers_cannot_be_read) {
    kc_transactions t = {0};
    log_of log = {.count = 0};
    write_record(&log, 5, 0);
    write_marker(&log, 5, 1, ABORT);
    log.data.data[log.data.size - 1] ^= 1;
    add_one(&log, 5, 2, KC_TRANSACTIONAL | KC_CONTROL | KC_CODEC_GZIP, ABORT);
    CHECK_EQ(follow(&t, &log), KC_OK);
    CHECK(ended_is(&t, 0, 5, 0, 1, KC_MARKER_UNREADABLE));
    CHECK(ended_is(&t, 1, 5, 2, 2, KC_MARKER_COMPRESSED));
    /* Positions without a complete batch: one too large, one inside of a batch, one before a part of a batch. */
    t.ended.size = 0;
    log.positions[0] = (int64_t)log.data.size + 5;
    log.positions[1] += 1;
    log.data.size--;
    CHECK_EQ(follow(&t, &log), KC_OK);
    CHECK_EQ(t.ended.size, 0);
    log.positions[0] = -1;
    CHECK_EQ(follow(&t, &log), KC_OK);
    CHECK_EQ(t.count, 0);
    kc_transactions_free(&t);
}

TEST(marker_kinds_need_whole_keys) {
    /* A record of 10 bytes: attributes, differences of time and offset, a key of 4 bytes, null, no headers. */
    uint8_t record[] = {20, 0, 0, 0, 8, 9, 9, 0, 1, 1, 0};
    kc_batch b = {.magic = 2, .records = record, .records_size = sizeof record};
    CHECK_EQ(kc_marker_kind(&b), KC_MARKER_COMMIT);
    for (b.records_size = 0; b.records_size < 9; b.records_size++) {
        CHECK_EQ(kc_marker_kind(&b), KC_MARKER_UNREADABLE);
    }
    b.records_size = sizeof record;
    record[4] = 6; /* a key of 3 bytes */
    CHECK_EQ(kc_marker_kind(&b), KC_MARKER_UNREADABLE);
    record[4] = 1; /* null */
    CHECK_EQ(kc_marker_kind(&b), KC_MARKER_UNREADABLE);
    b.attributes = KC_CODEC_ZSTD;
    CHECK_EQ(kc_marker_kind(&b), KC_MARKER_COMPRESSED);
}

enum { PRODUCERS = 3000 };

/* Compared with an array that is looked through from its start. */
TEST(transactions_of_many_producers) {
    static int64_t first[PRODUCERS];
    kc_transactions t = {0};
    kc_error error = {0};
    uint64_t state = 1;
    size_t open = 0;
    for (size_t i = 0; i < PRODUCERS; i++) first[i] = -1;
    for (int64_t offset = 0; offset < 20000; offset++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const int64_t producer = (int64_t)(state >> 33) % PRODUCERS;
        if (offset % 3) {
            CHECK_EQ(kc_transactions_open(&t, producer << 40, offset, &error), KC_OK);
            open += first[producer] < 0;
            if (first[producer] < 0) first[producer] = offset;
        } else {
            log_of log = {.count = 0};
            write_marker(&log, producer << 40, offset, COMMIT);
            t.ended.size = 0;
            CHECK_EQ(follow(&t, &log), KC_OK);
            const int64_t begin = first[producer] < 0 ? offset : first[producer];
            CHECK(ended_is(&t, 0, producer << 40, begin, offset, KC_MARKER_COMMIT));
            open -= first[producer] >= 0;
            first[producer] = -1;
        }
        CHECK_EQ(t.count, open);
    }
    CHECK(open > PRODUCERS / 4);
    kc_transactions_free(&t);
}
