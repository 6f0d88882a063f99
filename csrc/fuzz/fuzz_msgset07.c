/* Any bytes as a log of Kafka 0.6 or 0.7; sets that do not decompress are parsed as they are. */
#include "codecs.h"
#include "fuzz.h"
#include "kafka07/kc_msgset07.h"
#include "table_check.h"

enum { CONTENT_LIMIT = 1 << 20, MOST_SETS = 256 }; /* of all that one input decompresses to */

/* Decompressed sets are kept: nested sets are read before the rest of the outer one. */
typedef struct sets {
    uint8_t *data[MOST_SETS];
    size_t count, left;
} sets;

static int provide(kc_msgset07_decoder *d, sets *s, kc_error *error) {
    size_t size = 0;
    uint8_t *set =
        s->count < MOST_SETS ? fuzz_decompress(d->codec, 0, d->payload, d->payload_size, s->left, &size) : NULL;
    if (!set) return kc_msgset07_provide(d, d->payload, d->payload_size, error);
    s->data[s->count++] = set;
    s->left -= size;
    return kc_msgset07_provide(d, set, size, error);
}

static void decode(const uint8_t *data, size_t size, bool verify, bool deep, int64_t max_rows) {
    const kc_msgset07_options options = {verify, deep, 1000};
    kc_msgset07_decoder d;
    sets s = {.left = CONTENT_LIMIT};
    kc_msgset07_init(&d, data, size, &options);
    kc_event event;
    do {
        kc_table *t = kc_table_new(kc_msgset07_fields, KC_NUM_MSGSET07_COLUMNS, ~(uint64_t)KC_WANT_PLACE);
        kc_error error = {0};
        MUST(t != NULL);
        const uint64_t before = d.position;
        do {
            event = kc_msgset07_run(&d, t, max_rows, 1 << 20, &error);
            if (event == KC_EVENT_COMPRESSED && provide(&d, &s, &error)) event = KC_EVENT_FAULT;
        } while (event == KC_EVENT_COMPRESSED);
        MUST(event != KC_EVENT_FAULT || (error.code != KC_OK && error.what));
        check_table(t);
        kc_table_release(t);
        if (event == KC_EVENT_FAULT) MUST(kc_msgset07_skip(&d) > 0);
        MUST(d.position >= before && d.position <= size);
        MUST(event != KC_EVENT_FULL || d.position > before);
    } while (event != KC_EVENT_END);
    while (s.count) free(s.data[--s.count]);
}

static void outline(const uint8_t *data, size_t size, uint64_t max_payload) {
    kc_msgset07_outline found;
    kc_error error = {0};
    const int code = kc_msgset07_outermost(data, size, max_payload, &found, &error);
    MUST(code == KC_OK || error.what);
    MUST(found.size <= size && found.compressed <= found.messages && found.messages <= size / 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    outline(data, size, UINT64_MAX);
    outline(data, size, 20);
    for (int variant = 0; variant < 4; variant++) decode(data, size, variant & 1, variant & 2, 1 << 20);
    decode(data, size, false, true, 2);
    return 0;
}
