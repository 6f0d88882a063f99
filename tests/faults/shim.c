/* Makes calls of the system fail, for tests: preloaded, and armed by fault_arm through ctypes.
 *
 * Counts the calls that concern files under a directory, and lets the N-th one fail with an error, be done by half, or
 * kill the process. Nothing is counted before fault_arm, so that the interpreter starts undisturbed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, SYNC = 4, NAME = 8, REMOVE = 16, LOOK = 32, CLOSE = 64 };
enum { KILL = -1, HALF = -2 }; /* in place of an error number */

static char root[PATH_MAX];
static size_t root_size;
static int what, mask;
static bool sticky;
static long at;
static atomic_long seen;
static _Atomic(const char *) hit;

/* error: a number of errno.h, KILL or HALF; number: which call, from 1; wanted: classes of calls; stays: all later ones
 * fail too. */
void fault_arm(const char *directory, int error, long number, int wanted, int stays) {
    root_size = strlen(directory);
    memcpy(root, directory, root_size + 1);
    what = error;
    mask = wanted;
    sticky = stays;
    atomic_store(&seen, 0);
    atomic_store(&hit, NULL);
    at = number;
}

/* How many calls there were. */
long fault_seen(void) { return atomic_load(&seen); }

/* The call that failed first; NULL for none. */
const char *fault_hit(void) { return atomic_load(&hit); }

static bool concerns(int directory, const char *path) {
    char link[64], base[PATH_MAX + 1];
    if (path && (path[0] == '/' || directory == AT_FDCWD)) return strncmp(path, root, root_size) == 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    const ssize_t size = readlink(link, base, sizeof base - 1);
    return size >= (ssize_t)root_size && strncmp(base, root, root_size) == 0;
}

/* 0: go on; HALF: do half; else the error number. */
static int fault(int class, const char *name, int directory, const char *path) {
    if (at == 0 || !(mask & class) || !concerns(directory, path)) return 0;
    const long number = atomic_fetch_add(&seen, 1) + 1;
    if (number != at && !(sticky && number > at)) return 0;
    const char *none = NULL;
    atomic_compare_exchange_strong(&hit, &none, name);
    if (what == KILL) kill(getpid(), SIGKILL);
    return what;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define GUARDED(type, failed, name, parameters, arguments, class, directory, path) \
    type name parameters {                                                         \
        const int error = fault(class, #name, directory, path);                    \
        if (error > 0) {                                                           \
            errno = error;                                                         \
            return failed;                                                         \
        }                                                                          \
        return NEXT(name) arguments;                                               \
    }

GUARDED(int, -1, fsync, (int fd), (fd), SYNC, fd, NULL)
GUARDED(int, -1, fdatasync, (int fd), (fd), SYNC, fd, NULL)
GUARDED(int, -1, ftruncate, (int fd, off_t size), (fd, size), WRITE, fd, NULL)
GUARDED(int, -1, ftruncate64, (int fd, off64_t size), (fd, size), WRITE, fd, NULL)
GUARDED(int, -1, rename, (const char *a, const char *b), (a, b), NAME, AT_FDCWD, b)
GUARDED(int, -1, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b), NAME, e, b)
GUARDED(int, -1, renameat2, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f), NAME, e, b)
GUARDED(int, -1, link, (const char *a, const char *b), (a, b), NAME, AT_FDCWD, b)
GUARDED(int, -1, linkat, (int d, const char *a, int e, const char *b, int f), (d, a, e, b, f), NAME, e, b)
GUARDED(int, -1, mkdir, (const char *path, mode_t mode), (path, mode), NAME, AT_FDCWD, path)
GUARDED(int, -1, mkdirat, (int d, const char *path, mode_t mode), (d, path, mode), NAME, d, path)
GUARDED(int, -1, unlink, (const char *path), (path), REMOVE, AT_FDCWD, path)
GUARDED(int, -1, unlinkat, (int d, const char *path, int flags), (d, path, flags), REMOVE, d, path)
GUARDED(int, -1, rmdir, (const char *path), (path), REMOVE, AT_FDCWD, path)
GUARDED(DIR *, NULL, opendir, (const char *path), (path), READ, AT_FDCWD, path)
GUARDED(int, -1, stat, (const char *path, struct stat *out), (path, out), LOOK, AT_FDCWD, path)
GUARDED(int, -1, lstat, (const char *path, struct stat *out), (path, out), LOOK, AT_FDCWD, path)
GUARDED(int, -1, fstat, (int fd, struct stat *out), (fd, out), LOOK, fd, NULL)
GUARDED(int, -1, stat64, (const char *path, struct stat64 *out), (path, out), LOOK, AT_FDCWD, path)
GUARDED(int, -1, lstat64, (const char *path, struct stat64 *out), (path, out), LOOK, AT_FDCWD, path)
GUARDED(int, -1, fstat64, (int fd, struct stat64 *out), (fd, out), LOOK, fd, NULL)
GUARDED(int, -1, chmod, (const char *path, mode_t mode), (path, mode), NAME, AT_FDCWD, path)

/* A failing close has closed the file. */
int close(int fd) {
    const int error = fault(CLOSE, "close", fd, NULL), result = NEXT(close)(fd);
    if (error <= 0) return result;
    errno = error;
    return -1;
}

#define TRANSFER(name, parameters, arguments, buffer, class) \
    ssize_t name parameters {                                \
        const int error = fault(class, #name, fd, NULL);     \
        if (error == HALF && size > 1) size /= 2;            \
        if (error > 0) {                                     \
            errno = error;                                   \
            return -1;                                       \
        }                                                    \
        return NEXT(name) arguments;                         \
    }

TRANSFER(read, (int fd, void *data, size_t size), (fd, data, size), data, READ)
TRANSFER(write, (int fd, const void *data, size_t size), (fd, data, size), data, WRITE)
TRANSFER(pread, (int fd, void *data, size_t size, off_t from), (fd, data, size, from), data, READ)
TRANSFER(pwrite, (int fd, const void *data, size_t size, off_t from), (fd, data, size, from), data, WRITE)
TRANSFER(pread64, (int fd, void *data, size_t size, off64_t from), (fd, data, size, from), data, READ)
TRANSFER(pwrite64, (int fd, const void *data, size_t size, off64_t from), (fd, data, size, from), data, WRITE)

#define OPENING(name, parameters, arguments, directory)                                 \
    int name parameters {                                                               \
        va_list rest;                                                                   \
        va_start(rest, flags);                                                          \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;   \
        va_end(rest);                                                                   \
        const int error = fault(flags & O_CREAT ? NAME : READ, #name, directory, path); \
        if (error > 0) {                                                                \
            errno = error;                                                              \
            return -1;                                                                  \
        }                                                                               \
        return NEXT(name) arguments;                                                    \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENING(openat, (int d, const char *path, int flags, ...), (d, path, flags, mode), d)
OPENING(openat64, (int d, const char *path, int flags, ...), (d, path, flags, mode), d)
