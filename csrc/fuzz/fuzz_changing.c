/* Bytes that change while they are read, as in a bytearray of another thread or a shared memory map: after every load
 * of input the loaded bytes may change. Code that loads a length twice gets two lengths, under AddressSanitizer. Of the
 * results only the shape is checked: tables and spans are well formed.
 *
 * The first eight bytes of the input say when and how bytes change; the library is compiled with KC_CHANGING_INPUT. */
#include <string.h>

#include "decode/kc_confluent.h"
#include "decode/kc_decoder.h"
#include "decode/kc_resync.h"
#include "decode/kc_scan.h"
#include "encode/kc_input.h"
#include "frames/kc_lz4_frame.h"
#include "frames/kc_snappy_frame.h"
#include "frames/kc_zstd_frame.h"
#include "fuzz.h"
#include "kafka07/kc_msgset07.h"
#include "table_check.h"

enum { CHANGES = 200, STEPS = 10000 }; /* a run ends even if the bytes never stop changing */

static uint8_t *input;
static size_t input_size;
static uint64_t state;
static int changes_left;

static uint32_t next_random(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

void kc_input_loaded(const void *from, size_t size) {
    static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    const uintptr_t at = (uintptr_t)from, start = (uintptr_t)input;
    if (!input || at < start || at - start >= input_size || changes_left == 0 || next_random() % 4) return;
    uint8_t *bytes = input + (at - start);
    if (size > input_size - (at - start)) size = input_size - (at - start);
    if (size > 16) { /* a block: one number of it */
        bytes += next_random() % (size / 4) * 4;
        size = 4;
    }
    changes_left--;
    const uint32_t how = next_random() % 8;
    for (size_t i = 0; i < size; i++) bytes[i] = how < 6 ? values[how] : (uint8_t)next_random();
}

static kc_table *new_table(const kc_field *fields, int num_fields, uint64_t wanted) {
    kc_table *t = kc_table_new(fields, num_fields, wanted);
    MUST(t != NULL);
    return t;
}

static void decode(bool verify, bool views) {
    const kc_decoder_options options = {
        .verify_crc = verify, .search_partial = true, .start_offset = INT64_MIN, .end_offset = INT64_MAX};
    kc_decoder d;
    kc_decoder_init(&d, input, input_size, &options);
    kc_event event = KC_EVENT_NONE;
    for (int step = 0; event != KC_EVENT_END && step < STEPS; step++) {
        kc_table *t =
            new_table(views ? kc_record_view_fields : kc_record_fields, KC_NUM_RECORD_COLUMNS, KC_WANT_DECODED);
        kc_error error = {0};
        event = kc_decoder_run(&d, t, 100, 1 << 16, &error);
        if (event == KC_EVENT_COMPRESSED && kc_decoder_provide(&d, d.batch.records, d.batch.records_size, &error)) {
            event = KC_EVENT_FAULT;
        }
        check_table(t);
        kc_table_release(t);
        if (event == KC_EVENT_FAULT) (void)kc_decoder_skip(&d);
        MUST(d.position <= d.size);
    }
}

static void decode07(bool verify) {
    const kc_msgset07_options options = {verify, true, 0};
    kc_msgset07_decoder d;
    kc_msgset07_init(&d, input, input_size, &options);
    kc_event event = KC_EVENT_NONE;
    for (int step = 0; event != KC_EVENT_END && step < STEPS; step++) {
        kc_table *t = new_table(kc_msgset07_fields, KC_NUM_MSGSET07_COLUMNS, ~(uint64_t)KC_WANT_PLACE);
        kc_error error = {0};
        event = kc_msgset07_run(&d, t, 100, 1 << 16, &error);
        if (event == KC_EVENT_COMPRESSED && kc_msgset07_provide(&d, d.payload, d.payload_size, &error)) {
            event = KC_EVENT_FAULT;
        }
        check_table(t);
        kc_table_release(t);
        if (event == KC_EVENT_FAULT) (void)kc_msgset07_skip(&d);
        MUST(d.position <= d.size);
    }
}

static void scan_and_search(void) {
    kc_table *t = new_table(kc_header_fields, KC_NUM_HEADER_COLUMNS, UINT64_MAX);
    kc_error error = {0};
    uint64_t position = 0, at = 0;
    kc_resync resync = kc_resync_start();
    (void)kc_scan(input, input_size, &position, true, STEPS, t, &error);
    check_table(t);
    kc_table_release(t);
    while (at < input_size) {
        const uint64_t found = kc_resync_after(input, input_size, at, &resync);
        MUST(found > at && found <= input_size);
        at = found;
    }
}

static void must_lie_inside(const uint8_t *part, size_t size) {
    MUST(part >= input && size <= input_size && (size_t)(part - input) <= input_size - size);
}

static void walk_frames(void) {
    kc_error error = {0};
    kc_lz4_frame lz4;
    kc_lz4_block lz4_block;
    kc_snappy_frame snappy;
    kc_snappy_block snappy_block;
    kc_zstd_frame zstd;
    size_t position = 0;
    if (kc_lz4_open(&lz4, input, input_size, true, &error) == KC_OK) {
        while (kc_lz4_next(&lz4, &lz4_block, &error) == KC_OK && lz4_block.data)
            must_lie_inside(lz4_block.data, lz4_block.size);
    }
    if (kc_snappy_open(&snappy, input, input_size, &error) == KC_OK) {
        while (kc_snappy_next(&snappy, &snappy_block, &error) == KC_OK && snappy_block.data)
            must_lie_inside(snappy_block.data, snappy_block.size);
    }
    while (position < input_size && kc_zstd_next(input, input_size, &position, &zstd, &error) == KC_OK)
        must_lie_inside(zstd.data, zstd.size);
}

/* The spans of an imported column are inside its data, even if its index has changed. */
static void check_spans(const kc_spans *spans, int64_t rows) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        MUST(spans->size[i] >= -1);
        for (int32_t k = 0; k < spans->size[i]; k++) sum += spans->data[i][k];
        if (spans->size[i] > 0 && spans->wide) sum += spans->data[i][spans->size[i] - 1 + KC_COPY_SLACK];
    }
    state += sum & 1;
}

