# Receiving past an event loop, without the interpreter.
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from os import strerror


cdef extern from "<sys/socket.h>" nogil:
    int MSG_DONTWAIT
    ssize_t recv(int, void *, size_t, int)

cdef extern from "<poll.h>" nogil:
    enum: POLLIN
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd *, unsigned long, int)


cdef enum:
    PAUSE_MS = 1
    MOST_US = 2000


cdef int64_t now_us() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t> now.tv_sec * 1000000 + now.tv_nsec // 1000


cdef Py_ssize_t fill(int fd, char *to, Py_ssize_t size) noexcept nogil:
    """Returns how many bytes came, or the negative number of an error."""
    cdef Py_ssize_t have = 0, count
    cdef int64_t end = now_us() + MOST_US
    cdef pollfd one
    one.fd = fd
    one.events = POLLIN
    while have < size and now_us() < end:
        count = recv(fd, to + have, <size_t> (size - have), MSG_DONTWAIT)
        if count > 0:
            have += count
        elif count == 0:
            break
        elif errno == EAGAIN:
            if poll(&one, 1, PAUSE_MS) <= 0:
                break
        elif errno != EINTR:
            return -<Py_ssize_t> errno
    return have


def receive_soon(int fd, room not None):
    """Receive what comes soon: until the room is full, nothing comes for 1 ms, or 2 ms are over.

    Args:
        fd: of a socket.
        room: memory for the bytes.

    Returns:
        int: their number. The end of the stream is left for the next to receive.

    Raises:
        OSError: the connection is broken, and what came before that is lost.
    """
    cdef Py_buffer view
    cdef Py_ssize_t have
    PyObject_GetBuffer(room, &view, PyBUF_WRITABLE)
    try:
        with nogil:
            have = fill(fd, <char *> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    if have < 0:
        raise OSError(-have, strerror(-have))
    return have
