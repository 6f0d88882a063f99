#include "kc_resync.h"

#include "kc_crc32.h"
#include "kc_crc32c.h"
#include "kc_log.h"

/* Both formats have base offset (0), length (8), the magic byte (16) and attributes (v2: 21, else 17) in common. */
enum {
    OVERHEAD = 12,
    MAGIC_AT = 16,
    V2_ATTRIBUTES_AT = 21,
    V2_HEADER = 61,
    V2_KNOWN_ATTRIBUTES = 0x7f,
    OLD_ATTRIBUTES_AT = 17,
    OLD_KNOWN_ATTRIBUTES = 0x0f,
    OLD_SMALLEST = 26,
    RECORD_SMALLEST = 7,
    NUM_CODECS = 5,
    BLOCK = 64,
};

static bool plausible_v2(const uint8_t *p, uint64_t total) {
    if (total < V2_HEADER) return false;
    const uint16_t attributes = kc_load_u16(p + V2_ATTRIBUTES_AT);
    const int32_t last_delta = (int32_t)kc_load_u32(p + 23), count = (int32_t)kc_load_u32(p + 57);
    const bool compressed = attributes & 7;
    if (attributes & ~V2_KNOWN_ATTRIBUTES || (attributes & 7) >= NUM_CODECS) return false;
    if (last_delta < 0 || count < 0 || (uint64_t)count > (uint64_t)last_delta + 1) return false;
    return compressed || (uint64_t)count * RECORD_SMALLEST <= total - V2_HEADER;
}

/* The sizes of key and value account for every byte of a message. */
static bool plausible_old(const uint8_t *p, uint64_t total, uint8_t magic) {
    if (total < OLD_SMALLEST || p[OLD_ATTRIBUTES_AT] & ~OLD_KNOWN_ATTRIBUTES) return false;
    uint64_t at = magic == 1 ? 26 : 18;
    for (int part = 0; part < 2; part++) {
        if (total - at < 4) return false;
        const int32_t length = (int32_t)kc_load_u32(p + at);
        at += 4;
        if (length < -1 || (length > 0 && (uint64_t)length > total - at)) return false;
        at += length > 0 ? (uint64_t)length : 0;
    }
    return at == total;
}

bool kc_resync_plausible(const uint8_t *data, uint64_t size, uint64_t position, uint64_t *batch_size) {
    if (position > size || size - position < OLD_SMALLEST) return false;
    const uint8_t *p = data + position;
    const int32_t length = (int32_t)kc_load_u32(p + 8);
    if (length < 0 || (int64_t)kc_load_u64(p) < 0 || p[MAGIC_AT] > 2) return false;
    const uint64_t total = (uint64_t)length + OVERHEAD;
    if (total > size - position) return false;
    *batch_size = total;
    return p[MAGIC_AT] == 2 ? plausible_v2(p, total) : plausible_old(p, total, p[MAGIC_AT]);
}

static bool checksum_ok(const uint8_t *p, uint64_t total) {
    if (p[MAGIC_AT] == 2) return kc_crc32c(0, p + V2_ATTRIBUTES_AT, total - V2_ATTRIBUTES_AT) == kc_load_u32(p + 17);
    return kc_crc32(0, p + MAGIC_AT, total - MAGIC_AT) == kc_load_u32(p + 12);
}

/* Whether a batch could begin at p, by bytes alone: an offset below 2^48, a length that is neither zero nor negative,
 * a known magic. Without branches, so that the compiler can look at many positions at once. */
static inline uint8_t could_begin(const uint8_t *p) {
    const uint8_t zeros = (uint8_t)(p[0] | p[1] | (p[8] & 0x80));
    const uint8_t length = (uint8_t)(p[8] | p[9] | p[10] | p[11]);
    return (uint8_t)((zeros == 0) & (length != 0) & (p[MAGIC_AT] <= 2));
}

/* The first of `count` positions where a batch could begin, or `count`. */
static uint64_t first_candidate(const uint8_t *p, uint64_t count) {
    uint64_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        uint8_t any = 0;
        for (uint64_t j = i; j < i + BLOCK; j++) any |= could_begin(p + j);
        if (any) break;
    }
    while (i < count && !could_begin(p + i)) i++;
    return i;
}

/* Whether an intact batch lies at the position and the credit covers the proof; its size goes to *total. */
static bool intact(const uint8_t *data, uint64_t size, uint64_t position, uint64_t *total, kc_resync *state) {
    if (!kc_resync_plausible(data, size, position, total) || *total > state->credit) return false;
    state->credit -= *total;
    state->examined += *total;
    return checksum_ok(data + position, *total);
}

uint64_t kc_resync_next(const uint8_t *data, uint64_t size, uint64_t from, kc_resync *state) {
    for (uint64_t at = from; at < size && size - at >= OLD_SMALLEST;) {
        const uint64_t step = first_candidate(data + at, size - at - OLD_SMALLEST + 1);
        at += step;
        state->credit += step * KC_RESYNC_CREDIT_PER_BYTE;
        state->examined += step;
        uint64_t total;
        if (intact(data, size, at, &total, state)) return at;
        at++;
        state->credit += KC_RESYNC_CREDIT_PER_BYTE;
        state->examined++;
    }
    return size;
}

/* The next intact batch whose offset could follow that of the partial batch at `position` in a log. */
static uint64_t next_in_order(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state) {
    if (size - position < OVERHEAD) return size;
    const uint64_t offset = kc_load_u64(data + position);
    uint64_t at = position;
    while ((at = kc_resync_next(data, size, at + 1, state)) < size) {
        const uint64_t found = kc_load_u64(data + at);
        if (found > offset && found - offset <= INT32_MAX) break;
    }
    return at;
}

uint64_t kc_resync_behind(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state) {
    kc_span span;
    kc_error ignored = {0};
    uint64_t total;
    if (position >= size) return size;
    const kc_walk here = kc_log_next(data, size, position, &span, &ignored);
    if (here == KC_WALK_END) return size;
    if (here == KC_WALK_FAULT) return kc_resync_next(data, size, position + 1, state);
    if (here == KC_WALK_PARTIAL) return next_in_order(data, size, position, state);
    const uint64_t end = position + span.size;
    const kc_walk there = kc_log_next(data, size, end, &span, &ignored);
    if (there == KC_WALK_END || intact(data, size, end, &total, state)) {
        state->credit += (end - position) * KC_RESYNC_CREDIT_PER_BYTE;
        return end;
    }
    const uint64_t next = kc_resync_next(data, size, position + 1, state);
    return there == KC_WALK_PARTIAL && next == size ? end : next;
}
