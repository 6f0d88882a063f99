/* Columns of rows, divided into runs, against a plain loop over the same numbers. The input describes the chunks; every
 * buffer has its exact size. */
#include <string.h>

#include "base/kc_bytes.h"
#include "encode/kc_row_runs.h"
#include "fuzz.h"
#include "tests/arrow_build.h"

enum { MOST_ROWS = 700, NONE = MOST_ROWS };

/* A chunk: its numbers, and the first records that are null or out of order. */
static struct {
    int64_t count, lead;
    int64_t number[MOST_ROWS];
    bool narrow, null[MOST_ROWS], nulls;
    int64_t first_null, first_bad;
} chunk;

/* Reads a chunk whose rows follow row `last`. */
static void take_chunk(kc_bytes *in, int64_t last) {
    const uint8_t how = kc_take_u8(in);
    const size_t left = kc_bytes_left(in);
    chunk.count = kc_take_u16(in) % MOST_ROWS;
    if ((size_t)chunk.count > left) chunk.count = (int64_t)left;
    chunk.narrow = how & 1;
    chunk.lead = how >> 1 & 3;
    chunk.nulls = false;
    chunk.first_null = chunk.first_bad = NONE;
    for (int64_t i = 0; i < chunk.count; i++) {
        const uint8_t byte = kc_take_u8(in);
        int64_t row = i ? chunk.number[i - 1] : last < 0 ? 0 : last;
        if (byte >= 0xf8) row = kc_take_i64(in);
        if (byte >= 0x80 && byte < 0xf8) row = (int64_t)((uint64_t)row + (byte & 7));
        chunk.number[i] = chunk.narrow ? (int32_t)row : row;
        chunk.null[i] = byte == 0x7f;
        chunk.nulls = chunk.nulls || chunk.null[i];
        const int64_t before = i ? chunk.number[i - 1] : last;
        if (chunk.null[i] && chunk.first_null == NONE) chunk.first_null = i;
        if ((chunk.number[i] < 0 || chunk.number[i] < before) && chunk.first_bad == NONE) chunk.first_bad = i;
    }
}

static void *exactly(size_t size) {
    void *p = calloc(size ? size : 1, 1);
    MUST(p != NULL);
    return p;
}

/* The end of the run that starts at record i. */
static int64_t run_end(int64_t i) {
    const int64_t row = chunk.number[i];
    while (i < chunk.count && chunk.number[i] == row) i++;
    return i;
}

/* Whether all records of the chunk come in runs; else there is an error at the first null or the first bad row. A null
 * may be reported before the runs of its block. */
static bool check_runs(kc_row_runs *r) {
    kc_error error = {0};
    int64_t start = 0, end = -1;
    while (kc_row_runs_next(r, &end, &error) == KC_OK) {
        if (start == chunk.count) {
            MUST(end == start);
            return true;
        }
        MUST(start < chunk.first_bad && end == run_end(start) && end <= chunk.first_null);
        MUST(r->row == chunk.number[start]);
        start = end;
    }
    MUST(error.code == KC_CANNOT_ENCODE && error.what && (int64_t)error.position >= start);
    if ((int64_t)error.position == chunk.first_null && chunk.first_null <= chunk.first_bad) return false;
    MUST((int64_t)error.position == chunk.first_bad || (int64_t)error.position == chunk.first_null);
    if (error.position != (uint64_t)chunk.first_null) MUST(error.got == chunk.number[chunk.first_bad]);
    return false;
}

static bool divide(kc_row_runs *r) {
    const size_t total = (size_t)(chunk.lead + chunk.count), width = chunk.narrow ? 4 : 8;
    uint8_t *values = exactly(total * width), *validity = exactly((total + 7) / 8);
    for (int64_t i = 0; i < chunk.count; i++) {
        const int64_t at = chunk.lead + i, wide = chunk.number[i];
        const int32_t narrow = (int32_t)wide;
        memcpy(values + (size_t)at * width, chunk.narrow ? (const void *)&narrow : &wide, width);
        if (!chunk.null[i]) validity[at / 8] |= (uint8_t)(1u << (at % 8));
    }
    foreign table, rows;
    kc_error error = {0};
    foreign_column(&rows, chunk.narrow ? "i" : "l", "row", (int64_t)total, 2, chunk.nulls ? validity : NULL, values,
                   NULL);
    foreign_column(&table, "+s", "", chunk.count, 1, NULL, NULL, NULL);
    table.array.offset = chunk.lead;
    add_child(&table, &rows);
    MUST(kc_row_runs_open(r, &table.schema, &table.array, &error) == KC_OK);
    const bool whole = check_runs(r);
    MUST(!whole || (chunk.first_null == NONE && chunk.first_bad == NONE));
    free(values);
    free(validity);
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kc_bytes in = kc_bytes_over(data, size);
    kc_row_runs r;
    kc_row_runs_begin(&r);
    do {
        take_chunk(&in, r.row);
    } while (divide(&r) && kc_bytes_left(&in) && !in.failed);
    return 0;
}
