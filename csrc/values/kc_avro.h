/* Avro values: whether the bytes of each row are a value of a schema, before a library that trusts them decodes them.
 *
 * A schema is a tree of nodes, the root first and the children of a node next to one another. Nodes without any bytes
 * (null, records and fixed values without any) are left out, except as items of arrays, values of maps and branches of
 * unions. Source: "Binary encoding" in the Avro specification, 1.12. */
#ifndef KC_AVRO_H
#define KC_AVRO_H

#include "base/kc_bytes.h"

typedef enum kc_avro_kind {
    KC_AVRO_NOTHING, /* no bytes */
    KC_AVRO_BOOLEAN,
    KC_AVRO_INT,
    KC_AVRO_LONG,
    KC_AVRO_BYTES, /* at most `limit` bytes, if it is not 0 */
    KC_AVRO_STRING,
    KC_AVRO_FIXED, /* `limit` bytes; also float and double */
    KC_AVRO_ENUM,  /* `limit` symbols */
    KC_AVRO_RECORD,
    KC_AVRO_ARRAY, /* one child */
    KC_AVRO_MAP,   /* one child */
    KC_AVRO_UNION,
    KC_AVRO_DECIMAL,       /* bytes, at least 1; a number of at most `width` bytes */
    KC_AVRO_FIXED_DECIMAL, /* `limit` bytes; the same */
    KC_AVRO_BIG_DECIMAL,   /* bytes that are the bytes of a number, from 1 to `limit`, and an int */
    KC_AVRO_TIME_MILLIS,   /* an int within a day */
    KC_AVRO_TIME_MICROS,   /* a long within a day */
    KC_AVRO_KINDS
} kc_avro_kind;

typedef struct kc_avro_node {
    int32_t kind;
    int32_t first, count; /* its children */
    int32_t limit;
    int64_t width; /* bytes of a value as columns, without the items of lists in it */
    int64_t least; /* bytes of the shortest value */
} kc_avro_node;

enum { KC_AVRO_MAX_DEPTH = 64 };

typedef struct kc_avro_schema {
    const kc_avro_node *nodes;
    int32_t count;
} kc_avro_schema;

/* What is wrong with a value. */
typedef struct kc_avro_fault {
    const char *what; /* NULL: nothing, but a decimal has more bytes than its column */
    int64_t position; /* in the data */
    int64_t got, want;
    int32_t node;
} kc_avro_fault;

/* Whether the nodes are a tree of at most KC_AVRO_MAX_DEPTH levels with known kinds. */
bool kc_avro_schema_valid(const kc_avro_schema *schema);

/* Checks rows [start, rows), of which row i is the bytes from ends[i - 1] (0 for the first) to ends[i]. Returns the
 * first row that is no value of the schema, or has a long decimal, with the fault; or `rows`. The memory that the items
 * of the checked rows take as columns is taken from `budget`; a row that needs more than is left is a fault. */
int64_t kc_avro_check(const kc_avro_schema *schema, const uint8_t *data, const int64_t *ends, int64_t start,
                      int64_t rows, int64_t *budget, kc_avro_fault *fault);

#endif
