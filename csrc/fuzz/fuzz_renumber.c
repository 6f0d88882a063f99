/* Any bytes as batches whose offsets change: only the offset and the leader epoch of each differ afterwards, whatever
 * room the calls have. The last bytes of the input are the new numbers. */
#include <string.h>

#include "encode/kc_renumber.h"
#include "fuzz.h"

enum { NUMBERS = 8 + 4 + 1, MOST = 8 };

typedef struct result {
    uint8_t *data; /* a copy with the changes */
    uint64_t position;
    int64_t next_offset;
    kc_error error;
} result;

/* Changes everything that can be changed, with room for `room` batches a call. */
static result renumber(const uint8_t *data, size_t size, const kc_renumbering *how, size_t room) {
    kc_renumbered out[MOST];
    result r = {.data = malloc(size ? size : 1)};
    MUST(r.data != NULL);
    if (size) memcpy(r.data, data, size);
    for (int code = KC_OK; code == KC_OK && r.position < size;) {
        const uint64_t before = r.position;
        size_t count = MOST + 1;
        code = kc_renumber(data, size, &r.position, how, out, room, &count, &r.next_offset, &r.error);
        MUST(count <= room && r.position >= before && r.position <= size);
        MUST(code == r.error.code && (code || r.position > before));
        for (size_t i = 0; i < count; i++) {
            MUST(out[i].position >= before && out[i].position + KC_BATCH_HEADER_SIZE <= r.position);
            memcpy(r.data + out[i].position, out[i].head, KC_RENUMBERED_BYTES);
        }
    }
    return r;
}

/* The batches in [0, end), by the fields' places alone. Returns the offset after the last, or -1. */
static int64_t compare(const uint8_t *old, const uint8_t *new, uint64_t end, const kc_renumbering *how) {
    int64_t next = -1;
    for (uint64_t at = 0; at < end;) {
        const uint64_t size = (uint64_t)kc_load_u32(old + at + 8) + 12;
        MUST(size >= KC_BATCH_HEADER_SIZE && size <= end - at && old[at + 16] == 2);
        const int64_t base = (int64_t)kc_load_u64(new + at);
        MUST(base >= 0 && (uint64_t)base == kc_load_u64(old + at) + (uint64_t)how->by);
        MUST((int32_t)kc_load_u32(new + at + 12) == how->leader_epoch);
        MUST(memcmp(new + at + 8, old + at + 8, 4) == 0 &&
             memcmp(new + at + 16, old + at + 16, (size_t)size - 16) == 0);
        const uint32_t delta = kc_load_u32(old + at + 23);
        MUST(delta <= INT32_MAX && base < INT64_MAX - (int64_t)delta);
        next = base + (int64_t)delta + 1;
        at += size;
    }
    return next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < NUMBERS) return 0;
    size -= NUMBERS;
    const uint8_t *numbers = data + size;
    const kc_renumbering how = {(int64_t)kc_load_u64(numbers), (int32_t)kc_load_u32(numbers + 8)};
    const result r = renumber(data, size, &how, 1 + numbers[12] % MOST);
    const int64_t next = compare(data, r.data, r.position, &how);
    if (next >= 0) MUST(r.next_offset == next);
    MUST(memcmp(r.data + r.position, data + r.position, size - (size_t)r.position) == 0);
    MUST(r.error.code == KC_OK ? r.position == size : r.error.what && r.error.position >= r.position);
    /* The same with other room, and again: nothing changes. */
    const result other = renumber(data, size, &how, 1);
    MUST(other.position == r.position && other.error.code == r.error.code && memcmp(other.data, r.data, size) == 0);
    const kc_renumbering nothing = {0, how.leader_epoch};
    kc_renumbered out;
    size_t count = 1;
    uint64_t position = 0;
    int64_t last = 0;
    kc_error error = {0};
    if (kc_renumber(r.data, r.position, &position, &nothing, &out, 1, &count, &last, &error)) abort();
    MUST(count == 0 && position == r.position && (next < 0 || last == next));
    free(other.data);
    free(r.data);
    return 0;
}
