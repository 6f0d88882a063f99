/* Any bytes as frames of LZ4, Snappy and Zstandard: blocks are inside the data, and their number is finite. */
#include "frames/kc_lz4_frame.h"
#include "frames/kc_snappy_frame.h"
#include "frames/kc_zstd_frame.h"
#include "fuzz.h"

static void must_lie_inside(const uint8_t *part, size_t part_size, const uint8_t *data, size_t size) {
    MUST(part >= data && part_size <= size && (size_t)(part - data) <= size - part_size);
}

static void lz4(const uint8_t *data, size_t size, bool any_checksum) {
    kc_lz4_frame frame;
    kc_lz4_block block;
    kc_error error = {0};
    if (kc_lz4_open(&frame, data, size, any_checksum, &error)) return;
    for (size_t blocks = 0; kc_lz4_next(&frame, &block, &error) == KC_OK && block.data; blocks++) {
        must_lie_inside(block.data, block.size, data, size);
        MUST(blocks <= size);
    }
}

static void snappy(const uint8_t *data, size_t size) {
    kc_snappy_frame frame;
    kc_snappy_block block;
    kc_error error = {0};
    if (kc_snappy_open(&frame, data, size, &error)) return;
    for (size_t blocks = 0; kc_snappy_next(&frame, &block, &error) == KC_OK && block.data; blocks++) {
        must_lie_inside(block.data, block.size, data, size);
        MUST(blocks <= size);
    }
}

static void zstd(const uint8_t *data, size_t size) {
    size_t position = 0;
    while (position < size) {
        const size_t before = position;
        kc_zstd_frame frame;
        kc_error error = {0};
        if (kc_zstd_next(data, size, &position, &frame, &error)) {
            MUST(error.code != KC_OK && error.what);
            return;
        }
        MUST(position > before && position <= size);
        must_lie_inside(frame.data, frame.size, data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lz4(data, size, false);
    lz4(data, size, true);
    snappy(data, size);
    zstd(data, size);
    return 0;
}
