/* A CRC kernel from an instruction with a throughput of eight bytes per cycle and a latency of some cycles: three
 * streams run in parallel, and their registers are combined by carry-less multiplication.
 *
 * A template: define the macros below and include this file, once for each kernel.
 *   KERNEL                the function's name
 *   TARGET                its target attribute
 *   STEP8(state, word)    the register after eight bytes, as a little-endian word
 *   STEP1(state, byte)    the register after one byte
 *   MULTIPLY(a, b)        the low 64 bits of the carry-less product
 *   CONSTANTS             a kc_crc_constants */

/* Processes three streams of `length` bytes each while enough bytes are left. */
#define THREE_STREAMS(length, powers)                                                                  \
    for (; size >= 3 * (size_t)(length); data += 3 * (size_t)(length), size -= 3 * (size_t)(length)) { \
        uint32_t second = 0, third = 0;                                                                \
        for (const uint8_t *p = data; p < data + (length); p += 8) {                                   \
            state = STEP8(state, kc_crc_load8(p));                                                     \
            second = STEP8(second, kc_crc_load8(p + (length)));                                        \
            third = STEP8(third, kc_crc_load8(p + 2 * (size_t)(length)));                              \
        }                                                                                              \
        uint64_t moved = MULTIPLY(state, (powers)[0]) ^ MULTIPLY(second, (powers)[1]);                 \
        state = third ^ STEP8(0, moved);                                                               \
    }

TARGET uint32_t KERNEL(uint32_t state, const uint8_t *data, size_t size) {
    THREE_STREAMS(KC_CRC_LONG_STREAM, CONSTANTS.long_stream)
    THREE_STREAMS(KC_CRC_SHORT_STREAM, CONSTANTS.short_stream)
    for (; size >= 8; data += 8, size -= 8) state = STEP8(state, kc_crc_load8(data));
    for (; size; data++, size--) state = STEP1(state, *data);
    return state;
}

#undef THREE_STREAMS
#undef KERNEL
#undef TARGET
#undef STEP8
#undef STEP1
#undef MULTIPLY
#undef CONSTANTS
