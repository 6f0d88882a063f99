from kafkacodec.client.producing._callbacks cimport Callback


cdef class Awaitable(Callback):
    pass


cdef class Delivery(Awaitable):
    pass


cdef class TableDelivery(Awaitable):
    pass
