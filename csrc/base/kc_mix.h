/* A mixing function for hash tables. */
#ifndef KC_MIX_H
#define KC_MIX_H

#include <stdint.h>

/* The finalizer of SplitMix64: every bit of the input changes half of the output. */
static inline uint64_t kc_mix64(uint64_t v) {
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

#endif
