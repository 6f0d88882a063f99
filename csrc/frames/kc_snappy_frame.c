#include "frames/kc_snappy_frame.h"

#include "base/kc_varint.h"

static const uint8_t XERIAL_MAGIC[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

/* The densest element is a copy: three bytes for 64. */
static uint64_t most_content(size_t compressed) { return ((uint64_t)compressed / 3 + 1) * 64; }

static uint64_t position(const kc_snappy_frame *frame) { return (uint64_t)(frame->bytes.at - frame->start); }

static int read_header(kc_snappy_frame *frame, kc_error *error) {
    const uint8_t *header = kc_take(&frame->bytes, KC_XERIAL_HEADER_BYTES);
    if (!header) return kc_fail(error, KC_TRUNCATED, "truncated xerial header", position(frame), 0, 0);
    int32_t version = (int32_t)kc_load_u32(header + 8);
    if (version < 1) return kc_fail(error, KC_CORRUPT, "unsupported xerial version", position(frame), version, 1);
    return KC_OK;
}

static bool at_header(const kc_snappy_frame *frame) {
    return kc_bytes_left(&frame->bytes) >= sizeof XERIAL_MAGIC &&
           memcmp(frame->bytes.at, XERIAL_MAGIC, sizeof XERIAL_MAGIC) == 0;
}

int kc_snappy_open(kc_snappy_frame *frame, const uint8_t *data, size_t size, kc_error *error) {
    *frame = (kc_snappy_frame){.bytes = kc_bytes_over(data, size), .start = data};
    if (size == 0) return kc_fail(error, KC_TRUNCATED, "empty Snappy data", 0, 0, 0);
    frame->framed = at_header(frame);
    return frame->framed ? read_header(frame, error) : KC_OK;
}

static int take_block(kc_snappy_frame *frame, size_t size, kc_snappy_block *block, kc_error *error) {
    uint64_t at = position(frame);
    block->size = size;
    block->data = kc_take(&frame->bytes, size);
    uint32_t claimed = 0;
    if (kc_uvarint32_decode(block->data, block->data + size, &claimed) <= 0)
        return kc_fail(error, KC_CORRUPT, "Snappy block has no valid length", at, 0, 0);
    if (claimed > most_content(size))
        return kc_fail(error, KC_CORRUPT, "Snappy block claims more content than it can hold", at, claimed,
                       (int64_t)most_content(size));
    block->content_size = claimed;
    return KC_OK;
}

int kc_snappy_next(kc_snappy_frame *frame, kc_snappy_block *block, kc_error *error) {
    kc_bytes *b = &frame->bytes;
    while (frame->framed && at_header(frame)) /* streams may be concatenated */
        if (read_header(frame, error)) return error->code;
    size_t left = kc_bytes_left(b);
    if (left == 0) {
        *block = (kc_snappy_block){0};
        return KC_OK;
    }
    if (!frame->framed) return take_block(frame, left, block, error);
    int32_t size = kc_take_i32(b);
    if (b->failed) return kc_fail(error, KC_TRUNCATED, "truncated xerial block length", position(frame), 0, 0);
    left = kc_bytes_left(b);
    if (size <= 0) return kc_fail(error, KC_CORRUPT, "invalid xerial block length", position(frame), size, 1);
    if ((size_t)size > left)
        return kc_fail(error, KC_TRUNCATED, "xerial block runs past the data", position(frame), (int64_t)left, size);
    return take_block(frame, (size_t)size, block, error);
}

void kc_xerial_header(uint8_t *out) {
    memcpy(out, XERIAL_MAGIC, sizeof XERIAL_MAGIC);
    kc_store_u32(out + 8, 1);
    kc_store_u32(out + 12, 1);
}
