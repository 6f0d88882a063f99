/* Rows of tables as text: each is the same pieces, of which some are constant and others are of a column.
 *
 * JSON lines, formats like kcat's and tables for terminals are lists of pieces. */
#ifndef KC_TEXT_ROWS_H
#define KC_TEXT_ROWS_H

#include "arrow/kc_table.h"
#include "text/kc_text_cell.h"

typedef enum kc_text_kind {
    KC_TEXT_CONSTANT,      /* `text` */
    KC_TEXT_PLAIN,         /* bytes as they are */
    KC_TEXT_VISIBLE,       /* bytes as kc_text_visible has them */
    KC_TEXT_VALUE,         /* bytes as kc_text_value has them */
    KC_TEXT_NUMBER,        /* a number or a truth value */
    KC_TEXT_TIME,          /* milliseconds as kc_text_time has them */
    KC_TEXT_SIZE,          /* how many bytes */
    KC_TEXT_SIZE_BYTES,    /* the same in four bytes, the most significant first; -1 for null */
    KC_TEXT_JSON,          /* bytes, or a number or truth value, as JSON */
    KC_TEXT_JSON_HEADERS,  /* headers as an array of objects with key and value */
    KC_TEXT_PLAIN_HEADERS, /* key=value, between commas; NULL for null */
    KC_TEXT_VISIBLE_HEADERS,
    KC_TEXT_VALUE_HEADERS, /* key=value, between spaces, as kc_text_visible and kc_text_value have them */
    KC_TEXT_CELL,          /* makes a cell of what the row has since its start or the last cell; then `text` */
    KC_TEXT_LINE_END,      /* ends a line of cell.most columns; then `text` */
    KC_TEXT_KINDS
} kc_text_kind;

/* Bytes for some rows, in place of those of a column; no data is null. */
typedef struct kc_text_given {
    const uint8_t *data;
    size_t size;
} kc_text_given;

typedef struct kc_text_piece {
    kc_text_kind kind;
    const kc_column *column;    /* NULL without one: all is null */
    const kc_text_given *given; /* in place of the column: of the first row that is written, and so on; NULL: none */
    const uint8_t *text;        /* the constant, or what stands for null */
    size_t size;
    kc_text_cell cell;
} kc_text_piece;

/* Appends rows [first, end) until the text has `enough` bytes; *next is the row after them. Every column has all of
 * them. KC_TEXT_PAGE if a page of characters is missing for row *next. */
KC_MUST_CHECK int kc_text_rows(kc_text *t, const kc_text_piece *pieces, int count, int64_t first, int64_t end,
                               size_t enough, int64_t *next, kc_error *error);

#endif
