from libc.stdint cimport int64_t

from kafkacodec.client.producing._batch cimport BatchBuilder
from kafkacodec.client.producing._callbacks cimport Callbacks
from kafkacodec.client.producing._delivery cimport Delivery


cdef class OpenBatch:
    cdef public BatchBuilder builder
    cdef public object outcome
    cdef public int64_t count, size
    cdef public bint sealed
    cdef bint pends


cdef class OpenQueue:
    cdef public OpenBatch open


cdef class OpenTopic:
    cdef public list in_order
    cdef public dict queues
    cdef public object present
    cdef public OpenQueue sticky
    cdef public int64_t batch_limit


cdef class RowRuns:
    cdef Callbacks table
    cdef list runs
    cdef dict newest
    cpdef add(self, Delivery made)


cdef class Appending:
    cdef public dict ready, pending, active
    cdef readonly int64_t bytes
    cdef readonly bint full
    cdef readonly int64_t drained
    cdef int64_t memory, most
    cdef object is_owned
    cdef void take(self, int64_t size) noexcept
    cdef OpenQueue chosen(self, OpenTopic topic, partition, bytes key)
    cdef Delivery place(self, OpenTopic topic, OpenBatch batch, bytes key, bytes value, list headers, int64_t timestamp)
    cdef Delivery append_to_open(self, name, key, value, headers, partition, timestamp)


cdef class Sending:
    cdef public Appending _queues
