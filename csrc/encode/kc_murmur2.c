#include "encode/kc_murmur2.h"

#include <string.h>

#include "base/kc_bytes.h"

#define SEED 0x9747b28cu
#define MULTIPLIER 0x5bd1e995u

static inline uint32_t load_little(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint32_t mix(uint32_t hash, uint32_t word) {
    word *= MULTIPLIER;
    word ^= word >> 24;
    return hash * MULTIPLIER ^ word * MULTIPLIER;
}

static inline uint32_t hash_bytes(const uint8_t *data, size_t size) {
    uint32_t hash = SEED ^ (uint32_t)size;
    for (; size >= 4; data += 4, size -= 4) hash = mix(hash, load_little(data));
    if (size) {
        uint32_t rest = data[0];
        if (size > 1) rest |= (uint32_t)data[1] << 8;
        if (size > 2) rest |= (uint32_t)data[2] << 16;
        hash = (hash ^ rest) * MULTIPLIER;
    }
    hash = (hash ^ hash >> 13) * MULTIPLIER;
    return hash ^ hash >> 15;
}

uint32_t kc_murmur2(const uint8_t *data, size_t size) { return hash_bytes(data, size); }

static inline int32_t partition_of(uint32_t hash, int32_t partitions) {
    return (int32_t)((hash & INT32_MAX) % (uint32_t)partitions);
}

int32_t kc_murmur2_partition(const uint8_t *key, size_t size, int32_t partitions) {
    return partition_of(hash_bytes(key, size), partitions);
}

void kc_murmur2_partitions(const kc_spans *keys, int64_t n, int32_t partitions, int32_t *out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = keys->size[i] < 0 ? -1 : partition_of(hash_bytes(keys->data[i], (size_t)keys->size[i]), partitions);
    }
}

void kc_murmur2_int_partitions(const int64_t *keys, int64_t n, size_t width, int32_t partitions, int32_t *out) {
    uint8_t bytes[8];
    for (int64_t i = 0; i < n; i++) {
        kc_store_u64(bytes, (uint64_t)keys[i]);
        out[i] = partition_of(hash_bytes(bytes + sizeof bytes - width, width), partitions);
    }
}
