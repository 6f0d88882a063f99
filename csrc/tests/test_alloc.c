#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kc_alloc.h"
#include "check.h"

TEST(alloc_blocks_are_aligned_and_counted) {
    size_t before = kc_live_bytes();
    static const size_t SIZES[] = {0, 1, 63, 64, 4095, 4096, 4097, 1 << 20};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        uint8_t *block = kc_alloc(SIZES[i]);
        CHECK(block != NULL);
        CHECK_EQ((uintptr_t)block % 64, 0);
        CHECK(kc_capacity(block) >= SIZES[i]);
        memset(block, 0xa5, kc_capacity(block));
        CHECK_EQ(kc_live_bytes(), before + kc_capacity(block));
        kc_free(block);
        CHECK_EQ(kc_live_bytes(), before);
    }
    kc_free(NULL);
}

TEST(alloc_refuses_the_impossible) {
    CHECK(kc_alloc(SIZE_MAX) == NULL);
    CHECK(kc_alloc((size_t)PTRDIFF_MAX) == NULL);
}

TEST(alloc_keeps_and_trims) {
    (void)kc_trim();
    CHECK_EQ(kc_kept_bytes(), 0);
    void *block = kc_alloc(100000);
    kc_free(block);
    CHECK_EQ(kc_kept_bytes(), 131072);
    void *again = kc_alloc(70000);
    CHECK(again == block);
    CHECK_EQ(kc_kept_bytes(), 0);
    kc_free(again);
    CHECK_EQ(kc_trim(), 131072);
    CHECK_EQ(kc_kept_bytes(), 0);
    CHECK_EQ(kc_trim(), 0);
}

static void *allocate(void *block) {
    *(void **)block = kc_alloc(100000);
    return NULL;
}

TEST(alloc_gives_a_thread_what_it_filled_before) {
    (void)kc_trim();
    void *own = kc_alloc(100000), *other = NULL;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, allocate, &other), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(other != NULL);
    kc_free(own);
    kc_free(other); /* the last one freed, which any thread would get that has none of its own */
    void *first = kc_alloc(100000), *second = kc_alloc(100000);
    CHECK(first == own);
    CHECK(second == other);
    kc_free(first);
    kc_free(second);
    (void)kc_trim();
}

static void *allocate_and_free_one(void *unused) {
    kc_free(kc_alloc(100000));
    return unused;
}

/* Threads beyond the number of shelves share them. */
TEST(alloc_keeps_what_many_threads_free) {
    (void)kc_trim();
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, allocate_and_free_one, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(kc_kept_bytes(), 131072); /* always the same block */
    }
    CHECK_EQ(kc_trim(), 131072);
}

TEST(alloc_zeroes_what_was_used_before) {
    for (int i = 0; i < 2; i++) {
        uint8_t *block = kc_alloc_zeroed(5000);
        CHECK(block != NULL && block[0] == 0 && memcmp(block, block + 1, 4999) == 0);
        memset(block, 0xa5, 5000);
        kc_free(block);
    }
    (void)kc_trim();
}

TEST(alloc_pool_is_bounded) {
    enum { BLOCKS = 20 };
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) CHECK((blocks[i] = kc_alloc((size_t)16 << 20)) != NULL);
    (void)kc_trim();
    for (int i = 0; i < BLOCKS; i++) kc_free(blocks[i]);
    CHECK_EQ(kc_kept_bytes(), KC_POOL_BYTES);
    CHECK_EQ(kc_trim(), KC_POOL_BYTES);
    void *most = kc_alloc(KC_POOL_BYTES), *more = kc_alloc(KC_POOL_BYTES + 1);
    CHECK(most && more);
    kc_free(more);
    CHECK_EQ(kc_kept_bytes(), 0);
    kc_free(most);
    CHECK_EQ(kc_kept_bytes(), KC_POOL_BYTES);
    (void)kc_trim();
}

