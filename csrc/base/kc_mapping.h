/* A file mapped for reading that may lose pages while it is read.
 *
 * Access to a mapped page that the file no longer has, since another process truncated it, or that the system cannot
 * read, raises SIGBUS, which ends the process. For mappings created here the signal is handled: the missing page and
 * all pages after it become zeros, and the mapping is torn. Readers must call kc_mapping_is_torn before they use
 * anything derived from the bytes. Other signals go to the previous handler, or end the process. */
#ifndef KC_MAPPING_H
#define KC_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct kc_guard kc_guard;

/* Zero-initialised is closed. */
typedef struct kc_mapping {
    const uint8_t *data;
    uint64_t size;
    uint64_t dropped; /* bytes from the start whose pages were released */
    kc_guard *guard;
} kc_mapping;

/* Maps the first `size` bytes, at least one, of an open file. Returns 0 or errno. */
int kc_mapping_open(kc_mapping *m, int descriptor, uint64_t size);

/* Whether pages were missing; *position is then inside the first missing page. */
bool kc_mapping_is_torn(const kc_mapping *m, uint64_t *position);

/* Releases the memory of the pages completely before `position`; they can still be read again. */
void kc_mapping_drop(kc_mapping *m, uint64_t position);

void kc_mapping_close(kc_mapping *m);

#endif
