#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kc_mapping.h"
#include "check.h"

enum { PAGES = 8 };

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* A file of PAGES pages, each filled with its number plus one, without a name. */
static int new_file(void) {
    FILE *file = tmpfile();
    if (!file) return -1;
    for (size_t i = 0; i < PAGES * page(); i++) fputc((int)(i / page()) + 1, file);
    fflush(file);
    const int descriptor = dup(fileno(file));
    fclose(file);
    return descriptor;
}

static unsigned sum(const kc_mapping *m) {
    unsigned total = 0;
    for (size_t i = 0; i < m->size; i += 512) total += m->data[i];
    return total;
}

TEST(mapping_of_a_file_that_is_shortened) {
    const int file = new_file();
    kc_mapping m;
    uint64_t position = 0;
    CHECK_EQ(kc_mapping_open(&m, file, PAGES * page() - 100), 0);
    CHECK_EQ(m.data[3 * page()], 4);
    CHECK(!kc_mapping_is_torn(&m, &position));
    CHECK_EQ(ftruncate(file, (off_t)(5 * page() + 10)), 0);
    CHECK_EQ(m.data[5 * page() + 9], 6);
    CHECK_EQ(m.data[5 * page() + 11], 0); /* the rest of the last page is zeros without a signal */
    CHECK(!kc_mapping_is_torn(&m, &position));
    CHECK_EQ(m.data[7 * page()], 0);
    CHECK(kc_mapping_is_torn(&m, &position));
    CHECK_EQ(position, 7 * page());
    CHECK_EQ(m.data[6 * page() + 1], 0);
    CHECK(kc_mapping_is_torn(&m, &position));
    CHECK_EQ(position, 6 * page());
    CHECK_EQ(m.data[4 * page()], 5);
    kc_mapping_drop(&m, 7 * page());
    CHECK_EQ(m.data[6 * page()], 0);
    CHECK_EQ(m.data[0], 1);
    kc_mapping_close(&m);
    kc_mapping_close(&m);
    CHECK(!kc_mapping_is_torn(&m, &position));
    close(file);
}

TEST(mapping_guards_are_used_again) {
    for (int i = 0; i < 3; i++) {
        kc_mapping many[40];
        const int file = new_file();
        uint64_t position;
        for (int k = 0; k < 40; k++) CHECK_EQ(kc_mapping_open(&many[k], file, PAGES * page()), 0);
        CHECK_EQ(ftruncate(file, 0), 0);
        for (int k = 0; k < 40; k++) {
            CHECK(!kc_mapping_is_torn(&many[k], &position));
            CHECK_EQ(sum(&many[k]), 0);
            CHECK(kc_mapping_is_torn(&many[k], &position));
            CHECK_EQ(position, 0);
        }
        for (int k = 0; k < 40; k++) kc_mapping_close(&many[k]);
        close(file);
    }
}

TEST(mapping_of_what_cannot_be_mapped) {
    kc_mapping m;
    CHECK_EQ(kc_mapping_open(&m, -1, 10), EBADF);
    CHECK_EQ(kc_mapping_open(&m, -1, 0), EINVAL);
    CHECK_EQ(kc_mapping_open(&m, -1, UINT64_MAX), EFBIG);
    kc_mapping_close(&m);
}

static void *read_again_and_again(void *argument) {
    for (int i = 0; i < 2000; i++) sum(argument);
    return NULL;
}

TEST(mapping_read_by_threads_while_it_is_shortened) {
    const int file = new_file();
    kc_mapping m;
    pthread_t threads[4];
    uint64_t position;
    CHECK_EQ(kc_mapping_open(&m, file, PAGES * page()), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, read_again_and_again, &m), 0);
    for (int pages = PAGES; pages >= 0; pages--) CHECK_EQ(ftruncate(file, (off_t)((size_t)pages * page())), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(sum(&m), 0);
    CHECK(kc_mapping_is_torn(&m, &position));
    kc_mapping_close(&m);
    close(file);
}

static int calls;
static void count_call(int number) {
    (void)number;
    calls++;
}
static void leave(int number) { _exit(number == SIGBUS ? 42 : 1); }

/* The status of a child that opens a mapping, with `handler` in place before and `later` put over it, and then
 * touches a page of another mapping that its file no longer has, or, with `sent`, gets the signal from raise. */
static int status_of_foreign_fault(void (*handler)(int), void (*later)(int), bool sent) {
    const pid_t child = fork();
    if (child == 0) {
        const int file = new_file(), other = new_file();
        kc_mapping m;
        signal(SIGBUS, handler);
        if (kc_mapping_open(&m, file, page())) _exit(1);
        if (later) {
            signal(SIGBUS, later);
            if (kc_mapping_open(&m, file, page())) _exit(1);
        }
        volatile uint8_t *foreign = mmap(NULL, page(), PROT_READ, MAP_SHARED, other, 0);
        if (sent) raise(SIGBUS);
        if (sent && handler == count_call) _exit(calls == 1 ? 7 : 1);
        if (sent && handler == SIG_IGN) _exit(8);
        if (ftruncate(other, 0)) _exit(1);
        _exit(foreign[0] ? 1 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

TEST(mapping_leaves_the_faults_of_others_alone) {
    const int killed = status_of_foreign_fault(SIG_DFL, NULL, false);
    CHECK(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGBUS);
    CHECK_EQ(WEXITSTATUS(status_of_foreign_fault(leave, NULL, false)), 42);
    CHECK_EQ(WEXITSTATUS(status_of_foreign_fault(SIG_DFL, leave, false)), 42);
    const int sent = status_of_foreign_fault(SIG_DFL, NULL, true);
    CHECK(WIFSIGNALED(sent) && WTERMSIG(sent) == SIGBUS);
    CHECK_EQ(WEXITSTATUS(status_of_foreign_fault(count_call, NULL, true)), 7);
    CHECK_EQ(WEXITSTATUS(status_of_foreign_fault(SIG_IGN, NULL, true)), 8);
}
