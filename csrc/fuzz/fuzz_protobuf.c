/* Protobuf values against schemas, both from the input: tables that the check accepts, then rows of its data. The walk
 * never passes the end of a row, and says the same of a row whatever comes before it. */
#include <string.h>

#include "base/kc_bytes.h"
#include "fuzz.h"
#include "values/kc_protobuf.h"

enum { MOST_FIELDS = 30, MOST_MESSAGES = 6, MOST_ROWS = 20, MARKS = 8, BUDGET = 1 << 20 };

static kc_protobuf_field fields[MOST_FIELDS];
static kc_protobuf_message messages[MOST_MESSAGES];
static const kc_protobuf_enum enums[] = {{0, 2}, {2, 1}};
static const int32_t numbers[] = {0, 3, -1};

static kc_protobuf_schema take_schema(kc_bytes *in) {
    const int32_t count = 1 + kc_take_u8(in) % MOST_MESSAGES;
    int32_t known = 0;
    for (int32_t i = 0; i < count; i++) {
        const uint8_t shape = kc_take_u8(in);
        messages[i] = (kc_protobuf_message){known, shape % 6, shape >> 7};
        for (int32_t j = 0; j < messages[i].count && known < MOST_FIELDS; j++) {
            const uint8_t kind = kc_take_u8(in), mark = kc_take_u8(in), child = kc_take_u8(in);
            fields[known++] =
                (kc_protobuf_field){(uint32_t)j + 1, kind & 15, kind >> 7, mark % (MARKS + 1) - 1, child, kind >> 7};
        }
    }
    return (kc_protobuf_schema){messages, fields, enums, numbers, count, known, 2, 3, MARKS, 1};
}

static int64_t sort(const kc_protobuf_schema *schema, const uint8_t *data, const int64_t *ends, int64_t rows,
                    kc_protobuf_row *out) {
    kc_error error;
    int64_t left = BUDGET;
    MUST(kc_protobuf_sort(schema, data, ends, rows, &left, out, &error) == KC_OK);
    MUST(left >= 0 && left <= BUDGET);
    return BUDGET - left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kc_bytes in = kc_bytes_over(data, size);
    const kc_protobuf_schema schema = take_schema(&in);
    const int64_t rows = 1 + kc_take_u8(&in) % MOST_ROWS;
    if (in.failed || !kc_protobuf_schema_valid(&schema)) return 0;
    int64_t ends[MOST_ROWS];
    kc_protobuf_row found[MOST_ROWS], alone;
    const int64_t left = (int64_t)kc_bytes_left(&in);
    for (int64_t i = 0; i < rows; i++) ends[i] = left * (i + 1) / rows;
    uint8_t *copy = malloc(left ? (size_t)left : 1); /* of the exact size, for the sanitizer */
    MUST(copy != NULL);
    if (left) memcpy(copy, in.at, (size_t)left);
    int64_t needed = sort(&schema, copy, ends, rows, found);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t start = row ? ends[row - 1] : 0, length = ends[row] - start;
        MUST(found[row].position >= 0 && found[row].position <= length);
        MUST(found[row].field >= -1 && found[row].field < schema.field_count);
        needed -= sort(&schema, copy + start, &length, 1, &alone);
        MUST(alone.form == found[row].form && alone.position == found[row].position && alone.field == found[row].field);
    }
    MUST(needed == 0);
    free(copy);
    return 0;
}
