from libc.stdint cimport int32_t, int64_t, uint64_t

from kafkacodec._core cimport arrow as k


cdef class Budget:
    cdef k.kc_budget *budget


cdef class Allowance:
    cdef size_t limit
    cdef const char *what
    cpdef Budget budget(self)


cdef class Table:
    cdef k.kc_table *table

    cdef k.kc_column *column(self, str name) except NULL
    cdef dict buffers_of(self, k.kc_column *c)
    cdef object values_of(self, k.kc_column *c)
    cdef object view_buffer(self, int32_t i)
    cdef const k.kc_field *fields(self) noexcept
    cdef k.kc_table *filled(self) except NULL
    cdef k.kc_table *with_fields(self, const k.kc_field *fields) except NULL
    cdef k.kc_table *growing(self, const k.kc_field *fields) except NULL


cdef object cell(const k.kc_column *c, int64_t row)
cdef Table new_table(object cls, const k.kc_field *fields, int num_fields, uint64_t wanted, Budget budget)
