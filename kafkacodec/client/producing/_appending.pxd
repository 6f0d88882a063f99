cimport cython
from libc.stdint cimport int64_t

from kafkacodec._core cimport encode as k
from kafkacodec.client.producing._batch cimport BatchBuilder
from kafkacodec.client.producing._callbacks cimport Callback, Callbacks
from kafkacodec.client.producing._delivery cimport Delivery, TableDelivery
from kafkacodec.client.producing._row_cells cimport RowCells


cdef class OpenQueue


cdef class OpenBatch:
    cdef public BatchBuilder builder
    cdef public OpenQueue queue
    cdef public object outcome, data, producer
    cdef public int64_t first, count, size, sequence, attempts
    cdef public bint sealed
    cdef bint pends


cdef class OpenQueue:
    cdef public str topic
    cdef public int64_t number, next_sequence
    cdef public OpenBatch open
    cdef public object waiting, producer
    cdef public list flying
    cdef public bint proven, broken


cdef class OpenTopic:
    cdef public list in_order
    cdef public dict queues
    cdef public object present
    cdef public OpenQueue sticky
    cdef public int64_t batch_limit


cdef class RowRun(Callback):
    cdef Callbacks batch, table
    cdef int64_t end, row
    cdef int tell(self, tuple part) except -1


cdef class FewRows:
    cdef Appending queues
    cdef readonly str topic
    cdef readonly object partition, headers
    cdef readonly Callbacks outcome
    cdef list parts, runs
    cdef object pairs       # the headers
    cdef RowCells part      # the next row's; None behind the last
    cdef int64_t at, row, before
    cdef int fill(self, Appending queues, str topic, list parts) except -1
    cdef bint added(self, topic) except -1
    cdef int next_part(self) except -1
    cdef TableDelivery finished(self)
    cdef int extend(self, Callbacks batch, int64_t index) except -1


cdef class Appending:
    cdef public dict topics, ready, pending, active
    cdef public bint hashes
    cdef public object loop
    cdef readonly int64_t bytes
    cdef readonly bint full
    cdef readonly int64_t drained
    cdef int64_t memory, most
    cdef object is_owned
    cpdef close(self, OpenQueue queue)
    cpdef begin(self, OpenQueue queue, OpenBatch batch)
    cpdef resolved(self, OpenBatch batch)
    cpdef free(self, int64_t size)
    cdef void take(self, int64_t size) noexcept
    @cython.final
    cdef OpenQueue chosen(self, OpenTopic topic, partition, const k.kc_cell *key)
    @cython.final
    cdef bint add(self, OpenTopic topic, OpenBatch batch, k.kc_new_record *record, headers) except -1
    @cython.final
    cdef Delivery place(self, OpenTopic topic, OpenBatch batch, k.kc_new_record *record, headers)
    @cython.final
    cdef int64_t add_rows(self, OpenTopic topic, int64_t row, FewRows few) except -1
    @cython.final
    cdef FewRows few(self, name, data)
    @cython.final
    cdef bint has_few(self, OpenTopic topic, list parts) except -1
    cdef Delivery append_to_open(self, name, key, value, headers, partition, timestamp)


cdef class Sending:
    cdef public Appending _queues
