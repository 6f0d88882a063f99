#include "arrow/kc_table.h"

#include <string.h>

size_t kc_type_width(kc_type type) {
    switch (type) {
        case KC_INT8:
            return 1;
        case KC_INT16:
            return 2;
        case KC_INT32:
        case KC_UINT32:
            return 4;
        case KC_INT64:
        case KC_TIMESTAMP_MS:
            return 8;
        case KC_BINARY_VIEW:
            return sizeof(kc_view);
        default:
            return 0;
    }
}

static bool has_offsets(kc_type type) { return type == KC_BINARY || type == KC_STRING || type == KC_LIST; }

/* Limit on rows so that the values, of at most sixteen bytes, fit the address space: buffer sizes below it are computed
 * without a check. */
#define MAX_ROWS ((int64_t)(PTRDIFF_MAX / 16))

/* Size in bytes of `rows` values in the values buffer. */
static size_t values_size(kc_type type, int64_t rows) {
    size_t n = (size_t)rows;
    if (type == KC_BOOL) return (n + 7) / 8;
    if (has_offsets(type)) return (n + 1) * sizeof(int32_t);
    return n * kc_type_width(type);
}

static void free_buffer(kc_column *c, kc_buffer *b) {
    if (!b->data) return;
    if (c->budget) kc_budget_give(c->budget, b->capacity);
    kc_buffer_free(b);
}

static void free_buffers(kc_column *c) {
    free_buffer(c, &c->validity);
    free_buffer(c, &c->values);
    free_buffer(c, &c->data);
}

static void free_columns(kc_column *columns, int n) {
    if (!columns) return;
    for (int i = 0; i < n; i++) {
        kc_column *c = &columns[i];
        if (!c->wanted) continue; /* it is empty */
        free_buffers(c);
        if (c->field) free_columns(c->children, c->field->num_children);
    }
    kc_free(columns);
}

/* The first of the offsets, in new memory. */
static void begin_offsets(kc_column *c) {
    if (!has_offsets(c->field->type)) return;
    *(int32_t *)(void *)c->values.data = 0;
    c->values.size = sizeof(int32_t);
}

/* Of what may not be needed, a column takes at most this share of the remaining budget. */
enum { EXPECTED_SHARE = 16 };

/* An array of columns, with a part for the first values of each: most tables of a few rows need no more. */
static kc_column *alloc_columns(int n, uint64_t wanted, char **parts) {
    const size_t bytes = (size_t)n * sizeof(kc_column),
                 size = (bytes + KC_PART_CAPACITY - 1) / KC_PART_CAPACITY * KC_PART_CAPACITY;
    size_t num_parts = 0;
    for (int i = 0; i < n; i++) num_parts += wanted >> i & 1;
    char *columns = kc_alloc(size + num_parts * KC_PART_BYTES);
    if (!columns) return NULL;
    *parts = columns + size;
    return memset(columns, 0, bytes);
}

/* Lets a column have its part, if that is little of the budget. */
static void take_part(kc_column *c, char *part) {
    if (c->field->type == KC_STRUCT) return;
    if (c->budget) {
        if (atomic_load_explicit(&c->budget->left, memory_order_relaxed) / EXPECTED_SHARE < KC_PART_CAPACITY) return;
        if (!kc_budget_take(c->budget, KC_PART_CAPACITY)) return;
    }
    c->values.data = kc_alloc_part(part);
    c->values.capacity = KC_PART_CAPACITY;
    begin_offsets(c);
}

static kc_column *new_columns(const kc_field *fields, int n, uint64_t wanted, kc_table *t, kc_error *error) {
    char *parts = NULL;
    kc_column *columns = alloc_columns(n, wanted, &parts);
    if (!columns) {
        kc_fail(error, KC_NO_MEMORY, "no memory for the columns", 0, 0, 0);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        kc_column *c = &columns[i];
        c->field = &fields[i];
        c->budget = t->budget;
        c->wanted = wanted >> i & 1;
        if (!c->wanted) continue;
        if (fields[i].type == KC_BINARY_VIEW) {
            c->views = &t->views;
            t->views.wanted = true;
        }
        take_part(c, parts);
        parts += KC_PART_BYTES;
        bool ok = true;
        if (fields[i].num_children) {
            c->children = new_columns(fields[i].children, fields[i].num_children, UINT64_MAX, t, error);
            ok = c->children != NULL;
        }
        ok = ok && kc_column_reserve(c, 0, 0, error) == KC_OK;
        if (!ok) {
            free_columns(columns, n);
            return NULL;
        }
    }
    return columns;
}

