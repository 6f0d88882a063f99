/* Powers of x modulo the two CRC polynomials, for the folding and the three-way kernels.
 *
 * Polynomials are bit-reflected: in a word of n bits, bit i is the coefficient of x^(n-1-i). The carry-less product
 * of two reflected words of n bits, read as a reflected word of 2n bits, is the product of the polynomials times x;
 * that is the -1 in the exponents below. csrc/tests/test_crc.c derives every number again. */
#ifndef KC_CRC_CONSTANTS_H
#define KC_CRC_CONSTANTS_H

#include <stdint.h>

/* Lengths in bytes of the streams that a three-way kernel runs side by side. */
enum { KC_CRC_LONG_STREAM = 1024, KC_CRC_SHORT_STREAM = 128 };

/* The same for the kernel that folds beside the streams, and the size of its blocks in streams: what it folds takes
 * four. */
enum { KC_CRC_MIXED_LONG = 1024, KC_CRC_MIXED_SHORT = 256, KC_CRC_MIXED_STREAMS = 7 };

typedef struct kc_crc_constants {
    /* For moving a block of 128 bits ahead by `distance` bits: x^(distance + 63) for its low word, x^(distance - 1)
     * for its high word; 64-bit words. */
    uint64_t fold_2048[2], fold_512[2], fold_128[2];
    uint64_t fold_96, fold_64; /* x^95 and x^63, for the last steps from 128 bits to 64 */
    uint64_t quotient;         /* x^64 divided by the polynomial, 33 bits */
    uint64_t polynomial;       /* 33 bits */
    /* For moving a register ahead by two streams and by one: x^(16 * length - 33), x^(8 * length - 33); 32-bit words.
     */
    uint32_t long_stream[2], short_stream[2];
} kc_crc_constants;

static const kc_crc_constants kc_crc32c_constants = {
    .fold_2048 = {0xe9a5d8be00000000, 0x1426a81500000000},
    .fold_512 = {0x1c19243b00000000, 0x75bba45b00000000},
    .fold_128 = {0x3743f7bd00000000, 0x3171d43000000000},
    .fold_96 = 0x493c7d2700000000,
    .fold_64 = 0xdd45aab800000000,
    .quotient = 0x0dea713f1,
    .polynomial = 0x105ec76f1,
    .long_stream = {0xa51b6135, 0x170076fa},
    .short_stream = {0xb9e02b86, 0x0d3b6092},
};

static const kc_crc_constants kc_crc32_constants = {
    .fold_2048 = {0x7cc8e1e700000000, 0x03f9f86300000000},
    .fold_512 = {0x653d982200000000, 0xcad38e8f00000000},
    .fold_128 = {0x65673b4600000000, 0x9ba54c6f00000000},
    .fold_96 = 0xccaa009e00000000,
    .fold_64 = 0xb8bc676500000000,
    .quotient = 0x1f7011641,
    .polynomial = 0x1db710641,
    .long_stream = {0x7b4aa8b7, 0xbbf2f6d6},
    .short_stream = {0xe95c1271, 0x910eeec1},
};

/* Only for CRC-32C. */
typedef struct kc_crc_mixed_constants {
    uint64_t fold_1024[2], fold_256[2]; /* as above */
    /* For moving a register ahead by seven, three, two streams and one, as above. */
    uint32_t long_stream[4], short_stream[4];
} kc_crc_mixed_constants;

static const kc_crc_mixed_constants kc_crc32c_mixed_constants = {
    .fold_1024 = {0x6577b24500000000, 0x7417153f00000000},
    .fold_256 = {0x33ccbbbc00000000, 0xa2158b3400000000},
    .long_stream = {0xa9232e2b, 0x359674f7, 0xa51b6135, 0x170076fa},
    .short_stream = {0xaa7c7ad5, 0xd7a4825c, 0xdd7e3b0c, 0xb9e02b86},
};

#endif
