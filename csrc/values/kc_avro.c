#include "values/kc_avro.h"

#include "base/kc_utf8.h"
#include "base/kc_varint.h"

typedef struct walk {
    const kc_avro_node *nodes;
    const uint8_t *data, *at, *end;
    int64_t budget;
    kc_avro_fault *fault;
    bool has_long_decimal;
} walk;

static bool fail(walk *w, const kc_avro_node *node, const uint8_t *at, const char *what, int64_t got, int64_t want) {
    *w->fault = (kc_avro_fault){what, at - w->data, got, want, (int32_t)(node - w->nodes)};
    return false;
}

static bool value(walk *w, const kc_avro_node *node);

static bool take_long(walk *w, const kc_avro_node *node, int64_t *v) {
    const int n = kc_varint64_decode(w->at, w->end, v);
    if (n == 0) return fail(w, node, w->at, "the value ends inside a number", 0, 0);
    if (n < 0) return fail(w, node, w->at, "a number has more than 64 bits", 0, 0);
    w->at += n;
    return true;
}

static bool skip(walk *w, const kc_avro_node *node, int64_t size) {
    const int64_t left = w->end - w->at;
    if (size > left)
        return fail(w, node, w->at, "the value ends inside a field of {got} bytes, {want} are left", size, left);
    w->at += size;
    return true;
}

/* A number from 0 to below `limit`. */
static bool take_below(walk *w, const kc_avro_node *node, int64_t limit, const char *what, int64_t *v) {
    const uint8_t *at = w->at;
    if (!take_long(w, node, v)) return false;
    return (*v >= 0 && *v < limit) || fail(w, node, at, what, *v, limit);
}

static bool take_length(walk *w, const kc_avro_node *node, int64_t *size) {
    const uint8_t *at = w->at;
    if (!take_long(w, node, size)) return false;
    const int64_t left = w->end - w->at;
    if (*size < 0) return fail(w, node, at, "negative length {got}", *size, 0);
    return *size <= left || fail(w, node, at, "length {got} exceeds the {want} bytes left", *size, left);
}

static bool check_boolean(walk *w, const kc_avro_node *node) {
    if (w->at == w->end) return fail(w, node, w->at, "the value ends before a boolean", 0, 0);
    const uint8_t byte = kc_load_u8(w->at);
    if (byte > 1) return fail(w, node, w->at, "boolean {got} is neither 0 nor 1", byte, 0);
    w->at++;
    return true;
}

static bool check_int(walk *w, const kc_avro_node *node) {
    const uint8_t *at = w->at;
    int64_t v;
    if (!take_long(w, node, &v)) return false;
    return (v >= INT32_MIN && v <= INT32_MAX) || fail(w, node, at, "{got} exceeds an int of 32 bits", v, 0);
}

static bool check_long(walk *w, const kc_avro_node *node) {
    int64_t v;
    return take_long(w, node, &v);
}

static bool check_bytes(walk *w, const kc_avro_node *node) {
    int64_t size;
    if (!take_length(w, node, &size)) return false;
    w->at += size;
    return true;
}

static bool check_string(walk *w, const kc_avro_node *node) {
    int64_t size;
    if (!take_length(w, node, &size)) return false;
    if (!kc_utf8_valid(w->at, (size_t)size)) return fail(w, node, w->at, "a string is not UTF-8", 0, 0);
    w->at += size;
    return true;
}

/* Whether a number of `size` bytes has as many as a column does, after those that only repeat its sign. */
static bool check_digits(walk *w, const kc_avro_node *node, int64_t size) {
    const uint8_t sign = size && kc_load_u8(w->at + (size > node->width ? size - node->width : 0)) & 0x80 ? 0xff : 0;
    for (int64_t i = 0; i < size - node->width; i++) {
        if (kc_load_u8(w->at + i) != sign)
            return fail(w, node, w->at, "a decimal has more digits than its precision", 0, 0);
    }
    w->at += size;
    return true;
}

