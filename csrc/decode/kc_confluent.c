#include "decode/kc_confluent.h"

#include <string.h>

#include "base/kc_bytes.h"

enum { FRAME_BYTES = 5 };

static const uint8_t *base_of(const kc_arrow_bytes *c) { return c->layout == KC_LAYOUT_FIXED ? c->index : c->data; }

static int64_t data_end(const kc_arrow_bytes *c) {
    return c->layout == KC_LAYOUT_FIXED ? (c->first + c->length) * c->width : c->end;
}

int64_t kc_confluent_buffers(const kc_arrow_bytes *c) {
    if (c->layout == KC_LAYOUT_VIEWS) return c->view_buffers;
    return (data_end(c) >> KC_PIECE_SHIFT) + (data_end(c) > 0);
}

const void *kc_confluent_buffer(const kc_arrow_bytes *c, int64_t i, int64_t *size) {
    if (c->layout == KC_LAYOUT_VIEWS) {
        *size = c->view_sizes[i];
        return c->view_data[i];
    }
    *size = data_end(c) - (i << KC_PIECE_SHIFT);
    return base_of(c) + (i << KC_PIECE_SHIFT);
}

/* The position of a payload that starts `skipped` bytes into the view of row `row`. */
static int place_in_view(const kc_arrow_bytes *c, int64_t row, const uint8_t *payload, int32_t skipped, kc_view *view,
                         kc_error *error) {
    kc_view whole;
    int64_t buffer_size;
    kc_load_copy(&whole, (const kc_view *)c->index + c->first + row, sizeof whole);
    const uint8_t *data = kc_arrow_bytes_far(c, &whole, row, &buffer_size, error);
    if (!data) return error->code;
    if (whole.size < view->size + skipped || data + skipped != payload)
        return kc_cannot_encode(error, "a view changed while it was read", row, whole.size, view->size);
    view->at.far.buffer = whole.at.far.buffer;
    view->at.far.position = whole.at.far.position + skipped;
    return KC_OK;
}

/* A view of the payload, which starts `skipped` bytes into row `row`. */
static int put_view(const kc_arrow_bytes *c, int64_t row, const uint8_t *payload, int32_t size, int32_t skipped,
                    int32_t first_buffer, kc_view *out, kc_error *error) {
    kc_view view = {.size = size};
    if (size <= KC_VIEW_INLINED) {
        if (size) memcpy(view.at.inlined, payload, (size_t)size);
        *out = view;
        return KC_OK;
    }
    memcpy(view.at.far.prefix, payload, sizeof view.at.far.prefix);
    if (c->layout == KC_LAYOUT_VIEWS) {
        if (place_in_view(c, row, payload, skipped, &view, error)) return error->code;
    } else {
        int64_t position = payload - base_of(c);
        view.at.far.buffer = (int32_t)(position >> KC_PIECE_SHIFT);
        view.at.far.position = (int32_t)(position & ((1 << KC_PIECE_SHIFT) - 1));
    }
    view.at.far.buffer += first_buffer;
    *out = view;
    return KC_OK;
}

int kc_confluent_split(const kc_arrow_bytes *c, const kc_confluent_parts *parts, int64_t at, int32_t first_buffer,
                       kc_error *error) {
    kc_spans spans;
    for (int64_t row = 0; row < c->length; row += KC_BLOCK_ROWS) {
        int64_t n = c->length - row < KC_BLOCK_ROWS ? c->length - row : KC_BLOCK_ROWS;
        if (kc_arrow_bytes_load(c, row, n, &spans, error)) return error->code;
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *value = spans.data[i];
            int64_t out = at + row + i;
            uint8_t bit = (uint8_t)(1 << (out & 7));
            bool null = spans.size[i] < 0, framed = spans.size[i] >= FRAME_BYTES && kc_load_u8(value) == 0;
            int32_t skipped = framed ? FRAME_BYTES : 0, size = null ? 0 : spans.size[i] - skipped;
            parts->ids[out] = framed ? (int32_t)kc_load_u32(value + 1) : 0;
            if (framed) parts->id_validity[out >> 3] |= bit;
            if (!null) parts->payload_validity[out >> 3] |= bit;
            kc_view *payload = &parts->payloads[out];
            if (put_view(c, row + i, value + skipped, size, skipped, first_buffer, payload, error)) return error->code;
        }
    }
    return KC_OK;
}
