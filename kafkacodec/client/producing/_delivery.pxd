from kafkacodec.client.producing._callbacks cimport Callback


cdef class Awaitable(Callback):
    cdef int look(self) except -1


cdef class Delivery(Awaitable):
    pass


cdef class TableDelivery(Awaitable):
    pass
