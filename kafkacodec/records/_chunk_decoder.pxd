# What the decoders of all formats share: the bytes they hold, one caller at a time, the fault, constant columns.
from libc.stdint cimport int32_t, int64_t, uint64_t

from kafkacodec._core cimport decode as k
from kafkacodec._core._buffer cimport HeldBuffer
from kafkacodec.arrow._columns cimport Budget


cdef class ChunkDecoder:
    cdef HeldBuffer held    # None once it is closed
    cdef bint working       # without the GIL, or in a library that gives it up
    cdef const k.kc_field *fields    # set by the subclass, before anything is read
    cdef int num_fields
    cdef uint64_t wanted
    cdef uint64_t limit     # bytes that a batch may decompress to
    cdef Budget budget      # of the tables that are made; None: nothing bounds them
    cdef bytes topic        # None: null
    cdef object partition   # likewise
    cdef readonly object fault
    cdef readonly bint exhausted    # the fault is one of the budget
    cdef readonly bint done

    cdef int require_idle(self) except -1
    cdef int require_open(self) except -1
    cdef int fill(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1
    cdef int run(self, k.kc_table *table, int64_t max_rows, uint64_t max_bytes) except -1
    cdef int append_place(self, k.kc_table *table) except -1
