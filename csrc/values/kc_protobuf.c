#include "values/kc_protobuf.h"

#include "base/kc_alloc.h"
#include "base/kc_bytes.h"
#include "base/kc_utf8.h"
#include "base/kc_varint.h"
#include "values/kc_key_set.h"

enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, GROUP = 3, GROUP_END = 4, FOUR_BYTES = 5 };

static const int32_t WIRE[KC_PROTOBUF_KINDS] = {
    [KC_PROTOBUF_INT32] = VARINT, [KC_PROTOBUF_INT64] = VARINT,       [KC_PROTOBUF_UINT32] = VARINT,
    [KC_PROTOBUF_BOOL] = VARINT,  [KC_PROTOBUF_ENUM] = VARINT,        [KC_PROTOBUF_SECONDS] = VARINT,
    [KC_PROTOBUF_NANOS] = VARINT, [KC_PROTOBUF_FIXED32] = FOUR_BYTES, [KC_PROTOBUF_FIXED64] = EIGHT_BYTES,
    [KC_PROTOBUF_BYTES] = LENGTH, [KC_PROTOBUF_STRING] = LENGTH,      [KC_PROTOBUF_MESSAGE] = LENGTH,
    [KC_PROTOBUF_MAP] = LENGTH,   [KC_PROTOBUF_GROUP] = GROUP,
};

#define MOST_SECONDS INT64_C(9223372035)
#define MOST_NANOS INT64_C(999999999)

/* The functions below read from `at`, and return false at the first byte that is damaged, which is then `at`. */
typedef struct walk {
    const kc_protobuf_schema *schema;
    const uint8_t *at;
    uint64_t *marks;   /* for each mark, the message that had it last */
    uint64_t messages; /* the number of messages so far */
    kc_key_set keys;
    int64_t items; /* bytes of columns for the items of lists */
    int32_t field, depth;
    bool odd;
} walk;

static bool take_varint(walk *w, const uint8_t *end, uint64_t *v) {
    const int n = kc_uvarint64_decode(w->at, end, v);
    if (n <= 0) return false;
    w->at += n;
    return true;
}

static bool take_tag(walk *w, const uint8_t *end, uint32_t *tag) {
    const int n = kc_uvarint32_decode(w->at, end, tag);
    if (n <= 0 || *tag >> 3 == 0) return false;
    w->at += n;
    return true;
}

/* The end of what has a length. */
static const uint8_t *take_length(walk *w, const uint8_t *end) {
    uint64_t size;
    const int n = kc_uvarint64_decode(w->at, end, &size);
    if (n <= 0 || size > (uint64_t)(end - w->at - n)) return NULL;
    w->at += n;
    return w->at + size;
}

static bool skip_bytes(walk *w, const uint8_t *end, ptrdiff_t size) {
    if (end - w->at < size) return false;
    w->at += size;
    return true;
}

static bool skip_value(walk *w, const uint8_t *end, uint32_t wire) {
    uint64_t v;
    if (wire == VARINT) return take_varint(w, end, &v);
    if (wire == EIGHT_BYTES || wire == FOUR_BYTES) return skip_bytes(w, end, wire == EIGHT_BYTES ? 8 : 4);
    if (wire != LENGTH) return false;
    const uint8_t *stop = take_length(w, end);
    if (stop) w->at = stop;
    return stop != NULL;
}

static bool skip_group(walk *w, const uint8_t *end, uint32_t number) {
    uint32_t open[KC_PROTOBUF_MAX_DEPTH] = {number};
    for (int32_t depth = 1; depth > 0;) {
        const uint8_t *before = w->at;
        uint32_t tag;
        if (!take_tag(w, end, &tag)) return false;
        const uint32_t wire = tag & 7;
        if (wire == GROUP ? depth == KC_PROTOBUF_MAX_DEPTH : wire == GROUP_END && open[depth - 1] != tag >> 3) {
            w->at = before;
            return false;
        }
        if (wire == GROUP) {
            open[depth++] = tag >> 3;
        } else if (wire == GROUP_END) {
            depth--;
        } else if (!skip_value(w, end, wire)) {
            return false;
        }
    }
    return true;
}

static bool skip(walk *w, const uint8_t *end, uint32_t tag) {
    if ((tag & 7) != GROUP) return skip_value(w, end, tag & 7);
    w->odd = true;
    return skip_group(w, end, tag >> 3);
}

static bool is_member(const kc_protobuf_schema *s, const kc_protobuf_enum *e, int64_t v) {
    int32_t low = e->first, high = e->first + e->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (s->numbers[middle] < v) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < e->first + e->count && s->numbers[low] == v;
}

static bool is_within(int64_t v, int64_t most) { return v >= -most && v <= most; }

