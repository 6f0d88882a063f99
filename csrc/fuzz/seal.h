/* Corrects the checksums of damaged batches, so that the batches are parsed. */
#ifndef SEAL_H
#define SEAL_H

#include "fuzz.h"

/* Every batch and message in the data, and those in a wrapper that is compressed in name alone. With `lengths`, a batch
 * that neither ends where another begins nor with the data is made to end with the data. */
void fuzz_seal(uint8_t *data, size_t size, bool lengths);

#endif
