cdef class Counter:
    cdef public object value
    cpdef add(self, amount=*)


cdef class Histogram:
    cdef readonly long long count
    cdef readonly object sum, max
    cdef readonly dict _classes
    cpdef add(self, value)
