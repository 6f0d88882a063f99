
#include "base/kc_cpu.h"
#include "checksum/kc_crc_kernels.h"

const kc_crc_kernel *kc_crc_choose(const kc_crc_kernel *kernels) {
    unsigned features = kc_cpu_features();
    const char *forced = kc_forced_kernel();
    const kc_crc_kernel *best = NULL;
    for (const kc_crc_kernel *k = kernels;; k++) {
        if ((k->needs & ~features) == 0) {
            if (!best) best = k;
            if (strcmp(k->name, forced) == 0) return k;
        }
        if (!k->needs) return best;
    }
}
