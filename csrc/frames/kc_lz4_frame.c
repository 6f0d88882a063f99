#include "frames/kc_lz4_frame.h"

#include "checksum/kc_xxh32.h"

#define FRAME_MAGIC 0x184D2204u
#define STORED_BLOCK 0x80000000u
#define HAS_CONTENT_SIZE 0x08

static uint64_t position(const kc_lz4_frame *frame) { return (uint64_t)(frame->bytes.at - frame->start); }

static int fail(const kc_lz4_frame *frame, int code, const char *what, int64_t got, int64_t want, kc_error *error) {
    return kc_fail(error, code, what, position(frame), got, want);
}

static uint32_t take_le32(kc_bytes *b) {
    const uint8_t *p = kc_take(b, 4);
    return p ? kc_load_le32(p) : 0;
}

/* Flags: version 01, then independent blocks, block checksums, content size, content checksum, reserved, dictionary. */
static int read_flags(kc_lz4_frame *frame, uint8_t flags, uint8_t block_code, kc_error *error) {
    if (flags >> 6 != 1) return fail(frame, KC_CORRUPT, "unknown LZ4 frame version", flags >> 6, 1, error);
    if (!(flags & 0x20))
        return fail(frame, KC_CORRUPT, "LZ4 frame has linked blocks, which Kafka does not support", 0, 0, error);
    if (flags & 0x03) return fail(frame, KC_CORRUPT, "LZ4 frame sets reserved flags", flags & 0x03, 0, error);
    if (block_code & 0x8F || block_code >> 4 < 4)
        return fail(frame, KC_CORRUPT, "LZ4 frame has a reserved block size", block_code, 0x40, error);
    frame->block_checksums = flags & 0x10;
    frame->has_content_checksum = flags & 0x04;
    frame->block_max = (size_t)1 << (8 + 2 * (block_code >> 4)); /* 4: 64 KiB … 7: 4 MiB */
    return KC_OK;
}

int kc_lz4_open(kc_lz4_frame *frame, const uint8_t *data, size_t size, bool any_checksum, kc_error *error) {
    *frame = (kc_lz4_frame){.bytes = kc_bytes_over(data, size), .start = data};
    kc_bytes *b = &frame->bytes;
    uint32_t magic = take_le32(b);
    if (!b->failed && magic != FRAME_MAGIC) return kc_fail(error, KC_CORRUPT, "not an LZ4 frame", 0, 0, 0);
    const uint8_t *descriptor = kc_take(b, 2);
    if (!descriptor) return fail(frame, KC_TRUNCATED, "LZ4 frame ends inside its header", (int64_t)size, 7, error);
    const uint8_t flags = kc_load_u8(descriptor);
    if (read_flags(frame, flags, kc_load_u8(descriptor + 1), error)) return error->code;
    const bool has_content_size = flags & HAS_CONTENT_SIZE;
    if (has_content_size) kc_take(b, 8);
    uint8_t stored = kc_take_u8(b);
    const size_t bytes = KC_LZ4_DESCRIPTOR_BYTES(has_content_size);
    if (b->failed)
        return fail(frame, KC_TRUNCATED, "LZ4 frame ends inside its header", (int64_t)size, (int64_t)bytes + 5, error);
    uint8_t computed = (uint8_t)(kc_xxh32(descriptor, bytes) >> 8);
    if (computed != stored && !any_checksum)
        return fail(frame, KC_CRC_MISMATCH, "the checksum of an LZ4 frame header is wrong", computed, stored, error);
    return KC_OK;
}

static int take_end(kc_lz4_frame *frame, kc_lz4_block *block, kc_error *error) {
    block->data = NULL;
    if (frame->has_content_checksum) kc_take(&frame->bytes, 4);
    if (frame->bytes.failed)
        return fail(frame, KC_TRUNCATED, "LZ4 frame ends inside its content checksum", 0, 0, error);
    return KC_OK;
}

int kc_lz4_next(kc_lz4_frame *frame, kc_lz4_block *block, kc_error *error) {
    kc_bytes *b = &frame->bytes;
    uint32_t header = take_le32(b);
    if (b->failed) return fail(frame, KC_TRUNCATED, "LZ4 frame has no end mark", 0, 0, error);
    block->stored = header & STORED_BLOCK;
    block->size = header & ~STORED_BLOCK;
    if (block->size == 0) return take_end(frame, block, error);
    if (block->size > frame->block_max)
        return fail(frame, KC_CORRUPT, "LZ4 block is larger than its frame allows", (int64_t)block->size,
                    (int64_t)frame->block_max, error);
    size_t left = kc_bytes_left(b);
    block->data = kc_take(b, block->size);
    if (!block->data)
        return fail(frame, KC_TRUNCATED, "LZ4 block runs past the data", (int64_t)left, (int64_t)block->size, error);
    if (!frame->block_checksums) return KC_OK;
    uint32_t want = take_le32(b);
    if (b->failed) return fail(frame, KC_TRUNCATED, "LZ4 frame ends inside a block checksum", 0, 0, error);
    uint32_t got = kc_xxh32(block->data, block->size);
    if (got != want) return fail(frame, KC_CRC_MISMATCH, "the checksum of an LZ4 block is wrong", got, want, error);
    return KC_OK;
}

uint8_t kc_lz4_old_checksum(const uint8_t *frame, bool has_content_size) {
    return (uint8_t)(kc_xxh32(frame, 4 + KC_LZ4_DESCRIPTOR_BYTES(has_content_size)) >> 8);
}
