#if defined(__linux__)
#define _DEFAULT_SOURCE /* sigaction, MAP_ANONYMOUS, madvise */
#endif
#include "base/kc_mapping.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/kc_alloc.h"

#if defined(__ELF__)
/* The handler must not allocate, as the first use of other thread-local storage does. */
#define KC_PLAIN_TLS _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define KC_PLAIN_TLS _Thread_local
#endif

/* A mapping as the handler sees it. Guards are reused and never freed, so that the handler can walk them at any time.
 */
struct kc_guard {
    atomic_uintptr_t start;
    atomic_size_t size; /* 0: unused */
    atomic_bool taken, torn;
    atomic_size_t torn_at;
    kc_guard *next;
};

static _Atomic(kc_guard *) guards;
/* The previous handlers; signals are passed to the last one. Two, so that one is valid while the other is written. */
static struct sigaction found[2];
static atomic_int found_at = -1;
static KC_PLAIN_TLS volatile sig_atomic_t passing_on;

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Maps zeros from the faulting page to the end. */
static bool patch(uintptr_t at) {
    const size_t page = page_size();
    for (kc_guard *g = atomic_load(&guards); g; g = g->next) {
        const uintptr_t start = atomic_load(&g->start);
        const size_t size = atomic_load(&g->size), whole = (size + page - 1) / page * page;
        if (at - start >= whole) continue;             /* unsigned: also true if it is before the start */
        if (atomic_load(&g->start) != start) continue; /* taken meanwhile: the size is that of another mapping */
        const size_t from = (size_t)(at - start) / page * page;
        void *zeros = mmap((void *)(start + from), whole - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                           (off_t)0);
        if (zeros == MAP_FAILED) return false;
        size_t before = atomic_load(&g->torn_at);
        while (from < before && !atomic_compare_exchange_weak(&g->torn_at, &before, from)) {
        }
        atomic_store(&g->torn, true);
        return true;
    }
    return false;
}

/* Handles a foreign signal as it would be handled without this file. */
static void pass_on(int number, siginfo_t *info, void *context) {
    const int at = atomic_load(&found_at);
    const struct sigaction *before = at < 0 ? NULL : &found[at];
    const bool sent = info->si_code <= 0; /* by kill or raise, not by a fault */
    if (before && before->sa_handler == SIG_IGN && sent) return;
    /* A handler installed after this one may call it again. */
    if (before && before->sa_handler != SIG_IGN && before->sa_handler != SIG_DFL && !passing_on) {
        passing_on = 1;
        if (before->sa_flags & SA_SIGINFO)
            before->sa_sigaction(number, info, context);
        else
            before->sa_handler(number);
        passing_on = 0;
        return;
    }
    struct sigaction fallback;
    memset(&fallback, 0, sizeof fallback);
    fallback.sa_handler = SIG_DFL;
    sigaction(number, &fallback, NULL);
    if (sent) (void)raise(number); /* a fault is raised again by itself */
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    const int kept = errno;
    if (info->si_code <= 0 || !patch((uintptr_t)info->si_addr)) pass_on(number, info, context);
    errno = kept;
}

/* Installs the handler if it is not in place: since the last time, others may have replaced or removed it. */
static int watch(void) {
    struct sigaction ours, before;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGBUS, &ours, &before)) return errno;
    if ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction == on_bus_error) return 0;
    const int next = atomic_load(&found_at) == 0;
    found[next] = before;
    atomic_store(&found_at, next);
    return 0;
}

static kc_guard *take_guard(void) {
    for (kc_guard *g = atomic_load(&guards); g; g = g->next) {
        bool taken = false;
        if (atomic_compare_exchange_strong(&g->taken, &taken, true)) return g;
    }
    kc_guard *g = kc_alloc(sizeof *g);
    if (!g) return NULL;
    atomic_init(&g->start, 0);
    atomic_init(&g->size, 0);
    atomic_init(&g->taken, true);
    g->next = atomic_load(&guards);
    while (!atomic_compare_exchange_weak(&guards, &g->next, g)) {
    }
    return g;
}

int kc_mapping_open(kc_mapping *m, int descriptor, uint64_t size) {
    memset(m, 0, sizeof *m);
    if (size == 0 || size > PTRDIFF_MAX) return size ? EFBIG : EINVAL;
    const int error = watch();
    if (error) return error;
    kc_guard *g = take_guard();
    if (!g) return ENOMEM;
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, descriptor, (off_t)0);
    if (data == MAP_FAILED) {
        const int reason = errno;
        atomic_store(&g->taken, false);
        return reason;
    }
    atomic_store(&g->torn, false);
    atomic_store(&g->torn_at, SIZE_MAX);
    atomic_store(&g->start, (uintptr_t)data);
    atomic_store(&g->size, (size_t)size);
    m->data = data;
    m->size = size;
    m->guard = g;
    return 0;
}

bool kc_mapping_is_torn(const kc_mapping *m, uint64_t *position) {
    if (!m->guard || !atomic_load(&m->guard->torn)) return false;
    *position = atomic_load(&m->guard->torn_at);
    return true;
}

void kc_mapping_drop(kc_mapping *m, uint64_t position) {
    if (position > m->size) position = m->size;
    position -= position % page_size();
    if (!m->data || position <= m->dropped) return;
    madvise((void *)(uintptr_t)(m->data + m->dropped), (size_t)(position - m->dropped), MADV_DONTNEED);
    m->dropped = position;
}

void kc_mapping_close(kc_mapping *m) {
    if (!m->data) return;
    atomic_store(&m->guard->size, 0);
    munmap((void *)(uintptr_t)m->data, (size_t)m->size);
    atomic_store(&m->guard->taken, false);
    memset(m, 0, sizeof *m);
}