/* Whether the varint is as serializers write numbers of this kind. */
static bool is_number(const kc_protobuf_schema *s, const kc_protobuf_field *f, uint64_t v) {
    switch (f->kind) {
        case KC_PROTOBUF_INT32:
            return (int64_t)v >= INT32_MIN && (int64_t)v <= INT32_MAX;
        case KC_PROTOBUF_UINT32:
            return v <= UINT32_MAX;
        case KC_PROTOBUF_BOOL:
            return v <= 1;
        case KC_PROTOBUF_ENUM:
            return is_member(s, s->enums + f->child, (int64_t)v);
        case KC_PROTOBUF_SECONDS:
            return is_within((int64_t)v, MOST_SECONDS);
        case KC_PROTOBUF_NANOS:
            return is_within((int64_t)v, MOST_NANOS);
        default:
            return true;
    }
}

static bool number(walk *w, const kc_protobuf_field *f, const uint8_t *end) {
    uint64_t v;
    if (WIRE[f->kind] != VARINT) return skip_value(w, end, (uint32_t)WIRE[f->kind]);
    if (!take_varint(w, end, &v)) return false;
    if (!is_number(w->schema, f, v)) w->odd = true;
    return true;
}

static bool message(walk *w, int32_t which, const uint8_t *end);

/* Hash of the key of an entry, from which `at` has been read before: 0 or empty if it is left out. */
static uint64_t key_of(walk *w, const kc_protobuf_field *key, uint64_t seed, const uint8_t *at, const uint8_t *end) {
    uint64_t number = 0;
    const uint8_t *text = NULL, *stop = NULL;
    uint32_t tag;
    w->at = at;
    while (w->at < end && take_tag(w, end, &tag)) {
        const uint8_t *start = w->at;
        if (!skip(w, end, tag)) break;
        if (tag >> 3 != key->number) continue;
        stop = w->at;
        w->at = start;
        if ((tag & 7) == VARINT && !take_varint(w, end, &number)) break;
        if ((tag & 7) == FOUR_BYTES) number = kc_load_le32(start);
        if ((tag & 7) == EIGHT_BYTES) number = kc_load_le64(start);
        if ((tag & 7) == LENGTH) text = take_length(w, end) ? w->at : NULL;
        w->at = stop;
    }
    w->at = end;
    return text ? kc_key_print(seed, text, (size_t)(stop - text)) : kc_key_print(seed ^ number, NULL, 0);
}

/* An entry of a map of the message `owner`. */
static bool entry(walk *w, const kc_protobuf_field *map, uint64_t owner, const uint8_t *end) {
    const kc_protobuf_field *key = w->schema->fields + w->schema->messages[map->child].first, *value = key + 1;
    const uint8_t *start = w->at;
    const uint64_t self = w->messages + 1;
    if (!message(w, map->child, end)) return false;
    if (w->marks[value->once] != self && value->kind == KC_PROTOBUF_MESSAGE) w->odd = true;
    if (w->odd) return true;
    const uint64_t seed = kc_key_print(owner, (const uint8_t *)&map->number, sizeof map->number);
    w->odd = !kc_key_set_add(&w->keys, key_of(w, key, seed, start, end));
    return true;
}

static bool sized(walk *w, const kc_protobuf_field *f, uint64_t owner, const uint8_t *end) {
    const uint8_t *stop = take_length(w, end);
    if (!stop) return false;
    if (f->kind == KC_PROTOBUF_MESSAGE) return message(w, f->child, stop);
    if (f->kind == KC_PROTOBUF_MAP) return entry(w, f, owner, stop);
    if (f->kind == KC_PROTOBUF_STRING && !kc_utf8_valid(w->at, (size_t)(stop - w->at))) return false;
    w->at = stop;
    return true;
}

static bool packed(walk *w, const kc_protobuf_field *f, const uint8_t *end) {
    const uint8_t *stop = take_length(w, end);
    if (!stop) return false;
    while (w->at < stop) {
        if (!number(w, f, stop)) return false;
        w->items += f->width;
    }
    return true;
}

