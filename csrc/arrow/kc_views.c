#include "arrow/kc_views.h"

#include <string.h>

/* The number of newest buffers that may be extended: records come from the source and, in between, from decompressed
 * batches. */
enum { OPEN_BUFFERS = 2 };

/* A buffer that is copied ends before so many bytes that no view points to, such as those of skipped batches. */
enum { LONG_GAP = 4096 };

static kc_view_buffer *buffers_of(kc_views *v) { return (kc_view_buffer *)(void *)v->list.data; }

static int reserve(kc_views *v, int32_t more, kc_budget *budget, kc_error *error) {
    const int32_t count = kc_views_count(v);
    if (more > INT32_MAX / (int32_t)sizeof(kc_view_buffer) - count) {
        return kc_fail(error, KC_LIMIT, "a table has too many buffers of values (decode in chunks instead)", 0, count,
                       INT32_MAX / (int32_t)sizeof(kc_view_buffer));
    }
    const size_t size = (size_t)(count + more) * sizeof(kc_view_buffer);
    return size <= v->list.capacity ? KC_OK : kc_buffer_grow_within(&v->list, size, budget, error);
}

static bool reaches(const kc_views *v, const kc_view_buffer *b, const uint8_t *from, const uint8_t *to) {
    if (!b->backing || b->backing != v->backing || from < b->data) return false;
    const size_t start = (size_t)(from - b->data);
    if (b->backing->is_copied && start > b->size && start - b->size >= LONG_GAP) return false;
    return (size_t)(to - b->data) <= v->reach;
}

int kc_views_open(kc_views *v, const uint8_t *from, const uint8_t *to, kc_budget *budget, kc_error *error) {
    const int32_t count = kc_views_count(v);
    for (int32_t i = count - 1; i >= 0 && i >= count - OPEN_BUFFERS; i--) {
        if (!reaches(v, &buffers_of(v)[i], from, to)) continue;
        v->current = i;
        v->origin = buffers_of(v)[i].data;
        return KC_OK;
    }
    const int code = reserve(v, 1, budget, error);
    if (code) return code;
    if (v->backing) kc_backing_retain(v->backing);
    buffers_of(v)[count] = (kc_view_buffer){v->backing, from, 0};
    v->list.size += sizeof(kc_view_buffer);
    v->current = count;
    v->origin = from;
    return KC_OK;
}

void kc_views_close(kc_views *v, const uint8_t *to) {
    kc_view_buffer *b = &buffers_of(v)[v->current];
    const size_t before = b->size;
    if (to && (size_t)(to - b->data) > b->size) b->size = (size_t)(to - b->data);
    if (b->backing && b->backing->is_copied) v->copied += b->size - before;
    if (b->size || v->current != kc_views_count(v) - 1) return;
    kc_backing_release(b->backing);
    v->list.size -= sizeof(kc_view_buffer);
}

void kc_views_keep(kc_views *v, const uint8_t *records, size_t size) {
    const int32_t count = kc_views_count(v);
    if (records == v->counted) return;
    for (int32_t i = count - 1; i >= 0 && i >= count - OPEN_BUFFERS; i--) {
        const kc_view_buffer *b = &buffers_of(v)[i];
        if (b->backing != v->backing || b->data + b->size <= records) continue;
        v->counted = records;
        v->kept += size;
        return;
    }
}

int kc_views_own(kc_views *v, const kc_backing *backing, kc_budget *budget, kc_error *error) {
    for (int32_t i = 0; i < kc_views_count(v); i++) {
        kc_view_buffer *b = &buffers_of(v)[i];
        if (b->backing != backing) continue;
        kc_backing *copy = kc_backing_new(b->size, 0, budget, error);
        if (!copy) return error->code;
        if (b->size) memcpy(copy->owned, b->data, b->size);
        copy->size = b->size;
        kc_backing_release(b->backing);
        b->backing = copy;
        b->data = copy->data;
    }
    return KC_OK;
}

int kc_views_move(kc_views *v, kc_views *from, int32_t *first, kc_budget *budget, kc_error *error) {
    *first = kc_views_count(v);
    if (!from->list.size) return KC_OK;
    const int code = reserve(v, kc_views_count(from), budget, error);
    if (code) return code;
    memcpy(v->list.data + v->list.size, from->list.data, from->list.size);
    v->list.size += from->list.size;
    v->kept += from->kept;
    from->list.size = from->kept = 0;
    return KC_OK;
}

int kc_views_share(kc_views *v, const kc_views *from, kc_budget *budget, kc_error *error) {
    if (!from->list.size) return KC_OK;
    const int code = reserve(v, kc_views_count(from), budget, error);
    if (code) return code;
    memcpy(v->list.data, from->list.data, from->list.size);
    v->list.size = from->list.size;
    v->kept = from->kept;
    for (int32_t i = 0; i < kc_views_count(v); i++) {
        if (buffers_of(v)[i].backing) kc_backing_retain(buffers_of(v)[i].backing);
    }
    return KC_OK;
}

size_t kc_views_bytes(const kc_views *v) {
    size_t bytes = 0;
    for (int32_t i = 0; i < kc_views_count(v); i++) {
        const kc_view_buffer *b = kc_views_at(v, i);
        if (b->backing && !b->backing->is_source) bytes += b->size;
    }
    return bytes > v->kept ? bytes : v->kept;
}

void kc_views_free(kc_views *v, kc_budget *budget) {
    for (int32_t i = 0; i < kc_views_count(v); i++) kc_backing_release(buffers_of(v)[i].backing);
    if (budget) kc_budget_give(budget, v->list.capacity);
    kc_buffer_free(&v->list);
}
