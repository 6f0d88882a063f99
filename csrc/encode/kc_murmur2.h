/* MurmurHash2 with Kafka's seed, and the partition of a key by Kafka's default partitioner:
 * org.apache.kafka.common.utils.Utils.murmur2 and toPositive. */
#ifndef KC_MURMUR2_H
#define KC_MURMUR2_H

#include "arrow/kc_arrow_import.h"

uint32_t kc_murmur2(const uint8_t *data, size_t size);

/* The partition of a key, which is not null. */
int32_t kc_murmur2_partition(const uint8_t *key, size_t size, int32_t partitions);

/* The partition of each key; -1 for a null key. */
void kc_murmur2_partitions(const kc_spans *keys, int64_t n, int32_t partitions, int32_t *out);

/* The same for integers encoded by Kafka's LongSerializer (width 8) or IntegerSerializer (4). */
void kc_murmur2_int_partitions(const int64_t *keys, int64_t n, size_t width, int32_t partitions, int32_t *out);

#endif