/* The input is an index of offsets or views, with bits of validity before it if `nulls`; the data has a fixed size. */
static void import(const char *format, bool nulls, size_t width) {
    static uint8_t payload[64];
    uint8_t *const index = input + (nulls ? input_size / 16 / 8 * 8 : 0);
    const size_t room = input_size - (size_t)(index - input);
    if (room / width < 2 || (uintptr_t)index % 8) return;
    const bool views = format[0] == 'v';
    const int64_t entries = (int64_t)(room / width), all = views ? entries : entries - 1;
    const int64_t rows = nulls && (int64_t)(index - input) * 8 < all ? (int64_t)(index - input) * 8 : all;
    if (rows < 1) return;
    uint8_t *data = malloc(sizeof payload);
    MUST(data != NULL);
    memcpy(data, payload, sizeof payload);
    int64_t sizes[] = {sizeof payload};
    const void *buffers[] = {nulls ? input : NULL, index, data, sizes};
    const struct ArrowSchema schema = {.format = format, .name = "value"};
    const struct ArrowArray array = {
        .length = rows, .null_count = nulls ? -1 : 0, .n_buffers = views ? 4 : 3, .buffers = buffers};
    kc_arrow_bytes column;
    kc_error error = {0};
    if (kc_arrow_bytes_import(&column, &schema, &array, 0, rows, &error) == KC_OK &&
        (views || column.end <= (int64_t)sizeof payload)) {
        kc_spans spans;
        (void)kc_arrow_bytes_extent(&column);
        for (int64_t row = 0; row < rows; row += KC_BLOCK_ROWS) {
            const int64_t n = rows - row < KC_BLOCK_ROWS ? rows - row : KC_BLOCK_ROWS;
            if (kc_arrow_bytes_load(&column, row, n, &spans, &error)) break;
            check_spans(&spans, n);
        }
        kc_view *out = calloc((size_t)rows, sizeof *out);
        uint8_t *bits = calloc((size_t)rows / 4 + 2, 1);
        int32_t *ids = calloc((size_t)rows, sizeof *ids);
        MUST(out && bits && ids);
        const kc_confluent_parts parts = {
            .ids = ids, .id_validity = bits, .payload_validity = bits + rows / 8 + 1, .payloads = out};
        const int code = kc_confluent_split(&column, &parts, 0, 0, &error);
        for (int64_t row = 0; code == KC_OK && row < rows; row++) {
            if (out[row].size <= KC_VIEW_INLINED) continue;
            MUST(out[row].at.far.buffer == 0 && out[row].at.far.position >= 0);
            MUST(out[row].at.far.position + (int64_t)out[row].size <= (int64_t)sizeof payload);
        }
        free(out);
        free(bits);
        free(ids);
    }
    free(data);
}

/* Runs one reader over a copy of the data that may change, in memory of its exact size. */
static void with_changes(const uint8_t *data, size_t size, uint64_t seed, void (*run)(int), int argument) {
    input = malloc(size ? size : 1);
    MUST(input != NULL);
    if (size) memcpy(input, data, size);
    input_size = size;
    state = seed;
    changes_left = CHANGES;
    run(argument);
    free(input);
    input = NULL;
}

static void run(int what) {
    switch (what) {
        case 0:
        case 1:
            decode(what, false);
            break;
        case 12:
        case 13:
            decode(what & 1, true);
            break;
        case 2:
        case 3:
            decode07(what & 1);
            break;
        case 4:
            scan_and_search();
            break;
        case 5:
            walk_frames();
            break;
        case 6:
        case 7:
            import("z", what & 1, 4);
            break;
        case 8:
        case 9:
            import("Z", what & 1, 8);
            break;
        default:
            import("vz", what & 1, 16);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t seed = 0;
    if (size < sizeof seed) return 0;
    memcpy(&seed, data, sizeof seed);
    for (int what = 0; what < 14; what++) with_changes(data + 8, size - 8, seed + (uint64_t)what, run, what);
    return 0;
}
