/* Every kernel that this processor supports returns the result of the table, for all bytes and in two pieces. */
#include "base/kc_cpu.h"
#include "checksum/kc_crc_kernels.h"
#include "fuzz.h"

static void compare(const kc_crc_kernel *kernels, kc_crc_function *table, const uint8_t *data, size_t size) {
    uint32_t state = size ? data[0] * 0x01010101u : 0;
    size_t cut = size ? (size_t)data[size - 1] * size / 256 : 0;
    uint32_t want = table(state, data, size);
    for (const kc_crc_kernel *k = kernels;; k++) {
        if ((k->needs & ~kc_cpu_features()) == 0) {
            MUST(k->run(state, data, size) == want);
            MUST(k->run(k->run(state, data, cut), data + cut, size - cut) == want);
        }
        if (!k->needs) break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    compare(kc_crc32c_kernels, kc_crc32c_table, data, size);
    compare(kc_crc32_kernels, kc_crc32_table, data, size);
    return 0;
}
