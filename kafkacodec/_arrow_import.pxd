# Schemas and arrays that another library exported; released when the Python object goes.
from kafkacodec cimport _kernel as k


cdef class ImportedSchema:
    cdef k.ArrowSchema schema


cdef class ImportedArray:
    cdef k.ArrowArray array
    cdef readonly ImportedSchema owner


cdef class ArrowReader:
    cdef readonly ImportedSchema owner
    cdef object capsule
    cdef k.ArrowArrayStream *stream
    cdef ImportedArray single
    cdef int advance(self, k.ArrowArray *out) except -1
