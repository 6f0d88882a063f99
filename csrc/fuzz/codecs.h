/* Decompression of a batch's records by the codec libraries that the compiler found; a target without them uses
 * compressed records as they are. */
#ifndef CODECS_H
#define CODECS_H

#include "fuzz.h"

/* The records of a batch, in memory of their exact size that the caller frees; NULL if they are damaged, larger than
 * `limit` bytes, or the codec is not linked. `magic` is the batch's. */
uint8_t *fuzz_decompress(int codec, int magic, const uint8_t *data, size_t size, size_t limit, size_t *content);

#endif
