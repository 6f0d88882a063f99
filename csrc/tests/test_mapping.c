#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kc_alloc.h"
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
    /* Whole pages are dropped, and read again when they are needed. */
    const size_t positions[] = {0, page() - 1, 3 * page() + 5, 2 * page(), 7 * page(), SIZE_MAX},
                 dropped[] = {0, 0, 3 * page(), 3 * page(), 7 * page(), 7 * page()};
    for (int i = 0; i < 6; i++) {
        kc_mapping_drop(&m, positions[i]);
        CHECK_EQ(m.dropped, dropped[i]);
    }
    CHECK_EQ(m.data[6 * page()], 0);
    CHECK_EQ(m.data[0], 1);
    kc_mapping_close(&m);
    kc_mapping_drop(&m, page());
    CHECK(!m.data && !m.guard && m.dropped == 0 && m.size == 0);
    kc_mapping_close(&m);
    CHECK(!kc_mapping_is_torn(&m, &position));
    close(file);
}

/* The last page belongs to the mapping, even if only one byte of it does. */
TEST(mapping_of_one_byte_more_than_pages) {
    const int file = new_file();
    kc_mapping m;
    uint64_t position = 0;
    CHECK_EQ(kc_mapping_open(&m, file, 3 * page() + 1), 0);
    CHECK_EQ(ftruncate(file, (off_t)(2 * page())), 0);
    CHECK_EQ(m.data[3 * page()], 0);
    CHECK(kc_mapping_is_torn(&m, &position));
    CHECK_EQ(position, 3 * page());
    kc_mapping_close(&m);
    close(file);
}

TEST(mapping_guards_are_used_again) {
    size_t live = 0;
    for (int i = 0; i < 3; i++) {
        kc_mapping many[40];
        const int file = new_file();
        uint64_t position;
        for (int k = 0; k < 40; k++) CHECK_EQ(kc_mapping_open(&many[k], file, PAGES * page()), 0);
        if (i == 0) live = kc_live_bytes();
        CHECK_EQ(kc_live_bytes(), live);
        for (int k = 0; i == 2 && k < 40; k++) { /* nothing is left of an earlier use */
            CHECK_EQ(ftruncate(file, (off_t)(5 * page())), 0);
            CHECK_EQ(many[k].data[6 * page()], 0);
            CHECK(kc_mapping_is_torn(&many[k], &position));
            CHECK_EQ(position, 6 * page());
        }
        if (i == 2) {
            for (int k = 0; k < 40; k++) kc_mapping_close(&many[k]);
            close(file);
            break;
        }
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
    const size_t live = kc_live_bytes();
    CHECK_EQ(kc_mapping_open(&m, -1, 10), EBADF);
    CHECK_EQ(kc_live_bytes(), live); /* the guard was free again */
    CHECK(!m.data && !m.guard);
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

static void leave_with_place(int number, siginfo_t *info, void *context) {
    _exit(number == SIGBUS && info->si_code > 0 && info->si_addr && context ? 43 : 1);
}

static struct sigaction previous;
static void call_previous(int number, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO) previous.sa_sigaction(number, info, context);
}

/* The status of a child whose handler with SA_SIGINFO is in place before a mapping is opened, or, for `again`, between
 * two of them, when another page is missing: of a file that a third party mapped, perhaps where a mapping was before.
 */
static int status_with_handler(void (*handler)(int, siginfo_t *, void *), bool again, bool where_one_was) {
    const pid_t child = fork();
    if (child == 0) {
        const int file = new_file(), other = new_file();
        kc_mapping m;
        struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
        if (again && kc_mapping_open(&m, file, page())) _exit(1);
        if (!handler) signal(SIGBUS, SIG_DFL); /* not a sanitizer's */
        if (handler && sigaction(SIGBUS, &action, &previous)) _exit(1);
        if (kc_mapping_open(&m, file, page())) _exit(1);
        kc_mapping second; /* the handler is in place already */
        if (kc_mapping_open(&second, file, page())) _exit(1);
        void *place = where_one_was ? (void *)(uintptr_t)m.data : NULL;
        if (place) kc_mapping_close(&m);
        volatile uint8_t *foreign = mmap(place, page(), PROT_READ, MAP_SHARED | (place ? MAP_FIXED : 0), other, 0);
        if (ftruncate(other, 0)) _exit(1);
        _exit(foreign[0] ? 1 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

TEST(mapping_passes_on_all_that_a_handler_needs) {
    CHECK_EQ(WEXITSTATUS(status_with_handler(leave_with_place, false, false)), 43);
    CHECK_EQ(WEXITSTATUS(status_with_handler(leave_with_place, true, false)), 43);
    /* A handler that calls the one before it, which would call it again. */
    const int chained = status_with_handler(call_previous, true, false);
    CHECK(WIFSIGNALED(chained) && WTERMSIG(chained) == SIGBUS);
}

TEST(mapping_ends_when_it_is_closed) {
    const int killed = status_with_handler(NULL, false, true);
    CHECK(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGBUS);
}