static bool check_decimal(walk *w, const kc_avro_node *node) {
    int64_t size;
    const uint8_t *at = w->at;
    if (!take_length(w, node, &size)) return false;
    if (size == 0) return fail(w, node, at, "a decimal has 0 bytes", 0, 0);
    if (size > node->width) w->has_long_decimal = true;
    return check_digits(w, node, size);
}

static bool check_fixed_decimal(walk *w, const kc_avro_node *node) {
    const uint8_t *at = w->at;
    if (!skip(w, node, node->limit)) return false;
    w->at = at;
    return check_digits(w, node, node->limit);
}

static bool check_big_decimal(walk *w, const kc_avro_node *node) {
    int64_t size, digits, scale;
    const uint8_t *at = w->at, *end = w->end;
    if (!take_length(w, node, &size)) return false;
    w->end = w->at + size;
    if (!take_length(w, node, &digits)) return false;
    if (digits == 0 || digits > node->limit)
        return fail(w, node, at, "a big decimal has {got} bytes, not 1 to {want}", digits, node->limit);
    w->at += digits;
    if (!take_long(w, node, &scale)) return false;
    if (scale < INT32_MIN || scale > INT32_MAX) return fail(w, node, at, "scale {got} exceeds 32 bits", scale, 0);
    if (w->at != w->end) return fail(w, node, w->at, "{got} bytes follow a big decimal", w->end - w->at, 0);
    w->end = end;
    return true;
}

static bool check_time(walk *w, const kc_avro_node *node) {
    const int64_t day = node->kind == KC_AVRO_TIME_MILLIS ? INT64_C(86400000) : INT64_C(86400000000);
    int64_t v;
    return take_below(w, node, day, "time {got} is not within a day of {want}", &v);
}

static bool check_fixed(walk *w, const kc_avro_node *node) { return skip(w, node, node->limit); }

static bool check_enum(walk *w, const kc_avro_node *node) {
    int64_t v;
    return take_below(w, node, node->limit, "symbol {got} of an enum of {want}", &v);
}

static bool check_record(walk *w, const kc_avro_node *node) {
    for (int32_t i = 0; i < node->count; i++) {
        if (!value(w, w->nodes + node->first + i)) return false;
    }
    return true;
}

static bool check_union(walk *w, const kc_avro_node *node) {
    int64_t branch;
    if (!take_below(w, node, node->count, "branch {got} of a union of {want}", &branch)) return false;
    return value(w, w->nodes + node->first + branch);
}

/* The count of a block, 0 at the end of the list, and where the block must end if it says so. */
static bool take_block(walk *w, const kc_avro_node *node, int64_t *count, const uint8_t **end) {
    const uint8_t *at = w->at;
    *end = NULL;
    if (!take_long(w, node, count)) return false;
    if (*count >= 0) return true;
    if (*count == INT64_MIN) return fail(w, node, at, "a block of {got} items", *count, 0);
    *count = -*count;
    int64_t size;
    if (!take_length(w, node, &size)) return false;
    *end = w->at + size;
    return true;
}

/* Takes the memory for the items of a block; each has at least `least` bytes. */
static bool take_items(walk *w, const kc_avro_node *node, int64_t count, int64_t least, int64_t width) {
    const int64_t left = w->end - w->at;
    if (least && count > left / least) {
        return fail(w, node, w->at, "a block of {got} items in the {want} bytes left", count, left);
    }
    if (count > w->budget / width)
        return fail(w, node, w->at, "a block of {got} items exceeds the memory limit", count, 0);
    w->budget -= count * width;
    return true;
}

static bool check_item(walk *w, const kc_avro_node *list, const kc_avro_node *item) {
    return (list->kind == KC_AVRO_ARRAY || check_string(w, list)) && value(w, item);
}