kc_table *kc_table_new(const kc_field *fields, int num_fields, uint64_t wanted) {
    kc_error ignored = {0};
    return kc_table_new_within(fields, num_fields, wanted, NULL, &ignored);
}

kc_table *kc_table_new_within(const kc_field *fields, int num_fields, uint64_t wanted, kc_budget *budget,
                              kc_error *error) {
    kc_table *t = kc_alloc(sizeof(kc_table));
    if (!t) {
        kc_fail(error, KC_NO_MEMORY, "no memory for the columns", 0, 0, 0);
        return NULL;
    }
    atomic_init(&t->references, 1);
    t->num_columns = num_fields;
    t->wanted = num_fields < 64 ? wanted & ((UINT64_C(1) << num_fields) - 1) : wanted;
    t->length = 0;
    t->budget = budget;
    t->views = (kc_views){.reach = KC_VIEW_REACH};
    t->columns = new_columns(fields, num_fields, wanted, t, error);
    if (!t->columns) {
        kc_free(t);
        return NULL;
    }
    if (budget) kc_budget_retain(budget);
    return t;
}

void kc_table_retain(kc_table *t) { atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed); }

void kc_table_release(kc_table *t) {
    if (atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1) return;
    free_columns(t->columns, t->num_columns);
    kc_views_free(&t->views, t->budget);
    if (t->budget) kc_budget_release(t->budget);
    kc_free(t);
}

static size_t column_bytes(const kc_column *c) {
    size_t validity = c->null_count ? ((size_t)c->length + 7) / 8 : 0;
    size_t n = validity + c->values.size + c->data.size;
    if (c->children) {
        for (int i = 0; i < c->field->num_children; i++) n += column_bytes(&c->children[i]);
    }
    return n;
}

size_t kc_table_bytes(const kc_table *t) {
    size_t n = kc_views_bytes(&t->views);
    for (int i = 0; i < t->num_columns; i++) n += column_bytes(&t->columns[i]);
    return n;
}

/* Capacity of the values buffer in rows. */
static size_t rows_capacity(const kc_column *c) {
    size_t width = has_offsets(c->field->type) ? sizeof(int32_t) : kc_type_width(c->field->type);
    return width ? c->values.capacity / width : c->values.capacity * 8;
}

/* Validity covers the capacity of the values; its new part is filled with ones. */
static int grow_validity(kc_column *c, kc_error *error) {
    size_t old = c->validity.capacity, need = (rows_capacity(c) + 7) / 8;
    if (need <= old) return KC_OK;
    c->validity.size = old;
    int code = kc_buffer_grow_within(&c->validity, need, c->budget, error);
    if (code) return code;
    memset(c->validity.data + old, 0xff, c->validity.capacity - old);
    return KC_OK;
}

int kc_column_reserve(kc_column *c, int64_t rows, size_t bytes, kc_error *error) {
    if (rows > MAX_ROWS - c->length) {
        return kc_fail(error, KC_NO_MEMORY, "a column would exceed the address space", 0, rows, MAX_ROWS - c->length);
    }
    kc_type type = c->field->type;
    int64_t total = c->length + rows;
    if (type != KC_STRUCT) {
        bool fresh = !c->values.data;
        size_t need = values_size(type, total);
        int code = KC_OK;
        if (need > c->values.capacity || fresh) code = kc_buffer_grow_within(&c->values, need + 8, c->budget, error);
        if (code) return code;
        if (fresh) begin_offsets(c);
    }
    if (c->validity.data) {
        int code = grow_validity(c, error);
        if (code) return code;
    }
    if (type == KC_BINARY || type == KC_STRING) {
        if (bytes > (size_t)INT32_MAX - c->data.size) {
            return kc_fail(error, KC_LIMIT, "a column exceeds 2 GiB (decode in chunks instead)", 0,
                           (int64_t)(c->data.size + bytes), INT32_MAX);
        }
        if (bytes <= c->data.capacity - c->data.size) return KC_OK;
        return kc_buffer_grow_within(&c->data, c->data.size + bytes, c->budget, error);
    }
    return KC_OK;
}

/* At most the size of the pool: an overestimate is not used. */
#define EXPECTED_MOST (KC_POOL_BYTES / 4)

void kc_column_expect(kc_column *c, int64_t rows, size_t bytes) {
    const size_t left = c->budget ? atomic_load(&c->budget->left) / EXPECTED_SHARE : EXPECTED_MOST,
                 most = left < EXPECTED_MOST ? left : EXPECTED_MOST;
    const size_t a_row = values_size(c->field->type, 64) / 64; /* without the additional last offset */
    if (rows > 0 && a_row && (size_t)rows > most / a_row) rows = (int64_t)(most / a_row);
    kc_error ignored = {0};
    if (kc_column_reserve(c, rows, bytes < most ? bytes : most, &ignored)) return;
}

