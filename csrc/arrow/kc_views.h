/* The buffers that the views of one table point into: each is a part of a kc_backing.
 *
 * A buffer spans only its values, from the first to the last, so that a copy of it (as in Arrow's file format) has no
 * other bytes. Positions in a view have 31 bits, so a larger backing needs several buffers. */
#ifndef KC_VIEWS_H
#define KC_VIEWS_H

#include <stdbool.h>

#include "arrow/kc_view.h"
#include "base/kc_alloc.h"
#include "base/kc_backing.h"

typedef struct kc_view_buffer {
    kc_backing *backing; /* one reference; NULL: the caller keeps the memory */
    const uint8_t *data;
    size_t size;
} kc_view_buffer;

/* Zero-initialised is empty, except for `reach`. */
typedef struct kc_views {
    bool wanted;         /* the table has columns of views */
    kc_buffer list;      /* kc_view_buffer[] */
    size_t reach;        /* values start at smaller positions in their buffer */
    kc_backing *backing; /* the source of the next rows: set by their reader, borrowed */
    int32_t current;     /* the buffer that kc_views_open chose */
    const uint8_t *origin;
    size_t kept;            /* bytes of all decompressed records of which buffers are a part */
    size_t copied;          /* bytes in buffers of a source that is copied */
    const uint8_t *counted; /* the records that `kept` includes last */
} kc_views;

#define KC_VIEW_REACH ((size_t)INT32_MAX)

static inline int32_t kc_views_count(const kc_views *v) { return (int32_t)(v->list.size / sizeof(kc_view_buffer)); }

static inline const kc_view_buffer *kc_views_at(const kc_views *v, int32_t i) {
    return (const kc_view_buffer *)(const void *)v->list.data + i;
}

/* Chooses the buffer for values in [from, to) of v->backing. All of them are within its reach or, if that is not
 * possible, those that start within `reach` of `from`. */
KC_MUST_CHECK int kc_views_open(kc_views *v, const uint8_t *from, const uint8_t *to, kc_budget *budget,
                                kc_error *error);

/* Makes the chosen buffer end at `to` or later; NULL if no view points into it yet. */
void kc_views_close(kc_views *v, const uint8_t *to);

/* Counts decompressed records, a part of v->backing, as kept if a buffer points into them; once. */
void kc_views_keep(kc_views *v, const uint8_t *records, size_t size);

/* Replaces the buffers that share a backing by copies of their bytes. */
KC_MUST_CHECK int kc_views_own(kc_views *v, const kc_backing *backing, kc_budget *budget, kc_error *error);

/* Moves all buffers of `from` after those of `v`; *first becomes the number of the first of them. */
KC_MUST_CHECK int kc_views_move(kc_views *v, kc_views *from, int32_t *first, kc_budget *budget, kc_error *error);

/* Adds a reference to each buffer of `from` to `v`, which has none: the views of `from` are then valid for it. */
KC_MUST_CHECK int kc_views_share(kc_views *v, const kc_views *from, kc_budget *budget, kc_error *error);

/* Memory that the buffers keep, without the source: all of the decompressed records that they are parts of. */
size_t kc_views_bytes(const kc_views *v);

void kc_views_free(kc_views *v, kc_budget *budget);

#endif
