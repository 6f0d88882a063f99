#include "text/kc_text_rows.h"

#include "base/kc_bytes.h"
#include "text/kc_text_strings.h"

/* One row: its number in the table and among those given, and where the row and its last cell begin in the text. */
typedef struct row {
    int64_t number, given;
    size_t start, cell;
} row;

typedef int write_bytes(kc_text *t, const uint8_t *s, size_t size, kc_error *error);

static int add_plain(kc_text *t, const uint8_t *s, size_t size, kc_error *error) {
    return kc_text_add(t, s, size, error);
}

static bool is_null(const kc_column *c, int64_t number) {
    return c->null_count && !(c->validity.data[number >> 3] >> (number & 7) & 1);
}

static int64_t number_at(const kc_column *c, int64_t i) {
    const void *p = c->values.data;
    switch (c->field->type) {
        case KC_BOOL:
            return ((const uint8_t *)p)[i >> 3] >> (i & 7) & 1;
        case KC_INT8:
            return ((const int8_t *)p)[i];
        case KC_INT16:
            return ((const int16_t *)p)[i];
        case KC_INT32:
            return ((const int32_t *)p)[i];
        case KC_UINT32:
            return ((const uint32_t *)p)[i];
        default:
            return ((const int64_t *)p)[i];
    }
}

static bool has_bytes(const kc_column *c) {
    return c->field->type == KC_BINARY || c->field->type == KC_STRING || c->field->type == KC_BINARY_VIEW;
}

/* The bytes of a piece in a row; NULL for null. */
static const uint8_t *bytes_of(const kc_text_piece *p, const row *r, size_t *size) {
    if (p->given) {
        *size = p->given[r->given].size;
        return p->given[r->given].data;
    }
    int32_t length;
    if (!p->column) return NULL;
    const uint8_t *s = kc_column_bytes(p->column, r->number, &length);
    *size = (size_t)length;
    return length < 0 ? NULL : s;
}

typedef int write_piece(kc_text *t, const kc_text_piece *p, row *r, kc_error *error);

/* The constant, or what stands for null. */
static int write_text(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    (void)r;
    return kc_text_add(t, p->text, p->size, error);
}

static int write_of(kc_text *t, const kc_text_piece *p, row *r, write_bytes *write, kc_error *error) {
    size_t size;
    const uint8_t *s = bytes_of(p, r, &size);
    return s ? write(t, s, size, error) : write_text(t, p, r, error);
}

static int write_plain(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_of(t, p, r, add_plain, error);
}

static int write_visible(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_of(t, p, r, kc_text_visible, error);
}

static int write_value(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_of(t, p, r, kc_text_value, error);
}

static int write_integer(kc_text *t, const kc_text_piece *p, row *r, bool json, kc_error *error) {
    static const char *const WORDS[2][2] = {{"False", "True"}, {"false", "true"}};
    if (p->given) return write_plain(t, p, r, error);
    if (!p->column || is_null(p->column, r->number)) return write_text(t, p, r, error);
    const int64_t value = number_at(p->column, r->number);
    if (p->column->field->type != KC_BOOL) return kc_text_number(t, value, error);
    const char *word = WORDS[json][value];
    return kc_text_add(t, word, strlen(word), error);
}

static int write_number(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_integer(t, p, r, false, error);
}

static int write_time(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    if (!p->column || is_null(p->column, r->number)) return write_text(t, p, r, error);
    return kc_text_time(t, number_at(p->column, r->number), error);
}

static int write_size(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    size_t size;
    return bytes_of(p, r, &size) ? kc_text_number(t, (int64_t)size, error) : write_text(t, p, r, error);
}

static int write_size_bytes(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    size_t size;
    uint8_t wire[4];
    kc_store_u32(wire, bytes_of(p, r, &size) ? (uint32_t)size : UINT32_MAX);
    return kc_text_add(t, wire, sizeof wire, error);
}

static int write_json(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    const bool integer = p->column && !has_bytes(p->column);
    return integer ? write_integer(t, p, r, true, error) : write_of(t, p, r, kc_text_json_bytes, error);
}

/* How headers are written: what stands around and between them, and their parts. */
typedef struct style {
    const char *open, *before_key, *before_value, *after, *between, *close, *null;
    write_bytes *key, *value;
} style;

