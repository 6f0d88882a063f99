#include "encode/kc_record_write.h"

uint8_t *kc_put_headers(uint8_t *p, const uint8_t *end, const kc_arrow_pairs *c, const int64_t bounds[2],
                        kc_error *error) {
    kc_spans keys, values;
    error->code = KC_OK;
    p = kc_put_uvarint(p, kc_zigzag64(bounds[1] - bounds[0]));
    for (int64_t item = bounds[0]; item < bounds[1];) {
        int64_t n = bounds[1] - item < KC_BLOCK_ROWS ? bounds[1] - item : KC_BLOCK_ROWS;
        if (kc_arrow_pairs_items(c, item, n, &keys, &values, error)) return NULL;
        for (int64_t i = 0; i < n; i++) {
            if (end - p < kc_span_bytes(keys.size[i]) + kc_span_bytes(values.size[i])) return NULL;
            p = kc_put_span(kc_put_span(p, &keys, i), &values, i);
        }
        item += n;
    }
    return p == end ? p : NULL;
}