/* The field of a number; most messages have them in the order of the schema. */
static const kc_protobuf_field *find(const kc_protobuf_schema *s, const kc_protobuf_message *m, uint32_t number,
                                     int32_t *next) {
    const kc_protobuf_field *fields = s->fields + m->first;
    if (*next < m->count && fields[*next].number == number) return &fields[(*next)++];
    if (*next > 0 && fields[*next - 1].number == number) return &fields[*next - 1];
    int32_t low = 0, high = m->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (fields[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == m->count || fields[low].number != number) return NULL;
    *next = low + 1;
    return fields + low;
}

static bool field(walk *w, const kc_protobuf_field *f, uint64_t owner, uint32_t tag, const uint8_t *end) {
    const int32_t wire = (int32_t)(tag & 7);
    if (f->once >= 0) {
        if (w->marks[f->once] == owner) w->odd = true;
        w->marks[f->once] = owner;
    }
    if (wire == WIRE[f->kind] && wire != GROUP) {
        w->items += f->width;
        return wire == LENGTH ? sized(w, f, owner, end) : number(w, f, end);
    }
    if (wire == LENGTH && f->repeated && WIRE[f->kind] != GROUP) return packed(w, f, end);
    w->odd = true;
    return skip(w, end, tag);
}

static bool fields(walk *w, const kc_protobuf_message *m, const uint8_t *end) {
    const uint64_t self = ++w->messages;
    int32_t next = 0;
    while (w->at < end) {
        uint32_t tag;
        const uint8_t *before = w->at;
        w->field = -1;
        if (!take_tag(w, end, &tag)) return false;
        const kc_protobuf_field *f = find(w->schema, m, tag >> 3, &next);
        if (!f && m->closed) w->odd = true;
        if (f) w->field = (int32_t)(f - w->schema->fields);
        if ((tag & 7) > FOUR_BYTES || (tag & 7) == GROUP_END) {
            w->at = before;
            return false;
        }
        if (f ? !field(w, f, self, tag, end) : !skip(w, end, tag)) return false;
    }
    return true;
}

static bool message(walk *w, int32_t which, const uint8_t *end) {
    if (w->depth == KC_PROTOBUF_MAX_DEPTH) return false;
    w->depth++;
    const bool good = fields(w, w->schema->messages + which, end);
    w->depth--;
    return good;
}

/* Walks the row up to `end`. */
static kc_protobuf_row sorted(walk *w, const uint8_t *end, int64_t *budget) {
    const uint8_t *start = w->at;
    w->depth = 0;
    w->items = 0;
    w->odd = false;
    kc_key_set_clear(&w->keys);
    if (!message(w, 0, end)) return (kc_protobuf_row){KC_PROTOBUF_DAMAGED, w->field, w->at - start};
    if (w->odd) return (kc_protobuf_row){KC_PROTOBUF_ODD, -1, 0};
    const int64_t needed = w->schema->width + (end - start) + w->items;
    if (needed > *budget) return (kc_protobuf_row){KC_PROTOBUF_LARGE, -1, 0};
    *budget -= needed;
    return (kc_protobuf_row){KC_PROTOBUF_PLAIN, -1, 0};
}

int kc_protobuf_sort(const kc_protobuf_schema *schema, const uint8_t *data, const int64_t *ends, int64_t rows,
                     int64_t *budget, kc_protobuf_row *out, kc_error *error) {
    walk w = {.schema = schema, .marks = kc_alloc_zeroed(((size_t)schema->marks + 1) * sizeof *w.marks)};
    if (!w.marks) return kc_fail(error, KC_NO_MEMORY, "no memory for the marks of a schema", 0, 0, 0);
    for (int64_t row = 0; row < rows; row++) {
        w.at = data + (row ? ends[row - 1] : 0);
        out[row] = sorted(&w, data + ends[row], budget);
    }
    kc_key_set_free(&w.keys);
    kc_free(w.marks);
    return KC_OK;
}

/* --- schemas ------------------------------------------------------------------------------------------------------ */

static bool in_range(int32_t first, int32_t count, int32_t all) {
    return first >= 0 && count >= 0 && first <= all && count <= all - first;
}

static bool is_entry(const kc_protobuf_schema *s, const kc_protobuf_message *m) {
    if (m->count != 2) return false;
    const kc_protobuf_field *key = s->fields + m->first, *value = key + 1;
    return key->once >= 0 && value->once >= 0 && key->number == 1 && value->number == 2;
}

static bool field_valid(const kc_protobuf_schema *s, int32_t owner, const kc_protobuf_field *f) {
    if (f->kind < 0 || f->kind >= KC_PROTOBUF_KINDS || f->number == 0 || f->width < 0) return false;
    if (f->once < -1 || f->once >= s->marks) return false;
    if (f->kind == KC_PROTOBUF_ENUM) return f->child >= 0 && f->child < s->enum_count;
    if (f->kind != KC_PROTOBUF_MESSAGE && f->kind != KC_PROTOBUF_MAP) return f->child == 0;
    return f->child > owner && f->child < s->message_count &&
           (f->kind == KC_PROTOBUF_MESSAGE || is_entry(s, s->messages + f->child));
}

static bool message_valid(const kc_protobuf_schema *s, int32_t which) {
    const kc_protobuf_message *m = s->messages + which;
    for (int32_t i = 0; i < m->count; i++) {
        const kc_protobuf_field *f = s->fields + m->first + i;
        if (!field_valid(s, which, f) || (i && f[-1].number >= f->number)) return false;
    }
    return true;
}

static bool enum_valid(const kc_protobuf_schema *s, const kc_protobuf_enum *e) {
    if (!in_range(e->first, e->count, s->number_count)) return false;
    for (int32_t i = 1; i < e->count; i++) {
        if (s->numbers[e->first + i - 1] >= s->numbers[e->first + i]) return false;
    }
    return true;
}

bool kc_protobuf_schema_valid(const kc_protobuf_schema *s) {
    if (s->message_count < 1 || s->marks < 0 || s->width < 0) return false;
    for (int32_t i = 0; i < s->message_count; i++) {
        if (!in_range(s->messages[i].first, s->messages[i].count, s->field_count)) return false;
    }
    for (int32_t i = 0; i < s->message_count; i++) {
        if (!message_valid(s, i)) return false;
    }
    for (int32_t i = 0; i < s->enum_count; i++) {
        if (!enum_valid(s, s->enums + i)) return false;
    }
    return true;
}
