/* Avro values against schemas, both from the input: a tree of nodes that the checker accepts, then rows of its data.
 * The walk never passes the end of a row, and takes no more memory than it may. */
#include <stdlib.h>
#include <string.h>

#include "base/kc_bytes.h"
#include "fuzz.h"
#include "values/kc_avro.h"

enum { MOST_NODES = 40, MOST_ROWS = 20 };

static kc_avro_node nodes[MOST_NODES];

static int32_t take_nodes(kc_bytes *in) {
    const int32_t count = 1 + kc_take_u8(in) % MOST_NODES;
    int32_t known = 1;
    for (int32_t i = 0; i < count; i++) {
        const uint8_t kind = kc_take_u8(in), shape = kc_take_u8(in);
        const bool list = kind == KC_AVRO_ARRAY || kind == KC_AVRO_MAP;
        const bool has = list || kind == KC_AVRO_RECORD || kind == KC_AVRO_UNION;
        const int32_t children = list ? 1 : has ? shape & 7 : shape >> 7;
        nodes[i] = (kc_avro_node){kind, children ? known : 0, children, shape & 15, 1 + (shape & 31), shape >> 5 & 1};
        if (kind == KC_AVRO_NOTHING) nodes[i].least = 0;
        known += children;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kc_bytes in = kc_bytes_over(data, size);
    const kc_avro_schema schema = {nodes, take_nodes(&in)};
    const int64_t given = kc_take_u16(&in), rows = 1 + kc_take_u8(&in) % MOST_ROWS;
    if (in.failed || !kc_avro_schema_valid(&schema)) return 0;
    int64_t ends[MOST_ROWS], budget = given;
    const int64_t left = (int64_t)kc_bytes_left(&in);
    uint8_t *copy = malloc(left ? (size_t)left : 1); /* of the exact size, for the sanitizer */
    MUST(copy != NULL);
    if (left) memcpy(copy, in.at, (size_t)left);
    for (int64_t i = 0; i < rows; i++) ends[i] = left * (i + 1) / rows;
    for (int64_t row = 0; row < rows; row++) {
        kc_avro_fault fault = {0};
        row = kc_avro_check(&schema, copy, ends, row, rows, &budget, &fault);
        MUST(budget >= 0 && budget <= given);
        if (row == rows) break;
        MUST(fault.what || fault.position == ends[row]); /* or a long decimal */
        MUST(fault.node >= 0 && fault.node < schema.count);
        MUST(fault.position >= (row ? ends[row - 1] : 0) && fault.position <= ends[row]);
    }
    free(copy);
    return 0;
}
