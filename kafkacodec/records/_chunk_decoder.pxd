# The base class of decoders: holds the buffer and the fault, allows one caller at a time, fills constant columns.
from libc.stdint cimport int32_t, int64_t, uint64_t

from kafkacodec._core cimport decode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec.arrow._columns cimport Budget


cdef class ChunkDecoder:
    cdef HeldBuffer held    # None if closed
    cdef const uint64_t *at    # where the C decoder has its position, and the size of the data
    cdef const uint64_t *end
    cdef bint working       # a call is in progress, possibly without the GIL
    cdef const k.kc_field *fields    # set by the subclass, before anything is read
    cdef int num_fields
    cdef uint64_t wanted
    cdef uint64_t limit     # on the decompressed size of a batch, in bytes
    cdef Budget budget      # of the tables created here; None: unlimited
    cdef bytes topic        # None: null
    cdef object partition   # None: null
    cdef readonly object fault
    cdef readonly bint exhausted    # the fault is that the budget is exhausted
    cdef readonly bint done

    cdef int require_idle(self) except -1
    cdef int require_open(self) except -1
    cdef int fill(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1
    cdef int begin(
        self, const k.kc_field *fields, int num_fields, uint64_t wanted, uint64_t limit, Budget budget,
        const uint64_t *at, const uint64_t *end
    ) except -1
    cdef k.kc_event advance(
        self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes, k.kc_error *error
    ) noexcept nogil
    cdef int provide(self, k.kc_error *error) except -1
    cdef object explain(self, object exception)
    cdef int end_of_run(self, k.kc_event event, k.kc_error *error) except -1
    cdef int run(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1
    cdef int append_place(self, k.kc_table *table) except -1
