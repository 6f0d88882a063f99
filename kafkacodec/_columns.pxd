from kafkacodec cimport _kernel as k


cdef class Table:
    cdef k.kc_table *table

    cdef k.kc_column *column(self, str name) except NULL
