# Schemas and arrays exported by another library; released with the Python object.
from kafkacodec._core cimport arrow as k


cdef class ImportedSchema:
    cdef k.ArrowSchema schema


cdef class ImportedArray:
    cdef k.ArrowArray array
    cdef readonly ImportedSchema owner
    cdef int require(self) except -1    # before access to `array` and `owner.schema`: empty if not made by ArrowReader


cdef class ImportedStream:
    cdef k.ArrowArrayStream stream


cdef class ArrowReader:
    cdef readonly ImportedSchema owner
    cdef ImportedStream source
    cdef ImportedArray single
    cdef bint working    # in the producer's code
    cdef int open_stream(self, object capsule) except -1
    cdef int open_array(self, object schema, object array) except -1
    cdef int pull(self, ImportedArray into) except -1
    cdef int fail(self, int code) except -1


cdef ImportedArray import_array(object schema, object array)