/* A block of the pool is given for its own capacity only: four to an octave beyond 64 MiB. */
TEST(alloc_pool_tells_capacities_apart) {
    static const size_t MIB[] = {48, 64, 80, 96, 112, 128, 160};
    enum { SIZES = sizeof MIB / sizeof *MIB };
    for (int i = 0; i < SIZES; i++) {
        for (int k = 0; k < SIZES; k++) {
            (void)kc_trim();
            kc_free(kc_alloc(MIB[i] << 20));
            const size_t kept = kc_kept_bytes();
            void *block = kc_alloc(MIB[k] << 20);
            CHECK(block != NULL);
            const bool same = i == k || (i < 2 && k < 2); /* 48 MiB take 64 */
            CHECK_EQ(kc_kept_bytes(), same ? 0 : kept);
            CHECK(kc_capacity(block) >= MIB[k] << 20);
            kc_free(block);
        }
    }
    (void)kc_trim();
}

TEST(alloc_realloc_keeps_content) {
    uint8_t *block = kc_alloc(10);
    CHECK(block != NULL);
    for (uint8_t i = 0; i < 10; i++) block[i] = i;
    for (size_t size = 20; size < 100000; size *= 3) {
        block = kc_realloc(block, 10, size);
        CHECK(block != NULL);
        for (uint8_t i = 0; i < 10; i++) CHECK_EQ(block[i], i);
    }
    kc_free(block);
    block = kc_realloc(NULL, 0, 5);
    CHECK(block != NULL);
    kc_free(block);
}

TEST(alloc_parts_live_in_another_block) {
    const size_t before = kc_live_bytes();
    char *whole = kc_alloc((size_t)2 * KC_PART_BYTES);
    const size_t with_whole = kc_live_bytes();
    uint8_t *parts[2];
    for (int i = 0; i < 2; i++) {
        parts[i] = kc_alloc_part(whole + (size_t)i * KC_PART_BYTES);
        CHECK_EQ((uintptr_t)parts[i] % 64, 0);
        CHECK_EQ(kc_capacity(parts[i]), KC_PART_CAPACITY);
    }
    for (int i = 0; i < 2; i++) memset(parts[i], i + 1, KC_PART_CAPACITY);
    kc_free(parts[1]);
    CHECK_EQ(kc_live_bytes(), with_whole);
    static const size_t SIZES[] = {KC_PART_CAPACITY + 1, ((size_t)64 << 20) + 1};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        uint8_t *grown = kc_realloc(parts[0], KC_PART_CAPACITY, SIZES[i]);
        CHECK(grown != NULL && grown != parts[0]);
        CHECK_EQ(grown[0], 1);
        CHECK_EQ(grown[KC_PART_CAPACITY - 1], 1);
        kc_free(grown);
        CHECK_EQ(kc_live_bytes(), with_whole);
    }
    kc_free(whole);
    CHECK_EQ(kc_live_bytes(), before);
    (void)kc_trim();
}

TEST(alloc_buffer_grows) {
    size_t before = kc_live_bytes();
    kc_buffer b = {0};
    kc_error error = {0};
    for (int i = 0; i < 100000; i++) {
        CHECK_EQ(kc_buffer_reserve(&b, 1, &error), KC_OK);
        b.data[b.size++] = (uint8_t)i;
    }
    for (int i = 0; i < 100000; i++) CHECK_EQ(b.data[i], (uint8_t)i);
    CHECK_EQ(kc_buffer_grow(&b, SIZE_MAX - 1, &error), KC_NO_MEMORY);
    CHECK_EQ(error.code, KC_NO_MEMORY);
    CHECK_EQ(b.size, 100000);
    kc_buffer_free(&b);
    CHECK_EQ(kc_live_bytes(), before);
}

TEST(alloc_capacities_are_powers_of_two_up_to_64_mib) {
    static const size_t KIB[] = {4, 5, 9, 33 << 10, 64 << 10, (64 << 10) + 1},
                        GOT[] = {4, 8, 16, 64 << 10, 64 << 10, 80 << 10};
    for (size_t i = 0; i < sizeof KIB / sizeof *KIB; i++) {
        void *block = kc_alloc(KIB[i] << 10);
        CHECK(block != NULL);
        CHECK_EQ(kc_capacity(block), GOT[i] << 10);
        kc_free(block);
    }
    (void)kc_trim();
    kc_free(kc_alloc(4095)); /* smaller blocks are malloc's */
    CHECK_EQ(kc_kept_bytes(), 0);
    kc_free(kc_alloc(4096));
    CHECK_EQ(kc_kept_bytes(), 4096);
    (void)kc_trim();
}

