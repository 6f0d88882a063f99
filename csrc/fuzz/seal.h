/* Corrects the checksums of damaged batches, so that the batches are parsed. */
#ifndef SEAL_H
#define SEAL_H

#include "fuzz.h"

/* Every batch and message in the data, and those in a wrapper whose contents are not really compressed. With `lengths`,
 * a batch that ends neither where another begins nor with the data gets a length up to the end of the data. */
void fuzz_seal(uint8_t *data, size_t size, bool lengths);

#endif
