/* Shared by all targets: the entry point that libFuzzer and replay.c call, and an assertion that is always on. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether files are replayed, each in all variants. A fuzzer tries one variant of an input, and more inputs. */
extern bool fuzz_replaying __attribute__((weak));

static inline bool fuzz_is_replaying(void) { return &fuzz_replaying && fuzz_replaying; }

/* One of `count` variants for a fuzzer to try, always the same one for the same input. */
static inline size_t fuzz_choose(const uint8_t *data, size_t size, size_t count) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
    return (hash >> 8) % count;
}

#define MUST(condition)                                                                    \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

#endif
