/* Any bytes as batches that get offsets in place, as a leader appends them: only offset and leader epoch of each differ
 * afterwards, the offsets are without gaps, and the heads are those of what is there, whatever room the calls have. The
 * last bytes of the input are the numbers. */
#include <string.h>

#include "decode/kc_walk.h"
#include "encode/kc_renumber.h"
#include "fuzz.h"

enum { NUMBERS = 8 + 4 + 1, MOST = 8 };

typedef struct result {
    uint8_t *data;
    uint64_t position;
    int64_t next_offset;
    kc_error error;
} result;

/* The head that a call gave is that of the changed bytes. */
static void check_head(const uint8_t *data, size_t size, const kc_batch *head) {
    kc_span span;
    kc_error error = {0};
    kc_batch read;
    MUST(kc_walk_next(data, size, head->position, &span, &error) == KC_WALK_BATCH);
    kc_batch_read(data, &span, &read);
    MUST(read.base_offset == head->base_offset && read.last_offset == head->last_offset && read.size == head->size);
    MUST(read.partition_leader_epoch == head->partition_leader_epoch && read.magic == 2 && head->magic == 2);
    MUST(read.producer_id == head->producer_id && read.count == head->count && read.crc == head->crc);
    MUST(read.max_timestamp == head->max_timestamp && read.attributes == head->attributes);
}

/* Gives offsets to all batches that can have them, with room for `room` batches a call. */
static result assign(const uint8_t *data, size_t size, int64_t first, int32_t epoch, size_t room) {
    kc_batch heads[MOST];
    result r = {.data = malloc(size ? size : 1), .next_offset = first};
    MUST(r.data != NULL);
    if (size) memcpy(r.data, data, size);
    for (int code = KC_OK; code == KC_OK && r.position < size;) {
        const uint64_t before = r.position;
        int64_t next = r.next_offset;
        size_t count = MOST + 1;
        code = kc_assign(r.data, size, &r.position, &r.next_offset, epoch, heads, room, &count, &r.error);
        MUST(count <= room && r.position >= before && r.position <= size);
        MUST(code == r.error.code && (code || count));
        uint64_t at = before;
        for (size_t i = 0; i < count; i++) {
            MUST(heads[i].position == at && heads[i].base_offset == next && next >= 0);
            MUST(heads[i].last_offset >= next && heads[i].last_offset < INT64_MAX);
            check_head(r.data, size, &heads[i]);
            next = heads[i].last_offset + 1;
            at += heads[i].size;
        }
        MUST(at == r.position && next == r.next_offset);
    }
    return r;
}

/* What differs before `end`, by the fields' places alone. */
static void compare(const uint8_t *old, const uint8_t *new, uint64_t end, int32_t epoch) {
    for (uint64_t at = 0; at < end;) {
        const uint64_t size = (uint64_t)kc_load_u32(old + at + 8) + 12;
        MUST(size >= KC_BATCH_HEADER_SIZE && size <= end - at && old[at + 16] == 2);
        MUST((int32_t)kc_load_u32(new + at + 12) == epoch);
        MUST(memcmp(new + at + 8, old + at + 8, 4) == 0 &&
             memcmp(new + at + 16, old + at + 16, (size_t)size - 16) == 0);
        at += size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < NUMBERS) return 0;
    size -= NUMBERS;
    const uint8_t *numbers = data + size;
    const int64_t first = (int64_t)kc_load_u64(numbers);
    const int32_t epoch = (int32_t)kc_load_u32(numbers + 8);
    const result r = assign(data, size, first, epoch, 1 + numbers[12] % MOST);
    compare(data, r.data, r.position, epoch);
    MUST(memcmp(r.data + r.position, data + r.position, size - (size_t)r.position) == 0);
    MUST(r.error.code == KC_OK ? r.position == size : r.error.what && r.error.position >= r.position);
    /* The same with other room, and again: nothing changes. */
    const result other = assign(data, size, first, epoch, 1);
    MUST(other.position == r.position && other.error.code == r.error.code && memcmp(other.data, r.data, size) == 0);
    const result again = assign(r.data, (size_t)r.position, first, epoch, MOST);
    MUST(again.error.code == KC_OK && again.next_offset == r.next_offset);
    MUST(memcmp(again.data, r.data, (size_t)r.position) == 0);
    free(again.data);
    free(other.data);
    free(r.data);
    return 0;
}