static bool check_list(walk *w, const kc_avro_node *node) {
    const kc_avro_node *item = w->nodes + node->first;
    const int64_t key = node->kind == KC_AVRO_MAP;
    for (;;) {
        int64_t count;
        const uint8_t *end;
        if (!take_block(w, node, &count, &end)) return false;
        if (count == 0) return end == NULL || end == w->at || fail(w, node, w->at, "a block has a wrong size", 0, 0);
        if (!take_items(w, node, count, item->least + key, item->width + 4 * key)) return false;
        if (key || item->kind != KC_AVRO_NOTHING) {
            for (int64_t i = 0; i < count; i++) {
                if (!check_item(w, node, item)) return false;
            }
        }
        if (end && end != w->at) return fail(w, node, w->at, "a block does not end where its size says", 0, 0);
    }
}

static bool check_nothing(walk *w, const kc_avro_node *node) {
    (void)w;
    (void)node;
    return true;
}

static bool (*const CHECKS[KC_AVRO_KINDS])(walk *, const kc_avro_node *) = {
    [KC_AVRO_NOTHING] = check_nothing,
    [KC_AVRO_BOOLEAN] = check_boolean,
    [KC_AVRO_INT] = check_int,
    [KC_AVRO_LONG] = check_long,
    [KC_AVRO_BYTES] = check_bytes,
    [KC_AVRO_STRING] = check_string,
    [KC_AVRO_FIXED] = check_fixed,
    [KC_AVRO_ENUM] = check_enum,
    [KC_AVRO_RECORD] = check_record,
    [KC_AVRO_ARRAY] = check_list,
    [KC_AVRO_MAP] = check_list,
    [KC_AVRO_UNION] = check_union,
    [KC_AVRO_DECIMAL] = check_decimal,
    [KC_AVRO_FIXED_DECIMAL] = check_fixed_decimal,
    [KC_AVRO_BIG_DECIMAL] = check_big_decimal,
    [KC_AVRO_TIME_MILLIS] = check_time,
    [KC_AVRO_TIME_MICROS] = check_time,
};

static bool value(walk *w, const kc_avro_node *node) { return CHECKS[node->kind](w, node); }

static bool node_valid(const kc_avro_schema *s, int32_t i, int32_t *known) {
    const kc_avro_node *n = s->nodes + i;
    const bool list = n->kind == KC_AVRO_ARRAY || n->kind == KC_AVRO_MAP;
    const bool has_children = list || n->kind == KC_AVRO_RECORD || n->kind == KC_AVRO_UNION;
    if (n->kind < 0 || n->kind >= KC_AVRO_KINDS || n->limit < 0 || n->width < 1 || n->least < 0) return false;
    if (n->count < 0 || (list && n->count != 1) || (!has_children && n->count != 0)) return false;
    if (n->count == 0) return true;
    /* Children in the order of their parents, without gaps: each has one parent, before it. */
    if (n->first != *known || n->first <= i || n->count > s->count - *known) return false;
    *known += n->count;
    return true;
}

bool kc_avro_schema_valid(const kc_avro_schema *schema) {
    int32_t known = 1, level_end = 1, depth = 1;
    if (schema->count < 1) return false;
    for (int32_t i = 0; i < schema->count; i++) {
        if (i >= known) return false;
        if (i == level_end) {
            level_end = known;
            if (++depth > KC_AVRO_MAX_DEPTH) return false;
        }
        if (!node_valid(schema, i, &known)) return false;
    }
    return known == schema->count;
}

int64_t kc_avro_check(const kc_avro_schema *schema, const uint8_t *data, const int64_t *ends, int64_t start,
                      int64_t rows, int64_t *budget, kc_avro_fault *fault) {
    walk w = {.nodes = schema->nodes, .data = data, .fault = fault};
    for (int64_t row = start; row < rows; row++) {
        w.at = data + (row ? ends[row - 1] : 0);
        w.end = data + ends[row];
        w.budget = *budget;
        w.has_long_decimal = false;
        if (!value(&w, schema->nodes)) return row;
        if (w.at != w.end) {
            fail(&w, schema->nodes, w.at, "{got} bytes follow the value", w.end - w.at, 0);
            return row;
        }
        *budget = w.budget;
        if (w.has_long_decimal) {
            *fault = (kc_avro_fault){NULL, w.at - data, 0, 0, 0};
            return row;
        }
    }
    return rows;
}
