#include "decode/kc_resync.h"

#include "base/kc_varint.h"
#include "checksum/kc_crc32.h"
#include "checksum/kc_crc32c.h"
#include "decode/kc_batch.h"
#include "decode/kc_walk.h"

enum {
    OLD_KNOWN_ATTRIBUTES = KC_CODEC_MASK | KC_LOG_APPEND_TIME,
    V2_KNOWN_ATTRIBUTES = OLD_KNOWN_ATTRIBUTES | KC_TRANSACTIONAL | KC_CONTROL | KC_DELETE_HORIZON,
    RECORD_SMALLEST = 7, /* lengths, deltas and attributes of one byte each */
    BLOCK = 64,
};

/* The first bytes of compressed records. Raw Snappy may start with any. */
static bool plausible_compressed(const uint8_t *records, uint64_t size, unsigned codec) {
    const uint32_t start = size < 4 ? 0 : kc_load_u32(records);
    switch (codec) {
        case KC_CODEC_GZIP:
            return start >> 16 == 0x1f8b;
        case KC_CODEC_LZ4:
            return start == 0x04224d18;
        case KC_CODEC_ZSTD: /* or a frame that decoders skip */
            return start == 0x28b52ffd || (start & 0xf0ffffff) == 0x502a4d18;
        default:
            return codec == KC_CODEC_SNAPPY && size > 0;
    }
}

/* The first of `count` records leaves room for the others; a single record takes all bytes. */
static bool plausible_records(const uint8_t *records, uint64_t size, uint64_t count) {
    int32_t length;
    const int prefix = kc_varint32_decode(records, records + size, &length);
    if (prefix <= 0 || length < RECORD_SMALLEST - 1) return false;
    const uint64_t first = (uint64_t)prefix + (uint64_t)length;
    return count == 1 ? first == size : first <= size && (count - 1) * RECORD_SMALLEST <= size - first;
}

static bool plausible_v2(const uint8_t *p, uint64_t total) {
    if (total < KC_BATCH_HEADER_SIZE) return false;
    const uint16_t attributes = kc_load_u16(p + KC_BATCH_ATTRIBUTES_AT);
    const int32_t last_delta = (int32_t)kc_load_u32(p + KC_BATCH_LAST_DELTA_AT),
                  count = (int32_t)kc_load_u32(p + KC_BATCH_COUNT_AT);
    if (attributes & ~V2_KNOWN_ATTRIBUTES) return false;
    if (last_delta < 0 || count < 0 || (uint64_t)count > (uint64_t)last_delta + 1) return false;
    if (count == 0) return total == KC_BATCH_HEADER_SIZE; /* compaction leaves the header of a producer's last batch */
    const uint8_t *records = p + KC_BATCH_HEADER_SIZE;
    const unsigned codec = attributes & 7;
    return codec ? plausible_compressed(records, total - KC_BATCH_HEADER_SIZE, codec)
                 : plausible_records(records, total - KC_BATCH_HEADER_SIZE, (uint64_t)count);
}

/* Key and value must fill the message. */
static bool plausible_old(const uint8_t *p, uint64_t total, uint8_t magic) {
    if (total < KC_MESSAGE_MIN_SIZE || kc_load_u8(p + KC_MESSAGE_ATTRIBUTES_AT) & ~OLD_KNOWN_ATTRIBUTES) return false;
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
    if (position > size || size - position < KC_MESSAGE_MIN_SIZE) return false;
    const uint8_t *p = data + position;
    const int32_t length = (int32_t)kc_load_u32(p + KC_ENTRY_LENGTH_AT);
    const uint8_t magic = kc_load_u8(p + KC_ENTRY_MAGIC_AT);
    if (length < 0 || (int64_t)kc_load_u64(p) < 0 || magic > 2) return false;
    const uint64_t total = (uint64_t)length + KC_ENTRY_OVERHEAD;
    if (total > size - position) return false;
    *batch_size = total;
    return magic == 2 ? plausible_v2(p, total) : plausible_old(p, total, magic);
}

/* The magic may have changed since the size was checked: either sum fits the smallest size. */
static bool checksum_ok(const uint8_t *p, uint64_t total) {
    if (kc_load_u8(p + KC_ENTRY_MAGIC_AT) == 2)
        return kc_crc32c(0, p + KC_BATCH_ATTRIBUTES_AT, (size_t)total - KC_BATCH_ATTRIBUTES_AT) ==
               kc_load_u32(p + KC_BATCH_CRC_AT);
    return kc_crc32(0, p + KC_ENTRY_MAGIC_AT, (size_t)total - KC_ENTRY_MAGIC_AT) == kc_load_u32(p + KC_MESSAGE_CRC_AT);
}

/* Whether a batch could start at p, by single bytes: an offset below 2^48; a length of at least a message and not
 * beyond the data (its first byte is at most `high`); a known magic and attributes; for the old magics a key length or
 * a timestamp below 2^56, both of which may be -1. Without branches, so that the compiler can vectorize it. */
