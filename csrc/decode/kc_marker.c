#include "decode/kc_marker.h"

#include "base/kc_varint.h"

enum { KEY_SIZE = 4, KIND_AT = 2 };

/* Skips a varint of 64 bits; NULL if there is none. */
static const uint8_t *skip(const uint8_t *p, const uint8_t *end) {
    int64_t ignored;
    const int n = p ? kc_varint64_decode(p, end, &ignored) : 0;
    return n > 0 ? p + n : NULL;
}

int32_t kc_marker_kind(const kc_batch *batch) {
    if (kc_batch_codec(batch) != KC_CODEC_NONE) return KC_MARKER_COMPRESSED;
    const uint8_t *end = batch->records + batch->records_size;
    const uint8_t *p = batch->records_size ? skip(batch->records, end) : NULL;
    if (!p || p == end) return KC_MARKER_UNREADABLE;
    p = skip(skip(p + 1, end), end); /* after the length the attributes, then the differences of time and offset */
    int32_t size = 0;
    const int n = p ? kc_varint32_decode(p, end, &size) : 0;
    if (n <= 0 || size < KEY_SIZE || end - p - n < KEY_SIZE) return KC_MARKER_UNREADABLE;
    return kc_load_u16(p + n + KIND_AT);
}
