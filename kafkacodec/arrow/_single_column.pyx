# One column over owned or borrowed memory, which can be exported to Arrow any number of times.
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memset

from kafkacodec._core cimport arrow as k
from kafkacodec._core._errors cimport exception_from
from kafkacodec.arrow._capsules cimport drop_array, drop_schema, new_capsule


cdef void release_schema(k.ArrowSchema *schema) noexcept nogil:
    schema.release = NULL


cdef void release_array(k.ArrowArray *array) noexcept nogil:
    array.release = NULL
    with gil:
        Py_DECREF(<object> array.private_data)


cdef k.kc_buffer room(size_t size) except *:
    """Zeroed memory."""
    cdef k.kc_error error
    cdef k.kc_buffer buffer
    memset(&buffer, 0, sizeof(buffer))
    if k.kc_buffer_reserve(&buffer, size + 1, &error):
        raise exception_from(&error)
    memset(buffer.data, 0, size)
    buffer.size = size
    return buffer


cdef class SingleColumn:
    """One column of an Arrow type, which can be exported any number of times without a copy."""
    def __init__(self):
        raise TypeError("a SingleColumn cannot be created directly; functions return it")

    def __reduce_ex__(self, protocol):
        raise TypeError("a SingleColumn cannot be copied or pickled; convert it to an Arrow array instead")

    def __dealloc__(self):
        k.kc_buffer_free(&self.validity)
        k.kc_buffer_free(&self.values)
        k.kc_buffer_free(&self.pointers)
        k.kc_buffer_free(&self.sizes)

    def __len__(self):
        return self.length

    cdef void set_data(self, int64_t i, const void *data) noexcept nogil:
        """Set the memory of a data buffer, which `sources` keeps alive."""
        (<const void **> self.pointers.data)[2 + i] = data

    cdef void finish(self, int64_t data_buffers) noexcept:
        """List the buffers: validity, values, data, and for views the sizes of the data."""
        cdef const void **pointers = <const void **> self.pointers.data
        pointers[0] = self.validity.data
        pointers[1] = self.values.data
        self.buffers = 2 + data_buffers
        if self.sizes.data != NULL:
            pointers[self.buffers] = self.sizes.data
            self.buffers += 1

    def __arrow_c_schema__(self):
        cdef k.ArrowSchema *schema
        if self.format == NULL:
            raise TypeError("the column is empty: it was created directly")
        schema = <k.ArrowSchema *> k.kc_alloc_zeroed(sizeof(k.ArrowSchema))
        capsule = new_capsule(schema, "arrow_schema", drop_schema)
        schema.format = self.format
        schema.name = ""
        schema.flags = k.ARROW_FLAG_NULLABLE
        schema.release = release_schema
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        cdef k.ArrowArray *array
        schema = self.__arrow_c_schema__()
        array = <k.ArrowArray *> k.kc_alloc_zeroed(sizeof(k.ArrowArray))
        capsule = new_capsule(array, "arrow_array", drop_array)
        array.length = self.length
        array.null_count = 0 if self.validity.data == NULL else -1
        array.n_buffers = self.buffers
        array.buffers = <const void **> self.pointers.data
        array.private_data = <void *> self
        array.release = release_array
        Py_INCREF(self)
        return schema, capsule


cdef SingleColumn new_single_column(const char *format, int64_t length, int64_t data_buffers):
    """A column without memory except for the pointers to at most `data_buffers` data buffers."""
    cdef SingleColumn column = SingleColumn.__new__(SingleColumn)
    column.format = format
    column.length = length
    column.pointers = room((3 + data_buffers) * sizeof(void *))
    return column
