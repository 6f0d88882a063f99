#include "checksum/kc_xxh32.h"

#include "base/kc_bytes.h"

static const uint32_t P1 = 0x9E3779B1u, P2 = 0x85EBCA77u, P3 = 0xC2B2AE3Du, P4 = 0x27D4EB2Fu, P5 = 0x165667B1u;

static inline uint32_t rotate(uint32_t v, int bits) { return v << bits | v >> (32 - bits); }

static inline uint32_t lane(uint32_t sum, const uint8_t *p) { return rotate(sum + kc_load_le32(p) * P2, 13) * P1; }

uint32_t kc_xxh32(const uint8_t *data, size_t size) {
    const uint8_t *p = data;
    size_t left = size;
    uint32_t hash = P5;
    if (left >= 16) {
        uint32_t a = P1 + P2, b = P2, c = 0, d = 0 - P1;
        for (; left >= 16; p += 16, left -= 16) {
            a = lane(a, p);
            b = lane(b, p + 4);
            c = lane(c, p + 8);
            d = lane(d, p + 12);
        }
        hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    }
    hash += (uint32_t)size;
    for (; left >= 4; p += 4, left -= 4) hash = rotate(hash + kc_load_le32(p) * P3, 17) * P4;
    for (; left > 0; p += 1, left -= 1) hash = rotate(hash + *p * P5, 11) * P1;
    hash = (hash ^ hash >> 15) * P2;
    hash = (hash ^ hash >> 13) * P3;
    return hash ^ hash >> 16;
}
