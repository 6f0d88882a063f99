cdef class Struct:
    # {tag: bytes} of tagged fields that the schema does not know; None where there are none.
    cdef object _unknown
