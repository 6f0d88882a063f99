cimport cython
from libc.stdint cimport int64_t

from kafkacodec._core cimport encode as k
from kafkacodec.client.producing._batch cimport BatchBuilder
from kafkacodec.client.producing._callbacks cimport Callback, Callbacks
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


cdef class RowRun(Callback):
    cdef Callbacks batch, table
    cdef int64_t end, row
    cdef tell(self, part)


cdef class RowRuns:
    cdef Callbacks table
    cdef list runs
    cdef dict newest
    cdef RowRun last
    cdef int extend(self, Callbacks batch, int64_t index) except -1


cdef class Appending:
    cdef public dict ready, pending, active
    cdef readonly int64_t bytes
    cdef readonly bint full
    cdef readonly int64_t drained
    cdef int64_t memory, most
    cdef object is_owned
    cdef void take(self, int64_t size) noexcept
    @cython.final
    cdef OpenQueue chosen(self, OpenTopic topic, partition, const k.kc_cell *key)
    @cython.final
    cdef bint add(self, OpenTopic topic, OpenBatch batch, k.kc_new_record *record, list headers) except -1
    @cython.final
    cdef Delivery place(self, OpenTopic topic, OpenBatch batch, k.kc_new_record *record, list headers)
    cdef Delivery append_to_open(self, name, key, value, headers, partition, timestamp)


cdef class Sending:
    cdef public Appending _queues
