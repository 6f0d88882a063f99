/* A file mapped for reading that may lose pages while it is read.
 *
 * Touching a mapped page that the file no longer has, since another process shortened it, or that the system cannot
 * read, raises SIGBUS, which ends the process. For mappings made here the signal is caught: the missing pages, and all
 * behind them, become zeros, and the mapping is torn. Whoever reads asks kc_mapping_is_torn before anything that came
 * from the bytes is believed. Signals from elsewhere go to the handler that was there before, or end the process. */
#ifndef KC_MAPPING_H
#define KC_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct kc_guard kc_guard;

/* Zero-initialised is closed. */
typedef struct kc_mapping {
    const uint8_t *data;
    uint64_t size;
    uint64_t dropped; /* bytes from the start whose pages were given back */
    kc_guard *guard;
} kc_mapping;

/* Maps the first `size` bytes, at least one, of an open file. Returns 0 or the system's error number. */
int kc_mapping_open(kc_mapping *m, int descriptor, uint64_t size);

/* Whether pages were missing; *position is then one of the first missing page's bytes. */
bool kc_mapping_is_torn(const kc_mapping *m, uint64_t *position);

/* Gives back the memory of the pages that lie wholly before `position`; they can still be read again. */
void kc_mapping_drop(kc_mapping *m, uint64_t position);

void kc_mapping_close(kc_mapping *m);

#endif
