from libc.stdint cimport int32_t, int64_t

from kafkacodec.client.core._metrics cimport BatchCounts, RequestCounts
from kafkacodec.client.producing._appending cimport Appending, OpenBatch
from kafkacodec.client.producing._callbacks cimport Callbacks


cdef class Way:
    cdef readonly object line
    cdef object connection, node, network, producer, frame
    cdef dict frames
    cdef bytes answer
    cdef Py_ssize_t offset_at, time_at, start_at
    cdef int64_t producer_id
    cdef short epoch
    cdef int fd, epoll


cdef class Shortcut:
    cdef public dict ways
    cdef public bint offered
    cdef readonly int64_t written, taken
    cdef Appending queues
    cdef object adopt, ring, is_owned, acquire, release
    cdef RequestCounts requests
    cdef BatchCounts batches
    cdef double limit
    cdef bint asleep, helped
    cdef int bell, passes, penalty
    # What is under way.
    cdef OpenBatch batch    # None: nothing is
    cdef Way way
    cdef int32_t number
    cdef double sent_at
    cdef Py_ssize_t size
    cdef bytes rest
    cdef bint write_now(self, Way way, OpenBatch batch, tuple frame) except -1
    cdef int send(self, Way way, bytes head, bytearray data, bytes tail) except -1
    cdef bint take(self, OpenBatch batch) except -1
    cdef bint take_now(self, OpenBatch batch, unsigned char *answer, Py_ssize_t size) except -1
    cpdef bint wait(self, Callbacks outcome, timeout) except -1
