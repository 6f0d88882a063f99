/* Puts records and batches together by hand, for the tests of what reads them: from the format's description, not by
 * the library's own encoder. */
#ifndef BUILD_H
#define BUILD_H

#include <stdint.h>
#include <string.h>

#include "base/kc_bytes.h"
#include "checksum/kc_crc32.h"
#include "checksum/kc_crc32c.h"

typedef struct bytes {
    uint8_t data[4096];
    size_t size;
} bytes;

static inline void add(bytes *b, const void *data, size_t size) {
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void add_u8(bytes *b, unsigned v) { b->data[b->size++] = (uint8_t)v; }

static inline void add_u32(bytes *b, int64_t v) {
    kc_store_u32(b->data + b->size, (uint32_t)v);
    b->size += 4;
}

static inline void add_u64(bytes *b, int64_t v) {
    kc_store_u64(b->data + b->size, (uint64_t)v);
    b->size += 8;
}

static inline void add_varint(bytes *b, int64_t v) {
    uint64_t raw = (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
    for (; raw > 127; raw >>= 7) add_u8(b, (unsigned)(raw & 127) | 128);
    add_u8(b, (unsigned)raw);
}

/* A length and its bytes; NULL is null. */
static inline void add_field(bytes *b, const char *text) {
    add_varint(b, text ? (int64_t)strlen(text) : -1);
    if (text) add(b, text, strlen(text));
}

/* A record of magic 2; one header where `header` is given. */
static inline void add_record(bytes *b, int64_t offset_delta, int64_t timestamp_delta, const char *key,
                              const char *value, const char *header, const char *header_value) {
    bytes body = {.size = 0};
    add_u8(&body, 0);
    add_varint(&body, timestamp_delta);
    add_varint(&body, offset_delta);
    add_field(&body, key);
    add_field(&body, value);
    add_varint(&body, header ? 1 : 0);
    if (header) {
        add_field(&body, header);
        add_field(&body, header_value);
    }
    add_varint(b, (int64_t)body.size);
    add(b, body.data, body.size);
}

/* The header of a batch of magic 2 (base offset 100, base time 1000, max time 2000) and the records. */
static inline void add_batch(bytes *b, int attributes, int32_t count, const bytes *records) {
    uint8_t *start = b->data + b->size;
    add_u64(b, 100);
    add_u32(b, (int64_t)records->size + 49);
    add_u32(b, 7);
    add_u8(b, 2);
    add_u32(b, 0);
    add_u8(b, 0);
    add_u8(b, (unsigned)attributes);
    add_u32(b, count ? (int64_t)count - 1 : 0);
    add_u64(b, 1000);
    add_u64(b, 2000);
    add_u64(b, 55);
    add_u8(b, 0);
    add_u8(b, 3);
    add_u32(b, 40);
    add_u32(b, count);
    add(b, records->data, records->size);
    kc_store_u32(start + 17, kc_crc32c(0, start + 21, records->size + 40));
}

/* A message of magic 0 or 1. */
static inline void add_message(bytes *b, int magic, int attributes, int64_t offset, int64_t timestamp, const char *key,
                               const void *value, int64_t value_size) {
    uint8_t *start = b->data + b->size;
    int64_t key_size = key ? (int64_t)strlen(key) : -1;
    add_u64(b, offset);
    add_u32(b, 14 + 8 * magic + (key ? key_size : 0) + (value_size > 0 ? value_size : 0));
    add_u32(b, 0);
    add_u8(b, (unsigned)magic);
    add_u8(b, (unsigned)attributes);
    if (magic) add_u64(b, timestamp);
    add_u32(b, key_size);
    if (key) add(b, key, (size_t)key_size);
    add_u32(b, value_size);
    if (value_size > 0) add(b, value, (size_t)value_size);
    kc_store_u32(start + 12, kc_crc32(0, start + 16, (size_t)(b->data + b->size - start) - 16));
}

#endif
