/* The portable kernel: eight bytes a step through eight tables.
 *
 * A table is linear in its index, so eight numbers (its entries for one bit each) and the macros give all 256. */

#include "checksum/kc_crc_kernels.h"

#define ENTRY(b, b0, b1, b2, b3, b4, b5, b6, b7)                                                 \
    (((b) & 1 ? (b0) : 0) ^ ((b) & 2 ? (b1) : 0) ^ ((b) & 4 ? (b2) : 0) ^ ((b) & 8 ? (b3) : 0) ^ \
     ((b) & 16 ? (b4) : 0) ^ ((b) & 32 ? (b5) : 0) ^ ((b) & 64 ? (b6) : 0) ^ ((b) & 128 ? (b7) : 0))
#define FOUR(b, ...) \
    ENTRY(b, __VA_ARGS__), ENTRY((b) + 1, __VA_ARGS__), ENTRY((b) + 2, __VA_ARGS__), ENTRY((b) + 3, __VA_ARGS__)
#define SIXTEEN(b, ...) \
    FOUR(b, __VA_ARGS__), FOUR((b) + 4, __VA_ARGS__), FOUR((b) + 8, __VA_ARGS__), FOUR((b) + 12, __VA_ARGS__)
#define SIXTY_FOUR(b, ...)                                                                   \
    SIXTEEN(b, __VA_ARGS__), SIXTEEN((b) + 16, __VA_ARGS__), SIXTEEN((b) + 32, __VA_ARGS__), \
        SIXTEEN((b) + 48, __VA_ARGS__)
#define TABLE(...)                                                                          \
    {SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__), SIXTY_FOUR(128, __VA_ARGS__), \
     SIXTY_FOUR(192, __VA_ARGS__)}

/* clang-format off */
const uint32_t kc_crc32c_slices[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

const uint32_t kc_crc32_slices[8][256] = {
    TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
    TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
    TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
    TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
    TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
    TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
    TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
    TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
};
/* clang-format on */

static uint32_t by_table(const uint32_t t[8][256], uint32_t state, const uint8_t *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t near =
            state ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        state = t[7][near & 255] ^ t[6][near >> 8 & 255] ^ t[5][near >> 16 & 255] ^ t[4][near >> 24] ^ t[3][data[4]] ^
                t[2][data[5]] ^ t[1][data[6]] ^ t[0][data[7]];
    }
    for (; size; data++, size--) state = state >> 8 ^ t[0][(state ^ *data) & 255];
    return state;
}

uint32_t kc_crc32c_table(uint32_t state, const uint8_t *data, size_t size) {
    return by_table(kc_crc32c_slices, state, data, size);
}

uint32_t kc_crc32_table(uint32_t state, const uint8_t *data, size_t size) {
    return by_table(kc_crc32_slices, state, data, size);
}
