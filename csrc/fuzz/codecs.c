#include "codecs.h"

#include <string.h>

#include "decode/kc_batch.h"
#include "frames/kc_lz4_frame.h"
#include "frames/kc_snappy_frame.h"
#include "frames/kc_zstd_frame.h"

/* The Makefile says which libraries are linked: not those of another processor, or without a build's sanitizers. */
#if defined(FUZZ_CODECS)
#if __has_include(<zlib.h>)
#define HAS_ZLIB 1
#include <zlib.h>
#endif
#if __has_include(<lz4.h>)
#define HAS_LZ4 1
#include <lz4.h>
#endif
#if __has_include(<snappy-c.h>)
#define HAS_SNAPPY 1
#include <snappy-c.h>
#endif
#if __has_include(<zstd.h>)
#define HAS_ZSTD 1
#include <zstd.h>
#endif
#endif

/* The contents of a frame are collected here, before they get memory of their exact size. */
static uint8_t scratch[1 << 20];

typedef struct content {
    size_t size, limit;
} content;

typedef bool decompressor(const uint8_t *data, size_t size, int magic, content *out);

#if defined(HAS_ZLIB)
static bool gzip(const uint8_t *data, size_t size, int magic, content *out) {
    static z_stream stream;
    static bool ready;
    (void)magic;
    if (!ready) MUST(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
    ready = true;
    MUST(inflateReset(&stream) == Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = scratch;
    stream.avail_out = (uInt)out->limit;
    const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
    out->size = out->limit - stream.avail_out;
    return whole;
}
#else
#define gzip NULL
#endif

#if defined(HAS_LZ4)
static bool lz4(const uint8_t *data, size_t size, int magic, content *out) {
    kc_lz4_frame frame;
    kc_lz4_block block;
    kc_error error = {0};
    if (kc_lz4_open(&frame, data, size, magic == 0, &error)) return false;
    for (;;) {
        if (kc_lz4_next(&frame, &block, &error)) return false;
        if (!block.data) return true;
        size_t room = out->limit - out->size;
        if (room > frame.block_max) room = frame.block_max;
        if (block.stored) {
            if (block.size > room) return false;
            memcpy(scratch + out->size, block.data, block.size);
            out->size += block.size;
            continue;
        }
        const int n =
            LZ4_decompress_safe((const char *)block.data, (char *)scratch + out->size, (int)block.size, (int)room);
        if (n < 0) return false;
        out->size += (size_t)n;
    }
}
#else
#define lz4 NULL
#endif

#if defined(HAS_SNAPPY)
static bool snappy(const uint8_t *data, size_t size, int magic, content *out) {
    kc_snappy_frame frame;
    kc_snappy_block block;
    kc_error error = {0};
    (void)magic;
    if (kc_snappy_open(&frame, data, size, &error)) return false;
    for (;;) {
        if (kc_snappy_next(&frame, &block, &error)) return false;
        if (!block.data) return true;
        size_t n = out->limit - out->size;
        if (block.content_size > n) return false;
        if (snappy_uncompress((const char *)block.data, block.size, (char *)scratch + out->size, &n) != SNAPPY_OK)
            return false;
        MUST(n == block.content_size);
        out->size += n;
    }
}
#else
#define snappy NULL
#endif

#if defined(HAS_ZSTD)
static bool zstd(const uint8_t *data, size_t size, int magic, content *out) {
    static ZSTD_DCtx *context;
    size_t position = 0;
    kc_zstd_frame frame;
    kc_error error = {0};
    (void)magic;
    if (!context) MUST((context = ZSTD_createDCtx()) != NULL);
    while (position < size) {
        if (kc_zstd_next(data, size, &position, &frame, &error)) return false;
        const size_t n =
            ZSTD_decompressDCtx(context, scratch + out->size, out->limit - out->size, frame.data, frame.size);
        if (ZSTD_isError(n)) return false;
        MUST(n <= frame.most_content && (n == 0 || !frame.skippable));
        out->size += n;
    }
    return true;
}
#else
#define zstd NULL
#endif

uint8_t *fuzz_decompress(int codec, int magic, const uint8_t *data, size_t size, size_t limit, size_t *content_size) {
    static decompressor *const DECOMPRESSORS[8] = {
        [KC_CODEC_GZIP] = gzip, [KC_CODEC_SNAPPY] = snappy, [KC_CODEC_LZ4] = lz4, [KC_CODEC_ZSTD] = zstd};
    content out = {0, limit < sizeof scratch ? limit : sizeof scratch};
    decompressor *const decompress = DECOMPRESSORS[codec & KC_CODEC_MASK];
    if (!decompress || !decompress(data, size, magic, &out)) return NULL;
    uint8_t *exact = malloc(out.size ? out.size : 1);
    MUST(exact != NULL);
    if (out.size) memcpy(exact, scratch, out.size);
    *content_size = out.size;
    return exact;
}
