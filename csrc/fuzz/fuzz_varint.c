/* Consecutive varints: each value is written in its shortest form and read again as the same value. */
#include "base/kc_varint.h"
#include "fuzz.h"

/* The same rules in another form: each group is compared with the bits that are left above it. */
static int reference(const uint8_t *p, const uint8_t *end, int bits, int max_bytes, uint64_t *value) {
    uint64_t v = 0;
    for (int i = 0; i < max_bytes; i++) {
        if (p + i == end) return 0;
        const uint64_t group = p[i] & 0x7f;
        if (bits - 7 * i < 7 && group >> (bits - 7 * i)) return -1;
        v |= group << (7 * i);
        if (p[i] < 0x80) {
            *value = v;
            return i + 1;
        }
    }
    return -1;
}

static int check64(const uint8_t *p, const uint8_t *end) {
    uint64_t value = 0, want = 0, again = 0;
    int n = kc_uvarint64_decode(p, end, &value);
    MUST(n == reference(p, end, 64, KC_VARINT64_MAX_BYTES, &want));
    MUST(value == want);
    if (n <= 0) return n;
    uint8_t out[KC_VARINT64_MAX_BYTES];
    size_t written = kc_uvarint64_encode(out, value);
    MUST(written <= (size_t)n && written == kc_uvarint64_size(value));
    MUST(kc_uvarint64_decode(out, out + written, &again) == (int)written && again == value);
    MUST(kc_zigzag64(kc_unzigzag64(value)) == value);
    return n;
}

static void check32(const uint8_t *p, const uint8_t *end) {
    uint32_t value = 0;
    uint64_t want = 0;
    int n = kc_uvarint32_decode(p, end, &value);
    MUST(n == reference(p, end, 32, KC_VARINT32_MAX_BYTES, &want));
    MUST(n <= 0 || (value == want && kc_zigzag32(kc_unzigzag32(value)) == value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (const uint8_t *p = data, *end = data + size; p < end; p++) {
        check64(p, end);
        check32(p, end);
    }
    return 0;
}
