#include "frames/kc_zstd_frame.h"

#define FRAME_MAGIC 0xFD2FB528u
#define SKIPPABLE_MAGIC 0x184D2A50u /* and the 15 after it */
#define BLOCK_MAX ((uint64_t)128 << 10)

typedef struct header {
    bool has_content_size, has_checksum;
    uint64_t content_size, window;
} header;

static uint64_t load_le(const uint8_t *p, size_t size) {
    uint64_t v = 0;
    for (size_t i = size; i > 0; i--) v = v << 8 | kc_load_u8(p + i - 1);
    return v;
}

static uint64_t window_of(uint8_t descriptor) {
    uint64_t base = (uint64_t)1 << (10 + (descriptor >> 3));
    return base + base / 8 * (descriptor & 7);
}

/* Descriptor byte: content size code, single segment, unused, reserved, checksum, dictionary id code. */
static header take_header(kc_bytes *b) {
    static const size_t content_size_bytes[4] = {0, 2, 4, 8}, dictionary_bytes[4] = {0, 1, 2, 4};
    header h = {0};
    uint8_t flags = kc_take_u8(b);
    bool single_segment = flags & 0x20;
    size_t size_bytes = content_size_bytes[flags >> 6];
    if (single_segment && size_bytes == 0) size_bytes = 1;
    h.has_checksum = flags & 0x04;
    h.has_content_size = size_bytes > 0;
    if (!single_segment) h.window = window_of(kc_take_u8(b));
    kc_take(b, dictionary_bytes[flags & 3]);
    const uint8_t *content_size = kc_take(b, size_bytes);
    if (content_size && size_bytes) h.content_size = load_le(content_size, size_bytes) + (size_bytes == 2 ? 256 : 0);
    if (single_segment) h.window = h.content_size;
    return h;
}

/* Skips one block; *content is its maximum content size, *last its flag. */
static int take_block(kc_bytes *b, uint64_t block_max, uint64_t *content, bool *last) {
    enum { RAW, RUN, COMPRESSED };
    const uint8_t *p = kc_take(b, 3);
    if (!p) return KC_TRUNCATED;
    uint32_t head = (uint32_t)load_le(p, 3), size = head >> 3;
    *last = head & 1;
    switch (head >> 1 & 3) {
        case RAW:
            *content = size;
            kc_take(b, size);
            break;
        case RUN:
            *content = size;
            kc_take(b, 1);
            break;
        case COMPRESSED:
            *content = block_max;
            kc_take(b, size);
            break;
        default:
            return KC_CORRUPT;
    }
    if (b->failed) return KC_TRUNCATED;
    return *content > block_max ? KC_CORRUPT : KC_OK;
}

static int take_blocks(kc_bytes *b, const uint8_t *start, header h, uint64_t *most_content, kc_error *error) {
    uint64_t block_max = h.window < BLOCK_MAX ? h.window : BLOCK_MAX;
    bool last = false;
    while (!last) {
        uint64_t content = 0, at = (uint64_t)(b->at - start);
        int code = take_block(b, block_max, &content, &last);
        if (code == KC_TRUNCATED) return kc_fail(error, code, "zstd block runs past the data", at, 0, 0);
        if (code != KC_OK) return kc_fail(error, code, "invalid zstd block header", at, 0, 0);
        *most_content += content;
    }
    return KC_OK;
}

static int take_skippable(kc_bytes *b, const uint8_t *start, kc_error *error) {
    const uint8_t *size = kc_take(b, 4);
    if (size) kc_take(b, kc_load_le32(size));
    if (!b->failed) return KC_OK;
    return kc_fail(error, KC_TRUNCATED, "skippable zstd frame runs past the data", (uint64_t)(b->at - start), 0, 0);
}

static int take_frame(kc_bytes *b, const uint8_t *start, kc_zstd_frame *frame, kc_error *error) {
    header h = take_header(b);
    uint64_t at = (uint64_t)(b->at - start);
    if (b->failed) return kc_fail(error, KC_TRUNCATED, "zstd frame ends inside its header", at, 0, 0);
    if (take_blocks(b, start, h, &frame->most_content, error)) return error->code;
    if (h.has_checksum && !kc_take(b, 4))
        /* The magic was read from `at`. NOLINTNEXTLINE(clang-analyzer-core.NullPointerArithm) */
        return kc_fail(error, KC_TRUNCATED, "zstd frame ends inside its checksum", (uint64_t)(b->at - start), 0, 0);
    if (!h.has_content_size) return KC_OK;
    if (h.content_size > frame->most_content)
        return kc_fail(error, KC_CORRUPT, "zstd frame claims more content than it can hold", at,
                       (int64_t)(h.content_size & INT64_MAX), (int64_t)frame->most_content);
    frame->most_content = h.content_size;
    frame->says_size = true;
    return KC_OK;
}

int kc_zstd_next(const uint8_t *data, size_t size, size_t *position, kc_zstd_frame *frame, kc_error *error) {
    kc_bytes bytes = kc_bytes_over(data, size), *b = &bytes;
    b->at += *position;
    *frame = (kc_zstd_frame){.data = b->at};
    const uint8_t *magic = kc_take(b, 4);
    if (!magic) return kc_fail(error, KC_TRUNCATED, "zstd frame ends inside its magic", *position, 0, 0);
    uint32_t kind = kc_load_le32(magic);
    frame->skippable = (kind & ~0xFu) == SKIPPABLE_MAGIC;
    if (!frame->skippable && kind != FRAME_MAGIC)
        return kc_fail(error, KC_CORRUPT, "not a zstd frame", *position, 0, 0);
    int code = frame->skippable ? take_skippable(b, data, error) : take_frame(b, data, frame, error);
    if (code) return code;
    frame->size = (size_t)(b->at - frame->data);
    *position += frame->size;
    return KC_OK;
}
