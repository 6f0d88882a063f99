/* The tests' own harness: TEST(name) { ... CHECK(condition); CHECK_EQ(got, want); }
 *
 * A test registers itself before main runs; a failed check ends its test and prints both values. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct test_case {
    const char *file, *name;
    void (*run)(void);
    struct test_case *next;
} test_case;

void register_test(test_case *test);

/* Notes a failure of the running test; false where `ok` is false. */
bool check(bool ok, const char *file, int line, const char *text, int64_t got, int64_t want);

#define TEST(test_name)                                                   \
    static void test_name(void);                                          \
    __attribute__((constructor)) static void register_##test_name(void) { \
        static test_case self = {__FILE__, #test_name, test_name, NULL};  \
        register_test(&self);                                             \
    }                                                                     \
    static void test_name(void)

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!check((condition), __FILE__, __LINE__, #condition, 0, 0)) return; \
    } while (0)

#define CHECK_EQ(got, want)                                                                    \
    do {                                                                                       \
        int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                                \
        if (!check(got_ == want_, __FILE__, __LINE__, #got " == " #want, got_, want_)) return; \
    } while (0)

/* All of a kc_error but its text. */
#define CHECK_ERROR(error, the_code, the_position, the_got, the_want) \
    do {                                                              \
        CHECK_EQ((error).code, the_code);                             \
        CHECK((error).what != NULL);                                  \
        CHECK_EQ((error).position, the_position);                     \
        CHECK_EQ((error).got, the_got);                               \
        CHECK_EQ((error).want, the_want);                             \
    } while (0)

/* Random numbers that are the same in every run (xorshift). */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