static inline uint8_t could_begin(const uint8_t *p, uint8_t high) {
    const uint8_t magic = p[KC_ENTRY_MAGIC_AT], next = p[KC_MESSAGE_ATTRIBUTES_AT + 1];
    const uint8_t length = (uint8_t)(((p[8] | p[9] | p[10]) != 0) | (p[11] >= KC_MESSAGE_MIN_SIZE - KC_ENTRY_OVERHEAD));
    const uint8_t v2 =
        (uint8_t)((magic == 2) & (p[KC_BATCH_ATTRIBUTES_AT] == 0) & (p[KC_BATCH_ATTRIBUTES_AT + 2] < 0x80));
    const uint8_t old = (uint8_t)((magic < 2) & (p[KC_MESSAGE_ATTRIBUTES_AT] <= OLD_KNOWN_ATTRIBUTES));
    const uint8_t small = (uint8_t)((next <= high) | (next == 0xff));
    return (uint8_t)(((p[0] | p[1]) == 0) & length & (p[8] <= high) & (v2 | (old & small)));
}

/* A bit for each of the `count` positions from p (at most BLOCK) where a batch could start. */
static uint64_t candidates(const uint8_t *p, uint64_t count, uint8_t high) {
    uint8_t found[BLOCK] = {0}, any = 0;
    uint64_t bits = 0;
    if (KC_LIKELY(count >= BLOCK)) {
        for (int i = 0; i < BLOCK; i++) any |= found[i] = could_begin(p + i, high);
    } else {
        for (uint64_t i = 0; i < count; i++) any |= found[i] = could_begin(p + i, high);
    }
    if (KC_LIKELY(!any)) return 0;
    for (int i = 0; i < BLOCK; i += 8) { /* eight bytes of 0 or 1 at a time into eight bits */
        bits |= (kc_load_le64(found + i) * UINT64_C(0x0102040810204080) >> 56) << i;
    }
    return bits;
}

/* Whether there is an intact batch at the position and the credit covers its checksum; *total is its size. */
static bool intact(const uint8_t *data, uint64_t size, uint64_t position, uint64_t *total, kc_resync *state) {
    if (!kc_resync_plausible(data, size, position, total) || *total > state->credit) return false;
    state->credit -= *total;
    state->examined += *total;
    return checksum_ok(data + position, *total);
}

static void advance(kc_resync *state, uint64_t positions) {
    state->credit += positions * KC_RESYNC_CREDIT_PER_BYTE;
    state->examined += positions;
}

uint64_t kc_resync_next(const uint8_t *data, uint64_t size, uint64_t from, kc_resync *state) {
    for (uint64_t start = from; start < size && size - start >= KC_MESSAGE_MIN_SIZE; start += BLOCK) {
        const uint64_t left = size - start, count = left - KC_MESSAGE_MIN_SIZE + 1;
        const uint8_t high = left >> 24 < 0x7f ? (uint8_t)(left >> 24) : 0x7f;
        uint64_t seen = 0; /* positions of the block for which credit was added */
        for (uint64_t bits = candidates(data + start, count, high); bits; bits &= bits - 1) {
            const uint64_t i = (uint64_t)__builtin_ctzll(bits);
            uint64_t total;
            advance(state, i - seen);
            seen = i;
            if (intact(data, size, start + i, &total, state)) return start + i;
        }
        advance(state, (count < BLOCK ? count : BLOCK) - seen);
    }
    return size;
}

/* The next intact batch whose offset could follow the partial batch at `position` in a log. */
static uint64_t next_in_order(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state) {
    if (size - position < KC_ENTRY_OVERHEAD) return size;
    const uint64_t offset = kc_load_u64(data + position);
    if (offset > (uint64_t)state->most_offset) return kc_resync_next(data, size, position + 1, state);
    uint64_t at = position;
    while ((at = kc_resync_next(data, size, at + 1, state)) < size) {
        const uint64_t found = kc_load_u64(data + at);
        if (found > offset && found - offset <= INT32_MAX) break;
    }
    return at;
}

uint64_t kc_resync_after(const uint8_t *data, uint64_t size, uint64_t position, kc_resync *state) {
    kc_span span;
    kc_error ignored = {0};
    uint64_t total;
    const kc_walk here = kc_walk_next(data, size, position, &span, &ignored);
    if (here == KC_WALK_END) return size;
    if (here == KC_WALK_FAULT) return kc_resync_next(data, size, position + 1, state);
    if (here == KC_WALK_PARTIAL) return next_in_order(data, size, position, state);
    const uint64_t end = position + span.size;
    const kc_walk there = kc_walk_next(data, size, end, &span, &ignored);
    if (there == KC_WALK_END && end < size) return next_in_order(data, end, position, state); /* zeros follow */
    if (there == KC_WALK_END || intact(data, size, end, &total, state)) {
        state->credit += (end - position) * KC_RESYNC_CREDIT_PER_BYTE;
        return end;
    }
    const uint64_t next = kc_resync_next(data, size, position + 1, state);
    return there == KC_WALK_PARTIAL && next == size ? end : next;
}
