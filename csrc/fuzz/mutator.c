/* libFuzzer's mutations; after three of four the checksums are corrected, after half of these the lengths, too. */
#include "seal.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 4) fuzz_seal(data, size, seed >> 2 & 1);
    return size;
}
