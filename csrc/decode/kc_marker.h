/* The record of a control batch that ends a transaction (KIP-98). Its key is a version and the kind, 16 bits each; its
 * value is a version (16 bits) and the epoch of the coordinator (32 bits). */
#ifndef KC_MARKER_H
#define KC_MARKER_H

#include "decode/kc_batch.h"

enum { KC_MARKER_COMPRESSED = -2, KC_MARKER_UNREADABLE = -1, KC_MARKER_ABORT = 0, KC_MARKER_COMMIT = 1 };

/* The kind, which is any unsigned number of 16 bits, of the first record of a control batch, without its checksum;
 * KC_MARKER_UNREADABLE if that is cut off or has too short a key, KC_MARKER_COMPRESSED if it is to be decompressed. */
int32_t kc_marker_kind(const kc_batch *batch);

#endif
