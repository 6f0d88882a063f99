#include "build.h"
#include "check.h"
#include "encode/kc_renumber.h"

static bytes two_batches(void) {
    bytes data = {.size = 0}, records = {.size = 0};
    add_record(&records, 0, 0, "a", "v", NULL, NULL);
    add_record(&records, 1, 0, "b", "w", NULL, NULL);
    add_batch(&data, 0, 2, &records);
    add_batch(&data, 0, 2, &records);
    return data;
}

static kc_error error; /* of the last run */

static int run(const bytes *b, kc_renumbering how, kc_renumbered *out, size_t max, size_t *count, int64_t *next) {
    uint64_t position = 0;
    error = (kc_error){.position = 1, .got = 1, .want = 1};
    return kc_renumber(b->data, b->size, &position, &how, out, max, count, next, &error);
}

TEST(renumber_changes_what_no_checksum_covers) {
    bytes data = two_batches();
    const bytes before = data;
    const uint64_t half = data.size / 2;
    const int64_t base = (int64_t)kc_load_u64(data.data);
    kc_renumbered out[4];
    size_t count;
    int64_t next;
    CHECK_EQ(run(&data, (kc_renumbering){.by = 1000, .leader_epoch = 9}, out, 4, &count, &next), KC_OK);
    CHECK_EQ(count, 2);
    CHECK_EQ(out[0].position, 0);
    CHECK_EQ(out[1].position, half);
    CHECK_EQ(next, base + 1000 + 2);
    for (size_t i = 0; i < count; i++) memcpy(data.data + out[i].position, out[i].head, KC_RENUMBERED_BYTES);
    for (uint64_t at = 0; at < data.size; at += half) {
        CHECK_EQ(kc_load_u64(data.data + at), base + 1000);
        CHECK_EQ(kc_load_u32(data.data + at + 8), kc_load_u32(before.data + at + 8));
        CHECK_EQ(kc_load_u32(data.data + at + KC_BATCH_LEADER_EPOCH_AT), 9);
        CHECK(memcmp(data.data + at + 16, before.data + at + 16, (size_t)half - 16) == 0);
    }
    /* Nothing is left to change. */
    CHECK_EQ(run(&data, (kc_renumbering){.by = 0, .leader_epoch = 9}, out, 4, &count, &next), KC_OK);
    CHECK_EQ(count, 0);
    CHECK_EQ(next, base + 1000 + 2);
}

TEST(renumber_goes_on_where_room_ended) {
    const bytes data = two_batches();
    const kc_renumbering how = {.by = 5, .leader_epoch = 1};
    kc_renumbered out[1];
    size_t count;
    int64_t next = 0;
    uint64_t position = 0;
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_EQ(kc_renumber(data.data, data.size, &position, &how, out, 1, &count, &next, &error), KC_OK);
        CHECK_EQ(count, 1);
        CHECK_EQ(out[0].position, i * data.size / 2);
    }
    CHECK_EQ(position, data.size);
    CHECK_EQ(kc_renumber(data.data, data.size, &position, &how, out, 1, &count, &next, &error), KC_OK);
    CHECK_EQ(count, 0);
}

TEST(renumber_refuses_what_is_no_whole_batch) {
    const bytes sound = two_batches();
    const kc_renumbering how = {.by = 5};
    kc_renumbered out[4];
    size_t count;
    int64_t next;
    for (size_t size = 1; size < sound.size; size++) {
        bytes data = {.size = size}; /* no bytes may be read after it */
        memcpy(data.data, sound.data, size);
        const int code = run(&data, how, out, 4, &count, &next);
        CHECK_EQ(code, size == sound.size / 2 ? KC_OK : KC_TRUNCATED);
        if (code) CHECK_ERROR(error, KC_TRUNCATED, size < sound.size / 2 ? 0 : sound.size / 2, 0, 0);
    }
    bytes data = sound;
    data.data[KC_ENTRY_MAGIC_AT] = 1;
    CHECK_EQ(run(&data, how, out, 4, &count, &next), KC_BAD_MAGIC);
    CHECK_ERROR(error, KC_BAD_MAGIC, 16, 1, 2);
    data = sound;
    kc_store_u32(data.data + KC_ENTRY_LENGTH_AT, 3);
    CHECK_EQ(run(&data, how, out, 4, &count, &next), KC_CORRUPT);
    CHECK_ERROR(error, KC_CORRUPT, 8, 3, KC_MESSAGE_MIN_LENGTH);
    data = sound;
    data.data[sound.size / 2 + KC_ENTRY_MAGIC_AT] = 0; /* the first is taken */
    CHECK_EQ(run(&data, how, out, 4, &count, &next), KC_BAD_MAGIC);
    CHECK_ERROR(error, KC_BAD_MAGIC, sound.size / 2 + 16, 0, 2);
    CHECK_EQ(count, 1);
    CHECK_EQ(next, 100 + 5 + 2);
}