int kc_column_set_null(kc_column *c, int64_t row, kc_error *error) {
    int code = grow_validity(c, error);
    if (code) return code;
    c->validity.data[row / 8] &= (uint8_t)~(1u << (row % 8));
    c->null_count++;
    return KC_OK;
}

static bool is_null(const kc_column *c, int64_t row) {
    return c->null_count && !(c->validity.data[row / 8] >> (row % 8) & 1);
}

const uint8_t *kc_column_bytes(const kc_column *c, int64_t row, int32_t *size) {
    *size = -1;
    if (is_null(c, row)) return NULL;
    if (c->field->type != KC_BINARY_VIEW) {
        const int32_t *ends = (const int32_t *)(const void *)c->values.data + row;
        *size = ends[1] - ends[0];
        return *size ? c->data.data + ends[0] : c->values.data;
    }
    const kc_view *v = (const kc_view *)(const void *)c->values.data + row;
    *size = v->size;
    return v->size <= KC_VIEW_INLINED ? v->at.inlined
                                      : kc_views_at(c->views, v->at.far.buffer)->data + v->at.far.position;
}

static void note_rows(kc_column *c, int64_t rows) {
    c->length += rows;
    if (c->field->type != KC_STRUCT) c->values.size = values_size(c->field->type, c->length);
}

static void write_int(kc_column *c, int64_t row, int64_t value) {
    uint8_t *p = c->values.data;
    switch (c->field->type) {
        case KC_INT8:
            ((int8_t *)p)[row] = (int8_t)value;
            break;
        case KC_INT16:
            ((int16_t *)(void *)p)[row] = (int16_t)value;
            break;
        case KC_INT32:
        case KC_UINT32:
            ((uint32_t *)(void *)p)[row] = (uint32_t)value;
            break;
        case KC_INT64:
        case KC_TIMESTAMP_MS:
            ((int64_t *)(void *)p)[row] = value;
            break;
        case KC_BOOL:
            if (row % 8 == 0) p[row / 8] = 0;
            if (value) p[row / 8] = (uint8_t)(p[row / 8] | 1u << (row % 8));
            break;
        default:
            break;
    }
}

int kc_column_append_int(kc_column *c, int64_t value, kc_error *error) {
    int code = kc_column_reserve(c, 1, 0, error);
    if (code) return code;
    write_int(c, c->length, value);
    note_rows(c, 1);
    return KC_OK;
}

int kc_column_append_repeated(kc_column *c, int64_t value, int64_t rows, kc_error *error) {
    int code = kc_column_reserve(c, rows, 0, error);
    if (code) return code;
    for (int64_t row = c->length; row < c->length + rows; row++) write_int(c, row, value);
    note_rows(c, rows);
    return KC_OK;
}

int kc_column_append_bytes(kc_column *c, const void *data, size_t size, kc_error *error) {
    int code = kc_column_reserve(c, 1, size, error);
    if (code) return code;
    if (size) memcpy(c->data.data + c->data.size, data, size);
    c->data.size += size;
    ((int32_t *)(void *)c->values.data)[c->length + 1] = (int32_t)c->data.size;
    note_rows(c, 1);
    return KC_OK;
}

int kc_column_append_repeated_bytes(kc_column *c, const void *data, size_t size, int64_t rows, kc_error *error) {
    /* A product above the limit of a column is rejected, not wrapped. */
    bool huge = size && (uint64_t)rows > SIZE_MAX / size;
    int code = kc_column_reserve(c, rows, huge ? SIZE_MAX : size * (size_t)rows, error);
    if (code) return code;
    int32_t *ends = (int32_t *)(void *)c->values.data + c->length;
    for (int64_t row = 1; row <= rows; row++) {
        if (size) memcpy(c->data.data + c->data.size, data, size);
        c->data.size += size;
        ends[row] = (int32_t)c->data.size;
    }
    note_rows(c, rows);
    return KC_OK;
}

int kc_column_append_nulls(kc_column *c, int64_t rows, kc_error *error) {
    if (rows == 0) return KC_OK;
    const kc_type type = c->field->type;
    if (type == KC_STRUCT) return kc_fail(error, KC_LIMIT, "a column of structs has no nulls", 0, rows, 0);
    int code = kc_column_reserve(c, rows, 0, error);
    if (!code) code = grow_validity(c, error);
    if (code) return code;
    const int64_t end = c->length + rows;
    for (int64_t row = c->length; row < end; row++) {
        c->validity.data[row / 8] &= (uint8_t)~(1u << (row % 8));
    }
    if (has_offsets(type)) {
        int32_t *ends = (int32_t *)(void *)c->values.data;
        for (int64_t row = c->length; row < end; row++) ends[row + 1] = ends[row];
    } else if (type == KC_BINARY_VIEW) {
        memset((kc_view *)(void *)c->values.data + c->length, 0, (size_t)rows * sizeof(kc_view));
    } else {
        for (int64_t row = c->length; row < end; row++) write_int(c, row, type == KC_TIMESTAMP_MS ? KC_NOT_A_TIME : 0);
    }
    c->null_count += rows;
    note_rows(c, rows);
    return KC_OK;
}

