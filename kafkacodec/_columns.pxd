from kafkacodec cimport _kernel as k


cdef class Table:
    cdef k.kc_table *table

    cdef k.kc_column *column(self, str name) except NULL
    cdef const k.kc_field *fields(self) noexcept
    cdef k.kc_table *with_fields(self, const k.kc_field *fields) except NULL
    cdef k.kc_table *growing(self, const k.kc_field *fields) except NULL
