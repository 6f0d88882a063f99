# cython: embedsignature=False
# Records into the open batches of a producer, one at a time.
#
# Sending threads add to an open batch without the lock of the queues: from the look at `sealed` to the end of
# `Appending.place` no Python code runs, so that no other thread does, and no signal handler. A thread that has the lock
# sets `sealed` before it relies on the size of an open batch.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from kafkacodec._core cimport encode as k
from kafkacodec.client.producing._batch cimport BatchBuilder, as_bytes, header_cells
from kafkacodec.client.producing._delivery cimport Delivery


cdef inline int64_t now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t> now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef class OpenBatch:
    pass


cdef class OpenQueue:
    pass


cdef class OpenTopic:
    pass


cdef class Appending:
    def __init__(self, is_owned, int64_t memory, int64_t most):
        self.ready = {}
        self.pending = {}
        self.active = {}
        self.is_owned = is_owned
        self.memory = memory
        self.most = most

    cdef void take(self, int64_t size) noexcept:
        self.bytes += size
        if self.bytes >= self.memory:
            self.full = True

    def free(self, int64_t size):
        self.bytes -= size
        if self.full and self.bytes <= self.memory // 2:
            self.full = False
            self.drained += 1

    def choose(self, OpenTopic topic not None, partition, key):
        return self.chosen(topic, partition, as_bytes(key, "key"))

    cdef OpenQueue chosen(self, OpenTopic topic, partition, bytes key):
        """The queue of a partition, of a key, or for records without a key; None if there is none yet."""
        cdef list queues
        if partition is not None:
            return <OpenQueue?> topic.queues[partition] if partition in topic.present else None
        if key is None:
            return topic.sticky
        queues = topic.in_order
        return <OpenQueue?> queues[k.kc_murmur2_partition(<const uint8_t *> PyBytes_AS_STRING(key),
                                                          PyBytes_GET_SIZE(key), <int> len(queues))]

    def put(self, OpenTopic topic not None, OpenBatch batch not None, key, value, headers, int64_t timestamp):
        return self.place(topic, batch, as_bytes(key, "key"), as_bytes(value, "value"), header_cells(headers), timestamp)

    cdef Delivery place(self, OpenTopic topic, OpenBatch batch, bytes key, bytes value, list headers,
                        int64_t timestamp):
        """Add a record to a batch; None if it is full or closed."""
        cdef Delivery made = Delivery.__new__(Delivery)  # first, since garbage may be collected here
        cdef int64_t added
        if batch.sealed or batch.builder is None:
            return None
        added = batch.builder.add(key, value, headers, timestamp, topic.batch_limit, self.most)
        if not added:
            return None
        made._index = batch.count
        made._timestamp = timestamp
        made._outcome = batch.outcome
        batch.count += 1
        batch.size += added
        if batch.pends:
            self.take(added)
        return made

    def pend(self, OpenQueue queue not None, OpenBatch batch not None):
        if batch.builder is not None:
            queue.open = batch
        batch.pends = True
        self.pending[batch] = None
        self.active[queue] = None
        self.take(batch.size)

    def append_open(self, name, key, value, headers, partition, timestamp):
        return self.append_to_open(name, key, value, headers, partition, timestamp)

    cdef Delivery append_to_open(self, name, key, value, headers, partition, timestamp):
        """Add a record, where its batch is open and nothing has to be waited for; else None."""
        cdef OpenTopic topic
        cdef OpenQueue queue
        cdef PyObject *found
        cdef bytes own_key, own_value
        cdef list cells
        cdef int64_t time = 0
        if self.full or type(name) is not str:
            return None
        found = PyDict_GetItemWithError(self.ready, name)
        if found == NULL or self.is_owned():
            return None
        topic = <OpenTopic> found
        if timestamp is not None:
            if type(timestamp) is not int or not 0 <= timestamp <= INT64_MAX:
                return None
            time = timestamp
        if type(headers) is not tuple and type(headers) is not list and type(headers) is not dict:
            return None  # it may not have them a second time
        cells = header_cells(headers)
        own_key = as_bytes(key, "key")
        own_value = as_bytes(value, "value")
        queue = self.chosen(topic, partition, own_key)
        if queue is None or queue.open is None:
            return None
        return self.place(topic, queue.open, own_key, own_value, cells, now_ms() if timestamp is None else time)


BY_NAME = "send(topic, value) takes topic, value by position, and the others by name: key=, headers=, partition=, timestamp="


cdef class Sending:
    def send(self, topic, value=None, *more, key=None, headers=(), partition=None, timestamp=None):
        """Queue a record."""
        if more:
            raise TypeError(BY_NAME)
        cdef Delivery made = self._queues.append_to_open(topic, key, value, headers, partition, timestamp)
        if made is None:
            return self._send(topic, value, key, headers, partition, timestamp)
        return made
