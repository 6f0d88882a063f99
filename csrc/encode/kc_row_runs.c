#include "encode/kc_row_runs.h"

#include <string.h>

void kc_row_runs_begin(kc_row_runs *r) {
    memset(r, 0, sizeof *r);
    r->row = -1;
}

int kc_row_runs_open(kc_row_runs *r, const struct ArrowSchema *schema, const struct ArrowArray *array,
                     kc_error *error) {
    int64_t at = -1;
    r->loaded = r->block = r->next = 0;
    for (int64_t i = 0; i < schema->n_children; i++) {
        const char *name = schema->children[i]->name;
        if (!name || strcmp(name, "row") != 0) continue;
        if (at >= 0) return kc_fail(error, KC_CANNOT_ENCODE, "duplicate column name", 0, 0, 0);
        at = i;
    }
    if (at < 0) return kc_fail(error, KC_CANNOT_ENCODE, "missing column", 0, 0, 0);
    return kc_plain_int_import(&r->column, schema->children[at], array->children[at], array->offset, array->length,
                               error);
}

static int load(kc_row_runs *r, kc_error *error) {
    const int64_t left = r->column.length - r->loaded;
    r->next = 0;
    r->block = left < KC_BLOCK_ROWS ? left : KC_BLOCK_ROWS;
    if (r->block && kc_arrow_ints_load(&r->column, r->loaded, r->block, false, 0, r->numbers, error))
        return error->code;
    r->loaded += r->block;
    return KC_OK;
}

int kc_row_runs_next(kc_row_runs *r, int64_t *end, kc_error *error) {
    if (r->next == r->block && load(r, error)) return error->code;
    *end = r->loaded - r->block + r->next;
    if (!r->block) return KC_OK;
    const int64_t row = r->numbers[r->next];
    if (row < 0 || row < r->row)
        return kc_fail(error, KC_CANNOT_ENCODE, "rows must not be negative or decrease", (uint64_t)*end, row,
                       r->row < 0 ? 0 : r->row);
    r->row = row;
    for (;;) {
        while (r->next < r->block && r->numbers[r->next] == row) r->next++;
        *end = r->loaded - r->block + r->next;
        if (r->next < r->block || r->loaded == r->column.length) return KC_OK;
        if (load(r, error)) return error->code;
    }
}
