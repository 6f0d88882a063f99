/* Arrow's view of one value, in the layouts "binary view" and "string view". */
#ifndef KC_VIEW_H
#define KC_VIEW_H

#include <stdint.h>

/* The value's length, then up to twelve bytes in place and zeros, or a prefix, a buffer and a position in it. */
typedef struct kc_view {
    int32_t size;
    union {
        uint8_t inlined[12];
        struct {
            uint8_t prefix[4];
            int32_t buffer, position;
        } far;
    } at;
} kc_view;

enum { KC_VIEW_INLINED = 12 };

_Static_assert(sizeof(kc_view) == 16, "Arrow's views are 16 bytes apart");

#endif