TEST(renumber_keeps_offsets_in_range) {
    bytes data = two_batches();
    kc_renumbered out[4];
    size_t count;
    int64_t next;
    kc_store_u64(data.data, 0);
    CHECK_EQ(run(&data, (kc_renumbering){.by = -1}, out, 4, &count, &next), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, 0, -1);
    kc_store_u64(data.data, 1);
    CHECK_EQ(run(&data, (kc_renumbering){.by = -1}, out, 4, &count, &next), KC_OK);
    CHECK_EQ(kc_load_u64(out[0].head), 0);
    kc_store_u64(data.data, (uint64_t)INT64_MAX - 2);
    CHECK_EQ(run(&data, (kc_renumbering){.by = 0}, out, 1, &count, &next), KC_OK);
    CHECK_EQ(run(&data, (kc_renumbering){.by = 1}, out, 4, &count, &next), KC_CANNOT_ENCODE);
    CHECK_ERROR(error, KC_CANNOT_ENCODE, 0, INT64_MAX - 2, 1);
    CHECK_EQ(run(&data, (kc_renumbering){.by = INT64_MAX}, out, 4, &count, &next), KC_CANNOT_ENCODE);
    kc_store_u32(data.data + KC_BATCH_LAST_DELTA_AT, UINT32_MAX);
    CHECK_EQ(run(&data, (kc_renumbering){.by = 0}, out, 4, &count, &next), KC_CANNOT_ENCODE);
}

TEST(assign_writes_offsets_and_epochs_in_place) {
    bytes data = two_batches();
    const bytes before = data;
    const uint64_t half = data.size / 2;
    kc_batch out[4];
    size_t count;
    int64_t next = 1000;
    uint64_t position = 0;
    kc_store_u64(data.data, INT64_MAX); /* whatever it was */
    CHECK_EQ(kc_assign(data.data, data.size, &position, &next, 9, out, 1, &count, &error), KC_OK);
    CHECK_EQ(count, 1);
    CHECK_EQ(position, half);
    CHECK_EQ(next, 1002);
    CHECK_EQ(kc_assign(data.data, data.size, &position, &next, 9, out, 4, &count, &error), KC_OK);
    CHECK_EQ(count, 1);
    CHECK_EQ(position, data.size);
    CHECK_EQ(next, 1004);
    CHECK_EQ(out[0].base_offset, 1002);
    CHECK_EQ(out[0].last_offset, 1003);
    CHECK_EQ(out[0].position, half);
    CHECK_EQ(out[0].partition_leader_epoch, 9);
    for (uint64_t at = 0; at < data.size; at += half) {
        CHECK_EQ(kc_load_u64(data.data + at), at ? 1002 : 1000);
        CHECK_EQ(kc_load_u32(data.data + at + KC_BATCH_LEADER_EPOCH_AT), 9);
        CHECK_EQ(kc_load_u32(data.data + at + 8), kc_load_u32(before.data + at + 8));
        CHECK(memcmp(data.data + at + 16, before.data + at + 16, (size_t)half - 16) == 0);
    }
}

TEST(assign_refuses_what_renumber_refuses) {
    bytes data = two_batches();
    kc_batch out[4];
    size_t count;
    uint64_t position = 0;
    int64_t next = INT64_MAX - 1; /* the last offset would be 2^63 - 1 */
    CHECK_EQ(kc_assign(data.data, data.size, &position, &next, 0, out, 4, &count, &error), KC_CANNOT_ENCODE);
    CHECK_EQ(count, 0);
    next = -1;
    CHECK_EQ(kc_assign(data.data, data.size, &position, &next, 0, out, 4, &count, &error), KC_CANNOT_ENCODE);
    next = INT64_MAX - 3; /* there is room for one of them */
    CHECK_EQ(kc_assign(data.data, data.size, &position, &next, 0, out, 4, &count, &error), KC_CANNOT_ENCODE);
    CHECK_EQ(count, 1);
    CHECK_EQ(position, data.size / 2);
    CHECK_EQ(next, INT64_MAX - 1);
    position = 0;
    next = 0;
    data.data[KC_ENTRY_MAGIC_AT] = 1;
    CHECK_EQ(kc_assign(data.data, data.size, &position, &next, 0, out, 4, &count, &error), KC_BAD_MAGIC);
    data = two_batches();
    CHECK_EQ(kc_assign(data.data, data.size - 1, &position, &next, 0, out, 4, &count, &error), KC_TRUNCATED);
}
