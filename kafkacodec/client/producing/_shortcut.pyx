# cython: embedsignature=False
# One batch past an event loop that sleeps: the sending thread writes the request, and takes the answer, itself.
#
# From the look at `asleep` to the end of `write_now` and `take_now` no Python code runs, as the garbage collector waits,
# and the GIL is kept: so that no other thread runs, and no signal handler. All else is left to the loop.
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport ceil
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from kafkacodec._core cimport encode as k
from kafkacodec._core._errors cimport exception_from
from kafkacodec.client.core._metrics cimport BatchCounts, RequestCounts
from kafkacodec.client.producing._appending cimport Appending, OpenBatch, OpenQueue
from kafkacodec.client.producing._batch cimport BatchBuilder
from kafkacodec.client.producing._callbacks cimport Callbacks

from kafkacodec.client.producing.outcome import Part


cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef extern from *:
    """
    #include <poll.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/epoll.h>
    #include <sys/eventfd.h>

    static int heed(int epoll, int fd, int on)
    {
        struct epoll_event event;
        memset(&event, 0, sizeof event);
        event.events = on ? EPOLLIN : 0;
        event.data.fd = fd;
        return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
    }

    static int new_bell(void)
    {
        return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    #else
    #define MSG_NOSIGNAL 0

    static int heed(int epoll, int fd, int on)
    {
        (void) epoll, (void) fd, (void) on;
        return -1;
    }

    static int new_bell(void)
    {
        return -1;
    }
    #endif

    static ssize_t send_parts(int fd, struct iovec *parts, int count)
    {
        struct msghdr message;
        memset(&message, 0, sizeof message);
        message.msg_iov = parts;
        message.msg_iovlen = count;
        return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    """
    struct iovec:
        void *iov_base
        size_t iov_len
    struct pollfd:
        int fd
        short events
        short revents
    enum: POLLIN
    enum: MSG_PEEK
    enum: MSG_DONTWAIT
    int poll(pollfd *, unsigned long, int) nogil
    ssize_t recv(int, void *, size_t, int)
    ssize_t send_parts(int, iovec *, int)
    ssize_t unix_read "read"(int, void *, size_t)
    ssize_t unix_write "write"(int, const void *, size_t)
    int unix_close "close"(int)
    int heed(int epoll, int fd, int on)     # whether the loop is woken by what is received
    int new_bell()


cdef enum:
    NUMBER_AT = 8           # of the correlation id in a request, with its size
    ANSWER_NUMBER_AT = 4    # likewise in an answer
    MOST_HEAD = 1024        # bytes of a request before its records
    ANSWER_BYTES = 1024     # that are looked at
    MOST_BATCH = 1 << 16    # what a socket takes at once
    MOST_FRAMES = 64        # sizes of batches
    PASSED = 32             # answers, once others have followed one at once: they are better sent together
    MOST_PASSED = 1024      # likewise, again and again
    MOST_WAIT = 1000        # seconds: the loop wakes long before

MOST_ANSWER = ANSWER_BYTES


cdef double now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6


cdef inline void put_int32(char *to, int32_t value) noexcept:
    cdef int i
    for i in range(4):
        to[i] = <char> ((<unsigned int> value >> (24 - 8 * i)) & 0xFF)


cdef inline int64_t int64_at(const unsigned char *at) noexcept:
    cdef int i
    cdef uint8_t byte
    cdef unsigned long long found = 0
    for i in range(8):
        byte = at[i]
        found = (found << 8) | byte
    return <int64_t> found


cdef int number_batch(bytearray data, int64_t producer_id, short epoch, int32_t sequence) except -1:
    cdef k.kc_producer producer
    cdef k.kc_error error
    producer.id, producer.epoch, producer.base_sequence, producer.transactional = producer_id, epoch, sequence, False
    if k.kc_batch_set_producer(<uint8_t *> PyByteArray_AS_STRING(data), PyByteArray_GET_SIZE(data), &producer, &error):
        raise exception_from(&error)
    return 0


cdef object part_of(OpenBatch batch, int64_t offset, int64_t time):
    """The outcome of a batch that was delivered."""
    cdef OpenQueue queue = batch.queue
    part = (batch.first + batch.count, batch.first, queue.topic, queue.number, offset, time, None)
    return tuple.__new__(Part, part)    # what the class does, without its call


