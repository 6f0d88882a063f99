# Destructors of Arrow capsules: they release what nobody has taken out.
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdlib cimport free

from kafkacodec cimport _kernel as k


cdef inline void drop_schema(object capsule) noexcept:
    cdef k.ArrowSchema *schema = <k.ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef inline void drop_array(object capsule) noexcept:
    cdef k.ArrowArray *array = <k.ArrowArray *> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)