TEST(alloc_large_blocks_grow_in_steps) {
    const size_t before = kc_live_bytes(), mib = (size_t)1 << 20;
    kc_buffer b = {0};
    kc_error error = {0};
    static const size_t WANTED[] = {1, 64, 65, 81, 113, 200, 300}, GOT[] = {1, 64, 80, 112, 160, 224, 320};
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++) {
        CHECK_EQ(kc_buffer_grow(&b, WANTED[i] * mib, &error), KC_OK);
        CHECK_EQ(b.capacity, GOT[i] * mib);
        CHECK_EQ(kc_live_bytes(), before + b.capacity);
        CHECK_EQ((uintptr_t)b.data % 64, 0);
        if (i == 0) memset(b.data, 0x5a, b.size = mib);
        CHECK(b.data[0] == 0x5a && memcmp(b.data, b.data + 1, mib - 1) == 0);
        b.data[b.capacity - 1] = 0x5a;
    }
    kc_buffer_free(&b);
    CHECK_EQ(kc_live_bytes(), before);
    CHECK(kc_kept_bytes() <= KC_POOL_BYTES);
    (void)kc_trim();
}

TEST(alloc_grows_within_a_budget) {
    const size_t before = kc_live_bytes();
    kc_budget *budget = kc_budget_new(10000, "too much");
    kc_buffer b = {0};
    kc_error error = {0};
    size_t needed = 0;
    while (kc_buffer_grow_within(&b, needed + 1, budget, &error) == KC_OK) {
        needed = b.capacity;
        CHECK_EQ(budget->left, 10000 - b.capacity);
        memset(b.data, 0, b.size = b.capacity);
    }
    CHECK_EQ(b.capacity, 10000); /* all of it serves, however the steps fall */
    CHECK_EQ(error.code, KC_TOTAL_LIMIT);
    CHECK_EQ(error.got, 10001);
    CHECK_EQ(error.want, 10000);
    CHECK_EQ(kc_buffer_grow_within(&b, SIZE_MAX - 1, budget, &error), KC_TOTAL_LIMIT);
    kc_budget_give(budget, b.capacity);
    kc_buffer_free(&b);
    kc_budget_release(budget);
    CHECK_EQ(kc_live_bytes(), before);
}

static void *allocate_and_free(void *seed) {
    uint64_t random = *(uint64_t *)seed;
    uint8_t *held[16] = {0};
    for (int i = 0; i < 20000; i++) {
        uint64_t r = next_random(&random);
        size_t slot = r & 15, size = (size_t)(r >> 8) % 30000;
        kc_free(held[slot]);
        held[slot] = kc_alloc(size);
        if (held[slot] && size) held[slot][0] = held[slot][size - 1] = (uint8_t)slot;
    }
    for (int i = 0; i < 16; i++) kc_free(held[i]);
    return NULL;
}

TEST(alloc_serves_threads) {
    size_t before = kc_live_bytes();
    pthread_t threads[4];
    uint64_t seeds[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, allocate_and_free, &seeds[i]), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(kc_live_bytes(), before);
    (void)kc_trim();
}

static atomic_bool stop;

static void *hammer(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) kc_free(kc_alloc(65536));
    return NULL;
}

/* The child of a fork has one thread: a lock that another one held would never be given back there. The pool has a
 * block for everybody, so that no malloc is called, whose own locks do not survive a fork under AddressSanitizer. */
TEST(alloc_works_in_the_child_of_a_fork) {
    enum { THREADS = 3, FORKS = 300, SECONDS = 20 };
    pthread_t threads[THREADS];
    void *blocks[2 * THREADS];
    int hung = 0;
    for (int i = 0; i < 2 * THREADS; i++) blocks[i] = kc_alloc(65536);
    for (int i = 0; i < 2 * THREADS; i++) kc_free(blocks[i]);
    atomic_store(&stop, false);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < FORKS && !hung; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS); /* its default action ends the child */
            for (int n = 0; n < 10; n++) kc_free(kc_alloc(65536));
            _exit(0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) hung = i + 1;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(hung, 0);
    (void)kc_trim();
}
