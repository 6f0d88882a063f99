#include "decode/kc_transactions.h"

#include "base/kc_mix.h"
#include "decode/kc_marker.h"

enum { LEAST_SLOTS = 16 };

/* The slot where a search for a producer begins. Where the slots are in memory is not known to who chose the ids. */
static size_t home(const kc_transactions *t, int64_t producer_id) {
    const uint64_t seed = (uint64_t)(uintptr_t)t->slots;
    return (size_t)kc_mix64(kc_mix64(seed) ^ (uint64_t)producer_id) & (t->capacity - 1);
}

/* The producer's slot, or the free one where it belongs. */
static kc_open *slot_of(const kc_transactions *t, int64_t producer_id) {
    size_t at = home(t, producer_id);
    while (t->slots[at].taken && t->slots[at].producer_id != producer_id) at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

static int grow(kc_transactions *t, kc_error *error) {
    const size_t capacity = t->capacity ? 2 * t->capacity : LEAST_SLOTS;
    kc_transactions larger = *t;
    larger.slots = kc_alloc_zeroed(capacity * sizeof *t->slots);
    larger.capacity = capacity;
    if (!larger.slots) return kc_fail(error, KC_NO_MEMORY, "out of memory", 0, 0, 0);
    for (size_t i = 0; i < t->capacity; i++) {
        if (t->slots[i].taken) *slot_of(&larger, t->slots[i].producer_id) = t->slots[i];
    }
    kc_free(t->slots);
    *t = larger;
    return KC_OK;
}

int kc_transactions_open(kc_transactions *t, int64_t producer_id, int64_t first_offset, kc_error *error) {
    if (2 * t->count >= t->capacity && grow(t, error)) return error->code;
    kc_open *slot = slot_of(t, producer_id);
    if (slot->taken) return KC_OK;
    *slot = (kc_open){producer_id, first_offset, 1};
    t->count++;
    return KC_OK;
}

/* Frees the slot of a transaction: those after it that were pushed on move up, so that a search finds them. */
static void close_slot(kc_transactions *t, kc_open *slot) {
    const size_t mask = t->capacity - 1;
    size_t free_at = (size_t)(slot - t->slots);
    for (size_t at = (free_at + 1) & mask; t->slots[at].taken; at = (at + 1) & mask) {
        const size_t from_home = (at - home(t, t->slots[at].producer_id)) & mask;
        if (from_home >= ((at - free_at) & mask)) {
            t->slots[free_at] = t->slots[at];
            free_at = at;
        }
    }
    t->slots[free_at].taken = 0;
    t->count--;
}

static int end_transaction(kc_transactions *t, const uint8_t *data, const kc_batch *marker, kc_error *error) {
    kc_open *slot = t->count ? slot_of(t, marker->producer_id) : NULL;
    if (slot && !slot->taken) slot = NULL;
    const bool intact = kc_batch_compute_crc(data, marker) == marker->crc;
    const int32_t kind = intact ? kc_marker_kind(marker) : KC_MARKER_UNREADABLE;
    if (kind != KC_MARKER_COMMIT || !t->without_commits) {
        if (kc_buffer_reserve(&t->ended, sizeof(kc_ended), error)) return error->code;
        kc_ended *ended = (kc_ended *)(void *)(t->ended.data + t->ended.size);
        *ended = (kc_ended){
            .producer_id = marker->producer_id,
            .first_offset = slot ? slot->first_offset : marker->base_offset,
            .last_offset = marker->base_offset,
            .kind = kind,
            .position = (int64_t)marker->position,
            .size = (int64_t)marker->size,
        };
        t->ended.size += sizeof(kc_ended);
    }
    if (slot) close_slot(t, slot);
    return KC_OK;
}

int kc_transactions_follow(kc_transactions *t, const uint8_t *data, uint64_t size, const int64_t *positions,
                           size_t count, kc_error *error) {
    kc_error ignored = {0};
    kc_span span;
    kc_batch batch;
    for (size_t i = 0; i < count; i++) {
        if (kc_walk_next(data, size, (uint64_t)positions[i], &span, &ignored) != KC_WALK_BATCH || span.magic < 2)
            continue;
        kc_batch_read(data, &span, &batch);
        if (!(batch.attributes & KC_TRANSACTIONAL)) continue;
        const int code = batch.attributes & KC_CONTROL
                             ? end_transaction(t, data, &batch, error)
                             : kc_transactions_open(t, batch.producer_id, batch.base_offset, error);
        if (code) return code;
    }
    return KC_OK;
}

void kc_transactions_free(kc_transactions *t) {
    kc_free(t->slots);
    kc_buffer_free(&t->ended);
    *t = (kc_transactions){0};
}