cdef class Way:
    def __init__(self, line, producer, frame, bytes answer not None, int offset_at, int time_at, int start_at):
        self.line, self.connection, self.node, self.network = line, line.connection, line.node, line.network
        self.fd, self.epoll = line.fd, line.epoll
        self.producer = producer
        self.producer_id, self.epoch = producer
        self.frame, self.frames = frame, {}
        self.answer = answer
        self.offset_at, self.time_at, self.start_at = offset_at, time_at, start_at


cdef class Shortcut:
    def __cinit__(self):
        self.bell = -1
        self.penalty = PASSED

    def __init__(self, Appending queues not None, lock, RequestCounts requests not None, BatchCounts batches not None,
                 adopt, ring, double limit_ms):
        self.queues, self.requests, self.batches = queues, requests, batches
        self.is_owned, self.acquire, self.release = lock._is_owned, lock.acquire, lock.release
        self.adopt, self.ring = adopt, ring
        self.limit = limit_ms / 1000
        self.ways = {}

    def __dealloc__(self):
        if self.bell >= 0:
            unix_close(self.bell)

    # Of the loop

    def wants(self):
        if self.passes:
            self.passes -= 1
        return not self.passes

    def fall_asleep(self, timeout):
        self.asleep = timeout is not None and timeout <= self.limit

    def wake_up(self):
        cdef OpenBatch batch = self.batch
        cdef int64_t one = 1
        self.asleep = self.offered = False
        if batch is None:
            return
        self.batch = None
        (<Callbacks> batch.outcome).shortcut = None
        if len(self.queues.pending) > 1:
            self.passes = self.penalty
            self.penalty = min(2 * self.penalty, <int> MOST_PASSED)
        else:
            self.penalty = PASSED
        if self.helped:
            self.helped = False
            heed(self.way.epoll, self.way.fd, 1)
            unix_write(self.bell, &one, sizeof(one))
        rest, self.rest = self.rest, None
        self.adopt(batch, self.way.line, self.number, self.sent_at, self.size, rest)

    # Of the sending thread, which has the lock of the queues

    def write(self, OpenBatch batch not None):
        cdef Way way
        cdef BatchBuilder builder = batch.builder
        cdef Py_ssize_t size
        cdef bint collects, done
        if not self.asleep or not self.offered or self.batch is not None or builder is None:
            return False
        way = self.ways.get(batch.queue)
        size = <Py_ssize_t> builder.appender.batch.size
        if way is None or size > MOST_BATCH:
            return False
        frame = way.frames.get(size)
        if frame is None:   # all is looked at again, since this is Python code
            if len(way.frames) >= MOST_FRAMES:
                way.frames.clear()
            frame = way.frames[size] = way.frame(size)
        collects = PyGC_Disable()
        try:
            done = self.write_now(way, batch, frame)
        finally:
            if collects:
                PyGC_Enable()
        if done and self.rest is not None:
            self.ring()
        return done

    cdef bint write_now(self, Way way, OpenBatch batch, tuple frame) except -1:
        cdef BatchBuilder builder = batch.builder
        cdef OpenQueue queue = batch.queue
        cdef bytes head = frame[0], tail = frame[1]
        cdef bytearray data
        if not self.asleep or not self.offered or self.batch is not None or not way.line.is_free:
            return False
        if queue.open is not batch or batch.sealed or builder is None or builder.appender.batch.size != frame[2]:
            return False
        if queue.waiting or queue.flying or queue.broken or not queue.proven or queue.producer is not way.producer:
            return False
        if len(self.queues.pending) != 1 or self.queues.full or PyBytes_GET_SIZE(head) > MOST_HEAD:
            return False
        data = builder.close()
        batch.builder, batch.data = None, data
        self.queues.begin(queue, batch)
        if batch.sequence >= 0:
            number_batch(data, way.producer_id, way.epoch, <int32_t> batch.sequence)
        self.number = way.connection.next_correlation_id
        way.connection.next_correlation_id = (self.number + 1) & 0x7FFFFFFF
        self.send(way, head, data, tail)
        way.node.used_at = self.sent_at
        (<Callbacks> batch.outcome).shortcut = self
        self.way, self.batch = way, batch
        self.written += 1
        return True

    cdef int send(self, Way way, bytes head, bytearray data, bytes tail) except -1:
        """Write a request, of which the socket may take a part only. If it is broken, the loop finds out."""
        cdef char copy[MOST_HEAD]
        cdef iovec parts[3]
        cdef Py_ssize_t size = PyBytes_GET_SIZE(head)
        cdef ssize_t sent
        memcpy(copy, PyBytes_AS_STRING(head), <size_t> size)
        put_int32(copy + NUMBER_AT, self.number)
        parts[0].iov_base, parts[0].iov_len = copy, <size_t> size
        parts[1].iov_base, parts[1].iov_len = PyByteArray_AS_STRING(data), <size_t> PyByteArray_GET_SIZE(data)
        parts[2].iov_base, parts[2].iov_len = PyBytes_AS_STRING(tail), <size_t> PyBytes_GET_SIZE(tail)
        self.size = size + PyByteArray_GET_SIZE(data) + PyBytes_GET_SIZE(tail)
        self.sent_at = now_ms()
        sent = send_parts(way.fd, parts, 3)
        if sent < self.size:
            self.rest = (copy[:size] + bytes(data) + tail)[max(sent, 0):]
        return 0

    # Of a thread that waits for a record

    cpdef bint wait(self, Callbacks outcome, timeout) except -1:
        cdef OpenBatch batch = self.batch
        cdef Way way = self.way
        cdef pollfd both[2]
        cdef int ready, ms
        cdef int64_t rung
        if batch is None or batch.outcome is not outcome or self.helped or not self.asleep:
            return False
        if self.bell < 0:
            self.bell = new_bell()
        if self.bell < 0 or heed(way.epoll, way.fd, 0):
            return False
        self.helped = True
        both[0].fd, both[0].events = way.fd, POLLIN
        both[1].fd, both[1].events = self.bell, POLLIN
        ms = -1 if timeout is None else <int> ceil(min(<double> timeout, MOST_WAIT) * 1000)
        with nogil:
            ready = poll(both, 2, ms)
        if self.batch is not batch:     # the loop has woken
            unix_read(self.bell, &rung, sizeof(rung))
            return False
        try:
            return ready > 0 and both[0].revents and self.take(batch)
        finally:
            self.helped = False
            heed(way.epoll, way.fd, 1)

    cdef bint take(self, OpenBatch batch) except -1:
        """Take the answer if it is the usual one."""
        cdef unsigned char answer[ANSWER_BYTES + 1]
        cdef unsigned char usual[ANSWER_BYTES]
        cdef Way way = self.way
        cdef Py_ssize_t size = PyBytes_GET_SIZE(way.answer)
        cdef bint collects
        if recv(way.fd, answer, <size_t> size + 1, MSG_PEEK | MSG_DONTWAIT) != size:
            return False
        memcpy(usual, PyBytes_AS_STRING(way.answer), <size_t> size)
        put_int32(<char *> usual + ANSWER_NUMBER_AT, self.number)
        memcpy(usual + way.offset_at, answer + way.offset_at, 8)
        memcpy(usual + way.time_at, answer + way.time_at, 8)
        memcpy(usual + way.start_at, answer + way.start_at, 8)
        if memcmp(usual, answer, <size_t> size) or self.is_owned():
            return False
        collects = PyGC_Disable()
        try:
            return self.take_now(batch, answer, size)
        finally:
            if collects:
                PyGC_Enable()

    cdef bint take_now(self, OpenBatch batch, unsigned char *answer, Py_ssize_t size) except -1:
        cdef OpenQueue queue = batch.queue
        cdef Callbacks outcome = batch.outcome
        cdef Way way = self.way
        cdef double now = now_ms()
        if outcome.callbacks or outcome.waiters or outcome.runs is not None or outcome.parts or self.queues.full:
            return False
        if len(queue.flying) != 1 or queue.flying[0] is not batch or not self.acquire(False):
            return False
        try:
            part = part_of(batch, int64_at(answer + way.offset_at), int64_at(answer + way.time_at))
            recv(way.fd, answer, <size_t> size, MSG_DONTWAIT)
            self.requests.add(now - self.sent_at, self.size, size)
            self.batches.add(batch.count, PyByteArray_GET_SIZE(batch.data))
            queue.flying.pop()
            batch.data = None
            self.queues.resolved(batch)
            way.network.answered_at = now
            outcome.parts.append(part)
            outcome.resolved += batch.count
            outcome.shortcut = None
            self.batch = None
            self.taken += 1
            self.penalty = PASSED
        finally:
            self.release()
        return True
