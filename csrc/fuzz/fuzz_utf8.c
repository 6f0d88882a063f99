/* Repaired text is valid; valid text is not changed. */
#include <string.h>

#include "base/kc_utf8.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *out = malloc(3 * size + 1);
    MUST(out != NULL);
    size_t repaired = kc_utf8_repair(data, size, out);
    MUST(repaired <= 3 * size && kc_utf8_valid(out, repaired));
    const bool same = repaired == size && memcmp(out, data, size) == 0;
    MUST(kc_utf8_valid(data, size) == same);
    free(out);
    return 0;
}
