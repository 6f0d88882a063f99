/* Protobuf values: which rows every decoder reads alike, so that a fast one may read them.
 *
 * A plain row has the fields of its schema in the form in which serializers write them. An odd one has something that
 * decoders treat differently: a message in several pieces, two members of a oneof, a map entry without its value or
 * twice with the same key, a number that exceeds its type, an unknown number of a closed enum, a group, a field of
 * another wire type. A damaged one has bytes that are no message; what is odd in it is not looked for. Only plain is
 * certain: odd and damaged rows need a decoder that knows all rules.
 *
 * A schema is a table of messages, the root first, each before the messages that it contains, and their fields, ordered
 * by number. Source: "Encoding" in Protobuf's documentation. */
#ifndef KC_PROTOBUF_H
#define KC_PROTOBUF_H

#include <stdbool.h>

#include "base/kc_error.h"

typedef enum kc_protobuf_kind {
    KC_PROTOBUF_INT32,
    KC_PROTOBUF_INT64,  /* also uint64 and sint64 */
    KC_PROTOBUF_UINT32, /* also sint32, whose varint is unsigned */
    KC_PROTOBUF_BOOL,
    KC_PROTOBUF_ENUM,    /* closed: one of its numbers; an open enum is an int32 */
    KC_PROTOBUF_SECONDS, /* an int64 whose nanoseconds have less than 64 bits */
    KC_PROTOBUF_NANOS,   /* an int32 of less than a second, with any sign */
    KC_PROTOBUF_FIXED32,
    KC_PROTOBUF_FIXED64,
    KC_PROTOBUF_BYTES,
    KC_PROTOBUF_STRING,
    KC_PROTOBUF_MESSAGE,
    KC_PROTOBUF_MAP,   /* its message has the fields 1 and 2, both of which occur once */
    KC_PROTOBUF_GROUP, /* always odd */
    KC_PROTOBUF_KINDS
} kc_protobuf_kind;

typedef struct kc_protobuf_field {
    uint32_t number;
    int32_t kind;
    int32_t repeated; /* whether a number may be packed */
    int32_t once;     /* a mark that occurs once in a message: a singular message, a oneof; -1 for none */
    int32_t child;    /* its message or enum; 0 for none */
    int32_t width;    /* bytes that each value adds to columns, without those of text and bytes; 0 unless repeated */
} kc_protobuf_field;

typedef struct kc_protobuf_message {
    int32_t first, count; /* its fields */
    int32_t closed;       /* whether fields that it lacks are odd: extensions, and those of a map's entry */
} kc_protobuf_message;

/* The numbers of an enum, in ascending order. */
typedef struct kc_protobuf_enum {
    int32_t first, count;
} kc_protobuf_enum;

typedef struct kc_protobuf_schema {
    const kc_protobuf_message *messages;
    const kc_protobuf_field *fields;
    const kc_protobuf_enum *enums;
    const int32_t *numbers;
    int32_t message_count, field_count, enum_count, number_count;
    int32_t marks;
    int32_t width; /* bytes of a row in columns, without the items of lists and those of text and bytes */
} kc_protobuf_schema;

typedef enum kc_protobuf_form {
    KC_PROTOBUF_PLAIN,
    KC_PROTOBUF_ODD,
    KC_PROTOBUF_DAMAGED,
    KC_PROTOBUF_LARGE, /* plain, but its columns need more memory than is left */
} kc_protobuf_form;

typedef struct kc_protobuf_row {
    int32_t form;
    int32_t field;    /* damaged: the field that is, -1 for none */
    int64_t position; /* damaged: in the row */
} kc_protobuf_row;

/* Limit on nested messages, as in Protobuf's own library. */
enum { KC_PROTOBUF_MAX_DEPTH = 100 };

/* Whether all indexes are in range, messages come before those that they contain, and numbers are in order. */
bool kc_protobuf_schema_valid(const kc_protobuf_schema *schema);

/* The form of each row, of which row i is the bytes from ends[i - 1] (0 for the first) to ends[i]. The memory that the
 * columns of plain rows need is taken from `budget`. Fails if memory is exhausted. */
KC_MUST_CHECK int kc_protobuf_sort(const kc_protobuf_schema *schema, const uint8_t *data, const int64_t *ends,
                                   int64_t rows, int64_t *budget, kc_protobuf_row *out, kc_error *error);

#endif