static const style JSON_HEADERS = {"[",    "{\"key\":",         ",\"value\":",     "}", ",", "]",
                                   "null", kc_text_json_string, kc_text_json_bytes};
static const style PLAIN_HEADERS = {"", "", "=", "", ",", "", "NULL", add_plain, add_plain};
static const style VISIBLE_HEADERS = {"", "", "=", "", ",", "", "NULL", kc_text_visible, kc_text_visible};
static const style VALUE_HEADERS = {"", "", "=", "", " ", "", "null", kc_text_visible, kc_text_value};

static int add_text(kc_text *t, const char *text, kc_error *error) { return kc_text_add(t, text, strlen(text), error); }

static int write_header(kc_text *t, const kc_column *pair, int64_t at, const style *how, kc_error *error) {
    int32_t size;
    const uint8_t *s = kc_column_bytes(&pair->children[0], at, &size);
    int code = add_text(t, how->before_key, error);
    if (!code) code = how->key(t, s, size < 0 ? 0 : (size_t)size, error);
    if (!code) code = add_text(t, how->before_value, error);
    if (code) return code;
    s = kc_column_bytes(&pair->children[1], at, &size);
    code = size < 0 ? add_text(t, how->null, error) : how->value(t, s, (size_t)size, error);
    return code ? code : add_text(t, how->after, error);
}

static int write_headers(kc_text *t, const kc_text_piece *p, row *r, const style *how, kc_error *error) {
    if (!p->column) return write_text(t, p, r, error);
    const int32_t *ends = (const int32_t *)(const void *)p->column->values.data + r->number;
    int code = add_text(t, how->open, error);
    for (int32_t at = ends[0]; at < ends[1] && !code; at++) {
        if (at > ends[0]) code = add_text(t, how->between, error);
        if (!code) code = write_header(t, &p->column->children[0], at, how, error);
    }
    return code ? code : add_text(t, how->close, error);
}

static int write_json_headers(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_headers(t, p, r, &JSON_HEADERS, error);
}

static int write_plain_headers(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_headers(t, p, r, &PLAIN_HEADERS, error);
}

static int write_visible_headers(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_headers(t, p, r, &VISIBLE_HEADERS, error);
}

static int write_value_headers(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    return write_headers(t, p, r, &VALUE_HEADERS, error);
}

static int write_cell(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    int code = kc_text_fit(t, r->cell, &p->cell, error);
    if (!code) code = kc_text_add(t, p->text, p->size, error);
    r->cell = t->out.size;
    return code;
}

static int write_line_end(kc_text *t, const kc_text_piece *p, row *r, kc_error *error) {
    const int code = kc_text_end_line(t, r->start, p->cell.most, error);
    return code ? code : kc_text_add(t, p->text, p->size, error);
}

static write_piece *const WRITERS[KC_TEXT_KINDS] = {
    [KC_TEXT_CONSTANT] = write_text,
    [KC_TEXT_PLAIN] = write_plain,
    [KC_TEXT_VISIBLE] = write_visible,
    [KC_TEXT_VALUE] = write_value,
    [KC_TEXT_NUMBER] = write_number,
    [KC_TEXT_TIME] = write_time,
    [KC_TEXT_SIZE] = write_size,
    [KC_TEXT_SIZE_BYTES] = write_size_bytes,
    [KC_TEXT_JSON] = write_json,
    [KC_TEXT_JSON_HEADERS] = write_json_headers,
    [KC_TEXT_PLAIN_HEADERS] = write_plain_headers,
    [KC_TEXT_VISIBLE_HEADERS] = write_visible_headers,
    [KC_TEXT_VALUE_HEADERS] = write_value_headers,
    [KC_TEXT_CELL] = write_cell,
    [KC_TEXT_LINE_END] = write_line_end,
};

int kc_text_rows(kc_text *t, const kc_text_piece *pieces, int count, int64_t first, int64_t end, size_t enough,
                 int64_t *next, kc_error *error) {
    for (*next = first; *next < end && t->out.size < enough; ++*next) {
        row r = {*next, *next - first, t->out.size, t->out.size};
        for (int i = 0; i < count; i++) {
            const int code = WRITERS[pieces[i].kind](t, &pieces[i], &r, error);
            if (KC_UNLIKELY(code)) {
                t->out.size = r.start;
                return code;
            }
        }
    }
    return KC_OK;
}