int kc_column_append_null(kc_column *c, kc_error *error) { return kc_column_append_nulls(c, 1, error); }

static int append_nulls(kc_column *c, const kc_column *from, kc_error *error) {
    int code = KC_OK;
    if (!from->null_count) return code;
    for (int64_t row = 0; !code && row < from->length; row++) {
        if (is_null(from, row)) code = kc_column_set_null(c, c->length + row, error);
    }
    return code;
}

/* Appends views whose buffers are now numbered from `first`. */
static void append_views(kc_column *c, const kc_column *from, int32_t first) {
    kc_view *v = (kc_view *)(void *)c->values.data + c->length;
    const kc_view *theirs = (const kc_view *)(const void *)from->values.data;
    for (int64_t row = 0; row < from->length; row++) {
        v[row] = theirs[row];
        if (v[row].size > KC_VIEW_INLINED) v[row].at.far.buffer += first;
    }
    c->viewed += from->viewed;
}

static void append_values(kc_column *c, const kc_column *from, int32_t first) {
    const uint8_t *source = from->values.data;
    size_t width = kc_type_width(c->field->type), rows = (size_t)from->length;
    if (c->field->type == KC_BINARY_VIEW) {
        append_views(c, from, first);
    } else if (width) {
        if (rows) memcpy(c->values.data + (size_t)c->length * width, source, rows * width);
    } else if (c->field->type == KC_BOOL) {
        for (int64_t row = 0; row < from->length; row++)
            write_int(c, c->length + row, source[row / 8] >> (row % 8) & 1);
    } else {
        int32_t *ends = (int32_t *)(void *)c->values.data + c->length;
        const int32_t *their_ends = (const int32_t *)(const void *)source;
        int32_t base = ends[0];
        for (size_t row = 1; row <= rows; row++) ends[row] = base + their_ends[row];
    }
}

static bool column_fits(const kc_column *c, const kc_column *from, size_t most) {
    if (from->data.size > most || c->data.size > most - from->data.size) return false;
    for (int i = 0; i < c->field->num_children; i++) {
        const kc_column *child = &c->children[i], *more = &from->children[i];
        if ((uint64_t)more->length + (uint64_t)child->length > most || !column_fits(child, more, most)) return false;
    }
    return true;
}

bool kc_table_fits(const kc_table *t, const kc_table *from, size_t spare) {
    for (int i = 0; i < t->num_columns; i++) {
        const kc_column *c = &t->columns[i], *more = &from->columns[i];
        if (c->wanted != more->wanted || (c->wanted && !column_fits(c, more, INT32_MAX - spare))) return false;
    }
    return true;
}

static int move_column(kc_column *c, kc_column *from, int32_t first, kc_error *error) {
    int code = kc_column_reserve(c, from->length, from->data.size, error);
    if (!code) code = append_nulls(c, from, error);
    for (int i = 0; !code && i < c->field->num_children; i++) {
        if (from->children[i].length > INT32_MAX - c->children[i].length) {
            return kc_fail(error, KC_LIMIT, "a list column exceeds 2^31 entries (decode in chunks instead)", 0,
                           c->children[i].length, INT32_MAX);
        }
        code = move_column(&c->children[i], &from->children[i], first, error);
    }
    if (code) return code;
    if (c->field->type != KC_STRUCT) append_values(c, from, first);
    if (from->data.size) memcpy(c->data.data + c->data.size, from->data.data, from->data.size);
    c->data.size += from->data.size;
    note_rows(c, from->length);
    free_buffers(from);
    from->length = from->null_count = 0;
    from->viewed = 0;
    return KC_OK;
}

int kc_table_move(kc_table *t, kc_table *from, kc_error *error) {
    int32_t first = 0;
    const int moved = kc_views_move(&t->views, &from->views, &first, t->budget, error);
    if (moved) return moved;
    for (int i = 0; i < t->num_columns; i++) {
        if (!t->columns[i].wanted) continue;
        int code = move_column(&t->columns[i], &from->columns[i], first, error);
        if (code) return code;
    }
    t->length += from->length;
    from->length = 0;
    return KC_OK;
}
