/* The buffers that the views of one table point into: each a stretch of a kc_backing.
 *
 * A buffer begins where the first value that it has is read from and ends with the last one, so that whoever copies
 * it, as Arrow's file format does, copies no more than that. Positions in a view have 31 bits: where a backing is
 * larger, several buffers share it. */
#ifndef KC_VIEWS_H
#define KC_VIEWS_H

#include <stdbool.h>

#include "arrow/kc_view.h"
#include "base/kc_alloc.h"
#include "base/kc_backing.h"

typedef struct kc_view_buffer {
    kc_backing *backing; /* one reference; NULL: what the caller keeps */
    const uint8_t *data;
    size_t size;
} kc_view_buffer;

/* Zero-initialised is empty, but for `reach`. */
typedef struct kc_views {
    bool wanted;         /* the table has columns of views */
    kc_buffer list;      /* kc_view_buffer[] */
    size_t reach;        /* no value begins so far from the start of its buffer */
    kc_backing *backing; /* what the next rows are read from: set by who reads them, and not kept from here */
    int32_t current;     /* the buffer that kc_views_open chose */
    const uint8_t *origin;
} kc_views;

#define KC_VIEW_REACH ((size_t)INT32_MAX)

static inline int32_t kc_views_count(const kc_views *v) { return (int32_t)(v->list.size / sizeof(kc_view_buffer)); }

static inline const kc_view_buffer *kc_views_at(const kc_views *v, int32_t i) {
    return (const kc_view_buffer *)(const void *)v->list.data + i;
}

/* Chooses the buffer for values that lie in [from, to) of v->backing: all of them are within its reach or, where that
 * is not possible, those are that begin within `reach` of `from`. */
KC_MUST_CHECK int kc_views_open(kc_views *v, const uint8_t *from, const uint8_t *to, kc_budget *budget,
                                kc_error *error);

/* Makes the chosen buffer end at `to` or further on; NULL where no view points into it for now. */
void kc_views_close(kc_views *v, const uint8_t *to);

/* Puts copies of what they have of one backing in the place of the buffers that share it. */
KC_MUST_CHECK int kc_views_own(kc_views *v, const kc_backing *backing, kc_budget *budget, kc_error *error);

/* Moves all buffers of `from` behind those of `v`: *first becomes the number of the first of them. */
KC_MUST_CHECK int kc_views_move(kc_views *v, kc_views *from, int32_t *first, kc_budget *budget, kc_error *error);

/* Bytes in all buffers but those of the source. */
size_t kc_views_bytes(const kc_views *v);

void kc_views_free(kc_views *v, kc_budget *budget);

#endif
