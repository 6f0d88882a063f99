#include "base/kc_utf8.h"

#include <string.h>

int kc_utf8_sequence(const uint8_t *s, const uint8_t *end) {
    uint8_t lead = s[0];
    if (lead < 0x80) return 1;
    int size = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
    if (!size) return -1;
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80; /* overlong below */
    uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;                      /* beyond U+10FFFF above */
    for (int i = 1; i < size; i++) {
        if (s + i >= end || s[i] < low || s[i] > high) return -i;
        low = 0x80;
        high = 0xbf;
    }
    return lead == 0xed && s[1] >= 0xa0 ? -3 : size;
}

#define HIGH_BITS UINT64_C(0x8080808080808080)

static uint64_t load(const uint8_t *s) {
    uint64_t word;
    memcpy(&word, s, sizeof word);
    return word;
}

bool kc_utf8_is_ascii(const uint8_t *s, size_t size) {
    uint64_t seen = 0;
    if (size < sizeof seen) {
        for (size_t i = 0; i < size; i++) seen |= s[i];
        return !(seen & 0x80);
    }
    for (size_t i = 0; i + sizeof seen < size; i += sizeof seen) seen |= load(s + i);
    return !((seen | load(s + size - sizeof seen)) & HIGH_BITS);
}

bool kc_utf8_valid(const uint8_t *s, size_t size) {
    if (!size) return true; /* s may be NULL */
    const uint8_t *end = s + size;
    while (end - s >= 8) {
        if (load(s) & HIGH_BITS) break;
        s += 8;
    }
    while (s < end) {
        int n = kc_utf8_sequence(s, end);
        if (n < 0) return false;
        s += n;
    }
    return true;
}

static const uint8_t replacement[3] = {0xef, 0xbf, 0xbd}; /* U+FFFD */

size_t kc_utf8_repair(const uint8_t *s, size_t size, uint8_t *out) {
    if (!size) return 0;
    const uint8_t *end = s + size;
    uint8_t *start = out;
    while (s < end) {
        int n = kc_utf8_sequence(s, end);
        if (n > 0) {
            memcpy(out, s, (size_t)n);
            out += n;
        } else {
            memcpy(out, replacement, sizeof replacement);
            out += sizeof replacement;
            n = -n;
        }
        s += n;
    }
    return (size_t)(out - start);
}
