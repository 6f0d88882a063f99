#include "kc_encode.h"

#include <string.h>

#include "kc_batch_write.h"
#include "kc_cpu.h"
#include "kc_varint.h"

/* ---- chunks --------------------------------------------------------------------------------------------------- */

static int import_column(kc_record_chunk *chunk, const char *name, const struct ArrowSchema *schema,
                         const struct ArrowArray *array, int64_t offset, kc_error *error) {
    if (strcmp(name, "key") == 0) return kc_bytes_column_import(&chunk->key, schema, array, offset, chunk->rows, error);
    if (strcmp(name, "value") == 0)
        return kc_bytes_column_import(&chunk->value, schema, array, offset, chunk->rows, error);
    if (strcmp(name, "offset") == 0)
        return kc_int_column_import(&chunk->offset, schema, array, offset, chunk->rows, error);
    if (strcmp(name, "timestamp") == 0)
        return kc_int_column_import(&chunk->timestamp, schema, array, offset, chunk->rows, error);
    if (strcmp(name, "headers") == 0)
        return kc_pairs_column_import(&chunk->headers, schema, array, offset, chunk->rows, error);
    return KC_OK;
}

int kc_record_chunk_import(kc_record_chunk *chunk, const struct ArrowSchema *schema, const struct ArrowArray *array,
                           const char **column, kc_error *error) {
    memset(chunk, 0, sizeof *chunk);
    *column = NULL;
    if (kc_struct_check(schema, array, error)) return error->code;
    chunk->rows = array->length;
    bool content = false;
    for (int64_t i = 0; i < schema->n_children; i++) {
        const char *name = schema->children[i]->name;
        content = content || (name && (strcmp(name, "key") == 0 || strcmp(name, "value") == 0));
        if (name && import_column(chunk, name, schema->children[i], array->children[i], array->offset, error)) {
            *column = name;
            return error->code;
        }
    }
    if (!content) return kc_fail(error, KC_CANNOT_ENCODE, "there is neither a key nor a value column", 0, 0, 0);
    return KC_OK;
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* A value with its length, counted without branches, so that several rows go at once. */
KC_INLINE uint32_t span_bytes(int32_t size) {
    uint32_t prefix = 1u + (size > 0x3f) + (size > 0x1fff) + (size > 0xfffff) + (size > 0x7ffffff);
    return prefix + (uint32_t)(size > 0 ? size : 0);
}

/* The bytes of header items [start, end), without their count. */
static int add_items(const kc_pairs_column *c, int64_t start, int64_t end, int64_t *bytes, kc_error *error) {
    kc_spans keys, values;
    while (start < end) {
        int64_t n = end - start < KC_BLOCK_ROWS ? end - start : KC_BLOCK_ROWS;
        if (kc_pairs_column_items(c, start, n, &keys, &values, error)) return error->code;
        for (int64_t i = 0; i < n; i++) *bytes += (int64_t)span_bytes(keys.size[i]) + span_bytes(values.size[i]);
        start += n;
    }
    return KC_OK;
}

static int add_headers(kc_record_block *block, const kc_record_chunk *chunk, int64_t row, int64_t n, kc_error *error) {
    if (kc_pairs_column_load(&chunk->headers, row, n, block->header_bounds, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        int64_t start = block->header_bounds[2 * i], end = block->header_bounds[2 * i + 1];
        if (start == end) continue;
        if (KC_UNLIKELY(end - start > INT32_MAX))
            return kc_fail(error, KC_CANNOT_ENCODE, "too many headers", (uint64_t)(row + i), end - start, INT32_MAX);
        block->fixed_bytes[i] += (int64_t)kc_varint32_size((int32_t)(end - start)) - 1;
        if (add_items(&chunk->headers, start, end, &block->fixed_bytes[i], error)) {
            error->position = (uint64_t)(row + i);
            return error->code;
        }
    }
    return KC_OK;
}

int kc_record_block_load(kc_record_block *block, const kc_record_chunk *chunk, int64_t row, int64_t n,
                         int64_t next_offset, kc_error *error) {
    block->rows = n;
    if (chunk->offset.layout == KC_LAYOUT_ABSENT) {
        for (int64_t i = 0; i < n; i++) block->offset[i] = (int64_t)((uint64_t)next_offset + (uint64_t)i);
    } else if (kc_int_column_load(&chunk->offset, row, n, false, 0, block->offset, error)) {
        return error->code;
    }
    if (kc_int_column_load(&chunk->timestamp, row, n, true, -1, block->timestamp, error)) return error->code;
    if (kc_bytes_column_load(&chunk->key, row, n, &block->key, error)) return error->code;
    if (kc_bytes_column_load(&chunk->value, row, n, &block->value, error)) return error->code;
    for (int64_t i = 0; i < n; i++) {
        /* attributes, key, value and an empty list's count */
        block->fixed_bytes[i] = 2 + (int64_t)span_bytes(block->key.size[i]) + (int64_t)span_bytes(block->value.size[i]);
    }
    block->has_headers = chunk->headers.layout != KC_LAYOUT_ABSENT;
    return block->has_headers ? add_headers(block, chunk, row, n, error) : KC_OK;
}

/* ---- the plan ------------------------------------------------------------------------------------------------- */

void kc_plan_begin(kc_plan *plan, const kc_batch_options *options) {
    memset(plan, 0, sizeof *plan);
    plan->options = *options;
    plan->next_offset = options->base_offset;
    plan->next_sequence = options->base_sequence;
}

void kc_plan_clear(kc_plan *plan) { plan->closed.size = 0; }

void kc_plan_free(kc_plan *plan) { kc_buffer_free(&plan->closed); }

static int close_batch(kc_plan *plan, kc_error *error) {
    kc_batch_plan *open = &plan->open;
    if (kc_buffer_reserve(&plan->closed, sizeof *open, error)) return error->code;
    memcpy(plan->closed.data + plan->closed.size, open, sizeof *open);
    plan->closed.size += sizeof *open;
    plan->closed_bytes += open->size;
    /* A record's sequence is the batch's plus its offset delta; they wrap to 0 after 2^31-1. */
    if (open->base_sequence >= 0)
        plan->next_sequence =
            (int32_t)((open->base_sequence + (open->last_offset - open->base_offset) + 1) & INT32_MAX);
    open->count = 0;
    return KC_OK;
}

/* The largest offset that a batch can hold. */
static int64_t offset_limit(const kc_batch_plan *batch) {
    return batch->base_offset > INT64_MAX - INT32_MAX ? INT64_MAX : batch->base_offset + INT32_MAX;
}

static void open_batch(kc_plan *plan, int64_t offset, int64_t timestamp, int64_t chunk, int64_t row) {
    plan->open = (kc_batch_plan){.chunk = chunk,
                                 .row = row,
                                 .base_offset = offset,
                                 .last_offset = offset,
                                 .base_timestamp = timestamp,
                                 .max_timestamp = timestamp,
                                 .size = (int64_t)kc_batch_header_bytes(&plan->options),
                                 .base_sequence = plan->next_sequence};
}

/* What row i of the block adds to the batch. */
KC_INLINE int64_t row_bytes(const kc_batch_plan *batch, const kc_record_block *block, int64_t i, int magic) {
    if (magic < 2) return kc_message_bytes(magic, block, i);
    return kc_record_bytes(kc_body_bytes(batch, block, i));
}

/* Puts rows of the block, from i on, into the open batch while they fit: one in any case where that is empty.
 * Returns the first row that does not fit, or block->rows. `magic` is a constant where that matters for speed. */
KC_INLINE int64_t fill_with(kc_plan *plan, const kc_record_block *block, int64_t i, const int magic) {
    kc_batch_plan open = plan->open;
    const int64_t first = i, limit = plan->options.batch_bytes, last_offset = offset_limit(&open);
    for (; i < block->rows; i++) {
        int64_t size = open.size + row_bytes(&open, block, i, magic);
        if ((size > limit || block->offset[i] > last_offset) && (open.count || i > first)) break;
        open.size = size;
        if (block->timestamp[i] > open.max_timestamp) open.max_timestamp = block->timestamp[i];
    }
    open.count += (int32_t)(i - first);
    if (i > first) open.last_offset = block->offset[i - 1];
    plan->open = open;
    return i;
}

static int64_t fill_batch(kc_plan *plan, const kc_record_block *block, int64_t i) {
    const int magic = plan->options.magic;
    return magic == 2 ? fill_with(plan, block, i, 2) : fill_with(plan, block, i, magic);
}

/* That messages of magic 0 and 1 can hold the block's rows, or what they cannot is dropped. */
static int check_messages(const kc_plan *plan, kc_record_block *block, int64_t row, kc_error *error) {
    const bool drop = plan->options.drop_unsupported, has_timestamp = plan->options.magic == 1;
    for (int64_t i = 0; i < block->rows; i++) {
        const bool headers = block->has_headers && block->header_bounds[2 * i] != block->header_bounds[2 * i + 1];
        if (headers && !drop) {
            return kc_fail(error, KC_CANNOT_ENCODE, "messages of magic 0 and 1 have no headers", (uint64_t)(row + i), 0,
                           0);
        }
        if (has_timestamp || block->timestamp[i] == -1) continue;
        if (!drop) {
            return kc_fail(error, KC_CANNOT_ENCODE, "messages of magic 0 have no timestamp", (uint64_t)(row + i), 0, 0);
        }
        block->timestamp[i] = -1;
    }
    return KC_OK;
}

/* That the block's offsets increase, from one that is allowed on. */
static int check_offsets(const kc_plan *plan, const kc_record_block *block, int64_t row, kc_error *error) {
    int64_t least = plan->next_offset;
    for (int64_t i = 0; i < block->rows; least = block->offset[i++] + 1) {
        if (KC_UNLIKELY(block->offset[i] < 0 || block->offset[i] == INT64_MAX))
            return kc_fail(error, KC_CANNOT_ENCODE, "an offset outside the format's range", (uint64_t)(row + i),
                           block->offset[i], INT64_MAX - 1);
        if (KC_UNLIKELY(block->offset[i] < least))
            return kc_fail(error, KC_CANNOT_ENCODE, "offsets must increase from one record to the next",
                           (uint64_t)(row + i), block->offset[i], least);
    }
    return KC_OK;
}

static int plan_block(kc_plan *plan, const kc_record_block *block, int64_t chunk, int64_t row, kc_error *error) {
    for (int64_t i = plan->open.count ? fill_batch(plan, block, 0) : 0; i < block->rows;) {
        if (plan->open.count && close_batch(plan, error)) return error->code;
        open_batch(plan, block->offset[i], block->timestamp[i], chunk, row + i);
        int64_t size = row_bytes(&plan->open, block, i, plan->options.magic);
        if (KC_UNLIKELY(size > INT32_MAX - KC_BATCH_HEADER_BYTES))
            return kc_fail(error, KC_CANNOT_ENCODE, "a record larger than a batch may be", (uint64_t)(row + i), size,
                           INT32_MAX - KC_BATCH_HEADER_BYTES);
        i = fill_batch(plan, block, i);
    }
    return KC_OK;
}

int kc_plan_add(kc_plan *plan, const kc_record_chunk *chunk, int64_t number, kc_error *error) {
    kc_cpu_settle();
    kc_record_block block;
    /* The first offset of a column is the caller's choice; only afterwards must it increase. */
    if (chunk->offset.layout != KC_LAYOUT_ABSENT && !plan->started) plan->next_offset = 0;
    plan->started = plan->started || chunk->rows > 0;
    for (int64_t row = 0; row < chunk->rows; row += block.rows) {
        int64_t n = chunk->rows - row < KC_BLOCK_ROWS ? chunk->rows - row : KC_BLOCK_ROWS;
        if (kc_record_block_load(&block, chunk, row, n, plan->next_offset, error)) return error->code;
        if (check_offsets(plan, &block, row, error)) return error->code;
        if (plan->options.magic < 2 && check_messages(plan, &block, row, error)) return error->code;
        if (plan_block(plan, &block, number, row, error)) return error->code;
        plan->next_offset = block.offset[n - 1] + 1;
    }
    return KC_OK;
}

int kc_plan_finish(kc_plan *plan, kc_error *error) { return plan->open.count ? close_batch(plan, error) : KC_OK; }
