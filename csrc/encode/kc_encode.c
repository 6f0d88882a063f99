#include "encode/kc_encode.h"

#include <string.h>

#include "base/kc_cpu.h"
#include "encode/kc_record_write.h"

void kc_encoder_begin(kc_encoder *e, const kc_batch_options *options) {
    memset(e, 0, sizeof *e);
    e->options = *options;
    kc_encoder_restart(e, 0);
}

void kc_encoder_restart(kc_encoder *e, int64_t row) {
    e->open.count = 0;
    e->next_offset = e->options.base_offset;
    e->next_sequence = e->options.base_sequence;
    e->started = false;
    e->ranged = e->options.has_range;
    e->loaded = row;
    e->next = e->block.rows = 0;
}

/* ---- checks of rows ------------------------------------------------------------------------------------------- */

static void fill_times(kc_input_block *block, int64_t time) {
    const int64_t rows = block->rows;
    for (int64_t i = 0; i < rows; i++) {
        if (block->timestamp[i] == -1) block->timestamp[i] = time;
    }
}

/* Checks that messages of magic 0 and 1 can represent the rows of the block, or drops what they cannot. */
static int check_messages(const kc_batch_options *options, kc_input_block *block, int64_t row, kc_error *error) {
    const bool drop = options->drop_unsupported, has_timestamp = options->magic == 1;
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

/* Fails for the first of the block's offsets that is not allowed. */
static int bad_offset(const kc_batch_options *options, int64_t offset, int64_t least, int64_t row, kc_error *error) {
    const char *what = "offsets must increase from one record to the next";
    int64_t limit = least;
    if (offset < 0 || offset == INT64_MAX) {
        what = "an offset is outside the format's range";
        limit = INT64_MAX - 1;
    } else if (options->has_range && offset > options->last_offset) {
        what = "an offset is above last_offset";
        limit = options->last_offset;
    } else if (options->has_range && offset < options->first_offset) {
        what = "an offset is below first_offset";
        limit = options->first_offset;
    }
    return kc_fail(error, KC_CANNOT_ENCODE, what, (uint64_t)row, offset, limit);
}

/* Checks that the block's offsets increase and start with an allowed one. */
static int check_offsets(const kc_encoder *e, int64_t least, int64_t row, kc_error *error) {
    const kc_input_block *block = &e->block;
    const int64_t most = e->options.has_range ? e->options.last_offset : INT64_MAX - 1;
    for (int64_t i = 0; i < block->rows; least = block->offset[i++] + 1) {
        if (KC_UNLIKELY(block->offset[i] < least || block->offset[i] > most))
            return bad_offset(&e->options, block->offset[i], least, row + i, error);
    }
    return KC_OK;
}

/* The smallest offset that the next row can have. The first one of a column is free; later ones must increase. */
static int64_t least_offset(const kc_encoder *e, bool numbered) {
    if (e->started) return e->next_offset;
    if (e->options.has_range) return e->options.first_offset;
    return numbered ? 0 : e->next_offset;
}

static int load_block(kc_encoder *e, const kc_input_chunk *chunk, kc_error *error) {
    kc_input_block *block = &e->block;
    const int64_t row = e->loaded, left = chunk->rows - row;
    const bool numbered = chunk->offset.layout != KC_LAYOUT_ABSENT;
    e->next = block->rows = 0;
    if (kc_input_block_load(block, chunk, row, left < KC_BLOCK_ROWS ? left : KC_BLOCK_ROWS, e->next_offset, error)) {
        return error->code;
    }
    if (check_offsets(e, least_offset(e, numbered), row, error)) return error->code;
    if (e->options.has_time) fill_times(block, e->options.time);
    if (e->options.magic < 2 && check_messages(&e->options, block, row, error)) return error->code;
    e->started = true;
    e->loaded = row + block->rows;
    /* A block has at least one row. NOLINTNEXTLINE(clang-analyzer-security.ArrayBound) */
    e->next_offset = block->offset[block->rows - 1] + 1;
    return KC_OK;
}

/* ---- batches -------------------------------------------------------------------------------------------------- */

/* The largest offset that the batch can contain. */
static int64_t offset_limit(int64_t base_offset) {
    return base_offset > INT64_MAX - INT32_MAX ? INT64_MAX : base_offset + INT32_MAX;
}

KC_INLINE kc_record_size measure(const kc_open_batch *batch, const kc_input_block *block, int64_t i, int magic) {
    return magic == 2 ? kc_record_measure(batch, block, i) : kc_message_measure(magic, block, i);
}

static kc_encode_event no_room(kc_encoder *e, int64_t size) {
    e->wanted = (size_t)size + KC_COPY_SLACK;
    return KC_ENCODE_NO_ROOM;
}

/* Headers that differ from those that were measured, or are an error now, whose position counts items. */
static kc_encode_event changed(kc_error *error, int64_t row) {
    if (error->code == KC_OK)
        (void)kc_fail(error, KC_CANNOT_ENCODE, "headers changed while they were encoded", 0, 0, 0);
    error->position = (uint64_t)row;
    return KC_ENCODE_FAULT;
}

/* Starts a batch for the next row of the block, if there is room for that row and the header. ROWS_END means success.
 */
static kc_encode_event open_batch(kc_encoder *e, kc_room *room, kc_error *error) {
    const kc_input_block *block = &e->block;
    const int64_t i = e->next, header = (int64_t)kc_batch_header_bytes(&e->options);
    kc_open_batch batch = {.base_offset = e->ranged ? e->options.first_offset : block->offset[i],
                           .last_offset = block->offset[i],
                           .base_timestamp = block->timestamp[i],
                           .max_timestamp = block->timestamp[i],
                           .size = header,
                           .base_sequence = e->next_sequence};
    if (KC_UNLIKELY(block->offset[i] > offset_limit(batch.base_offset))) {
        (void)kc_fail(error, KC_CANNOT_ENCODE, "a batch cannot span 2^31 offsets from first_offset on",
                      (uint64_t)(e->loaded - block->rows + i), block->offset[i], offset_limit(batch.base_offset));
        return KC_ENCODE_FAULT;
    }
    const int64_t size = measure(&batch, block, i, e->options.magic).total;
    if (KC_UNLIKELY(size > INT32_MAX - KC_BATCH_HEADER_SIZE)) {
        (void)kc_fail(error, KC_CANNOT_ENCODE, "a record exceeds the maximum batch size",
                      (uint64_t)(e->loaded - block->rows + i), size, INT32_MAX - KC_BATCH_HEADER_SIZE);
        return KC_ENCODE_FAULT;
    }
    if (room->end - room->at < header + size + KC_COPY_SLACK) return no_room(e, header + size);
    e->open = batch;
    e->ranged = false;
    room->at += header;
    return KC_ENCODE_ROWS_END;
}

/* Writes rows of the block: at least one if the batch is empty, further ones while they fit. The batch is kept in
 * registers meanwhile. `magic` is a constant if that matters for speed. */
KC_INLINE kc_encode_event fill_with(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, const int magic,
                                    kc_error *error) {
    const kc_input_block *block = &e->block;
    const int64_t first = e->next, limit = e->options.batch_bytes, last_offset = offset_limit(e->open.base_offset);
    kc_open_batch open = e->open;
    kc_encode_event event = KC_ENCODE_ROWS_END;
    int64_t i = first;
    for (; i < block->rows; i++) {
        const kc_record_size s = measure(&open, block, i, magic);
        if ((open.size + s.total > limit || block->offset[i] > last_offset) && (open.count || i > first)) {
            event = KC_ENCODE_BATCH;
            break;
        }
        if (KC_UNLIKELY(room->end - room->at < s.total + KC_COPY_SLACK)) {
            event = no_room(e, s.total);
            break;
        }
        if (block->value.size[i] > 0) kc_fetch_ahead(block->value.data[i], block->value.data[i] + block->value.size[i]);
        uint8_t *p = magic == 2 ? kc_put_record(room->at, chunk, block, i, &s, error)
                                : kc_put_message(room->at, &open, &e->options, block, i, &s);
        if (KC_UNLIKELY(!p)) return changed(error, e->loaded - block->rows + i);
        room->at = p;
        open.size += s.total;
        if (block->timestamp[i] > open.max_timestamp) open.max_timestamp = block->timestamp[i];
    }
    open.count += (int32_t)(i - first);
    if (i > first) open.last_offset = block->offset[i - 1];
    e->open = open;
    e->next = i;
    return event;
}

static kc_encode_event fill_from_block(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, kc_error *error) {
    const int magic = (int)e->options.magic;
    if (!e->open.count) {
        kc_encode_event event = open_batch(e, room, error);
        if (event != KC_ENCODE_ROWS_END) return event;
    }
    return magic == 2 ? fill_with(e, chunk, room, 2, error) : fill_with(e, chunk, room, magic, error);
}

kc_encode_event kc_encoder_fill(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, kc_error *error) {
    for (;;) {
        if (e->next == e->block.rows) {
            if (e->loaded == chunk->rows) break;
            if (load_block(e, chunk, error)) return KC_ENCODE_FAULT;
        }
        kc_encode_event event = fill_from_block(e, chunk, room, error);
        if (event != KC_ENCODE_ROWS_END) return event;
    }
    e->loaded = e->next = e->block.rows = 0;
    return KC_ENCODE_ROWS_END;
}

void kc_encoder_close(kc_encoder *e, const uint8_t *records, size_t size, uint8_t *out) {
    kc_open_batch *open = &e->open;
    kc_batch_write_header(open, &e->options, records, size, out);
    /* The sequence of a record is that of the batch plus its offset delta. */
    e->next_sequence = kc_sequence_after(open->base_sequence, open->last_offset - open->base_offset + 1);
    open->count = 0;
}

int kc_encoder_end(kc_encoder *e, kc_error *error) {
    if (!e->options.has_range) return KC_OK;
    const int64_t limit = offset_limit(e->started ? e->open.base_offset : e->options.first_offset);
    if (e->options.last_offset > limit)
        return kc_fail(error, KC_CANNOT_ENCODE, "a batch cannot span 2^31 offsets up to last_offset", 0,
                       e->options.last_offset, limit);
    e->open.last_offset = e->options.last_offset;
    return KC_OK;
}

void kc_encoder_close_in_place(kc_encoder *e, const kc_room *room) {
    const size_t header = kc_batch_header_bytes(&e->options), size = (size_t)e->open.size;
    uint8_t *start = room->at - size;
    kc_encoder_close(e, start + header, size - header, start);
}

kc_encode_event kc_encoder_run(kc_encoder *e, const kc_input_chunk *chunk, kc_room *room, kc_error *error) {
    kc_cpu_clear_upper_halves();
    for (;;) {
        kc_encode_event event = kc_encoder_fill(e, chunk, room, error);
        if (event != KC_ENCODE_BATCH) return event;
        kc_encoder_close_in_place(e, room);
    }
}
